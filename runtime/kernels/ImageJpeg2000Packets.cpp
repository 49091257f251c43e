// The packets of a tile of JPEG 2000 (ITU-T T.800, Annex B): resolutions, bands, precincts and code-blocks, the order
// of packets, and what their headers say.
#include "runtime/kernels/ImageJpeg2000Decoder.h"

namespace firn::kernels::jpeg2000 {
namespace {

/// Whether the value of leaf (x, y) is below `threshold`, as far as bits must be read for that.
bool isBelow(TagTree &tree, int64_t x, int64_t y, uint32_t threshold, HeaderBits &bits, uint32_t *value = nullptr) {
  uint32_t low = 0;
  for (int32_t level = tree.levels - 1; level >= 0; --level) {
    TagTree::Node &node = tree.nodes[level][(y >> level) * tree.widths[level] + (x >> level)];
    if (node.low < low)
      node.low = low;
    while (!node.isKnown && node.low < threshold && !bits.bytes->isCut) {
      if (bits.bit())
        node.isKnown = true;
      else
        ++node.low;
    }
    low = node.low;
    if (level == 0) {
      if (value)
        *value = node.low;
      return node.isKnown && node.low < threshold;
    }
  }
  return false;
}

} // namespace

int32_t Decoder::measure(int32_t c) {
  const Coding &coding = header.codings[c];
  int32_t levels = coding.levels;
  resolutions[c] = arena.make<Resolution>(levels + 1);
  if (!resolutions[c])
    return noMemory();
  for (int32_t r = 0; r <= levels; ++r) {
    Resolution &to = resolutions[c][r];
    int32_t shift = levels - r;
    to.box = {ceilShift(box.x0, shift), ceilShift(box.y0, shift), ceilShift(box.x1, shift), ceilShift(box.y1, shift)};
    int32_t px = coding.precincts[r] & 15, py = coding.precincts[r] >> 4;
    to.across = to.box.width() ? ceilShift(to.box.x1, px) - (to.box.x0 >> px) : 0;
    to.down = to.box.height() ? ceilShift(to.box.y1, py) - (to.box.y0 >> py) : 0;
    precinctCount += to.across * to.down;
    to.bandCount = r == 0 ? 1 : 3;
    for (int32_t b = 0; b < to.bandCount; ++b)
      FIRN_TRY(measureBand(coding, c, r, r == 0 ? LL : Band(b + 1), to.bands[b]));
  }
  return FIRN_CALL_OK;
}

int32_t Decoder::measureBand(const Coding &coding, int32_t c, int32_t r, Band kind, TileBand &to) {
  int32_t decomposition = r == 0 ? coding.levels : coding.levels - r + 1;
  auto bound = [&](int64_t v, bool isHigh) {
    if (decomposition == 0)
      return v;
    int64_t half = isHigh && decomposition < 40 ? int64_t(1) << (decomposition - 1) : 0;
    return v > half ? ceilShift(v - half, decomposition) : 0;
  };
  bool isHighX = kind == HL || kind == HH, isHighY = kind == LH || kind == HH;
  to.kind = kind;
  to.box = {bound(box.x0, isHighX), bound(box.y0, isHighY), bound(box.x1, isHighX), bound(box.y1, isHighY)};
  int32_t index = r == 0 ? 0 : 3 * (r - 1) + kind;
  bool isDerived = coding.stepStyle == 1;
  if (!isDerived && index >= coding.stepCount)
    return damaged("a band has no quantisation");
  uint32_t step = coding.steps[isDerived ? 0 : index];
  int32_t exponent = int32_t(step >> 11);
  if (isDerived)
    exponent -= r == 0 ? 0 : r - 1; // E-5: less by the levels above the lowest
  to.planes = int32_t(coding.guardBits) + exponent - 1;
  if (to.planes < 0 || to.planes > 30)
    return to.box.area() && to.planes > 30 ? unsupported("magnitudes of more than 30 bits") : FIRN_CALL_OK;
  int32_t gain = kind == LL ? 0 : kind == HH ? 2 : 1, power = components[c].bits + gain - exponent;
  to.step =
      (1 + float(step & 2047) / 2048) * (power < 0 ? 1 / float(int64_t(1) << -power) : float(int64_t(1) << power));
  return FIRN_CALL_OK;
}

bool Decoder::makeTree(TagTree &tree, int64_t width, int64_t height) {
  tree.levels = 0;
  for (;;) {
    int32_t level = tree.levels++;
    tree.widths[level] = width;
    tree.heights[level] = height;
    tree.nodes[level] = arena.make<TagTree::Node>(width * height);
    if (!tree.nodes[level])
      return false;
    if (width <= 1 && height <= 1)
      return true;
    width = (width + 1) / 2;
    height = (height + 1) / 2;
  }
}

int32_t Decoder::makePrecincts() {
  if (precinctCount > (int64_t(1) << 26))
    return damaged("it has too many precincts");
  precincts = arena.make<Precinct>(precinctCount);
  order = arena.make<Precinct *>(precinctCount);
  if (!precincts || !order)
    return noMemory();
  int64_t at = 0;
  for (int32_t c = 0; c < componentCount; ++c)
    for (int32_t r = 0; r <= header.codings[c].levels; ++r)
      for (int64_t k = 0; k < resolutions[c][r].across * resolutions[c][r].down; ++k, ++at) {
        order[at] = precincts + at;
        FIRN_TRY(makePrecinct(c, r, k, precincts[at]));
      }
  return FIRN_CALL_OK;
}

int32_t Decoder::makePrecinct(int32_t c, int32_t r, int64_t k, Precinct &to) {
  const Coding &coding = header.codings[c];
  const Resolution &resolution = resolutions[c][r];
  int32_t px = coding.precincts[r] & 15, py = coding.precincts[r] >> 4, shift = coding.levels - r;
  int64_t column = (resolution.box.x0 >> px) + k % resolution.across;
  int64_t row = (resolution.box.y0 >> py) + k / resolution.across;
  to.component = c;
  to.level = r;
  to.index = k;
  to.x = column << px << shift > box.x0 ? column << px << shift : box.x0;
  to.y = row << py << shift > box.y0 ? row << py << shift : box.y0;
  to.bandCount = resolution.bandCount;
  to.bands = arena.make<PrecinctBand>(to.bandCount);
  if (!to.bands)
    return noMemory();
  int32_t halved = r > 0; // bands above the lowest have half the resolution's coordinates
  int32_t width = px - halved, height = py - halved;
  int32_t blockWidth = coding.blockWidth < width ? coding.blockWidth : width;
  int32_t blockHeight = coding.blockHeight < height ? coding.blockHeight : height;
  for (int32_t b = 0; b < to.bandCount; ++b) {
    const TileBand &band = resolution.bands[b];
    PrecinctBand &part = to.bands[b];
    auto clip = [](int64_t v, int64_t low, int64_t high) { return v < low ? low : v > high ? high : v; };
    Box area = {clip(column << width, band.box.x0, band.box.x1), clip(row << height, band.box.y0, band.box.y1),
                clip((column + 1) << width, band.box.x0, band.box.x1),
                clip((row + 1) << height, band.box.y0, band.box.y1)};
    if (area.area() == 0)
      continue;
    int64_t firstX = area.x0 >> blockWidth, firstY = area.y0 >> blockHeight;
    part.across = ceilShift(area.x1, blockWidth) - firstX;
    part.down = ceilShift(area.y1, blockHeight) - firstY;
    part.blocks = arena.make<PacketBlock>(part.across * part.down);
    if (!part.blocks || !makeTree(part.inclusion, part.across, part.down) ||
        !makeTree(part.planes, part.across, part.down))
      return noMemory();
    for (int64_t i = 0; i < part.across * part.down; ++i) {
      int64_t x = (firstX + i % part.across) << blockWidth, y = (firstY + i / part.across) << blockHeight;
      int64_t x0 = clip(x, area.x0, area.x1), y0 = clip(y, area.y0, area.y1);
      PacketBlock &block = part.blocks[i];
      block.x = x0 - band.box.x0;
      block.y = y0 - band.box.y0;
      block.block.width = int32_t(clip(x + (int64_t(1) << blockWidth), area.x0, area.x1) - x0);
      block.block.height = int32_t(clip(y + (int64_t(1) << blockHeight), area.y0, area.y1) - y0);
      block.lengthBits = 3;
    }
  }
  return FIRN_CALL_OK;
}

bool Decoder::isBefore(const Precinct &a, const Precinct &b) const {
  int64_t keys[2][5];
  for (int32_t i = 0; i < 2; ++i) {
    const Precinct &p = i ? b : a;
    const int64_t byProgression[5][5] = {{p.level, p.component, p.index, 0, 0},
                                         {p.level, p.component, p.index, 0, 0},
                                         {p.level, p.y, p.x, p.component, p.index},
                                         {p.y, p.x, p.component, p.level, p.index},
                                         {p.component, p.y, p.x, p.level, p.index}};
    memcpy(keys[i], byProgression[header.progression], sizeof keys[i]);
  }
  for (int32_t i = 0; i < 5; ++i)
    if (keys[0][i] != keys[1][i])
      return keys[0][i] < keys[1][i];
  return false;
}

void Decoder::siftDown(int64_t from, int64_t count) {
  for (int64_t child; (child = 2 * from + 1) < count; from = child) {
    if (child + 1 < count && isBefore(*order[child], *order[child + 1]))
      ++child;
    if (!isBefore(*order[from], *order[child]))
      return;
    Precinct *swapped = order[from];
    order[from] = order[child];
    order[child] = swapped;
  }
}

void Decoder::sortPrecincts() {
  for (int64_t i = precinctCount / 2; i-- > 0;)
    siftDown(i, precinctCount);
  for (int64_t end = precinctCount; end-- > 1;) {
    Precinct *greatest = order[0];
    order[0] = order[end];
    order[end] = greatest;
    siftDown(0, end);
  }
}

int32_t Decoder::readPackets() {
  for (int64_t begin = 0, end; begin < precinctCount; begin = end) {
    end = begin + 1;
    while (end < precinctCount &&
           (header.progression == 0 || (header.progression == 1 && order[end]->level == order[begin]->level)))
      ++end;
    for (uint32_t layer = 0; layer < header.layers; ++layer)
      for (int64_t i = begin; i < end; ++i) {
        if (packets.left() == 0) // cut off: what is there makes a coarser picture
          return FIRN_CALL_OK;
        FIRN_TRY(readPacket(*order[i], layer));
      }
  }
  return FIRN_CALL_OK;
}

int32_t Decoder::readPacket(Precinct &precinct, uint32_t layer) {
  if (header.hasStartMarkers && packets.startsWith("\xff\x91", 2))
    packets.skip(6);
  HeaderBits bits{&packets};
  const Coding &coding = header.codings[precinct.component];
  bool isEmpty = !bits.bit();
  for (int32_t b = 0; b < precinct.bandCount && !isEmpty; ++b) {
    PrecinctBand &band = precinct.bands[b];
    int32_t most = resolutions[precinct.component][precinct.level].bands[b].planes;
    for (int64_t i = 0; i < band.across * band.down; ++i) {
      PacketBlock &block = band.blocks[i];
      block.fresh = nullptr;
      int64_t x = i % band.across, y = i / band.across;
      bool isIncluded = block.isIncluded ? bits.bit() : isBelow(band.inclusion, x, y, layer + 1, bits);
      if (packets.isCut)
        return damaged("a packet is cut off");
      if (!isIncluded)
        continue;
      if (!block.isIncluded) {
        uint32_t missing = 0;
        isBelow(band.planes, x, y, 64, bits, &missing);
        block.block.planes = most - int32_t(missing);
        if (missing > 63 || block.block.planes < 0)
          return damaged("a code-block has more empty bits than bits");
        block.isIncluded = true;
      }
      FIRN_TRY(readLengths(block, coding.style, bits));
    }
  }
  bits.align();
  if (header.hasEndMarkers && packets.startsWith("\xff\x92", 2))
    packets.skip(2);
  for (int32_t b = 0; b < precinct.bandCount && !isEmpty; ++b)
    for (int64_t i = 0; i < precinct.bands[b].across * precinct.bands[b].down; ++i) {
      PacketBlock &block = precinct.bands[b].blocks[i];
      for (Piece *piece = block.fresh; piece; piece = piece->next) {
        // Of the last one, as much as there is.
        if (piece->length > packets.left())
          piece->length = packets.left();
        piece->data = packets.at;
        packets.skip(piece->length);
      }
      block.fresh = nullptr;
    }
  return FIRN_CALL_OK;
}

int32_t Decoder::readLengths(PacketBlock &block, uint32_t style, HeaderBits &bits) {
  int32_t passes = 1;
  if (bits.bit()) {
    passes = 2;
    if (bits.bit()) {
      uint32_t more = bits.bits(2);
      passes = 3 + int32_t(more);
      if (more == 3) {
        more = bits.bits(5);
        passes = 6 + int32_t(more);
        if (more == 31)
          passes = 37 + int32_t(bits.bits(7));
      }
    }
  }
  while (bits.bit() && !packets.isCut)
    ++block.lengthBits;
  while (passes > 0) {
    bool startsSegment = block.leftInSegment == 0;
    if (startsSegment)
      block.leftInSegment = segmentPasses(block.passes, style);
    int32_t count = passes < block.leftInSegment ? passes : block.leftInSegment;
    int32_t lengthBits = block.lengthBits;
    for (int32_t n = count; n > 1; n >>= 1)
      ++lengthBits;
    if (lengthBits > 31 || packets.isCut)
      return damaged("the length of a codeword is not one");
    auto *piece = arena.make<Piece>(1);
    if (!piece)
      return noMemory();
    *piece = {nullptr, bits.bits(lengthBits), count, startsSegment, nullptr};
    (block.last ? block.last->next : block.block.pieces) = piece;
    block.last = piece;
    block.fresh = block.fresh ? block.fresh : piece;
    block.passes += count;
    block.leftInSegment -= count;
    passes -= count;
  }
  return FIRN_CALL_OK;
}

int32_t Decoder::segmentPasses(int32_t index, uint32_t style) {
  if (style & TerminateAll)
    return 1;
  if (!(style & Bypass))
    return 1 << 20;
  return index < 10 ? 10 - index : (index - 10) % 3 == 0 ? 2 : 1;
}

} // namespace firn::kernels::jpeg2000

// JPEG 2000 (ITU-T T.800): boxes, the codestream's headers, packets, and tiles put together. Pictures of one or three
// components of up to 16 bits without subsampling; an alpha channel is left out.
#include "runtime/kernels/ImageJpeg2000Decoder.h"

namespace firn::kernels {
namespace jpeg2000 {

int32_t Decoder::run(bool wantsPixels, Picture *picture) {
  FIRN_TRY(findCodestream());
  FIRN_TRY(mainHeader());
  FIRN_TRY(setPictureSize(call, size.width(), size.height(), componentCount >= 3 ? 3 : 1, wantsPixels, picture));
  if (!wantsPixels)
    return FIRN_CALL_OK;
  FIRN_TRY(allocate(call, 1, &blocks));
  memset(static_cast<void *>(blocks), 0, sizeof *blocks);
  TilePart **parts;
  FIRN_TRY(collectParts(&parts));
  memset(picture->pixels, 0, size_t(picture->width * picture->height * picture->channels));
  for (int64_t tile = 0; tile < tilesAcross * tilesDown; ++tile)
    if (parts[tile])
      FIRN_TRY(decodeTile(tile, parts[tile], *picture));
  return FIRN_CALL_OK;
}

int32_t Decoder::unsupported(const char *what) {
  return fail(call, FIRN_CALL_UNSUPPORTED, "JPEG 2000 pictures with %s are not supported", what);
}

int32_t Decoder::findCodestream() {
  if (file.startsWith("\xff\x4f", 2))
    return FIRN_CALL_OK;
  ByteReader boxes = file;
  while (boxes.left() >= 8) {
    int64_t length = boxes.big32(), headerBytes = 8;
    uint32_t type = boxes.big32();
    if (length == 1) {
      if (boxes.big32() != 0)
        break;
      length = boxes.big32();
      headerBytes = 16;
    }
    ByteReader body = boxes.take(length == 0 ? boxes.left() : length - headerBytes);
    if (type == 0x6a703263) { // jp2c
      file = body;
      return FIRN_CALL_OK;
    }
    if (boxes.isCut)
      break;
    if (type == 0x6a703268) // jp2h
      FIRN_TRY(readHeaderBox(body));
  }
  return damaged("it has no codestream");
}

int32_t Decoder::readHeaderBox(ByteReader boxes) {
  while (boxes.left() >= 8) {
    int64_t length = boxes.big32();
    uint32_t type = boxes.big32();
    ByteReader body = boxes.take(length == 0 ? boxes.left() : length - 8);
    if (boxes.isCut)
      return damaged("a box of its header is cut off");
    if (type == 0x70636c72) // pclr
      return unsupported("a palette");
    if (type == 0x636f6c72 && body.byte() == 1) { // colr
      body.skip(2);
      uint32_t space = body.big32();
      if (space != 16 && space != 17)
        return fail(call, FIRN_CALL_UNSUPPORTED, "JPEG 2000 pictures in colour space %u are not supported", space);
    }
  }
  return FIRN_CALL_OK;
}

int32_t Decoder::mainHeader() {
  file.skip(2);
  bool hasCoding = false, hasSteps = false;
  for (;;) {
    uint32_t marker = file.big16();
    if (marker == 0xff90)
      break;
    ByteReader segment = file.take(int64_t(file.big16()) - 2);
    if (file.isCut)
      return damaged("its header is cut off");
    if (marker == 0xff51)
      FIRN_TRY(readSize(segment));
    else if (componentCount == 0)
      return damaged("its header does not begin with the size");
    else
      FIRN_TRY(readMarker(marker, segment, mainCoding, false));
    hasCoding |= marker == 0xff52;
    hasSteps |= marker == 0xff5c;
  }
  file.at -= 2; // the first tile-part
  return hasCoding && hasSteps ? FIRN_CALL_OK : damaged("it does not say how it is coded");
}

int32_t Decoder::readSize(ByteReader from) {
  from.skip(2);
  int64_t x1 = from.big32(), y1 = from.big32(), x0 = from.big32(), y0 = from.big32();
  tileWidth = from.big32();
  tileHeight = from.big32();
  tileX0 = from.big32();
  tileY0 = from.big32();
  size = {x0, y0, x1, y1};
  uint32_t count = from.big16();
  if (from.isCut || x1 <= x0 || y1 <= y0 || tileWidth == 0 || tileHeight == 0 || tileX0 > x0 || tileY0 > y0 ||
      tileX0 + tileWidth <= x0 || tileY0 + tileHeight <= y0 || count == 0)
    return damaged("its size is not one");
  if (count > mostComponents)
    return unsupported("more than four components");
  for (uint32_t c = 0; c < count; ++c) {
    uint32_t depth = from.byte(), dx = from.byte(), dy = from.byte();
    components[c] = {int32_t(depth & 127) + 1, depth > 127};
    if (from.isCut)
      return damaged("its size is cut off");
    if (dx != 1 || dy != 1)
      return unsupported("subsampled components");
    if (components[c].bits > (count < 3 ? 8 : 16) || components[c].bits != components[0].bits)
      return unsupported("components of so many bits");
  }
  tilesAcross = ceilDiv(x1 - tileX0, tileWidth);
  tilesDown = ceilDiv(y1 - tileY0, tileHeight);
  if (tilesAcross > 65535 || tilesDown > 65535 || tilesAcross * tilesDown > 65535)
    return damaged("it has too many tiles");
  componentCount = int32_t(count);
  return FIRN_CALL_OK;
}

int32_t Decoder::readMarker(uint32_t marker, ByteReader segment, Header &to, bool isTile) {
  switch (marker) {
  case 0xff52: { // COD
    uint32_t flags = segment.byte();
    to.hasStartMarkers = flags & 2;
    to.hasEndMarkers = flags & 4;
    to.progression = segment.byte();
    to.layers = segment.big16();
    to.isMixed = segment.byte();
    Coding coding = {};
    FIRN_TRY(readCoding(segment, flags & 1, coding));
    if (to.layers == 0 || to.progression > 4)
      return damaged("its coding style is not one");
    for (int32_t c = 0; c < componentCount; ++c)
      if (!to.codings[c].isOwnCoding || isTile)
        copyCoding(coding, to.codings[c]);
    return FIRN_CALL_OK;
  }
  case 0xff53: { // COC
    uint32_t c = segment.byte(), flags = segment.byte();
    Coding coding = {};
    FIRN_TRY(readCoding(segment, flags & 1, coding));
    if (c >= uint32_t(componentCount))
      return damaged("its coding style names a component that it has not");
    copyCoding(coding, to.codings[c]);
    to.codings[c].isOwnCoding = true;
    return FIRN_CALL_OK;
  }
  case 0xff5c: { // QCD
    Coding coding = {};
    FIRN_TRY(readSteps(segment, coding));
    for (int32_t c = 0; c < componentCount; ++c)
      if (!to.codings[c].isOwnSteps || isTile)
        copySteps(coding, to.codings[c]);
    return FIRN_CALL_OK;
  }
  case 0xff5d: { // QCC
    uint32_t c = segment.byte();
    Coding coding = {};
    FIRN_TRY(readSteps(segment, coding));
    if (c >= uint32_t(componentCount))
      return damaged("its quantisation names a component that it has not");
    copySteps(coding, to.codings[c]);
    to.codings[c].isOwnSteps = true;
    return FIRN_CALL_OK;
  }
  case 0xff5e:
    return unsupported("a region of interest");
  case 0xff5f:
    return unsupported("changes of the progression");
  case 0xff60:
  case 0xff61:
    return unsupported("packet headers apart");
  default:
    return FIRN_CALL_OK;
  }
}

int32_t Decoder::readCoding(ByteReader &from, bool hasPrecincts, Coding &to) {
  to.levels = int32_t(from.byte());
  to.blockWidth = int32_t(from.byte()) + 2;
  to.blockHeight = int32_t(from.byte()) + 2;
  to.style = from.byte();
  to.isReversible = from.byte() == 1;
  if (to.levels > mostLevels || to.blockWidth > 10 || to.blockHeight > 10 || to.blockWidth + to.blockHeight > 12)
    return damaged("its code-blocks are too large or its levels too many");
  for (int32_t r = 0; r <= to.levels; ++r) {
    to.precincts[r] = uint8_t(hasPrecincts ? from.byte() : 0xff);
    if (r > 0 && ((to.precincts[r] & 15) == 0 || to.precincts[r] >> 4 == 0))
      return damaged("its precincts are too small");
  }
  return from.isCut ? damaged("its coding style is cut off") : FIRN_CALL_OK;
}

void Decoder::copyCoding(const Coding &from, Coding &to) {
  to.levels = from.levels;
  to.blockWidth = from.blockWidth;
  to.blockHeight = from.blockHeight;
  to.style = from.style;
  to.isReversible = from.isReversible;
  memcpy(to.precincts, from.precincts, sizeof to.precincts);
}

int32_t Decoder::readSteps(ByteReader &from, Coding &to) {
  uint32_t style = from.byte();
  to.stepStyle = style & 31;
  to.guardBits = style >> 5;
  if (from.isCut || to.stepStyle > 2)
    return damaged("its quantisation is not one");
  while (from.left() >= (to.stepStyle == 0 ? 1 : 2) && to.stepCount < mostBands)
    to.steps[to.stepCount++] = uint16_t(to.stepStyle == 0 ? from.byte() >> 3 << 11 : from.big16());
  return to.stepCount ? FIRN_CALL_OK : damaged("its quantisation is cut off");
}

void Decoder::copySteps(const Coding &from, Coding &to) {
  to.stepStyle = from.stepStyle;
  to.guardBits = from.guardBits;
  memcpy(to.steps, from.steps, sizeof to.steps);
  to.stepCount = from.stepCount;
}

int32_t Decoder::collectParts(TilePart ***to) {
  int64_t tiles = tilesAcross * tilesDown;
  TilePart **last;
  FIRN_TRY(allocate(call, tiles, to));
  FIRN_TRY(allocate(call, tiles, &last));
  for (int64_t i = 0; i < tiles; ++i)
    (*to)[i] = last[i] = nullptr;
  while (file.left() >= 12) {
    ByteReader start = file;
    if (file.big16() != 0xff90)
      break;
    file.skip(2);
    uint32_t tile = file.big16();
    int64_t length = file.big32();
    file.skip(2);
    if (tile >= tiles || (length != 0 && length < 14))
      return damaged("a part of a tile is none");
    int64_t body = length == 0 || length - 12 > file.left() ? file.left() : length - 12;
    TilePart *part;
    FIRN_TRY(allocate(call, 1, &part));
    *part = {file.take(body), tile, nullptr};
    (last[tile] ? last[tile]->next : (*to)[tile]) = part;
    last[tile] = part;
    if (start.at == file.at)
      break;
  }
  return FIRN_CALL_OK;
}

int32_t Decoder::decodeTile(int64_t tile, TilePart *parts, const Picture &picture) {
  arena.reset();
  header = mainCoding;
  int64_t x = tileX0 + tile % tilesAcross * tileWidth, y = tileY0 + tile / tilesAcross * tileHeight;
  box = {x > size.x0 ? x : size.x0, y > size.y0 ? y : size.y0, x + tileWidth < size.x1 ? x + tileWidth : size.x1,
         y + tileHeight < size.y1 ? y + tileHeight : size.y1};
  // The packets of all parts, one after the other.
  int64_t total = 0;
  for (TilePart *part = parts; part; part = part->next) {
    FIRN_TRY(partHeader(part->bytes));
    total += part->bytes.left();
  }
  auto *bytes = arena.make<uint8_t>(total + 1);
  if (!bytes)
    return noMemory();
  int64_t at = 0;
  for (TilePart *part = parts; part; part = part->next) {
    memcpy(bytes + at, part->bytes.at, size_t(part->bytes.left()));
    at += part->bytes.left();
  }
  packets = {bytes, bytes + total};
  packetBytes = total;
  precinctCount = 0;
  for (int32_t c = 0; c < componentCount; ++c)
    FIRN_TRY(measure(c));
  FIRN_TRY(makePrecincts());
  sortPrecincts();
  FIRN_TRY(readPackets());
  for (int32_t c = 0; c < componentCount; ++c)
    FIRN_TRY(reconstruct(c));
  store(picture);
  return FIRN_CALL_OK;
}

int32_t Decoder::partHeader(ByteReader &bytes) {
  for (;;) {
    uint32_t marker = bytes.big16();
    if (marker == 0xff93)
      return FIRN_CALL_OK;
    ByteReader segment = bytes.take(int64_t(bytes.big16()) - 2);
    if (bytes.isCut)
      return damaged("the header of a tile is cut off");
    FIRN_TRY(readMarker(marker, segment, header, true));
  }
}

int32_t Decoder::reconstruct(int32_t c) {
  const Coding &coding = header.codings[c];
  for (int32_t r = 0; r <= coding.levels; ++r)
    for (int32_t b = 0; b < resolutions[c][r].bandCount; ++b) {
      TileBand &band = resolutions[c][r].bands[b];
      band.coefficients = arena.make<int32_t>(band.box.area());
      if (!band.coefficients)
        return noMemory();
    }
  blocks->bytes = arena.make<uint8_t>(packetBytes + 1);
  if (!blocks->bytes)
    return noMemory();
  for (int64_t i = 0; i < precinctCount; ++i)
    if (precincts[i].component == c)
      FIRN_TRY(decodeBlocks(precincts[i], coding));
  planes[c] = resolutions[c][0].bands[0].coefficients;
  auto *line = arena.make<int32_t>((box.width() > box.height() ? box.width() : box.height()) + 16);
  for (int32_t r = 1; r <= coding.levels; ++r) {
    Resolution &to = resolutions[c][r];
    auto *plane = arena.make<int32_t>(to.box.area());
    if (!plane || !line)
      return noMemory();
    interleave(planes[c], resolutions[c][r - 1].box, to, plane);
    if (coding.isReversible)
      inverseReversible(plane, to.box.width(), to.box, line);
    else
      inverseIrreversible(reinterpret_cast<float *>(plane), to.box.width(), to.box, reinterpret_cast<float *>(line));
    planes[c] = plane;
  }
  return FIRN_CALL_OK;
}

void Decoder::interleave(const int32_t *low, const Box &lowBox, const Resolution &from, int32_t *to) {
  for (int64_t y = from.box.y0; y < from.box.y1; ++y)
    for (int64_t x = from.box.x0; x < from.box.x1; ++x) {
      int32_t kind = int32_t(x & 1) | int32_t(y & 1) << 1;
      const Box &box = kind == LL ? lowBox : from.bands[kind - 1].box;
      const int32_t *source = kind == LL ? low : from.bands[kind - 1].coefficients;
      *to++ = source[((y >> 1) - box.y0) * box.width() + (x >> 1) - box.x0];
    }
}

int32_t Decoder::decodeBlocks(const Precinct &precinct, const Coding &coding) {
  for (int32_t b = 0; b < precinct.bandCount; ++b) {
    const TileBand &band = resolutions[precinct.component][precinct.level].bands[b];
    const PrecinctBand &part = precinct.bands[b];
    for (int64_t i = 0; i < part.across * part.down; ++i) {
      const PacketBlock &block = part.blocks[i];
      if (!block.block.pieces)
        continue;
      if (!blocks->decode(block.block, band.kind, coding.style))
        return damaged("a code-block has more passes than bits");
      int64_t width = block.block.width;
      for (int64_t k = 0; k < width * block.block.height; ++k) {
        int32_t *to = band.coefficients + (block.y + k / width) * band.box.width() + block.x + k % width;
        if (coding.isReversible) {
          auto value = int32_t(blocks->magnitudes[k] / 2);
          *to = blocks->signs[k] ? -value : value;
        } else {
          float value = float(blocks->magnitudes[k]) * 0.5f * band.step;
          value = blocks->signs[k] ? -value : value;
          memcpy(to, &value, sizeof value);
        }
      }
    }
  }
  return FIRN_CALL_OK;
}

void Decoder::store(const Picture &picture) {
  bool isReversible = header.codings[0].isReversible;
  bool isMixed = header.isMixed && componentCount >= 3 && header.codings[1].isReversible == isReversible &&
                 header.codings[2].isReversible == isReversible;
  for (int64_t i = 0; i < box.area(); ++i) {
    int32_t values[3] = {};
    if (isMixed && isReversible) {
      int64_t y = planes[0][i], u = planes[1][i], v = planes[2][i], green = y - ((u + v) >> 2);
      values[0] = int32_t(v + green);
      values[1] = int32_t(green);
      values[2] = int32_t(u + green);
    } else if (isMixed) {
      float y = real(0, i), u = real(1, i), v = real(2, i);
      values[0] = nearest(y + 1.402f * v);
      values[1] = nearest(y - 0.344136f * u - 0.714136f * v);
      values[2] = nearest(y + 1.772f * u);
    } else {
      for (int32_t c = 0; c < picture.channels; ++c)
        values[c] = header.codings[c].isReversible ? planes[c][i] : nearest(real(c, i));
    }
    int64_t x = box.x0 - size.x0 + i % box.width(), y = box.y0 - size.y0 + i / box.width();
    uint8_t *to = picture.pixels + (y * picture.width + x) * picture.channels;
    for (int32_t c = 0; c < picture.channels; ++c)
      to[c] = inBytes(values[c], components[c]);
  }
}

float Decoder::real(int32_t c, int64_t i) const {
  float value;
  memcpy(&value, planes[c] + i, sizeof value);
  return value;
}

int32_t Decoder::nearest(float value) {
  return value > 1e9f ? 1000000000 : value > -1e9f ? int32_t(__builtin_rintf(value)) : -1000000000;
}

uint8_t Decoder::inBytes(int64_t value, const Component &component) {
  int64_t most = (int64_t(1) << component.bits) - 1;
  value += int64_t(1) << (component.bits - 1); // signed or not, the range begins at 0
  value = value < 0 ? 0 : value > most ? most : value;
  if (component.bits <= 8)
    return uint8_t(value << (8 - component.bits));
  value = (value + (int64_t(1) << (component.bits - 9))) >> (component.bits - 8);
  return uint8_t(value > 255 ? 255 : value);
}

} // namespace jpeg2000

int32_t decodeJpeg2000(firn_call *call, ByteReader file, bool wantsPixels, Picture *picture) {
  return jpeg2000::Decoder(call, file).run(wantsPixels, picture);
}

} // namespace firn::kernels

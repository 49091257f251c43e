// The decoder of JPEG 2000: what its parts know of the file. ImageJpeg2000.cpp reads headers and puts tiles together,
// ImageJpeg2000Packets.cpp finds and reads the packets of a tile.
#ifndef FIRN_KERNELS_IMAGEJPEG2000DECODER_H
#define FIRN_KERNELS_IMAGEJPEG2000DECODER_H

#include "runtime/kernels/ImageJpeg2000.h"

namespace firn::kernels::jpeg2000 {

constexpr int32_t mostLevels = 32, mostComponents = 4, mostBands = 3 * mostLevels + 1;

/// Scratch memory that one tile after the other uses again.
class Arena {
public:
  explicit Arena(firn_call *forCall) : call(forCall) {}
  void reset() {
    current = first;
    used = 0;
  }
  /// Zeros; NULL where there is no memory.
  template <typename T> T *make(int64_t count) {
    int64_t bytes;
    if (__builtin_mul_overflow(count, int64_t(sizeof(T)), &bytes) || bytes > (int64_t(1) << 40))
      return nullptr;
    bytes = (bytes + 15) / 16 * 16;
    while (current && used + bytes > current->size) {
      current = current->next;
      used = 0;
    }
    if (!current && !grow(bytes))
      return nullptr;
    void *at = current->data + used;
    used += bytes;
    memset(at, 0, size_t(bytes));
    return static_cast<T *>(at);
  }

private:
  struct Chunk {
    Chunk *next;
    uint8_t *data;
    int64_t size;
  };
  bool grow(int64_t bytes) {
    Chunk *made;
    int64_t size = bytes > (1 << 16) ? bytes : 1 << 16;
    if (allocate(call, 1, &made) || allocate(call, size, &made->data))
      return false;
    made->size = size;
    made->next = nullptr;
    (last ? last->next : first) = made;
    last = current = made;
    used = 0;
    return true;
  }
  firn_call *call;
  Chunk *first = nullptr, *last = nullptr, *current = nullptr;
  int64_t used = 0;
};

// --- headers ---------------------------------------------------------------------------------------------------------

struct Component {
  int32_t bits;
  bool isSigned;
};

/// COD and COC, QCD and QCC of one component.
struct Coding {
  int32_t levels;
  int32_t blockWidth, blockHeight; // exponents
  uint32_t style;
  bool isReversible;
  uint8_t precincts[mostLevels + 1]; // exponents: width in the low four bits, height above
  bool isOwnCoding, isOwnSteps;      // said of this component alone
  uint32_t stepStyle, guardBits;
  uint16_t steps[mostBands]; // exponent << 11 | mantissa
  int32_t stepCount;
};

struct Header {
  uint32_t progression, layers;
  bool isMixed, hasStartMarkers, hasEndMarkers;
  Coding codings[mostComponents];
};

// --- packets ---------------------------------------------------------------------------------------------------------

/// A tag tree (B.10.2): level 0 has a node for each code-block of a precinct, the last one node.
struct TagTree {
  struct Node {
    uint32_t low;
    bool isKnown;
  };
  int32_t levels;
  int64_t widths[32], heights[32];
  Node *nodes[32];
};

struct PacketBlock {
  Block block;
  int64_t x, y; // in the band's part of the tile
  bool isIncluded;
  int32_t lengthBits, passes, leftInSegment;
  Piece *last;
  // Of the packet that is read.
  Piece *fresh;
};

struct PrecinctBand {
  int64_t across, down; // code-blocks
  PacketBlock *blocks;
  TagTree inclusion, planes;
};

struct Precinct {
  int32_t component, level; // level 0: the lowest resolution
  int64_t index, x, y;      // position on the reference grid
  uint32_t layer;           // the next one
  int32_t bandCount;
  PrecinctBand *bands;
};

// --- the decoder -----------------------------------------------------------------------------------------------------

struct TileBand {
  Band kind;
  Box box;
  int32_t planes; // magnitude bits that a code-block may have
  float step;
  int32_t *coefficients; // of the box; floats where the wavelet is not reversible
};

struct Resolution {
  Box box;
  int64_t across, down; // precincts
  int32_t bandCount;
  TileBand bands[3];
};

struct TilePart {
  ByteReader bytes;
  uint32_t tile;
  TilePart *next;
};

/// Bits of packet headers: behind a byte of ones, the next has 7.
struct HeaderBits {
  ByteReader *bytes;
  uint32_t byte = 0;
  int32_t left = 0;
  uint32_t bit() {
    if (left == 0) {
      left = byte == 0xff ? 7 : 8;
      byte = bytes->byte();
    }
    return byte >> --left & 1;
  }
  uint32_t bits(int32_t count) {
    uint32_t value = 0;
    for (int32_t i = 0; i < count; ++i)
      value = value << 1 | bit();
    return value;
  }
  void align() {
    if (byte == 0xff)
      bytes->byte();
    left = 0;
    byte = 0;
  }
};

class Decoder {
public:
  Decoder(firn_call *forCall, ByteReader bytes) : call(forCall), file(bytes), arena(forCall) {}

  /// Reads the size, and where `wantsPixels` the pixels.
  int32_t run(bool wantsPixels, Picture *picture);

private:
  int32_t damaged(const char *what) { return damagedPicture(call, "JPEG 2000", what); }
  int32_t unsupported(const char *what);
  int32_t noMemory() { return outOfMemory(call, size.area(), sizeof(int32_t)); }

  // --- boxes (Annex I) ---
  int32_t findCodestream();
  int32_t readHeaderBox(ByteReader boxes);

  // --- markers (Annex A) ---
  int32_t mainHeader();

  int32_t readSize(ByteReader from);

  int32_t readMarker(uint32_t marker, ByteReader segment, Header &to, bool isTile);

  int32_t readCoding(ByteReader &from, bool hasPrecincts, Coding &to);
  static void copyCoding(const Coding &from, Coding &to);
  int32_t readSteps(ByteReader &from, Coding &to);
  static void copySteps(const Coding &from, Coding &to);

  /// The tile-parts of each tile, in their order. A file that is cut off has the tiles that it has.
  int32_t collectParts(TilePart ***to);

  // --- tiles ---
  int32_t decodeTile(int64_t tile, TilePart *parts, const Picture &picture);

  int32_t partHeader(ByteReader &bytes);

  /// Resolutions and bands of a component (B.5).
  int32_t measure(int32_t c);

  int32_t measureBand(const Coding &coding, int32_t c, int32_t r, Band kind, TileBand &to);

  bool makeTree(TagTree &tree, int64_t width, int64_t height);

  int32_t makePrecincts();

  int32_t makePrecinct(int32_t c, int32_t r, int64_t k, Precinct &to);

  // --- the order of packets (B.12) ---
  /// Layers are not part of the key: all of a precinct follow each other, but in the first two orders.
  bool isBefore(const Precinct &a, const Precinct &b) const;
  void siftDown(int64_t from, int64_t count);
  void sortPrecincts();

  /// Runs of precincts that go through their layers together: all (0), those of a resolution (1), each alone.
  int32_t readPackets();

  int32_t readPacket(Precinct &precinct, uint32_t layer);

  /// How many passes follow, and the lengths of their codewords (B.10.6, B.10.7).
  int32_t readLengths(PacketBlock &block, uint32_t style, HeaderBits &bits);
  /// Passes of the codeword that begins with pass `index`.
  static int32_t segmentPasses(int32_t index, uint32_t style);

  // --- coefficients ---
  int32_t reconstruct(int32_t c);

  /// The four bands in the result's order: even coordinates are low-pass.
  static void interleave(const int32_t *low, const Box &lowBox, const Resolution &from, int32_t *to);

  int32_t decodeBlocks(const Precinct &precinct, const Coding &coding);

  /// Components of a pixel put together (Annex G), in 8 bits.
  void store(const Picture &picture);
  float real(int32_t c, int64_t i) const;
  static int32_t nearest(float value);
  static uint8_t inBytes(int64_t value, const Component &component);

  firn_call *call;
  ByteReader file;
  Arena arena;
  Box size = {};
  int64_t tileWidth = 0, tileHeight = 0, tileX0 = 0, tileY0 = 0, tilesAcross = 0, tilesDown = 0;
  int32_t componentCount = 0;
  Component components[mostComponents] = {};
  Header mainCoding = {};
  BlockDecoder *blocks = nullptr;
  // Of the tile that is decoded.
  Header header = {};
  Box box = {};
  ByteReader packets = {};
  int64_t packetBytes = 0;
  Resolution *resolutions[mostComponents] = {};
  int64_t precinctCount = 0;
  Precinct *precincts = nullptr, **order = nullptr;
  int32_t *planes[mostComponents] = {};
};

} // namespace firn::kernels::jpeg2000
#endif

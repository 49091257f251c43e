// JPEG 2000 (ITU-T T.800): what the codestream, the code-blocks and the wavelets share.
#ifndef FIRN_KERNELS_IMAGEJPEG2000_H
#define FIRN_KERNELS_IMAGEJPEG2000_H

#include "runtime/kernels/Image.h"

namespace firn::kernels::jpeg2000 {

inline int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
/// ceil(a / 2^shift), a >= 0.
inline int64_t ceilShift(int64_t a, int64_t shift) {
  return shift > 40 ? int64_t(a > 0) : (a + (int64_t(1) << shift) - 1) >> shift;
}

/// x0 <= x < x1, y0 <= y < y1.
struct Box {
  int64_t x0, y0, x1, y1;
  int64_t width() const { return x1 > x0 ? x1 - x0 : 0; }
  int64_t height() const { return y1 > y0 ? y1 - y0 : 0; }
  int64_t area() const { return width() * height(); }
};

/// Bytes that a packet adds to a code-block, and the coding passes in them.
struct Piece {
  const uint8_t *data;
  int64_t length;
  int32_t passes;
  bool startsSegment; // a codeword of its own begins
  Piece *next;
};

/// Code-block style (Table A.19).
enum Style : uint32_t { Bypass = 1, ResetContexts = 2, TerminateAll = 4, Causal = 8, SegmentSymbols = 32 };

/// The kind of a sub-band: which of its two directions is high-pass.
enum Band : int32_t { LL = 0, HL = 1, LH = 2, HH = 3 };

struct Block {
  int32_t width, height; // at most 4096 coefficients
  int32_t planes;        // magnitude bits that its passes begin with
  Piece *pieces;
};

/// Memory for one code-block after the other.
struct BlockDecoder {
  static constexpr int32_t most = 4096;
  // Magnitudes in halves, so that a coefficient lies in the middle of what is not known of it; signs beside.
  uint32_t magnitudes[most];
  uint8_t signs[most];
  uint8_t flags[(1024 + 2) * 6 + 2 * most]; // with a border: (width + 2) * (height + 2)
  uint8_t *bytes = nullptr;                 // the codewords of a block, one after the other
  int64_t capacity = 0;

  /// Decodes the passes of `block` (Annex D). False where there are more passes than planes.
  bool decode(const Block &block, Band band, uint32_t style);
};

/// One step of the inverse wavelet transform (Annex F) in both directions. `plane` holds the four bands of `box` as
/// they lie in the result's order: even coordinates low-pass, odd ones high-pass, `stride` between rows. `line` has
/// room for the longer side and 8 more.
void inverseReversible(int32_t *plane, int64_t stride, const Box &box, int32_t *line);
void inverseIrreversible(float *plane, int64_t stride, const Box &box, float *line);

} // namespace firn::kernels::jpeg2000
#endif

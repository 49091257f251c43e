// VP8, the lossy bitstream of WebP (RFC 6386): what its reader, its reconstruction and its loop filter share.
#ifndef FIRN_KERNELS_IMAGEVP8_H
#define FIRN_KERNELS_IMAGEVP8_H

#include "runtime/kernels/ImageWebp.h"

namespace firn::kernels {

/// How a block is predicted. Whole macroblocks and chroma know the first four alone.
enum Vp8Mode : uint8_t {
  vp8Mean,
  vp8TrueMotion,
  vp8Up,
  vp8Left,
  vp8DownRight,
  vp8UpRight,
  vp8DownLeft,
  vp8UpLeft,
  vp8LeftDown,
  vp8LeftUp
};

/// 16 x 16 pixels of luma and 8 x 8 of each chroma.
struct Vp8Macroblock {
  bool isSplit;                  // each 4x4 block has a mode of its own; else modes[0] is that of all
  uint8_t modes[16], chromaMode; // Vp8Mode
  int16_t coefficients[24][16];  // dequantised: 16 blocks of luma, 4 of u, 4 of v
};

/// Samples with a row above the first, one column to the left and 4 to the right of them.
struct Vp8Plane {
  uint8_t *at;
  int64_t stride;
};

/// What the loop filter does to one macroblock; nothing where `limit` is 0.
struct Vp8FilterStrength {
  uint8_t limit, innerLimit, varianceLimit;
  bool filtersInside; // the edges between its 4x4 blocks too
};

struct Vp8Frame {
  int64_t across, down;         // macroblocks
  Vp8Plane planes[3];           // y, u, v
  Vp8FilterStrength *strengths; // one a macroblock; NULL without filter
  bool isFilterSimple;          // luma alone
};

/// Predicts macroblock (x, y) from its neighbours, which are not yet filtered, and adds what its coefficients tell.
void reconstruct(const Vp8Frame &frame, int64_t x, int64_t y, const Vp8Macroblock &macroblock);
/// Undoes the transform of the 16 means of luma's blocks.
void inverseMeans(const int16_t *means, int16_t (*coefficients)[16]);
void filterLoop(const Vp8Frame &frame);
/// Upsamples chroma and converts to red, green and blue.
void convertColors(const Vp8Frame &frame, const FramePixels &to);

} // namespace firn::kernels
#endif

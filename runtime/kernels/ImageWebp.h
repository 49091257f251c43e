// WebP: what its container and its two codecs, VP8 (lossy) and VP8L (lossless), share.
#ifndef FIRN_KERNELS_IMAGEWEBP_H
#define FIRN_KERNELS_IMAGEWEBP_H

#include "runtime/kernels/Image.h"

namespace firn::kernels {

/// Where a frame's pixels go: red, green, blue; rows are `rowBytes` apart.
struct FramePixels {
  int64_t width, height;
  uint8_t *at;
  int64_t rowBytes;
};

/// The size that a bitstream's header tells; false where it is not one.
bool readVp8Size(ByteReader stream, int64_t *width, int64_t *height);
bool readVp8lSize(ByteReader stream, int64_t *width, int64_t *height);

/// Decodes a bitstream whose size is that of `to`.
int32_t decodeVp8(firn_call *call, ByteReader stream, const FramePixels &to);
int32_t decodeVp8l(firn_call *call, ByteReader stream, const FramePixels &to);

} // namespace firn::kernels
#endif

// Pictures in files: what the decoders of ImageDecoder share. Each reads hostile bytes: sizes and indices are checked
// before they are used, and a damaged file is an error of the run.
#ifndef FIRN_KERNELS_IMAGE_H
#define FIRN_KERNELS_IMAGE_H

#include "runtime/kernels/Require.h"

namespace firn::kernels {

/// The bytes of a file from some place on. Reads beyond its end give 0 and set `isCut`.
struct ByteReader {
  const uint8_t *at, *end;
  bool isCut = false;

  int64_t left() const { return end - at; }
  uint32_t byte() {
    if (at < end)
      return *at++;
    isCut = true;
    return 0;
  }
  uint32_t big16() {
    uint32_t high = byte();
    return high << 8 | byte();
  }
  uint32_t big32() {
    uint32_t high = big16();
    return high << 16 | big16();
  }
  uint32_t little16() {
    uint32_t low = byte();
    return low | byte() << 8;
  }
  uint32_t little32() {
    uint32_t low = little16();
    return low | little16() << 16;
  }
  void skip(int64_t count) {
    isCut |= count < 0 || count > left();
    at = isCut ? end : at + count;
  }
  /// The next `count` bytes, as far as there are so many.
  ByteReader take(int64_t count) {
    const uint8_t *begin = at;
    skip(count);
    return {begin, at};
  }
  bool startsWith(const char *text, int64_t length) const {
    return left() >= length && memcmp(at, text, size_t(length)) == 0;
  }
};

struct Picture {
  int64_t width, height;
  int32_t channels; // 1: grey, 3: red, green, blue
  uint8_t *pixels;  // NULL while only the size is asked for
};

/// Reads the size, and where `wantsPixels` the pixels, which lie in scratch memory.
int32_t decodePng(firn_call *call, ByteReader file, bool wantsPixels, Picture *picture);
int32_t decodeTiff(firn_call *call, ByteReader file, bool wantsPixels, Picture *picture);
int32_t decodeJpeg(firn_call *call, ByteReader file, bool wantsPixels, Picture *picture);
int32_t decodeJpeg2000(firn_call *call, ByteReader file, bool wantsPixels, Picture *picture);
int32_t decodeWebp(firn_call *call, ByteReader file, bool wantsPixels, Picture *picture);

/// Checks width and height, and makes memory for the pixels where they are wanted.
int32_t setPictureSize(firn_call *call, int64_t width, int64_t height, int32_t channels, bool wantsPixels,
                       Picture *picture);
int32_t damagedPicture(firn_call *call, const char *format, const char *what);

} // namespace firn::kernels
#endif

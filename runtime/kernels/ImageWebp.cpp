// WebP's container (RFC 9649): simple and extended files. Alpha, colour profiles and metadata are skipped; of an
// animated file the first frame is shown, on a black canvas.
#include "runtime/kernels/ImageWebp.h"

namespace firn::kernels {
namespace {

/// One picture: its bitstream, and where it lies on the canvas.
struct WebpFrame {
  ByteReader stream;
  bool isLossless;
  int64_t x, y, width, height;
};

/// Takes the next chunk, whose payload is padded to an even size; false where it is cut off.
bool takeChunk(ByteReader &file, const uint8_t **tag, ByteReader *chunk) {
  *tag = file.at;
  file.skip(4);
  uint32_t bytes = file.little32();
  *chunk = file.take(bytes);
  if (bytes % 2 && file.left() > 0)
    file.skip(1);
  return !file.isCut;
}

bool isTagged(const uint8_t *tag, const char *name) { return memcmp(tag, name, 4) == 0; }

/// Finds the bitstream among `chunks`; returns what is wrong, or NULL.
const char *findBitstream(ByteReader chunks, WebpFrame *frame) {
  while (chunks.left() > 0) {
    const uint8_t *tag;
    if (!takeChunk(chunks, &tag, &frame->stream))
      return "a chunk is cut off";
    frame->isLossless = isTagged(tag, "VP8L");
    if (!frame->isLossless && !isTagged(tag, "VP8 "))
      continue;
    return (frame->isLossless ? readVp8lSize : readVp8Size)(frame->stream, &frame->width, &frame->height)
               ? nullptr
               : "the header of its bitstream is not one";
  }
  return "it holds no bitstream";
}

/// Finds the first frame of an animation: its place, then its chunks.
const char *findFirstFrame(ByteReader chunks, WebpFrame *frame) {
  while (chunks.left() > 0) {
    const uint8_t *tag;
    ByteReader chunk{};
    if (!takeChunk(chunks, &tag, &chunk))
      return "a chunk is cut off";
    if (!isTagged(tag, "ANMF"))
      continue;
    auto little24 = [&] {
      uint32_t low = chunk.little16();
      return int64_t(low | chunk.byte() << 16);
    };
    frame->x = 2 * little24();
    frame->y = 2 * little24();
    int64_t width = little24() + 1, height = little24() + 1;
    chunk.skip(4); // duration, and how it is blended with what was there before
    if (chunk.isCut)
      return "a frame is cut off";
    if (const char *wrong = findBitstream(chunk, frame))
      return wrong;
    return width == frame->width && height == frame->height ? nullptr : "a frame has another size than its bitstream";
  }
  return "it holds no frame";
}

} // namespace

int32_t decodeWebp(firn_call *call, ByteReader file, bool wantsPixels, Picture *picture) {
  file.skip(4);
  uint32_t bytes = file.little32();
  if (bytes < 12 || bytes > uint64_t(file.left()))
    return damagedPicture(call, "WebP", "it is cut off");
  file.end = file.at + bytes;
  file.skip(4);
  WebpFrame frame{};
  int64_t width, height;
  const char *wrong;
  if (file.startsWith("VP8X", 4)) {
    const uint8_t *tag;
    ByteReader header{};
    takeChunk(file, &tag, &header);
    bool isAnimated = header.byte() & 2;
    header.skip(3);
    width = header.little16();
    width += (header.byte() << 16) + 1;
    height = header.little16();
    height += (header.byte() << 16) + 1;
    if (file.isCut || header.isCut)
      return damagedPicture(call, "WebP", "its header is cut off");
    wrong = isAnimated ? findFirstFrame(file, &frame) : findBitstream(file, &frame);
    if (!wrong && (isAnimated ? frame.x + frame.width > width || frame.y + frame.height > height
                              : frame.width != width || frame.height != height))
      wrong = "its picture does not fit its canvas";
  } else {
    wrong = findBitstream(file, &frame);
    width = frame.width;
    height = frame.height;
  }
  if (wrong)
    return damagedPicture(call, "WebP", wrong);
  FIRN_TRY(setPictureSize(call, width, height, 3, wantsPixels, picture));
  if (!wantsPixels)
    return FIRN_CALL_OK;
  if (frame.width != width || frame.height != height)
    memset(picture->pixels, 0, size_t(width * height * 3));
  FramePixels to{frame.width, frame.height, picture->pixels + (frame.y * width + frame.x) * 3, width * 3};
  return frame.isLossless ? decodeVp8l(call, frame.stream, to) : decodeVp8(call, frame.stream, to);
}

} // namespace firn::kernels

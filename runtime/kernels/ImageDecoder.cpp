// ImageDecoder: formats by their first bytes; BMP and PNM here, the others beside it.
#include "runtime/kernels/Image.h"

namespace firn::kernels {

int32_t damagedPicture(firn_call *call, const char *format, const char *what) {
  return fail(call, FIRN_CALL_INVALID, "the %s picture is damaged: %s", format, what);
}

int32_t setPictureSize(firn_call *call, int64_t width, int64_t height, int32_t channels, bool wantsPixels,
                       Picture *picture) {
  if (width < 1 || height < 1 || width > (1 << 24) || height > (1 << 24) || width * height > (int64_t(1) << 30))
    return fail(call, FIRN_CALL_INVALID, "a picture of %lld x %lld pixels cannot be decoded",
                static_cast<long long>(width), static_cast<long long>(height));
  *picture = {width, height, channels, nullptr};
  return wantsPixels ? allocate(call, width * height * channels, &picture->pixels) : FIRN_CALL_OK;
}

namespace {

// --- BMP -------------------------------------------------------------------------------------------------------------

// The bits of a mask as a byte.
uint8_t masked(uint32_t value, uint32_t mask) {
  if (mask == 0)
    return 0;
  int32_t shift = __builtin_ctz(mask);
  uint64_t most = mask >> shift;
  return uint8_t((uint64_t((value & mask) >> shift) * 255 + most / 2) / most);
}

int32_t decodeBmp(firn_call *call, ByteReader file, bool wantsPixels, Picture *picture) {
  ByteReader whole = file;
  file.skip(10);
  uint32_t pixelsAt = file.little32(), headerBytes = file.little32();
  if (headerBytes < 40)
    return fail(call, FIRN_CALL_UNSUPPORTED, "BMP pictures with a header of %u bytes are not supported", headerBytes);
  const uint8_t *afterHeader = file.at + (headerBytes - 4 <= uint64_t(file.left()) ? headerBytes - 4 : 0);
  int64_t width = int32_t(file.little32()), height = int32_t(file.little32());
  file.skip(2);
  uint32_t bits = file.little16(), compression = file.little32();
  file.skip(12);
  uint32_t colors = file.little32();
  file.skip(4);
  uint32_t masks[3] = {0xff0000, 0xff00, 0xff};
  if (bits == 16)
    masks[0] = 0x7c00, masks[1] = 0x3e0, masks[2] = 0x1f;
  if (compression == 3)
    for (uint32_t &mask : masks)
      mask = file.little32();
  if (file.isCut)
    return damagedPicture(call, "BMP", "its header is cut off");
  bool isPalette = bits == 1 || bits == 4 || bits == 8;
  if ((!isPalette && bits != 16 && bits != 24 && bits != 32) || (compression != 0 && compression != 3))
    return fail(call, FIRN_CALL_UNSUPPORTED, "BMP pictures of %u bits with compression %u are not supported", bits,
                compression);
  bool isUpsideDown = height > 0;
  FIRN_TRY(setPictureSize(call, width, height < 0 ? -height : height, 3, wantsPixels, picture));
  if (!wantsPixels)
    return FIRN_CALL_OK;
  uint8_t palette[256][3] = {};
  ByteReader entries{afterHeader, whole.end};
  uint32_t most = 1u << (isPalette ? bits : 0);
  for (uint32_t i = 0; isPalette && i < (colors && colors < most ? colors : most); ++i) {
    for (int32_t c = 2; c >= 0; --c)
      palette[i][c] = uint8_t(entries.byte());
    entries.byte();
  }
  int64_t rowBytes = (width * bits + 31) / 32 * 4;
  if (pixelsAt > uint64_t(whole.left()) || rowBytes * picture->height > whole.left() - int64_t(pixelsAt))
    return damagedPicture(call, "BMP", "its pixels are cut off");
  for (int64_t y = 0; y < picture->height; ++y) {
    const uint8_t *row = whole.at + pixelsAt + (isUpsideDown ? picture->height - 1 - y : y) * rowBytes;
    uint8_t *to = picture->pixels + y * width * 3;
    for (int64_t x = 0; x < width; ++x, to += 3) {
      if (isPalette) {
        uint32_t index = uint32_t(row[x * bits / 8]) >> (8 - bits - x * bits % 8) & (most - 1);
        memcpy(to, palette[index], 3);
      } else if (bits == 24) {
        to[0] = row[3 * x + 2], to[1] = row[3 * x + 1], to[2] = row[3 * x];
      } else {
        ByteReader pixel{row + x * bits / 8, row + (x + 1) * bits / 8};
        uint32_t value = bits == 16 ? pixel.little16() : pixel.little32();
        for (int32_t c = 0; c < 3; ++c)
          to[c] = masked(value, masks[c]);
      }
    }
  }
  return FIRN_CALL_OK;
}

// --- PNM -------------------------------------------------------------------------------------------------------------

bool isBlank(uint32_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// The next number of a header or of pixels as text; -1 where there is none.
int64_t pnmNumber(ByteReader &file) {
  while (file.left() > 0 && (isBlank(*file.at) || *file.at == '#'))
    if (file.byte() == '#')
      while (file.left() > 0 && *file.at != '\n')
        file.byte();
  int64_t number = -1;
  while (file.left() > 0 && *file.at >= '0' && *file.at <= '9' && number < (int64_t(1) << 40))
    number = (number < 0 ? 0 : number * 10) + (file.byte() - '0');
  return number;
}

int32_t decodePnm(firn_call *call, ByteReader file, bool wantsPixels, Picture *picture) {
  file.byte();
  uint32_t kind = file.byte() - '0'; // 1 to 3 as text, 4 to 6 as bytes; bits, greys, colours
  bool isText = kind <= 3, isBits = kind % 3 == 1;
  int64_t width = pnmNumber(file), height = pnmNumber(file), most = isBits ? 1 : pnmNumber(file);
  if (most < 1 || most > 65535)
    return damagedPicture(call, "PNM", "its header is not one");
  if (!isText)
    file.byte(); // one blank ends the header
  FIRN_TRY(setPictureSize(call, width, height, kind % 3 == 0 ? 3 : 1, wantsPixels, picture));
  if (!wantsPixels)
    return FIRN_CALL_OK;
  int64_t perRow = width * picture->channels;
  for (int64_t y = 0; y < height; ++y) {
    uint32_t bits = 0;
    for (int64_t x = 0; x < perRow; ++x) {
      int64_t value;
      if (isText && isBits) { // digits may stand side by side
        while (file.left() > 0 && isBlank(*file.at))
          file.byte();
        value = int64_t(file.byte()) - '0';
      } else if (isText) {
        value = pnmNumber(file);
      } else if (isBits) {
        bits = x % 8 ? bits << 1 : file.byte();
        value = bits >> 7 & 1;
      } else {
        value = most < 256 ? file.byte() : file.big16();
      }
      if (file.isCut || value < 0 || value > most)
        return damagedPicture(call, "PNM", "its pixels are cut off or out of range");
      value = (value * 255 + most / 2) / most;
      picture->pixels[y * perRow + x] = uint8_t(isBits ? 255 - value : value);
    }
  }
  return FIRN_CALL_OK;
}

// --- the operator ----------------------------------------------------------------------------------------------------

int32_t decode(firn_call *call, bool wantsPixels, Picture *picture) {
  const firn_view &encoded = call->inputs[0];
  const auto *data = static_cast<const uint8_t *>(encoded.data);
  ByteReader file{data, data + elementCount(encoded)};
  if (file.startsWith("\x89PNG\r\n\x1a\n", 8))
    return decodePng(call, file, wantsPixels, picture);
  if (file.startsWith("\xff\xd8\xff", 3))
    return decodeJpeg(call, file, wantsPixels, picture);
  if (file.startsWith("BM", 2))
    return decodeBmp(call, file, wantsPixels, picture);
  if (file.left() > 2 && file.at[0] == 'P' && file.at[1] >= '1' && file.at[1] <= '6' && isBlank(file.at[2]))
    return decodePnm(call, file, wantsPixels, picture);
  if (file.startsWith("II*\0", 4) || file.startsWith("MM\0*", 4))
    return decodeTiff(call, file, wantsPixels, picture);
  if (file.startsWith("RIFF", 4) && file.left() >= 12 && memcmp(file.at + 8, "WEBP", 4) == 0)
    return decodeWebp(call, file, wantsPixels, picture);
  if (file.startsWith("\0\0\0\x0cjP  ", 8) || file.startsWith("\xff\x4f\xff\x51", 4))
    return decodeJpeg2000(call, file, wantsPixels, picture);
  bool isGif = file.startsWith("GIF8", 4);
  return fail(call, isGif ? FIRN_CALL_UNSUPPORTED : FIRN_CALL_INVALID,
              "the picture is %s: expected PNG, JPEG, JPEG 2000, BMP, PNM, TIFF or WebP",
              isGif ? "GIF" : "of no known format");
}

int32_t channelsOf(firn_call *call, int32_t *channels) {
  static const char *const formats[] = {"RGB", "BGR", "Grayscale"};
  int32_t format;
  FIRN_TRY(choiceAttribute(call, "pixel_format", formats, 3, 0, &format));
  *channels = format == 2 ? 1 : 3;
  return FIRN_CALL_OK;
}

int32_t inferImageDecoder(firn_call *call) {
  FIRN_TRY(requireInput(call, 0, typeSet(FIRN_U8)));
  int32_t channels;
  FIRN_TRY(channelsOf(call, &channels));
  setRank(call, 0, FIRN_U8, 3);
  FIRN_TRY(requireValue(call, 0));
  Picture picture;
  FIRN_TRY(decode(call, false, &picture));
  const int64_t dims[] = {picture.height, picture.width, channels};
  return setChecked(call, 0, FIRN_U8, dims, 3);
}

int32_t runImageDecoder(firn_call *call) {
  const firn_view *y = output(call, 0);
  if (!y)
    return FIRN_CALL_OK;
  Picture picture;
  FIRN_TRY(decode(call, true, &picture));
  auto *to = static_cast<uint8_t *>(y->data);
  bool isBackwards = stringAttributeIs(call, "pixel_format", "BGR", "RGB");
  int64_t count = picture.width * picture.height;
  for (int64_t i = 0; i < count; ++i) {
    const uint8_t *from = picture.pixels + i * picture.channels;
    uint8_t red = from[0], green = from[picture.channels == 3 ? 1 : 0], blue = from[picture.channels == 3 ? 2 : 0];
    if (y->dims[2] == 1) { // ITU-R 601-2 luma, in 16 bits behind the point
      to[i] = picture.channels == 1 ? red : uint8_t((red * 19595u + green * 38470u + blue * 7471u + 0x8000u) >> 16);
      continue;
    }
    to[3 * i] = isBackwards ? blue : red;
    to[3 * i + 1] = green;
    to[3 * i + 2] = isBackwards ? red : blue;
  }
  return FIRN_CALL_OK;
}

} // namespace

FIRN_OPERATOR(ai_onnx, ImageDecoder, "ai.onnx::ImageDecoder", inferImageDecoder, runImageDecoder)

} // namespace firn::kernels

// Feeds bytes to the readers of tensor files; the first byte chooses .pb, .npy or .npz. They must give a tensor or
// throw Failure; what they give must survive being written and read again.
#include "tools/tensor_io/Files.h"
#include <cstdio>
#include <cstdlib>

using namespace firn::tools;

static void requireSame(const Tensor &a, const Tensor &b, const char *format) {
  if (a.dtype == b.dtype && a.dims == b.dims && a.bytes() == b.bytes())
    return;
  std::fprintf(stderr, "%s: %s became %s\n", format, typeText(a.dtype, a.dims.data(), int32_t(a.dims.size())).c_str(),
               typeText(b.dtype, b.dims.data(), int32_t(b.dims.size())).c_str());
  std::abort();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0)
    return 0;
  std::string_view bytes(reinterpret_cast<const char *>(data) + 1, size - 1);
  int32_t wanted = data[0] / 3 % 27;
  Tensor tensor;
  try {
    switch (data[0] % 3) {
    case 0:
      tensor = parsePb(bytes);
      break;
    case 1:
      tensor = parseNpy(bytes, wanted);
      break;
    default:
      for (const NpzMember &member : parseNpz(bytes))
        tensor = parseNpy(member.bytes, wanted);
    }
  } catch (const Failure &) {
    return 0;
  }
  if (tensor.dtype != FIRN_DTYPE_NONE && tensor.bytes() < (1 << 20))
    requireSame(tensor, parsePb(formatPb(tensor)), "pb");
  return 0;
}

// Feeds bytes to the reader of one kind of tensor files, FIRN_FUZZ_FORMAT: 0 TensorProto, 1 .npy, 2 .npz. It must give
// a tensor or throw Failure; what it gives must survive being written and read again.
#include "tools/tensor_io/Files.h"
#include <cstdio>
#include <cstdlib>

using namespace firn::tools;

static void requireSame(const Tensor &a, const Tensor &b, const char *format) {
  if (a.dtype == b.dtype && a.dims == b.dims && a.bytes() == b.bytes() && a.items.size() == b.items.size()) {
    for (size_t i = 0; i < a.items.size(); ++i)
      requireSame(a.items[i], b.items[i], format);
    return;
  }
  std::fprintf(stderr, "%s: %s became %s\n", format, typeText(a.dtype, a.dims.data(), int32_t(a.dims.size())).c_str(),
               typeText(b.dtype, b.dims.data(), int32_t(b.dims.size())).c_str());
  std::abort();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0)
    return 0;
  std::string_view bytes(reinterpret_cast<const char *>(data), size);
  int32_t wanted = data[size - 1] % 27; // NumPy's files do not say bfloat16 and the like: whoever reads them does
  int32_t form = FIRN_FUZZ_FORMAT == 0 ? data[size - 1] % 7 : FIRN_FORM_TENSOR; // of the port that the file is for
  Tensor tensor;
  try {
    if (FIRN_FUZZ_FORMAT == 0)
      tensor = parsePb(bytes, form);
    else if (FIRN_FUZZ_FORMAT == 1)
      tensor = parseNpy(bytes, wanted);
    else
      for (const NpzMember &member : parseNpz(bytes))
        tensor = parseNpy(member.bytes, wanted);
  } catch (const Failure &) {
    return 0;
  }
  if (tensor.dtype != FIRN_DTYPE_NONE && tensor.bytes() < (1 << 20))
    requireSame(tensor, parsePb(formatPb(tensor, form), form), "pb");
  return 0;
}

// tensor_convert IN OUT [DTYPE]: reads a .pb, .npy or IN.npz:MEMBER and writes .pb or .npy. For tests against numpy and
// onnx.
#include <cstdio>
#include <cstdlib>

#include "tools/tensor_io/Files.h"

using namespace firn::tools;

static Tensor read(const std::string &from, int32_t wanted) {
  size_t archive = from.find(".npz:");
  if (archive == std::string::npos)
    return readTensor(from, {"", wanted, FIRN_FORM_TENSOR});
  return std::move(
      readTensors(from.substr(0, archive + 4), "input", {{from.substr(archive + 5), wanted, FIRN_FORM_TENSOR}})[0]);
}

int main(int argc, char **argv) {
  if (argc < 3)
    return BadCommandLine;
  try {
    Tensor tensor = read(argv[1], argc > 3 ? std::atoi(argv[3]) : 0);
    std::string to = argv[2];
    bool isNpy = to.size() > 4 && to.compare(to.size() - 4, 4, ".npy") == 0;
    writeFile(to, isNpy ? formatNpy(tensor) : formatPb(tensor));
    return Done;
  } catch (const Failure &failure) {
    std::fprintf(stderr, "tensor_convert: %s\n", failure.what());
    return failure.status;
  }
}

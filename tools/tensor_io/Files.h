// Reading and writing tensor files. All readers take hostile input: sizes are checked before anything is allocated.
#ifndef FIRN_TOOLS_TENSOR_IO_FILES_H
#define FIRN_TOOLS_TENSOR_IO_FILES_H

#include <string>
#include <string_view>
#include <vector>

#include "tools/tensor_io/Tensor.h"

namespace firn::tools {

/// The bytes of a file; throws Failure(BadFile).
std::string readFile(const std::string &path);
/// Writes a file whole or not at all: beside it first, then renamed. Throws Failure(BadFile).
void writeFile(const std::string &path, std::string_view bytes);
/// Makes a folder, and those above it, unless it is there. Throws Failure(BadFile).
void makeFolder(const std::string &path);

/// A TensorProto or, for a port of another FIRN_FORM_, a SequenceProto, an OptionalProto or a MapProto. Throws
/// Failure(Rejected) with the reason; so do the other parsers.
Tensor parsePb(std::string_view bytes, int32_t form = FIRN_FORM_TENSOR);
std::string formatPb(const Tensor &tensor, int32_t form = FIRN_FORM_TENSOR);

/// An .npy array. numpy has no name for bf16, float8 and packed types: `wanted` (FIRN_DTYPE_NONE: unknown) says what
/// raw bytes mean, and packs 8-bit integers into 4-bit or 2-bit ones.
Tensor parseNpy(std::string_view bytes, int32_t wanted);
std::string formatNpy(const Tensor &tensor);

/// The .npy members of an .npz archive, by name without ".npy".
struct NpzMember {
  std::string name;
  std::string bytes;
};
std::vector<NpzMember> parseNpz(std::string_view bytes);

/// What the tensors of a folder or archive are for.
struct PortName {
  std::string name;
  int32_t dtype;
  int32_t form;
};

/// One tensor of a file by its extension: .pb or .npy. Failures name the file.
Tensor readTensor(const std::string &path, const PortName &port);

/// Reads the tensors of `ports` from a folder (KIND_0.pb, KIND_0.npy, NAME.npy, NAME.pb, or one .npz) or from an .npz
/// file. kind: "input" or "output". A port without a file gets an absent tensor (dtype none).
std::vector<Tensor> readTensors(const std::string &path, const std::string &kind, const std::vector<PortName> &ports);

} // namespace firn::tools
#endif

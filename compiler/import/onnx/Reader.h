// Reader of ONNX files: protobuf to Model. Knows nothing of operators.
#ifndef FIRN_COMPILER_IMPORT_ONNX_READER_H
#define FIRN_COMPILER_IMPORT_ONNX_READER_H

#include "compiler/Diagnostics.h"
#include "compiler/Limits.h"
#include "compiler/import/Model.h"

namespace firn {

/// Reads a ModelProto. Frozen tensors point into the parsed message, which they keep alive, or into mapped side files
/// beside `path`. Problems are reported; nothing only if there is no model at all.
std::optional<model::Model> readOnnx(llvm::StringRef bytes, llvm::StringRef path, const Limits &limits,
                                     Diagnostics &diagnostics);

} // namespace firn
#endif

// Writer of ONNX files: Model to protobuf.
#ifndef FIRN_COMPILER_EXPORT_ONNX_WRITER_H
#define FIRN_COMPILER_EXPORT_ONNX_WRITER_H

#include "compiler/Diagnostics.h"
#include "compiler/import/Model.h"

namespace firn {

std::optional<int64_t> writeOnnx(const model::Model &model, llvm::StringRef path, int64_t sideFileBytes,
                                 Diagnostics &diagnostics);

} // namespace firn
#endif

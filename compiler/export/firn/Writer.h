// Writer of Firn's own graph files (proto/graph.proto), binary or text by the path's extension.
#ifndef FIRN_COMPILER_EXPORT_FIRN_WRITER_H
#define FIRN_COMPILER_EXPORT_FIRN_WRITER_H

#include "compiler/Diagnostics.h"
#include "compiler/import/Model.h"

namespace firn {

bool writeFirn(const model::Model &model, llvm::StringRef path, int64_t sideFileBytes, Diagnostics &diagnostics);

} // namespace firn
#endif

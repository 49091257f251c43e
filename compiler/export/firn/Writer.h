// Writer of Firn's own graph files (proto/graph.proto), binary or text by the path's extension.
#ifndef FIRN_COMPILER_EXPORT_FIRN_WRITER_H
#define FIRN_COMPILER_EXPORT_FIRN_WRITER_H

#include "compiler/Diagnostics.h"
#include "compiler/import/Model.h"
#include <string>

namespace firn {

/// A graph alone, with all its constants, as bytes that readGraph reads; for graphs that pass through the compiler as
/// they are.
std::string graphBytes(const model::Graph &graph);

std::optional<int64_t> writeFirn(const model::Model &model, llvm::StringRef path, int64_t sideFileBytes,
                                 Diagnostics &diagnostics);

} // namespace firn
#endif

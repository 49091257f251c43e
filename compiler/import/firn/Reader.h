// Reader of Firn's own graph files (proto/graph.proto): protobuf to Model.
#ifndef FIRN_COMPILER_IMPORT_FIRN_READER_H
#define FIRN_COMPILER_IMPORT_FIRN_READER_H

#include "compiler/Diagnostics.h"
#include "compiler/Limits.h"
#include "compiler/import/Model.h"

namespace firn {

/// A binary file starts with its field `format`; a text file says `format: "firn.v1"` before anything else but
/// comments.
bool isFirnBinary(llvm::StringRef bytes);
bool isFirnText(llvm::StringRef bytes);

/// What graphBytes wrote.
std::optional<model::Graph> readGraph(llvm::StringRef bytes);

std::optional<model::Model> readFirn(llvm::StringRef bytes, llvm::StringRef path, bool isText, const Limits &limits,
                                     Diagnostics &diagnostics);

} // namespace firn
#endif

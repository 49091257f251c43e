// Write: what the encoders share: side files for large constants and files that appear whole or not at all.
#ifndef FIRN_COMPILER_EXPORT_WRITE_H
#define FIRN_COMPILER_EXPORT_WRITE_H

#include "compiler/Diagnostics.h"
#include "compiler/import/Model.h"
#include <cstdio>

namespace firn {

/// Writes `bytes` beside `path` and renames; reports where that fails.
bool writeFile(llvm::StringRef path, llvm::StringRef bytes, Diagnostics &diagnostics);

/// The file "<path>.data" beside a model, filled one constant after the other. Appears with finish().
class SideFileWriter {
public:
  explicit SideFileWriter(llvm::StringRef modelPath);
  ~SideFileWriter();
  SideFileWriter(const SideFileWriter &) = delete;
  SideFileWriter &operator=(const SideFileWriter &) = delete;

  /// Appends, page-aligned; the offset is returned.
  int64_t add(llvm::ArrayRef<char> bytes);
  const std::string &location() const { return name; }
  int64_t bytes() const { return size; }
  /// True if nothing was added or all of it is in place.
  bool finish(Diagnostics &diagnostics);

private:
  std::string path, name;
  std::FILE *file = nullptr;
  int64_t size = 0;
  bool isFailed = false;
};

/// Finishes the side file and writes the file that names it; the bytes of both.
std::optional<int64_t> writeWithSideFile(llvm::StringRef path, llvm::StringRef bytes, SideFileWriter &side,
                                         Diagnostics &diagnostics);

/// Says that a message would be above protobuf's limit.
void tooLarge(Diagnostics &diagnostics);

/// Bytes of all constants of the graph and those nested in it.
int64_t constantBytesOf(const model::Graph &graph);

/// The constants from here on go to the side file (bytes).
int64_t sideFileThreshold(int64_t asked, const model::Model &model);

} // namespace firn
#endif

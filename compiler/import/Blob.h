// Blob: bytes of files, mapped read-only, and decoded tensors with checked sizes.
#ifndef FIRN_COMPILER_IMPORT_BLOB_H
#define FIRN_COMPILER_IMPORT_BLOB_H

#include "compiler/Limits.h"
#include "compiler/import/Model.h"
#include "llvm/ADT/StringRef.h"

namespace firn {

/// A whole file, mapped. Bytes stay valid as long as the object lives.
struct MappedFile {
  llvm::ArrayRef<char> bytes;
  std::shared_ptr<void> owner;
};
/// Maps a regular file; nothing and a reason in `why` where that cannot be.
std::optional<MappedFile> mapFile(const std::string &path, std::string &why);

/// Gives the pages of `bytes` back, where a MappedFile holds them: reading them again reads the file.
/// For passing over more bytes than should be resident. Elsewhere it does nothing.
void releasePages(llvm::ArrayRef<char> bytes);

/// The files beside a model: opened by name, mapped once, none outside the model's folder.
class SideFiles {
public:
  SideFiles(llvm::StringRef modelPath, const Limits &limits);
  /// `length` bytes at `offset` of the file `location` (relative to the model's folder); to its end without a length.
  /// Nothing and a reason in `why` where they are not there or must not be read.
  std::optional<MappedFile> range(const std::string &location, int64_t offset, std::optional<int64_t> length,
                                  std::string &why);
  /// Why that was, as a code of a message.
  llvm::StringRef code() const { return isOverLimit ? "import.limit" : "import.external"; }

private:
  std::string folder;
  std::map<std::string, MappedFile> open;
  bool isOverLimit = false;
  int64_t left; // bytes that the files opened from here on may have
};

/// How deep protobuf messages may nest, where a nested graph takes `levels` messages.
inline int protobufDepth(const Limits &limits, int64_t levels) {
  return int(levels * std::min(limits.depth, Limits::mostDepth) + 16);
}

/// Elements of a tensor with these dimensions; nothing if a dimension is negative or the product too large.
std::optional<int64_t> elementCount(llvm::ArrayRef<int64_t> dims);
/// Their bytes for `dtype`, likewise.
std::optional<int64_t> byteCount(int32_t dtype, llvm::ArrayRef<int64_t> dims);

/// Bytes that the tensor owns: `size` zeros to write into.
char *allocateBytes(model::Tensor &tensor, size_t size);

} // namespace firn
#endif

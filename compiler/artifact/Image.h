// Image: the read-only tables of an artifact in the layout of runtime/abi/model.h, with the pointers still symbolic.
#ifndef FIRN_COMPILER_ARTIFACT_IMAGE_H
#define FIRN_COMPILER_ARTIFACT_IMAGE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace llvm {
class LLVMContext;
class Module;
} // namespace llvm

namespace firn {

class Image {
public:
  /// Appends bytes at an alignment and returns their offset.
  int64_t append(const void *bytes, size_t size, size_t alignment);
  template <typename T> int64_t array(const std::vector<T> &list) {
    return append(list.data(), list.size() * sizeof(T), alignof(T));
  }
  /// A terminated string, each text once.
  int64_t text(llvm::StringRef text);
  /// The 8 bytes at `at` become the address of `target` in the image, or of another symbol. A negative target: NULL.
  void pointTo(int64_t at, int64_t target);
  void pointTo(int64_t at, llvm::StringRef symbol);
  /// As one constant global `name` of `module`; other symbols are declared hidden.
  void emit(llvm::Module &module, llvm::StringRef name) const;
  size_t size() const { return bytes.size(); }

private:
  struct Pointer {
    int64_t target;
    std::string symbol;
  };
  std::vector<char> bytes;
  std::map<int64_t, Pointer> pointers; // by place
  std::map<std::string, int64_t> texts;
};

} // namespace firn
#endif

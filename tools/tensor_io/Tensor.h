// Tensors in memory and in files: ONNX's TensorProto (.pb), numpy's .npy and .npz.
#ifndef FIRN_TOOLS_TENSOR_IO_TENSOR_H
#define FIRN_TOOLS_TENSOR_IO_TENSOR_H

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/include/firn/firn.h"

namespace firn::tools {

/// Exit statuses of docs/cli.md.
enum ExitStatus { Done = 0, Rejected = 1, BadCommandLine = 2, BadFile = 3, Different = 4, Internal = 70 };

/// Ends a tool with a message and a status.
class Failure : public std::runtime_error {
public:
  Failure(ExitStatus exitStatus, const std::string &message) : std::runtime_error(message), status(exitStatus) {}
  ExitStatus status;
};

/// A tensor that owns its elements, 64-byte aligned, unless it borrows them. Elements of strings are firn_text that
/// point into `strings`. With dtype FIRN_LIST it is a list of tensors (firn.h says which make a sequence or a map): its
/// elements are firn_tensor that point into `items`.
class Tensor {
public:
  std::string name;
  int32_t dtype = FIRN_DTYPE_NONE;
  std::vector<int64_t> dims;
  std::vector<std::string> strings;
  std::vector<Tensor> items;

  Tensor() = default;
  /// Zeroed elements; throws Failure if the size cannot be.
  Tensor(int32_t elementType, std::vector<int64_t> shape);
  /// What a run returned, borrowed: the memory must outlive it. Texts of strings are copied.
  static Tensor borrow(const firn_tensor &tensor);
  static Tensor list(std::vector<Tensor> tensors);
  bool isList() const { return dtype == FIRN_LIST; }

  char *data() { return memory.get(); }
  const char *data() const { return memory.get(); }
  int64_t bytes() const { return size; }
  int64_t count() const;
  /// Borrows the elements.
  firn_tensor view() const;
  /// Points the elements of a string tensor at `strings`.
  void linkStrings();
  /// "f32[2,3]".
  std::string type() const;

private:
  struct Free {
    Free() : isOwner(true) {}
    explicit Free(bool owner) : isOwner(owner) {}
    bool isOwner;
    void operator()(char *address) const {
      if (isOwner)
        std::free(address);
    }
  };
  std::unique_ptr<char[], Free> memory;
  int64_t size = 0;
};

/// "f32[2,3]"; a negative dimension is shown as "?".
std::string typeText(int32_t dtype, const int64_t *dims, int32_t rank);

/// Elements of a shape; throws Failure if there is no such number or a tensor of it would not fit into memory.
int64_t checkedCount(int32_t dtype, const std::vector<int64_t> &dims);

/// Has the system provide the pages of memory that is about to be written at once: half a microsecond for each that the
/// program would otherwise stop for.
void prefault(void *memory, size_t bytes);

int32_t dtypeBits(int32_t dtype);
bool isFloat(int32_t dtype);
bool isComplex(int32_t dtype);

/// Element `i` as a double (integers beyond 2^53 lose digits); the real part of a complex one.
double elementAsDouble(const Tensor &tensor, int64_t i);
/// Elements [begin, begin + count) as elementAsDouble() gives them.
void elementsAsDouble(const Tensor &tensor, int64_t begin, int64_t count, double *to);
/// Element `i` of an integer or bool tensor; unsigned 64-bit ones keep their bits.
int64_t elementAsInt(const Tensor &tensor, int64_t i);
/// Stores an integer or, for float types, its value.
void setElement(Tensor &tensor, int64_t i, double value);
/// Element `i` for people.
std::string elementText(const Tensor &tensor, int64_t i);

} // namespace firn::tools
#endif

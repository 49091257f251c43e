// ReferenceCall: an operation of the firn dialect as a call of its reference kernel.
#ifndef FIRN_PASSES_FOLD_REFERENCECALL_H
#define FIRN_PASSES_FOLD_REFERENCECALL_H

#include "dialects/firn/Inference.h"
#include "runtime/abi/reference.h"
#include <deque>
#include <memory>

namespace firn {

/// The attributes of an operation in the form that reference kernels read. Owns all memory.
class ReferenceAttributes {
public:
  explicit ReferenceAttributes(mlir::Operation *op);
  llvm::ArrayRef<firn_attribute> list() const { return attributes; }

private:
  void add(llvm::StringRef name, mlir::Attribute value);
  /// Adds to stringLists; false for a list of anything else.
  bool keepStrings(mlir::ArrayAttr list);
  std::vector<firn_attribute> attributes;
  std::deque<std::string> texts;
  std::deque<std::vector<firn_string>> stringLists;
  std::deque<std::vector<char>> bytes;
  std::deque<firn_view> views;
};

/// Whether a reference kernel stands behind the operation.
const firn_operator *referenceOperator(mlir::Operation *op);

/// The bytes of a frozen numeric tensor, splats written out; nothing for strings and non-constants.
std::optional<std::vector<char>> expandedBytes(mlir::ElementsAttr value);

/// A tensor of a run by reference kernels.
struct ReferenceTensor {
  firn_view view; // data points into bytes
  std::shared_ptr<std::vector<char>> bytes;
};

/// Computes the results of `op` from concrete inputs (rank -1: absent); fails as evaluate() does.
std::optional<std::vector<ReferenceTensor>> runReference(mlir::Operation *op, llvm::ArrayRef<firn_view> inputs,
                                                         int64_t maxBytes, std::string &whyNot);

/// A constant as a tensor; nothing for strings.
std::optional<ReferenceTensor> referenceTensor(mlir::ElementsAttr value);

/// Computes the results of `op` from constant operands (null for an absent one). Nothing, with the reason in `whyNot`,
/// where an operand is missing or unsupported, the kernel refuses, or a result would be over `maxBytes`.
std::optional<llvm::SmallVector<mlir::ElementsAttr>>
evaluate(mlir::Operation *op, llvm::ArrayRef<mlir::ElementsAttr> operands, int64_t maxBytes, std::string &whyNot);

/// Inference by the reference kernel's shape function, for Inference::fallback. With static operands it is exact; with
/// symbolic ones it is asked at several sets of sizes: a result dimension that follows an operand's dimension or
/// element in all of them is that, one that stays is constant, others are unknown.
void inferByReference(Inference &inference);

/// For operands whose rank only running tells: element types, and ranks that are the same whatever that rank is, of the
/// results that the rule left open.
void inferAcrossRanks(Inference &inference);

/// What the reference kernel says is wrong with the operands of an operation whose types and sizes are all known; ""
/// where it has nothing to say.
std::string invalidByReference(mlir::Operation *op);

} // namespace firn
#endif

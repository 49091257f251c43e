// MovedElements: contents of small tensors through operations that only move elements.
//
// The reference kernel moves numbers that stand for the elements; where each one arrives is where the element is.
#include "passes/fold/MovedElements.h"
#include "passes/fold/ReferenceCall.h"

#include "runtime/abi/dtype.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace firn {

/// Which operands are moved, one bit each; the others decide where to. 0: not such an operator.
static uint64_t movedOperands(Operation *op) {
  std::string name = cast<Operator>(op).operatorName();
  uint64_t moved = llvm::StringSwitch<uint64_t>(StringRef(name).starts_with("ai.onnx::") ? name.substr(9) : "")
                       .Cases("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Slice", 1)
                       .Cases("Gather", "GatherElements", "GatherND", "Split", "Expand", "Tile", 1)
                       .Cases("Compress", "ReverseSequence", "Trilu", "CenterCropPad", 1)
                       .Cases("ScatterElements", "ScatterND", "Pad", 1 | 4)
                       .Case("Concat", ~uint64_t(0))
                       .Default(0);
  auto reduction = op->getAttrOfType<StringAttr>("reduction"); // adds instead of moving
  return reduction && reduction.getValue() != "none" ? 0 : moved;
}

/// The contents of an operand that decides: the shapes of reshapes and expansions follow from the result.
static std::optional<Inference::Dims> deciding(Inference &inference, unsigned operand) {
  if (isa<ReshapeOp, ExpandOp>(inference.operation()))
    return inference.inferred()[0].dims;
  return inference.elements(operand);
}

void inferMovedElements(Inference &inference) {
  constexpr int64_t mostElements = 1024;
  uint64_t moved = movedOperands(inference.operation());
  if (!moved || inference.operandCount() > 64)
    return;
  // Number i + 1 is `sources[i]`; 0 is what the operator itself fills in, a zero.
  std::vector<DimExpr> sources;
  std::deque<std::vector<int64_t>> storage;
  std::deque<std::vector<char>> bools;
  SmallVector<firn_view> views;
  bool isAnyKnown = false;
  for (unsigned i = 0; i < inference.operandCount(); ++i) {
    firn_view &view = views.emplace_back();
    view = {};
    view.rank = -1;
    if (!inference.has(i))
      continue;
    auto dims = inference.dims(i);
    Type type = inference.elementType(i);
    if (!dims || !type || dims->size() > FIRN_MAX_RANK)
      return;
    int64_t count = 1;
    view.rank = dims->size();
    for (auto [axis, dim] : llvm::enumerate(*dims)) {
      if (!dim.isConstant() || dim.constant() > mostElements)
        return;
      view.dims[axis] = dim.constant();
      count *= dim.constant();
      if (count > mostElements)
        return;
    }
    bool isMoved = i >= 64 || (moved >> i & 1);
    auto contents = isMoved ? inference.numbers(i) : deciding(inference, i);
    if (contents && int64_t(contents->size()) != count)
      return;
    std::vector<int64_t> &data = storage.emplace_back(count + 1);
    view.dtype = FIRN_I64;
    view.data = data.data();
    for (int64_t n = 0; n < count; ++n) {
      if (isMoved) {
        isAnyKnown |= contents.has_value();
        sources.push_back(contents ? (*contents)[n] : DimExpr::unknown());
        data[n] = int64_t(sources.size());
      } else if (contents && (*contents)[n].isConstant()) {
        data[n] = (*contents)[n].constant();
      } else {
        return;
      }
    }
    if (!isMoved && type.isInteger(1)) { // conditions of Compress
      view.dtype = FIRN_BOOL;
      view.data = bools.emplace_back(data.begin(), data.end()).data();
    }
  }
  bool isEmptyList = sources.empty() && inference.elementType(0).isSignlessInteger(64);
  if (!isAnyKnown && !isEmptyList)
    return;
  for (const auto &result : inference.inferred())
    if (!result.dims ||
        llvm::any_of(*result.dims, [](const DimExpr &d) { return !d.isConstant() || d.constant() > 1024; }))
      return;
  std::string whyNot;
  auto results = runReference(inference.operation(), views, mostElements * 8, whyNot);
  if (!results)
    return;
  for (auto [i, result] : llvm::enumerate(*results)) {
    const auto *numbers = static_cast<const int64_t *>(result.view.data);
    Inference::Dims elements;
    for (size_t n = 0; n < result.bytes->size() / sizeof(int64_t); ++n)
      elements.push_back(numbers[n] > 0 && size_t(numbers[n]) <= sources.size() ? sources[numbers[n] - 1] : DimExpr(0));
    inference.resultElements(i, elements);
  }
}

} // namespace firn

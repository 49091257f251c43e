// Inference of elementwise operations.
#include "dialects/firn/Inference.h"
#include "runtime/abi/dtype.h"

using namespace mlir;

namespace firn {

static void requireSameElementType(Inference &inference, unsigned a, unsigned b) {
  Type x = inference.elementType(a), y = inference.elementType(b);
  if (x && y && x != y)
    inference.error("expected inputs of one element type, found " + elementTypeText(x) + " and " + elementTypeText(y));
}

/// Integer contents of elementwise arithmetic on shape values.
static void foldElements(Inference &inference) {
  StringRef name = inference.operation()->getName().stripDialect();
  auto a = inference.elements(0), b = inference.elements(1);
  auto dimsA = inference.dims(0), dimsB = inference.dims(1);
  Type type = inference.elementType(0);
  if (!a || !b || !dimsA || !dimsB || dimsA->size() > 1 || dimsB->size() > 1 || !type || !type.isSignlessInteger())
    return;
  size_t n = std::max(a->size(), b->size());
  if ((a->size() != n && a->size() != 1) || (b->size() != n && b->size() != 1))
    return;
  Inference::Dims elements;
  for (size_t i = 0; i < n; ++i) {
    const DimExpr &x = (*a)[a->size() == 1 ? 0 : i], &y = (*b)[b->size() == 1 ? 0 : i];
    if (name == "add")
      elements.push_back(x + y);
    else if (name == "sub")
      elements.push_back(x - y);
    else if (name == "mul")
      elements.push_back(x * y);
    else if (name == "div" && x.isAtLeast(0) && y.isAtLeast(1)) // truncation is floor there
      elements.push_back(x.floorDiv(y));
    else if (name == "div" && x.isAtLeast(0) && x.exactDiv(y))
      elements.push_back(*x.exactDiv(y));
    else if (name == "mod" && y.isAtLeast(1) && x.isAtLeast(0))
      elements.push_back(x.mod(y));
    else
      return;
  }
  inference.resultElements(0, elements);
}

void inferUnary(Inference &inference) {
  inference.result(0, inference.elementType(0), inference.dims(0));
  StringRef name = inference.operation()->getName().stripDialect();
  auto elements = inference.elements(0);
  if (!elements)
    return;
  if (name == "identity")
    inference.resultElements(0, *elements);
  if (name == "not" && elements->size() == 1 && (*elements)[0].isConstant())
    inference.resultElements(0, {DimExpr((*elements)[0].constant() == 0)});
  if (name == "neg") {
    for (DimExpr &e : *elements)
      e = DimExpr(0) - e;
    inference.resultElements(0, *elements);
  }
}

void inferPredicate(Inference &inference) {
  inference.result(0, IntegerType::get(inference.operation()->getContext(), 1), inference.dims(0));
}

static std::optional<Inference::Dims> broadcastAll(Inference &inference, unsigned first = 0) {
  std::optional<Inference::Dims> dims;
  for (unsigned i = first; i < inference.operandCount(); ++i) {
    auto next = inference.dims(i);
    if (!next)
      return std::nullopt;
    dims = dims ? broadcast(inference, *dims, *next) : next;
    if (!dims)
      return std::nullopt;
  }
  return dims;
}

void inferBinary(Inference &inference) {
  StringRef name = inference.operation()->getName().stripDialect();
  if (name != "pow")
    requireSameElementType(inference, 0, 1);
  inference.result(0, inference.elementType(0), broadcastAll(inference));
  foldElements(inference);
}

void inferComparison(Inference &inference) {
  requireSameElementType(inference, 0, 1);
  inference.result(0, IntegerType::get(inference.operation()->getContext(), 1), broadcastAll(inference));
  // A comparison of shape values decides which branch of an If the model means.
  auto a = inference.elements(0), b = inference.elements(1);
  if (!a || !b || a->size() != 1 || b->size() != 1)
    return;
  DimExpr difference = (*a)[0] - (*b)[0];
  if (!difference.isConstant())
    return;
  int64_t d = difference.constant();
  StringRef name = inference.operation()->getName().stripDialect();
  bool holds = name == "equal"              ? d == 0
               : name == "greater"          ? d > 0
               : name == "less"             ? d < 0
               : name == "greater_or_equal" ? d >= 0
                                            : d <= 0;
  inference.resultElements(0, {DimExpr(holds)});
}

void inferVariadic(Inference &inference) {
  for (unsigned i = 1; i < inference.operandCount(); ++i)
    requireSameElementType(inference, 0, i);
  if (inference.operandCount() == 0)
    return inference.error("expected at least one input, found none");
  inference.result(0, inference.elementType(0), broadcastAll(inference));
  StringRef name = inference.operation()->getName().stripDialect();
  auto a = inference.elements(0), b = inference.elements(1);
  if (inference.operandCount() == 2 && a && b && a->size() == b->size() && (name == "max" || name == "min")) {
    for (size_t i = 0; i < a->size(); ++i)
      (*a)[i] = name == "max" ? DimExpr::max((*a)[i], (*b)[i]) : DimExpr::min((*a)[i], (*b)[i]);
    inference.resultElements(0, *a);
  }
}

void inferWhere(Inference &inference) {
  requireSameElementType(inference, 1, 2);
  Type condition = inference.elementType(0);
  if (condition && !condition.isInteger(1))
    inference.error("expected a bool condition, found " + elementTypeText(condition));
  Type type = inference.elementType(1) ? inference.elementType(1) : inference.elementType(2);
  inference.result(0, type, broadcastAll(inference));
}

void inferCast(Inference &inference) {
  int64_t to = inference.intAttribute("to", 0);
  Type type = elementTypeOf(inference.operation()->getContext(), int32_t(to));
  if (!type)
    return inference.error("expected an element type of TensorProto.DataType in 'to', found " + Twine(to));
  inference.result(0, type, inference.dims(0));
  auto elements = inference.elements(0);
  if (!elements)
    return;
  if (to == FIRN_I64 || to == FIRN_I32)
    inference.resultElements(0, *elements);
  if (to == FIRN_BOOL && elements->size() == 1) {
    const DimExpr &e = (*elements)[0];
    if (e.isConstant() || e.isAtLeast(1))
      inference.resultElements(0, {DimExpr(!e.isConstant() || e.constant() != 0)});
  }
}

void inferCastLike(Inference &inference) { inference.result(0, inference.elementType(1), inference.dims(0)); }

void inferDropout(Inference &inference) {
  inference.result(0, inference.elementType(0), inference.dims(0));
  inference.result(1, IntegerType::get(inference.operation()->getContext(), 1), inference.dims(0));
}

} // namespace firn

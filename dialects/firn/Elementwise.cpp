// Inference of elementwise operations.
#include "dialects/firn/Inference.h"
#include "dialects/firn/Lists.h"
#include "runtime/abi/dtype.h"

using namespace mlir;

namespace firn {

static void requireSameElementType(Inference &inference, unsigned a, unsigned b) {
  Type x = inference.elementType(a), y = inference.elementType(b);
  if (x && y && x != y)
    inference.error("expected inputs of one element type, found " + elementTypeText(x) + " and " + elementTypeText(y),
                    "import.dtype");
}

void inferUnary(Inference &inference) {
  if (Value value = operandOf(inference.operation(), 0);
      isa<IdentityOp>(inference.operation()) && value && isListType(value.getType()))
    return inference.resultType(0, value.getType());
  inference.result(0, inference.elementType(0), inference.dims(0));
  inferElements(inference);
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
  inferElements(inference);
}

void inferComparison(Inference &inference) {
  requireSameElementType(inference, 0, 1);
  inference.result(0, IntegerType::get(inference.operation()->getContext(), 1), broadcastAll(inference));
  inferElements(inference); // decides which branch of an If the model means
}

void inferVariadic(Inference &inference) {
  for (unsigned i = 1; i < inference.operandCount(); ++i)
    requireSameElementType(inference, 0, i);
  if (inference.operandCount() == 0)
    return inference.error("expected at least one input, found none");
  inference.result(0, inference.elementType(0), broadcastAll(inference));
  inferElements(inference);
}

void inferWhere(Inference &inference) {
  requireSameElementType(inference, 1, 2);
  Type condition = inference.elementType(0);
  if (condition && !condition.isInteger(1))
    inference.error("expected a bool condition, found " + elementTypeText(condition), "import.dtype");
  Type type = inference.elementType(1) ? inference.elementType(1) : inference.elementType(2);
  inference.result(0, type, broadcastAll(inference));
  inferElements(inference);
}

void inferCast(Inference &inference) {
  int64_t to = inference.intAttribute("to", 0);
  Type type = elementTypeOf(inference.operation()->getContext(), int32_t(to));
  if (!type)
    return inference.error("expected an element type of TensorProto.DataType in 'to', found " + Twine(to),
                           "import.attribute");
  inference.result(0, type, inference.dims(0));
  inferElements(inference);
}

void inferCastLike(Inference &inference) { inference.result(0, inference.elementType(1), inference.dims(0)); }

void inferDropout(Inference &inference) {
  inference.result(0, inference.elementType(0), inference.dims(0));
  inference.result(1, IntegerType::get(inference.operation()->getContext(), 1), inference.dims(0));
}

} // namespace firn

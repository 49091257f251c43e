// Inference of shapes as values, and generators.
#include "dialects/firn/Inference.h"
#include <cmath>

using namespace mlir;

namespace firn {

void inferShape(Inference &inference) {
  Type index = IntegerType::get(inference.operation()->getContext(), 64);
  auto x = inference.dims(0);
  if (!x)
    return inference.unknownResult(0, index, 1);
  int64_t rank = x->size(), start = inference.intAttribute("start", 0), end = inference.intAttribute("end", rank);
  auto clamp = [&](int64_t v) { return std::clamp<int64_t>(v < 0 ? v + rank : v, 0, rank); };
  start = clamp(start);
  end = std::max(start, clamp(end));
  inference.result(0, index, Inference::Dims{DimExpr(end - start)});
  inference.resultElements(0, Inference::Dims(x->begin() + start, x->begin() + end));
}

void inferSize(Inference &inference) {
  auto x = inference.dims(0);
  inference.result(0, IntegerType::get(inference.operation()->getContext(), 64), Inference::Dims{});
  if (!x)
    return;
  DimExpr total(1);
  for (const DimExpr &dim : *x)
    total = total * dim;
  inference.resultElements(0, {total});
}

void inferConstantOfShape(Inference &inference) {
  auto value = inference.operation()->getAttrOfType<ElementsAttr>("value");
  Type type = value ? cast<ShapedType>(value.getType()).getElementType()
                    : Type(Float32Type::get(inference.operation()->getContext()));
  auto shape = inference.elements(0);
  if (!shape) {
    auto length = inference.dims(0);
    if (length && length->size() == 1 && (*length)[0].isConstant() && (*length)[0].constant() <= 64)
      return inference.unknownResult(0, type, (*length)[0].constant());
    return inference.result(0, type, std::nullopt);
  }
  int64_t total = 1;
  for (const DimExpr &e : *shape) {
    if (!e.isConstant())
      continue;
    if (e.constant() < 0)
      return inference.error("expected sizes >= 0, found " + shapeText(*shape));
    if (__builtin_mul_overflow(total, e.constant(), &total) || total > (int64_t(1) << 40))
      return inference.error("expected at most 2^40 elements, found shape " + shapeText(*shape));
  }
  inference.result(0, type, *shape);
  // A small tensor of known sizes is known itself.
  if (!llvm::all_of(*shape, [](const DimExpr &e) { return e.isConstant(); }) || total > 64)
    return;
  auto fill = value ? constantNumbers(value) : std::optional<Inference::Dims>(Inference::Dims{DimExpr(0)});
  if (fill && fill->size() == 1)
    inference.resultElements(0, Inference::Dims(total, (*fill)[0]));
}

void inferRange(Inference &inference) {
  Type type = inference.elementType(0);
  auto start = inference.numbers(0), limit = inference.numbers(1), delta = inference.numbers(2);
  if (!start || !limit || !delta || start->size() != 1 || limit->size() != 1 || delta->size() != 1) {
    bool isConstant = true;
    for (unsigned i = 0; i < 3; ++i)
      isConstant &= inference.has(i) && bool(constantOf(inference.operation()->getOperand(i)));
    inference.unknownResult(0, type, 1);
    if (isConstant)
      inference.fallback();
    return;
  }
  if (!(*delta)[0].isConstant() || !(*start)[0].isWhole() || !(*limit)[0].isWhole()) {
    inference.unknownResult(0, type, 1);
    bool isConstant = true;
    for (unsigned i = 0; i < 3; ++i)
      isConstant &= bool(constantOf(inference.operation()->getOperand(i)));
    return isConstant ? inference.fallback() : void();
  }
  int64_t by = (*delta)[0].constant();
  if (by == 0)
    return inference.error("expected a delta other than 0");
  DimExpr span = by > 0 ? (*limit)[0] - (*start)[0] : (*start)[0] - (*limit)[0];
  DimExpr length = DimExpr::max(span.ceilDiv(DimExpr(std::abs(by))), DimExpr(0));
  inference.result(0, type, Inference::Dims{length});
  if (!length.isConstant() || length.constant() > 64)
    return;
  Inference::Dims elements;
  for (int64_t i = 0; i < length.constant(); ++i)
    elements.push_back((*start)[0] + DimExpr(i * by));
  inference.resultElements(0, elements);
}

} // namespace firn

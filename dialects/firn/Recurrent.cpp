// Inference of recurrent layers.
#include "dialects/firn/Inference.h"

using namespace mlir;

namespace firn {

void inferRecurrent(Inference &inference) {
  StringRef name = inference.operation()->getName().stripDialect();
  int64_t gates = name == "lstm" ? 4 : name == "gru" ? 3 : 1;
  auto x = inference.dims(0), w = inference.dims(1), r = inference.dims(2);
  Type type = inference.elementType(0);
  bool isBatchFirst = inference.intAttribute("layout", 0) != 0;
  StringRef direction = inference.stringAttribute("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    return inference.error("expected direction forward, reverse or bidirectional, found '" + direction + "'",
                           "import.attribute");
  DimExpr directions(direction == "bidirectional" ? 2 : 1);
  if (inference.operandCount() < 3)
    return inference.error("expected inputs X, W and R, found " + Twine(inference.operandCount()) + " inputs");
  if (!x || !w || !r) {
    inference.unknownResult(0, type, 4);
    inference.unknownResult(1, type, 3);
    return inference.unknownResult(2, type, 3);
  }
  if (x->size() != 3 || w->size() != 3 || r->size() != 3)
    return inference.error("expected X, W and R of rank 3, found shapes " + shapeText(*x) + ", " + shapeText(*w) +
                           " and " + shapeText(*r));
  DimExpr hidden = (*r)[2];
  auto check = [&](const char *what, const DimExpr &found, const DimExpr &expected) {
    if (found.isConstant() && expected.isConstant() && found != expected)
      inference.error(Twine("expected ") + what + " " + expected.str() + ", found " + found.str());
    else
      inference.requireEqual(found, expected, Twine(what) + " and those of the other inputs");
  };
  check("directions of W", (*w)[0], directions);
  check("rows of W (gates x hidden)", (*w)[1], hidden * DimExpr(gates));
  check("rows of R (gates x hidden)", (*r)[1], hidden * DimExpr(gates));
  check("columns of W (input size)", (*w)[2], (*x)[2]);
  if (int64_t given = inference.intAttribute("hidden_size", 0))
    check("hidden_size", DimExpr(given), hidden);
  DimExpr steps = (*x)[isBatchFirst ? 1 : 0], batch = (*x)[isBatchFirst ? 0 : 1];
  if (isBatchFirst) {
    inference.result(0, type, Inference::Dims{batch, steps, directions, hidden});
    for (unsigned i = 1; i < 3; ++i)
      inference.result(i, type, Inference::Dims{batch, directions, hidden});
    return;
  }
  inference.result(0, type, Inference::Dims{steps, directions, batch, hidden});
  for (unsigned i = 1; i < 3; ++i)
    inference.result(i, type, Inference::Dims{directions, batch, hidden});
}

} // namespace firn

// Control flow, library calls and fused regions: verifiers and inference.
#include "dialects/firn/Inference.h"
#include "dialects/firn/Lists.h"

using namespace mlir;

namespace firn {

static Type elementTypeOfValue(Value value) {
  auto type = dyn_cast<TensorType>(value.getType());
  return type && !isa<UnknownType>(type.getElementType()) ? type.getElementType() : Type();
}

/// Whether a size may have been brought forth inside of a branch or body: such a symbol means nothing outside of it.
static bool isOwnOfBranch(const DimExpr &size) {
  std::set<std::string> symbols;
  size.collectSymbols(symbols);
  return llvm::any_of(symbols, [](const std::string &s) {
    return s[0] == '?' || (s[0] == 'u' && std::isdigit(static_cast<unsigned char>(s[1]))); // as unknownDim() names them
  });
}

// --- if --------------------------------------------------------------------------------------------------------------

std::string IfOp::operatorName() { return "ai.onnx::If"; }

LogicalResult IfOp::verify() {
  LogicalResult status = success();
  for (auto [name, region] :
       {std::pair<const char *, Region *>{"then", &getThenBranch()}, {"else", &getElseBranch()}}) {
    auto yield = dyn_cast<YieldOp>(region->front().getTerminator());
    if (!yield || yield.getNumOperands() != getNumResults()) // C1
      status = emitOpError("expected the ") << name << " branch to yield " << getNumResults() << " values, found "
                                            << (yield ? yield.getNumOperands() : 0);
  }
  return status;
}

/// Both branches have been inferred: a dimension is known where they agree on it.
void IfOp::inferShapes(Inference &inference) {
  auto *then = getThenBranch().front().getTerminator(), *otherwise = getElseBranch().front().getTerminator();
  auto condition = inference.elements(0);
  bool isKnown = condition && condition->size() == 1 && (*condition)[0].isConstant();
  for (unsigned i = 0; i < getNumResults(); ++i) {
    Value a = then->getOperand(i), b = otherwise->getOperand(i);
    if (isKnown)
      a = b = (*condition)[0].constant() ? a : b;
    if (isa_and_nonnull<FailOp>(a.getDefiningOp()))
      a = b;
    if (isa_and_nonnull<FailOp>(b.getDefiningOp()))
      b = a;
    if (isListType(a.getType()) || isListType(b.getType())) {
      if (Type joined = joinTypes(a.getType(), b.getType()))
        inference.resultType(i, joined);
      else
        inference.error("expected branches of one type for output " + Twine(i) + ", found " + typeText(a.getType()) +
                        " and " + typeText(b.getType()));
      continue;
    }
    Type x = elementTypeOfValue(a), y = elementTypeOfValue(b);
    if (x && y && x != y)
      inference.error("expected branches of one element type for output " + Twine(i) + ", found " + elementTypeText(x) +
                          " and " + elementTypeText(y),
                      "import.dtype");
    auto left = dyn_cast<RankedTensorType>(a.getType()), right = dyn_cast<RankedTensorType>(b.getType());
    if (!x) // not known (yet)
      a = b, x = y;
    if (!y)
      b = a;
    // Of branches that differ in rank, and of one whose rank only running tells, running tells that of the result too.
    if (x && (!left || !right || left.getRank() != right.getRank())) {
      inference.resultType(i, UnrankedTensorType::get(x));
      continue;
    }
    if (!left || !right)
      continue;
    Inference::Dims dims;
    for (int64_t axis = 0; axis < left.getRank(); ++axis) {
      DimExpr p = dimOf(left, axis), q = dimOf(right, axis);
      dims.push_back(p == q && !isOwnOfBranch(p) ? p : inference.unknownDim(i, axis));
    }
    inference.result(i, x, dims);
    auto known = knownNumbers(a), other = knownNumbers(b);
    if (known && other && known->size() == other->size()) {
      for (auto [mine, theirs] : llvm::zip(*known, *other))
        if (mine != theirs || (!isKnown && isOwnOfBranch(mine)))
          mine = DimExpr::unknown();
      inference.resultElements(i, *known);
    }
  }
}

// --- loop ------------------------------------------------------------------------------------------------------------

std::string LoopOp::operatorName() { return "ai.onnx::Loop"; }

LogicalResult LoopOp::verify() {
  Block &body = getBody().front();
  unsigned carried = getCarried().size();
  if (body.getNumArguments() != carried + 2) // C1
    return emitOpError("expected a body of ")
           << carried + 2 << " inputs (iteration, condition, carried), found " << body.getNumArguments();
  auto yield = dyn_cast<YieldOp>(body.getTerminator());
  if (!yield || yield.getNumOperands() != getNumResults() + 1)
    return emitOpError("expected a body of ") << getNumResults() + 1 << " outputs (condition, carried, scans), found "
                                              << (yield ? yield.getNumOperands() : 0);
  if (getNumResults() < carried)
    return emitOpError("expected at least ") << carried << " results, found " << getNumResults();
  return success();
}

/// The body has been inferred, its carried arguments as general as all iterations need.
void LoopOp::inferShapes(Inference &inference) {
  Block &body = getBody().front();
  auto *yield = body.getTerminator();
  unsigned carried = getCarried().size();
  for (unsigned i = 0; i < getNumResults(); ++i) {
    if (i < carried) {
      auto type = dyn_cast<RankedTensorType>(body.getArgument(i + 2).getType());
      if (!type) {
        inference.resultType(i, body.getArgument(i + 2).getType());
        continue;
      }
      // Dimensions that change between iterations are symbols of the loop; outside they are the last one.
      auto initial = dyn_cast<RankedTensorType>(getCarried()[i].getType());
      Inference::Dims dims;
      for (int64_t axis = 0; axis < type.getRank(); ++axis) {
        DimExpr inside = dimOf(type, axis);
        bool isInvariant = initial && initial.getRank() == type.getRank() && dimOf(initial, axis) == inside;
        dims.push_back(isInvariant || inside.isConstant() ? inside : inference.unknownDim(i, axis));
      }
      inference.result(i, type.getElementType(), dims);
      continue;
    }
    auto type = dyn_cast<RankedTensorType>(yield->getOperand(i + 1).getType());
    if (isListType(yield->getOperand(i + 1).getType())) {
      inference.error("expected tensors as scan outputs, found " + typeText(yield->getOperand(i + 1).getType()) +
                      " as output " + Twine(i));
      continue;
    }
    if (!type) {
      inference.result(i, elementTypeOfValue(yield->getOperand(i + 1)), std::nullopt);
      continue;
    }
    Inference::Dims dims{inference.unknownDim(i, 0)};
    for (int64_t axis = 0; axis < type.getRank(); ++axis) {
      DimExpr inside = dimOf(type, axis);
      dims.push_back(isOwnOfBranch(inside) ? inference.unknownDim(i, axis + 1) : inside);
    }
    inference.result(i, type.getElementType(), dims);
  }
}

// --- call ------------------------------------------------------------------------------------------------------------

std::string CallOp::operatorName() { return getCallee().str(); }
void CallOp::inferShapes(Inference &inference) { inference.fallback(); }

// --- fused -----------------------------------------------------------------------------------------------------------

LogicalResult FusedOp::verify() {
  Block &body = getBody().front();
  if (body.getNumArguments() != getInputs().size())
    return emitOpError("expected a region of ") << getInputs().size() << " arguments, found " << body.getNumArguments();
  // A constant stored packed for the code generator keeps its logical type inside (compiler/codegen/cpu/Contraction.h).
  SmallVector<int64_t> packed;
  if (auto list = getOperation()->getAttrOfType<ArrayAttr>("packed"))
    for (Attribute entry : list)
      if (auto dictionary = dyn_cast<DictionaryAttr>(entry))
        if (auto operand = dictionary.getAs<IntegerAttr>("operand"))
          packed.push_back(operand.getInt());
  for (auto [argument, input] : llvm::zip(body.getArguments(), getInputs()))
    if (argument.getType() != input.getType() && !llvm::is_contained(packed, int64_t(argument.getArgNumber())))
      return emitOpError("expected region arguments of the inputs' types, found ")
             << argument.getType() << " for " << input.getType();
  auto *yield = body.getTerminator();
  if (yield->getNumOperands() != getNumResults())
    return emitOpError("expected the region to yield ")
           << getNumResults() << " values, found " << yield->getNumOperands();
  for (auto [yielded, result] : llvm::zip(yield->getOperands(), getResults()))
    if (yielded.getType() != result.getType())
      return emitOpError("expected results of the yielded types, found ")
             << result.getType() << " for " << yielded.getType();
  return success();
}

} // namespace firn

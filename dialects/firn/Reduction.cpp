// Inference of reductions and normalisations.
#include "dialects/firn/Inference.h"

using namespace mlir;

namespace firn {

void inferReduce(Inference &inference) {
  auto x = inference.dims(0);
  Type type = inference.elementType(0);
  if (!x)
    return inference.result(0, type, std::nullopt);
  bool keep = inference.intAttribute("keepdims", 1) != 0;
  int64_t rank = x->size();
  SmallVector<bool> reduced(rank, false);
  auto axesDims = inference.dims(1);
  bool hasAxes = inference.has(1) && !(axesDims && axesDims->size() == 1 && (*axesDims)[0] == DimExpr(0));
  if (hasAxes) {
    auto axes = inference.elements(1);
    if (!axes || llvm::any_of(*axes, [](const DimExpr &e) { return !e.isConstant(); })) {
      // Which axes is not known: the rank is if they stay, or if their number is known.
      if (keep)
        return inference.unknownResult(0, type, rank);
      if (axesDims && axesDims->size() == 1 && (*axesDims)[0].isConstant())
        return inference.unknownResult(0, type, std::max<int64_t>(0, rank - (*axesDims)[0].constant()));
      return inference.result(0, type, std::nullopt);
    }
    for (const DimExpr &e : *axes) {
      auto axis = inference.axis(e.constant(), rank); // C1
      if (!axis)
        return;
      if (rank)
        reduced[*axis] = true;
    }
  } else if (inference.intAttribute("noop_with_empty_axes", 0) == 0) {
    reduced.assign(rank, true);
  }
  Inference::Dims dims;
  for (int64_t i = 0; i < rank; ++i)
    if (!reduced[i])
      dims.push_back((*x)[i]);
    else if (keep)
      dims.push_back(DimExpr(1));
  inference.result(0, type, dims);
  // Prod, sum, max and min of a shape: the number of elements and the like.
  auto elements = inference.elements(0);
  StringRef name = inference.operation()->getName().stripDialect();
  if (elements && rank == 1 && reduced[0] && !elements->empty()) {
    DimExpr total = (*elements)[0];
    for (const DimExpr &e : ArrayRef(*elements).drop_front()) {
      if (name == "reduce_prod")
        total = total * e;
      else if (name == "reduce_sum")
        total = total + e;
      else if (name == "reduce_max")
        total = DimExpr::max(total, e);
      else if (name == "reduce_min")
        total = DimExpr::min(total, e);
      else
        return;
    }
    if (name == "reduce_prod" || name == "reduce_sum" || name == "reduce_max" || name == "reduce_min")
      inference.resultElements(0, {total});
  }
}

void inferArgReduce(Inference &inference) {
  auto x = inference.dims(0);
  Type index = IntegerType::get(inference.operation()->getContext(), 64);
  if (!x)
    return inference.result(0, index, std::nullopt);
  auto axis = inference.axis(inference.intAttribute("axis", 0), x->size());
  if (!axis)
    return;
  if (!x->empty()) {
    if (inference.intAttribute("keepdims", 1))
      (*x)[*axis] = DimExpr(1);
    else
      x->erase(x->begin() + *axis);
  }
  inference.result(0, index, x);
}

void inferAxisUnary(Inference &inference) {
  auto x = inference.dims(0);
  if (x && !inference.axis(inference.intAttribute("axis", -1), x->size())) // C1
    return;
  inference.result(0, inference.elementType(0), x);
}

void inferBatchNormalization(Inference &inference) {
  auto x = inference.dims(0);
  Type type = inference.elementType(0);
  inference.result(0, type, x);
  for (unsigned i = 1; i < 3; ++i)
    inference.result(i, inference.elementType(i + 2), inference.dims(i + 2));
  if (!x)
    return;
  DimExpr channels = x->size() > 1 ? (*x)[1] : DimExpr(1);
  const char *names[] = {"scale", "bias", "mean", "variance"};
  for (unsigned i = 1; i <= 4; ++i)
    if (auto dims = inference.dims(i)) {
      if (dims->size() != 1 || ((*dims)[0].isConstant() && channels.isConstant() && (*dims)[0] != channels))
        inference.error(Twine("expected ") + names[i - 1] + " of shape [" + channels.str() + "], found " +
                        shapeText(*dims));
      else
        inference.requireEqual((*dims)[0], channels, Twine("the length of ") + names[i - 1] + " and the channels");
    }
}

void inferLayerNormalization(Inference &inference) {
  auto x = inference.dims(0);
  Type type = inference.elementType(0);
  inference.result(0, type, x);
  if (!x) {
    inference.result(1, type, std::nullopt);
    return inference.result(2, type, std::nullopt);
  }
  auto axis = inference.axis(inference.intAttribute("axis", -1), x->size()); // C1
  if (!axis)
    return;
  const char *names[] = {"scale", "bias"};
  for (unsigned i = 1; i <= 2; ++i)
    if (auto dims = inference.dims(i)) { // C2, C3
      auto both = broadcast(inference, *x, *dims);
      if (both && (both->size() != x->size() || llvm::any_of(llvm::zip(*both, *x), [](auto pair) {
                     auto &[b, a] = pair;
                     return b.isConstant() && a.isConstant() && b != a;
                   })))
        inference.error(Twine("expected ") + names[i - 1] + " to broadcast to the normalised axes " +
                        shapeText(ArrayRef(*x).drop_front(*axis)) + ", found " + shapeText(*dims));
      else if (both)
        for (size_t d = 0; d < x->size(); ++d)
          inference.requireEqual((*both)[d], (*x)[d],
                                 "the sizes on axis " + Twine(d) + " of the input and with " + names[i - 1]);
    }
  for (size_t i = *axis; i < x->size(); ++i)
    (*x)[i] = DimExpr(1);
  Type stash =
      inference.intAttribute("stash_type", 1) == 1 ? Type(Float32Type::get(inference.operation()->getContext())) : type;
  inference.result(1, stash, x);
  inference.result(2, stash, x);
}

void inferChannelNormalization(Inference &inference) {
  auto x = inference.dims(0);
  if (x && x->size() < 2)
    return inference.error("expected an input of rank >= 2, found shape " + shapeText(*x));
  if (x)
    for (unsigned i = 1; i <= 2; ++i)
      if (auto dims = inference.dims(i)) {
        if (dims->size() != 1 || ((*dims)[0].isConstant() && (*x)[1].isConstant() && (*dims)[0] != (*x)[1]))
          inference.error(Twine("expected ") + (i == 1 ? "scale" : "bias") + " of shape [" + (*x)[1].str() +
                          "], found " + shapeText(*dims));
        else
          inference.requireEqual((*dims)[0], (*x)[1],
                                 Twine("the length of ") + (i == 1 ? "scale" : "bias") + " and the channels");
      }
  inference.result(0, inference.elementType(0), x);
}

} // namespace firn

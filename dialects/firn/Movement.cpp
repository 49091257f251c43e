// Inference of operations that move elements.
#include "dialects/firn/Inference.h"

#include "mlir/IR/BuiltinAttributes.h"
#include <cmath>

using namespace mlir;

namespace firn {

/// Numbers of an operand that must all be known to be of use: axes, steps.
static std::optional<Inference::Dims> constants(Inference &inference, unsigned operand) {
  auto numbers = inference.elements(operand);
  bool areKnown = numbers && llvm::all_of(*numbers, [](const DimExpr &e) { return e.isConstant(); });
  return areKnown ? numbers : std::nullopt;
}

static DimExpr product(ArrayRef<DimExpr> dims) {
  DimExpr total(1);
  for (const DimExpr &dim : dims)
    total = total * dim;
  return total;
}

/// Rank of the result where only the length of a shape operand is known.
static void resultOfShapeOperand(Inference &inference, unsigned operand) {
  auto dims = inference.dims(operand);
  if (dims && dims->size() == 1 && (*dims)[0].isConstant() && (*dims)[0].constant() <= 64)
    return inference.unknownResult(0, inference.elementType(0), (*dims)[0].constant());
  inference.result(0, inference.elementType(0), std::nullopt);
}

void inferReshape(Inference &inference) {
  if (!inference.has(1)) // the shape is in the result's type (set when the operand was folded away)
    return;
  auto x = inference.dims(0), shape = inference.elements(1);
  Type type = inference.elementType(0);
  if (!x || !shape)
    return resultOfShapeOperand(inference, 1);
  bool allowZero = inference.intAttribute("allowzero", 0) != 0;
  Inference::Dims dims;
  int64_t inferredAxis = -1;
  for (auto [i, e] : llvm::enumerate(*shape)) {
    if (e.isConstant() && e.constant() == -1) {
      if (inferredAxis >= 0) // C2
        return inference.error("expected at most one -1 in shape, found " + shapeText(*shape));
      inferredAxis = i;
      dims.push_back(DimExpr(1));
    } else if (e.isConstant() && e.constant() == 0 && !allowZero) {
      if (i >= x->size())
        return inference.error("expected 0 in shape " + shapeText(*shape) + " only for axes of the input " +
                               shapeText(*x));
      dims.push_back((*x)[i]);
    } else if (e.isConstant() && e.constant() < -1) {
      return inference.error("expected sizes >= -1 in shape, found " + shapeText(*shape));
    } else {
      dims.push_back(e);
    }
  }
  if (inferredAxis >= 0) {
    // Dimensions that stand on both sides cancel, also where one is a sum or unknown.
    SmallVector<DimExpr> above(x->begin(), x->end()), below;
    for (auto [i, dim] : llvm::enumerate(dims)) {
      if (int64_t(i) == inferredAxis)
        continue;
      auto same = llvm::find(above, dim);
      if (same != above.end() && !dim.isConstant())
        above.erase(same);
      else
        below.push_back(dim);
    }
    DimExpr total = product(above), rest = product(below);
    if (total.isConstant() && rest.isConstant() &&
        (rest.constant() == 0 ? total.constant() != 0 : total.constant() % rest.constant() != 0))
      return inference.error("expected a shape for " + total.str() + " elements, found " + shapeText(*shape)); // C1
    dims[inferredAxis] = total.floorDiv(rest);
    inference.requireEqual(dims[inferredAxis] * rest, total,
                           "the element counts of shape " + shapeText(*shape) + " and of the input " + shapeText(*x));
  } else {
    DimExpr from = product(*x), to = product(dims);
    if (from.isConstant() && to.isConstant() && from != to) // C1
      return inference.error("expected a shape for the input's " + from.str() + " elements " + shapeText(*x) +
                             ", found " + shapeText(*shape) + " with " + to.str());
    inference.requireEqual(to, from,
                           "the element counts of shape " + shapeText(*shape) + " and of the input " + shapeText(*x));
  }
  inference.result(0, type, dims);
}

void inferFlatten(Inference &inference) {
  auto x = inference.dims(0);
  if (!x)
    return inference.unknownResult(0, inference.elementType(0), 2);
  int64_t rank = x->size(), axis = inference.intAttribute("axis", 1);
  if (axis < -rank || axis > rank)
    return inference.error("expected an axis in [" + Twine(-rank) + ", " + Twine(rank) + "], found " + Twine(axis));
  if (axis < 0)
    axis += rank;
  inference.result(0, inference.elementType(0),
                   Inference::Dims{product(ArrayRef(*x).take_front(axis)), product(ArrayRef(*x).drop_front(axis))});
}

void inferSqueeze(Inference &inference) {
  auto x = inference.dims(0);
  Type type = inference.elementType(0);
  if (!x)
    return inference.result(0, type, std::nullopt);
  SmallVector<bool> dropped(x->size(), false);
  if (inference.has(1)) {
    auto axes = constants(inference, 1);
    if (!axes) {
      auto count = inference.dims(1);
      if (!count || count->size() != 1 || !(*count)[0].isConstant() || (*count)[0].constant() > int64_t(x->size()))
        return inference.result(0, type, std::nullopt);
      return inference.unknownResult(0, type, x->size() - (*count)[0].constant());
    }
    for (const DimExpr &e : *axes) {
      auto axis = inference.axis(e.constant(), x->size());
      if (axis && x->empty())
        inference.error("expected an axis of length 1 to squeeze, found a scalar");
      if (!axis || x->empty())
        return;
      const DimExpr &dim = (*x)[*axis];
      if (dim.isConstant() && dim.constant() != 1) // C1
        return inference.error("expected length 1 on squeezed axis " + Twine(*axis) + ", found " + dim.str() +
                               " in shape " + shapeText(*x));
      inference.requireEqual(dim, DimExpr(1), "squeezed axis " + Twine(*axis) + " of " + shapeText(*x) + " and 1");
      dropped[*axis] = true;
    }
  } else {
    for (auto [i, dim] : llvm::enumerate(*x))
      dropped[i] = dim.isConstant() && dim.constant() == 1;
  }
  Inference::Dims dims;
  for (auto [i, dim] : llvm::enumerate(*x))
    if (!dropped[i])
      dims.push_back(dim);
  inference.result(0, type, dims);
}

void inferUnsqueeze(Inference &inference) {
  auto x = inference.dims(0), axes = constants(inference, 1);
  Type type = inference.elementType(0);
  if (!x || !axes) {
    auto count = inference.dims(1);
    if (x && count && count->size() == 1 && (*count)[0].isConstant())
      return inference.unknownResult(0, type, x->size() + (*count)[0].constant());
    return inference.result(0, type, std::nullopt);
  }
  int64_t rank = x->size() + axes->size();
  SmallVector<bool> inserted(rank, false);
  for (const DimExpr &e : *axes) {
    auto axis = inference.axis(e.constant(), rank);
    if (!axis)
      return;
    if (inserted[*axis])
      return inference.error("expected distinct axes, found axis " + Twine(*axis) + " twice");
    inserted[*axis] = true;
  }
  Inference::Dims dims;
  for (int64_t i = 0, from = 0; i < rank; ++i)
    dims.push_back(inserted[i] ? DimExpr(1) : (*x)[from++]);
  inference.result(0, type, dims);
}

void inferTranspose(Inference &inference) {
  auto x = inference.dims(0);
  Type type = inference.elementType(0);
  if (!x)
    return inference.result(0, type, std::nullopt);
  auto perm = inference.intsAttribute("perm");
  if (!perm) {
    perm.emplace();
    for (int64_t i = x->size() - 1; i >= 0; --i)
      perm->push_back(i);
  }
  SmallVector<int64_t> sorted(*perm);
  llvm::sort(sorted);
  bool isPermutation = sorted.size() == x->size();
  for (auto [i, p] : llvm::enumerate(sorted))
    isPermutation &= p == int64_t(i);
  if (!isPermutation) { // C1
    std::string found;
    for (int64_t p : *perm)
      found += (found.empty() ? "" : ", ") + std::to_string(p);
    return inference.error("expected perm to be a permutation of " + Twine(x->size()) + " axes, found [" + found + "]",
                           "import.attribute");
  }
  Inference::Dims dims;
  for (int64_t p : *perm)
    dims.push_back((*x)[p]);
  inference.result(0, type, dims);
}

void inferConcat(Inference &inference) {
  Type type = inference.elementType(0);
  std::optional<Inference::Dims> dims;
  std::optional<int64_t> axis;
  if (inference.operandCount() == 0)
    return inference.error("expected at least one input, found none");
  for (unsigned i = 0; i < inference.operandCount(); ++i) {
    Type other = inference.elementType(i);
    if (type && other && type != other)
      inference.error("expected inputs of one element type, found " + elementTypeText(type) + " and " +
                          elementTypeText(other),
                      "import.dtype");
    auto next = inference.dims(i);
    if (!next)
      return inference.result(0, type, std::nullopt);
    if (!dims) {
      dims = next;
      axis = inference.axis(inference.intAttribute("axis", 0), next->size()); // C3
      if (next->empty())
        inference.error("expected inputs of rank >= 1, found a scalar");
      if (!axis || next->empty())
        return;
      continue;
    }
    if (next->size() != dims->size()) // C1
      return inference.error("expected inputs of one rank, found shapes " + shapeText(*dims) + " and " +
                             shapeText(*next));
    for (size_t d = 0; d < dims->size(); ++d) {
      DimExpr &mine = (*dims)[d];
      const DimExpr &theirs = (*next)[d];
      if (int64_t(d) == *axis)
        mine = mine + theirs;
      else if (mine.isConstant() && theirs.isConstant() && mine != theirs) // C2
        return inference.error("expected equal dimensions off axis " + Twine(*axis) + ", found " + mine.str() +
                               " and " + theirs.str() + " on axis " + Twine(d));
      else {
        inference.requireEqual(mine, theirs, "the sizes on axis " + Twine(d) + " of inputs 0 and " + Twine(i));
        if (theirs.isConstant())
          mine = theirs;
      }
    }
  }
  inference.result(0, type, dims);
}

void inferSplit(Inference &inference) {
  auto x = inference.dims(0);
  Type type = inference.elementType(0);
  unsigned count = inference.operation()->getNumResults();
  if (!x) {
    for (unsigned i = 0; i < count; ++i)
      inference.result(i, type, std::nullopt);
    return;
  }
  auto axis = inference.axis(inference.intAttribute("axis", 0), x->size());
  if (!axis || x->empty())
    return;
  const DimExpr whole = (*x)[*axis];
  std::optional<Inference::Dims> sizes;
  if (inference.has(1)) {
    sizes = inference.elements(1);
    if (sizes) {
      DimExpr total(0);
      for (const DimExpr &s : *sizes)
        total = total + s;
      if (sizes->size() != count || (total.isConstant() && whole.isConstant() && total != whole)) // C1
        return inference.error("expected " + Twine(count) + " split sizes that add up to " + whole.str() + ", found " +
                               shapeText(*sizes));
      inference.requireEqual(total, whole, "the sum of the split sizes " + shapeText(*sizes) + " and the axis");
    }
  } else {
    int64_t parts = inference.intAttribute("num_outputs", count);
    if (parts < 1 || parts != int64_t(count))
      return inference.error("expected num_outputs " + Twine(count) + ", found " + Twine(parts), "import.attribute");
    DimExpr chunk = whole.ceilDiv(DimExpr(parts));
    DimExpr last = whole - chunk * DimExpr(parts - 1);
    if (last.isConstant() && last.constant() < 0)
      return inference.error("expected an axis that " + Twine(parts) + " parts of " + chunk.str() + " cover, found " +
                             whole.str());
    inference.requireAtLeast(last, DimExpr(0), "an axis that " + Twine(parts) + " parts cover");
    sizes.emplace(parts, chunk);
    sizes->back() = last;
  }
  for (unsigned i = 0; i < count; ++i) {
    Inference::Dims dims = *x;
    dims[*axis] = sizes ? (*sizes)[i] : inference.unknownDim(i, *axis);
    inference.result(i, type, dims);
  }
}

/// start or end of a slice over `dim` elements by a step: negative counts from the end, then clamped.
static DimExpr clampBound(DimExpr bound, const DimExpr &dim, bool forward) {
  // Ends of a thousand million and of 32 bits are how models say "all": no symbolic dimension is taken to be that long.
  int64_t far = dim.isConstant() ? int64_t(1) << 40 : 1000000000;
  if (bound.isConstant() && bound.constant() < 0)
    bound = bound.constant() <= -far ? DimExpr(forward ? 0 : -1) : bound + dim;
  else if (bound.isConstant() && bound.constant() >= far)
    bound = forward ? dim : dim - DimExpr(1);
  DimExpr low(forward ? 0 : -1), high = forward ? dim : dim - DimExpr(1);
  return DimExpr::min(DimExpr::max(bound, low), high);
}

void inferSlice(Inference &inference) {
  auto x = inference.dims(0), starts = inference.elements(1), ends = inference.elements(2);
  Type type = inference.elementType(0);
  if (!x)
    return inference.result(0, type, std::nullopt);
  std::optional<Inference::Dims> axes, steps;
  if (inference.has(3))
    axes = constants(inference, 3);
  else if (auto length = inference.dims(1); length && length->size() == 1 && (*length)[0].isConstant()) {
    axes.emplace();
    for (int64_t i = 0; i < (*length)[0].constant() && i < int64_t(x->size()); ++i)
      axes->push_back(DimExpr(i));
  }
  if (inference.has(4))
    steps = inference.elements(4);
  else if (axes)
    steps.emplace(axes->size(), DimExpr(1));
  if (!axes)
    return inference.unknownResult(0, type, x->size());
  if ((starts && starts->size() != axes->size()) || (ends && ends->size() != axes->size()) ||
      (steps && steps->size() != axes->size())) // C2
    return inference.error("expected starts, ends, axes and steps of one length");
  Inference::Dims dims = *x;
  SmallVector<bool> seen(x->size(), false);
  for (size_t i = 0; i < axes->size(); ++i) {
    auto axis = inference.axis((*axes)[i].constant(), x->size());
    if (!axis || x->empty())
      return;
    if (seen[*axis])
      return inference.error("expected distinct axes, found axis " + Twine(*axis) + " twice");
    seen[*axis] = true;
    const DimExpr dim = (*x)[*axis];
    if (steps && (*steps)[i].isConstant() && (*steps)[i].constant() == 0) // C1
      return inference.error("expected steps other than 0");
    if (!starts || !ends || !steps || !(*steps)[i].isConstant()) {
      dims[*axis] = inference.unknownDim(0, *axis);
      continue;
    }
    int64_t step = std::max((*steps)[i].constant(), -INT64_MAX); // its magnitude is a number too
    auto isSigned = [](const DimExpr &e) { return e.isConstant() || e.isAtLeast(0); };
    if (!isSigned((*starts)[i]) || !isSigned((*ends)[i])) { // a symbolic bound of unknown sign
      dims[*axis] = inference.unknownDim(0, *axis);
      continue;
    }
    if (step > 0) {
      DimExpr from = clampBound((*starts)[i], dim, true), to = clampBound((*ends)[i], dim, true);
      DimExpr length = to - from;
      if (step != 1)
        length = length.ceilDiv(DimExpr(step));
      dims[*axis] = DimExpr::max(length, DimExpr(0));
    } else {
      DimExpr from = clampBound((*starts)[i], dim, false), to = clampBound((*ends)[i], dim, false);
      dims[*axis] = DimExpr::max((from - to).ceilDiv(DimExpr(-step)), DimExpr(0));
    }
  }
  inference.result(0, type, dims);
}

void inferPad(Inference &inference) {
  auto x = inference.dims(0), pads = inference.elements(1);
  Type type = inference.elementType(0);
  if (!x)
    return inference.result(0, type, std::nullopt);
  std::optional<Inference::Dims> axes;
  if (inference.has(3)) {
    axes = constants(inference, 3);
  } else {
    axes.emplace();
    for (size_t i = 0; i < x->size(); ++i)
      axes->push_back(DimExpr(int64_t(i)));
  }
  if (!pads || !axes)
    return inference.unknownResult(0, type, x->size());
  if (pads->size() != 2 * axes->size())
    return inference.error("expected " + Twine(2 * axes->size()) + " pads, found " + Twine(pads->size()));
  for (size_t i = 0; i < axes->size(); ++i) {
    auto axis = inference.axis((*axes)[i].constant(), x->size());
    if (axis && x->empty())
      inference.error("expected an axis to pad, found a scalar");
    if (!axis || x->empty())
      return;
    DimExpr &dim = (*x)[*axis];
    dim = dim + (*pads)[i] + (*pads)[i + axes->size()];
    if (dim.isConstant() && dim.constant() < 0)
      return inference.error("expected pads that leave a size >= 0, found " + dim.str() + " on axis " + Twine(*axis));
    inference.requireAtLeast(dim, DimExpr(0), "pads that leave a size >= 0 on axis " + Twine(*axis));
  }
  inference.result(0, type, x);
}

void inferExpand(Inference &inference) {
  auto x = inference.dims(0), shape = inference.elements(1);
  Type type = inference.elementType(0);
  if (!x || !shape) {
    auto length = inference.dims(1);
    if (x && length && length->size() == 1 && (*length)[0].isConstant())
      return inference.unknownResult(0, type, std::max<int64_t>(x->size(), (*length)[0].constant()));
    return inference.result(0, type, std::nullopt);
  }
  for (const DimExpr &e : *shape)
    if (e.isConstant() && e.constant() < 0)
      return inference.error("expected sizes >= 0 in shape, found " + shapeText(*shape));
  inference.result(0, type, broadcast(inference, *x, *shape));
}

void inferTile(Inference &inference) {
  auto x = inference.dims(0), repeats = inference.elements(1);
  Type type = inference.elementType(0);
  if (!x)
    return inference.result(0, type, std::nullopt);
  if (!repeats)
    return inference.unknownResult(0, type, x->size());
  if (repeats->size() != x->size())
    return inference.error("expected " + Twine(x->size()) + " repeats, found " + Twine(repeats->size()));
  for (size_t i = 0; i < x->size(); ++i) {
    if ((*repeats)[i].isConstant() && (*repeats)[i].constant() < 0)
      return inference.error("expected repeats >= 0, found " + shapeText(*repeats));
    (*x)[i] = (*x)[i] * (*repeats)[i];
  }
  inference.result(0, type, x);
}

void inferGather(Inference &inference) {
  auto x = inference.dims(0), indices = inference.dims(1);
  Type type = inference.elementType(0);
  if (!x || !indices)
    return inference.result(0, type, std::nullopt);
  auto axis = inference.axis(inference.intAttribute("axis", 0), x->size()); // C1
  if (x->empty())
    inference.error("expected data of rank >= 1, found a scalar");
  if (!axis || x->empty())
    return;
  Inference::Dims dims(x->begin(), x->begin() + *axis);
  dims.append(indices->begin(), indices->end());
  dims.append(x->begin() + *axis + 1, x->end());
  inference.result(0, type, dims);
  auto picks = inference.elements(1);
  if (picks && (*x)[*axis].isConstant())
    for (const DimExpr &e : *picks)
      if (int64_t n = (*x)[*axis].constant(); e.isConstant() && (e.constant() < -n || e.constant() >= n))
        return inference.error("expected indices in [" + Twine(-n) + ", " + Twine(n - 1) + "], found " + e.str());
}

void inferGatherElements(Inference &inference) {
  auto x = inference.dims(0), indices = inference.dims(1);
  if (x && indices && x->size() != indices->size())
    return inference.error("expected data and indices of one rank, found shapes " + shapeText(*x) + " and " +
                           shapeText(*indices));
  int64_t along = inference.intAttribute("axis", 0);
  if (x && indices)
    for (size_t d = 0; d < x->size(); ++d)
      if (int64_t(d) != (along < 0 ? along + int64_t(x->size()) : along))
        inference.requireAtLeast((*x)[d], (*indices)[d],
                                 "indices no longer than the data off the axis, on axis " + Twine(d));
  inference.result(0, inference.elementType(0), indices);
}

void inferGatherND(Inference &inference) {
  auto x = inference.dims(0), indices = inference.dims(1);
  Type type = inference.elementType(0);
  int64_t batch = inference.intAttribute("batch_dims", 0);
  if (!x || !indices || indices->empty() || !indices->back().isConstant())
    return inference.result(0, type, std::nullopt);
  int64_t depth = indices->back().constant();
  if (batch < 0 || batch + depth > int64_t(x->size()) || batch >= int64_t(indices->size()) || depth < 1)
    return inference.error("expected index tuples of length 1 to " + Twine(int64_t(x->size()) - batch) + ", found " +
                           Twine(depth));
  Inference::Dims dims(indices->begin(), indices->end() - 1);
  dims.append(x->begin() + batch + depth, x->end());
  inference.result(0, type, dims);
}

void inferScatterElements(Inference &inference) {
  auto x = inference.dims(0), indices = inference.dims(1), updates = inference.dims(2);
  inference.result(0, inference.elementType(0), x);
  if (!x || !indices || !updates)
    return;
  if (x->size() != indices->size() || x->size() != updates->size())
    return inference.error("expected data, indices and updates of one rank, found shapes " + shapeText(*x) + ", " +
                           shapeText(*indices) + " and " + shapeText(*updates));
  auto axis = inference.axis(inference.intAttribute("axis", 0), x->size());
  if (!axis)
    return;
  for (size_t d = 0; d < x->size(); ++d) {
    inference.requireEqual((*indices)[d], (*updates)[d], "the sizes of indices and updates on axis " + Twine(d));
    if (int64_t(d) != *axis)
      inference.requireAtLeast((*x)[d], (*indices)[d],
                               "indices no longer than the data off the axis, on axis " + Twine(d));
  }
}

void inferScatterND(Inference &inference) {
  auto x = inference.dims(0), indices = inference.dims(1), updates = inference.dims(2);
  inference.result(0, inference.elementType(0), x);
  if (!x || !indices || !updates || indices->empty() || !indices->back().isConstant())
    return;
  int64_t depth = indices->back().constant();
  if (depth > int64_t(x->size()))
    return inference.error("expected index tuples of length 0 to " + Twine(x->size()) + ", found " + Twine(depth));
  Inference::Dims wanted(indices->begin(), indices->end() - 1);
  wanted.append(x->begin() + depth, x->end());
  if (wanted.size() != updates->size())
    return inference.error("expected updates of shape " + shapeText(wanted) + ", found " + shapeText(*updates));
  for (size_t d = 0; d < wanted.size(); ++d)
    inference.requireEqual((*updates)[d], wanted[d],
                           "updates of shape " + shapeText(*updates) + " and the wanted " + shapeText(wanted) +
                               " on axis " + Twine(d));
}

void inferDepthToSpace(Inference &inference) {
  auto x = inference.dims(0);
  DimExpr block(inference.intAttribute("blocksize", 1));
  if (!x)
    return inference.unknownResult(0, inference.elementType(0), 4);
  if (x->size() != 4 || block.constant() < 1 ||
      ((*x)[1].isConstant() && (*x)[1].constant() % (block * block).constant() != 0))
    return inference.error("expected a rank-4 input with channels divisible by blocksize squared, found shape " +
                           shapeText(*x));
  inference.requireEqual((*x)[1].floorDiv(block * block) * block * block, (*x)[1],
                         "the channels and a multiple of blocksize squared");
  inference.result(0, inference.elementType(0),
                   Inference::Dims{(*x)[0], (*x)[1].floorDiv(block * block), (*x)[2] * block, (*x)[3] * block});
}

void inferSpaceToDepth(Inference &inference) {
  auto x = inference.dims(0);
  DimExpr block(inference.intAttribute("blocksize", 1));
  if (!x)
    return inference.unknownResult(0, inference.elementType(0), 4);
  if (x->size() != 4 || block.constant() < 1)
    return inference.error("expected a rank-4 input and a blocksize >= 1, found shape " + shapeText(*x));
  for (int i : {2, 3})
    if ((*x)[i].isConstant() && (*x)[i].constant() % block.constant() != 0)
      return inference.error("expected spatial sizes divisible by blocksize " + block.str() + ", found shape " +
                             shapeText(*x));
  for (int i : {2, 3})
    inference.requireEqual((*x)[i].floorDiv(block) * block, (*x)[i],
                           "axis " + Twine(i) + " and a multiple of the blocksize");
  inference.result(0, inference.elementType(0),
                   Inference::Dims{(*x)[0], (*x)[1] * block * block, (*x)[2].floorDiv(block), (*x)[3].floorDiv(block)});
}

/// Constant f32 scales times symbolic sizes, where exact.
void inferResize(Inference &inference) {
  auto x = inference.dims(0);
  Type type = inference.elementType(0);
  if (!x)
    return inference.result(0, type, std::nullopt);
  SmallVector<int64_t> axes;
  if (auto given = inference.intsAttribute("axes")) {
    for (int64_t a : *given) {
      auto axis = inference.axis(a, x->size());
      if (axis && x->empty())
        inference.error("expected an axis to resize, found a scalar");
      if (!axis || x->empty())
        return;
      axes.push_back(*axis);
    }
  } else {
    for (size_t i = 0; i < x->size(); ++i)
      axes.push_back(i);
  }
  bool isStretch = inference.stringAttribute("keep_aspect_ratio_policy", "stretch") == "stretch";
  if (inference.has(3)) {
    auto sizes = inference.elements(3);
    if (!sizes || !isStretch || sizes->size() != axes.size()) {
      if (sizes && sizes->size() != axes.size())
        return inference.error("expected " + Twine(axes.size()) + " sizes, found " + Twine(sizes->size()));
      return sizes && llvm::all_of(*x, [](const DimExpr &d) { return d.isConstant(); })
                 ? inference.fallback()
                 : inference.unknownResult(0, type, x->size());
    }
    for (auto [axis, size] : llvm::zip(axes, *sizes))
      (*x)[axis] = size;
    return inference.result(0, type, x);
  }
  Value scales = operandOf(inference.operation(), 2);
  auto bytes = scales ? constantBytes(constantOf(scales)) : std::nullopt;
  if (!scales)
    return inference.error("expected scales or sizes, found neither");
  if (!bytes || !cast<TensorType>(scales.getType()).getElementType().isF32())
    return inference.unknownResult(0, type, x->size());
  // The extent of a crop, not of the input, is scaled; the shape function knows the region.
  if (inference.stringAttribute("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize")
    return llvm::all_of(*x, [](const DimExpr &d) { return d.isConstant(); })
               ? inference.fallback()
               : inference.unknownResult(0, type, x->size());
  for (size_t i = 0; i < axes.size(); ++i) {
    float scale;
    size_t at = bytes->isSplat ? 0 : i * 4;
    if (at + 4 > bytes->bytes.size())
      return inference.error("expected " + Twine(axes.size()) + " scales, found " + Twine(bytes->bytes.size() / 4));
    std::memcpy(&scale, bytes->bytes.data() + at, 4);
    if (!(scale > 0))
      return inference.error("expected scales > 0");
    DimExpr &dim = (*x)[axes[i]];
    if (scale == 1)
      continue;
    double inverse = 1.0 / double(scale);
    if (dim.isConstant()) { // in float32, as the reference kernel: 10 * 0.7 is 7, which double would miss
      float size = std::floor(float(dim.constant()) * scale);
      if (size >= float(int64_t(1) << 48))
        return inference.error("expected a size below 2^48, found scale " + Twine(std::to_string(scale)) + " of axis " +
                               Twine(axes[i]) + " of size " + Twine(dim.constant()));
      dim = DimExpr(int64_t(size));
    } else if (scale == std::floor(scale) && scale < 65536)
      dim = dim * DimExpr(int64_t(scale));
    else if (inverse == std::floor(inverse) && inverse >= 1 && inverse < 65536)
      dim = dim.floorDiv(DimExpr(int64_t(inverse)));
    else
      dim = inference.unknownDim(0, axes[i]);
  }
  inference.result(0, type, x);
}

void inferOneHot(Inference &inference) {
  auto indices = inference.dims(0), depth = inference.elements(1);
  if (!indices)
    return inference.result(0, inference.elementType(2), std::nullopt);
  auto axis = inference.axis(inference.intAttribute("axis", -1), indices->size() + 1);
  if (!axis)
    return;
  indices->insert(indices->begin() + *axis, depth && depth->size() == 1 ? (*depth)[0] : inference.unknownDim(0, *axis));
  inference.result(0, inference.elementType(2), indices);
}

void inferTopK(Inference &inference) {
  auto x = inference.dims(0), k = inference.elements(1);
  Type type = inference.elementType(0), index = IntegerType::get(inference.operation()->getContext(), 64);
  if (x) {
    auto axis = inference.axis(inference.intAttribute("axis", -1), x->size());
    if (!axis || x->empty())
      return;
    DimExpr &dim = (*x)[*axis];
    if (k && k->size() == 1 && (*k)[0].isConstant() && dim.isConstant() &&
        ((*k)[0].constant() < 0 || (*k)[0].constant() > dim.constant()))
      return inference.error("expected k in [0, " + dim.str() + "], found " + (*k)[0].str());
    if (k && k->size() == 1)
      inference.requireAtLeast(dim, (*k)[0], "an axis of at least k = " + (*k)[0].str() + " elements");
    dim = k && k->size() == 1 ? (*k)[0] : inference.unknownDim(0, *axis);
  }
  inference.result(0, type, x);
  inference.result(1, index, x);
}

void inferNonZero(Inference &inference) {
  auto x = inference.dims(0);
  Type index = IntegerType::get(inference.operation()->getContext(), 64);
  if (!x)
    return inference.result(0, index, std::nullopt);
  inference.result(0, index, Inference::Dims{DimExpr(int64_t(x->size())), inference.unknownDim(0, 1)});
}

} // namespace firn

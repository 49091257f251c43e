// Positions through movement operations that choose among elements: slice, concat, pad, gather, resize; and the
// parameters of quantisation.
#include "compiler/codegen/cpu/Trace.h"

#include "compiler/codegen/cpu/Elements.h"
#include <functional>

using namespace mlir;

namespace firn {
namespace {

std::optional<size_t> normalizedAxis(int64_t axis, size_t rank) {
  if (axis < 0)
    axis += int64_t(rank);
  if (axis < 0 || axis >= int64_t(rank))
    return std::nullopt;
  return size_t(axis);
}

} // namespace

int Trace::pullSlice(SliceOp op, ArrayRef<Coordinate> position) {
  SmallVector<DimExpr> dims = dimsOfValue(op.getX());
  auto starts = operandOf(op, 1) ? integerElements(operandOf(op, 1)) : std::nullopt;
  if (!starts)
    return fail("a slice whose starts are not known");
  SmallVector<int64_t> axes, steps(starts->size(), 1);
  if (Value given = operandOf(op, 3)) {
    auto known = constantIntegers(given);
    if (!known)
      return fail("a slice whose axes are not known");
    axes = *known;
  } else {
    for (size_t i = 0; i < starts->size(); ++i)
      axes.push_back(int64_t(i));
  }
  if (Value given = operandOf(op, 4)) {
    auto known = constantIntegers(given);
    if (!known)
      return fail("a slice whose steps are not known");
    steps = *known;
  }
  Position at(position.begin(), position.end());
  for (size_t i = 0; i < starts->size(); ++i) {
    auto axis = normalizedAxis(axes[i], dims.size());
    if (!axis)
      return fail("a slice along an axis that is not there");
    const DimExpr &size = dims[*axis];
    DimExpr start = (*starts)[i];
    if (auto number = start.asConstant()) {
      if (*number < 0)
        start = DimExpr::max(start + size, DimExpr(0));
    } else if (!start.isAtLeast(0)) {
      return fail("a slice whose start may be negative: " + start.str());
    }
    // A start beyond the end leaves no element; for negative steps it begins with the last.
    if (steps[i] < 0)
      start = DimExpr::min(start, size - DimExpr(1));
    at[*axis] = {indexOf(position[*axis]) * DimExpr(steps[i]) + Linear(start), false};
    if (size == DimExpr(1))
      at[*axis] = {Linear(), true};
  }
  return pull(op.getX(), at);
}

int Trace::pullConcat(ConcatOp op, ArrayRef<Coordinate> position) {
  auto axis = normalizedAxis(op.getAxis(), position.size());
  if (!axis)
    return fail("a concatenation along an axis that is not there");
  Linear index = indexOf(position[*axis]);
  std::vector<std::pair<DimExpr, DimExpr>> segments;
  DimExpr border(0);
  for (Value input : op.getInputs()) {
    DimExpr next = border + dimsOfValue(input)[*axis];
    segments.push_back({border, next});
    border = next;
  }
  int chosen = segmentOf(index, segments, op);
  if (chosen == -1)
    return -1;
  auto from = [&](size_t i, Linear at) {
    Position inner(position.begin(), position.end());
    bool isOne = dimsOfValue(op.getInputs()[i])[*axis] == DimExpr(1);
    inner[*axis] = {isOne ? Linear() : at, isOne};
    return pull(op.getInputs()[i], inner);
  };
  if (chosen >= 0)
    return from(size_t(chosen), index + Linear(segments[size_t(chosen)].first * DimExpr(-1)));
  // Which input it is turns out while running.
  if (segments.size() > 8)
    return fail("a concatenation of more than 8 inputs at a position that is no loop");
  int result = -1;
  Type element = cast<RankedTensorType>(op.getResult().getType()).getElementType();
  for (auto [i, segment] : llvm::enumerate(segments)) {
    Linear distance = index + Linear(segment.first * DimExpr(-1));
    Atom clamp{Atom::Clamp, segment.second - segment.first, distance, DimExpr(1)};
    int node = from(i, Linear::atom(addAtom(clamp)));
    if (node < 0)
      return -1;
    Node test{Node::IsAtLeast};
    test.elementType = IntegerType::get(op.getContext(), 1);
    test.index = distance;
    result = i == 0 ? node : arith(Node::Select, element, {add(test), node, result});
  }
  return result;
}

int Trace::pullPad(PadOp op, ArrayRef<Coordinate> position) {
  SmallVector<DimExpr> dims = dimsOfValue(op.getX());
  auto pads = integerElements(op.getPads());
  if (!pads)
    return fail("a pad whose sizes are not known");
  SmallVector<int64_t> axes;
  if (Value given = operandOf(op, 3)) {
    auto known = constantIntegers(given);
    if (!known)
      return fail("a pad whose axes are not known");
    axes = *known;
  } else {
    for (size_t i = 0; i < dims.size(); ++i)
      axes.push_back(int64_t(i));
  }
  if (pads->size() != 2 * axes.size())
    return fail("a pad whose sizes do not fit its axes");
  Position at(position.begin(), position.end());
  DimExpr minus(-1);
  for (size_t i = 0; i < axes.size(); ++i) {
    auto axis = normalizedAxis(axes[i], dims.size());
    if (!axis)
      return fail("a pad along an axis that is not there");
    DimExpr before = (*pads)[i], after = (*pads)[axes.size() + i];
    if (before == DimExpr(0) && after == DimExpr(0))
      continue;
    const DimExpr &size = dims[*axis];
    StringRef mode = op.getMode();
    // Beyond one reflection or one turn the index would leave the tensor.
    if (mode == "reflect" || mode == "wrap") {
      int64_t reach = size.isConstant() ? size.constant() - (mode == "reflect") : -1;
      if (!before.isConstant() || !after.isConstant() || std::max(before.constant(), after.constant()) > reach)
        return fail("a pad that may be wider than what it repeats");
    }
    Linear index = indexOf(position[*axis]);
    int part =
        segmentOf(index, {{DimExpr(0), before}, {before, before + size}, {before + size, before + size + after}}, op);
    if (part == -1)
      return -1;
    if (part == -2)
      return fail("a pad at a position that is no loop");
    Linear inside = index + Linear(before * minus);
    if (part != 1 && mode == "constant") {
      Type element = cast<RankedTensorType>(op.getResult().getType()).getElementType();
      Value constant = operandOf(op, 2);
      return constant ? pull(constant, Position(dimsOfValue(constant).size(), Coordinate{Linear(), true}))
                      : splat(0, element);
    }
    if (part == 0) // reflect: -1 is 1; edge: 0; wrap: -1 is the last
      inside = mode == "reflect" ? inside * minus : mode == "edge" ? Linear() : inside + Linear(size);
    if (part == 2)
      inside = mode == "reflect" ? inside * minus + Linear(size * DimExpr(2) - DimExpr(2))
               : mode == "edge"  ? Linear(size - DimExpr(1))
                                 : inside + Linear(size * minus);
    at[*axis] = {inside, false};
  }
  return pull(op.getX(), at);
}

Linear Trace::elementIndex(int node, const DimExpr &size) {
  Atom atom{Atom::Element, size, Linear(), DimExpr(1)};
  atom.node = node;
  return Linear::atom(addAtom(atom));
}

int Trace::pullGather(Operation *op, ArrayRef<Coordinate> position) {
  Value x = op->getOperand(0), indices = op->getOperand(1);
  SmallVector<DimExpr> dims = dimsOfValue(x), indexDims = dimsOfValue(indices);
  // One element of the indices as a position on an axis of x.
  auto picked = [&](ArrayRef<Coordinate> at, const DimExpr &size) -> std::optional<Linear> {
    if (auto known = integerElements(indices)) {
      Linear which = linearize(at, indexDims);
      auto number = known->size() == 1 ? std::optional<int64_t>(0)
                                       : (which.isConstant() ? which.constant.asConstant() : std::nullopt);
      if (number) {
        DimExpr element = (*known)[size_t(*number)];
        auto value = element.asConstant(), count = size.asConstant();
        if (value && count && *value >= -*count && *value < *count)
          return Linear(DimExpr(*value < 0 ? *value + *count : *value));
      }
    }
    int node = pull(indices, at);
    if (node < 0)
      return std::nullopt;
    return elementIndex(node, size);
  };
  Position at;
  if (auto gather = dyn_cast<GatherOp>(op)) {
    auto axis = normalizedAxis(gather.getAxis(), dims.size());
    if (!axis)
      return fail("a gather along an axis that is not there");
    auto index = picked(position.slice(*axis, indexDims.size()), dims[*axis]);
    if (!index)
      return -1;
    at.append(position.begin(), position.begin() + long(*axis));
    at.push_back({*index, false});
    at.append(position.begin() + long(*axis + indexDims.size()), position.end());
  } else if (auto elements = dyn_cast<GatherElementsOp>(op)) {
    auto axis = normalizedAxis(elements.getAxis(), dims.size());
    if (!axis)
      return fail("a gather along an axis that is not there");
    auto index = picked(position, dims[*axis]);
    if (!index)
      return -1;
    at.assign(position.begin(), position.end());
    at[*axis] = {*index, false};
    for (size_t k = 0; k < at.size(); ++k)
      if (dims[k] == DimExpr(1))
        at[k] = {Linear(), true};
  } else {
    auto tuples = cast<GatherNDOp>(op);
    auto length = indexDims.back().asConstant();
    size_t batch = size_t(tuples.getBatchDims()), outer = indexDims.size() - 1;
    if (!length || *length > 8)
      return fail("a gather whose index tuples have no fixed length");
    at.append(position.begin(), position.begin() + long(batch));
    for (int64_t k = 0; k < *length; ++k) {
      Position tuple(position.begin(), position.begin() + long(outer));
      tuple.push_back({Linear(DimExpr(k)), false});
      auto index = picked(tuple, dims[batch + size_t(k)]);
      if (!index)
        return -1;
      at.push_back({*index, false});
    }
    at.append(position.begin() + long(outer), position.end());
  }
  return pull(x, at);
}

int Trace::pullOneHot(OneHotOp op, ArrayRef<Coordinate> position) {
  auto indexType = cast<RankedTensorType>(op.getIndices().getType()).getElementType();
  auto axis = normalizedAxis(op.getAxis(), position.size());
  if (!axis || !isa<IntegerType>(indexType))
    return fail("one-hot of indices that are no integers");
  const DimExpr depth = dimsOfValue(op.getResult())[*axis];
  Position at(position.begin(), position.end());
  at.erase(at.begin() + long(*axis));
  Type i64 = IntegerType::get(op.getContext(), 64), i1 = IntegerType::get(op.getContext(), 1);
  int given = castTo(pull(op.getIndices(), at), i64);
  if (given < 0)
    return -1;
  auto number = [&](Linear value) {
    Node node(Node::Index);
    node.index = std::move(value);
    node.elementType = i64;
    return add(std::move(node));
  };
  // The element is on where its position is the index, or the index counted from the end; others are off.
  int here = number(indexOf(position[*axis])), fromEnd = number(indexOf(position[*axis]) + Linear(depth * DimExpr(-1)));
  int isOn = arith(Node::IsEqual, i1, {given, here}), isOnToo = arith(Node::IsEqual, i1, {given, fromEnd});
  Type element = cast<RankedTensorType>(op.getResult().getType()).getElementType();
  int off = pull(op.getValues(), {Coordinate{Linear(), false}});
  int on = pull(op.getValues(), {Coordinate{Linear(DimExpr(1)), false}});
  if (off < 0 || on < 0)
    return -1;
  return arith(Node::Select, element, {isOn, on, arith(Node::Select, element, {isOnToo, on, off})});
}

int Trace::pullQuantization(Operation *op, ArrayRef<Coordinate> position) {
  if (!Elements::computes(op))
    return fail("no vector code for " + op->getName().getStringRef() + " on these types");
  int64_t axis = 0, block = 0;
  if (auto quantize = dyn_cast<QuantizeLinearOp>(op)) {
    axis = quantize.getAxis();
    block = quantize.getBlockSize();
  } else {
    axis = cast<DequantizeLinearOp>(op).getAxis();
    block = cast<DequantizeLinearOp>(op).getBlockSize();
  }
  Node node{Node::Compute};
  node.op = op;
  node.elementType = cast<RankedTensorType>(op->getResult(0).getType()).getElementType();
  node.operands.push_back(pull(op->getOperand(0), position));
  for (unsigned i = 1; i < op->getNumOperands(); ++i) {
    Value parameter = op->getOperand(i);
    if (isAbsent(parameter)) {
      node.operands.push_back(-1);
      continue;
    }
    SmallVector<DimExpr> own = dimsOfValue(parameter);
    DimExpr total(1);
    for (const DimExpr &dim : own)
      total = total * dim;
    Position at(own.size(), Coordinate{Linear(), true});
    if (total != DimExpr(1)) {
      auto line = position.size() == 1 ? std::optional<size_t>(0) : normalizedAxis(axis, position.size());
      if (!line)
        return fail("quantisation along an axis that is not there");
      if (block == 0) {
        at[0] = {indexOf(position[*line]), false};
      } else {
        at.assign(position.begin(), position.end());
        auto parts = delinearize(indexOf(position[*line]), {own[*line], DimExpr(block)});
        if (!parts)
          return -1;
        at[*line] = {(*parts)[0], false};
      }
    }
    int pulledNode = pull(parameter, at);
    if (pulledNode < 0)
      return -1;
    node.operands.push_back(pulledNode);
  }
  return node.operands[0] < 0 ? -1 : add(node);
}

int Trace::pullResize(ResizeOp op, ArrayRef<Coordinate> position) {
  SmallVector<DimExpr> from = dimsOfValue(op.getX()), to = dimsOfValue(op.getResult());
  StringRef mode = op.getMode(), transformation = op.getCoordinateTransformationMode();
  StringRef nearest = op.getNearestMode();
  if (op.getAntialias() || op.getExcludeOutside() || (mode != "nearest" && mode != "linear") ||
      transformation == "tf_crop_and_resize" || transformation == "half_pixel_symmetric")
    return fail("no vector code for this form of resize");
  // The scales as given: they need not be the quotient of the sizes.
  SmallVector<double> scales(from.size(), 0.0);
  if (Value given = operandOf(op, 2)) {
    ElementsAttr constant = constantOf(given);
    auto type = dyn_cast<RankedTensorType>(given.getType());
    auto bytes = constant ? constantBytes(constant) : std::nullopt;
    if (!bytes || !type || !type.getElementType().isF32() || !type.hasStaticShape())
      return fail("a resize whose scales are not known");
    auto axes = op.getAxes();
    for (int64_t i = 0; i < type.getNumElements(); ++i) {
      float value;
      memcpy(&value, bytes->bytes.data() + (bytes->isSplat ? 0 : i * 4), 4);
      auto axis = normalizedAxis(axes ? (*axes)[size_t(i)] : i, from.size());
      if (!axis)
        return fail("a resize along an axis that is not there");
      scales[*axis] = value;
    }
  }
  Position at(position.begin(), position.end());
  struct Blend {
    size_t axis;
    Linear low, high;
    int fraction;
  };
  SmallVector<Blend> blends;
  for (size_t k = 0; k < from.size(); ++k) {
    if (from[k] == to[k] && (scales[k] == 0 || scales[k] == 1))
      continue;
    if (from[k] == DimExpr(1)) {
      at[k] = {Linear(), true};
      continue;
    }
    Linear index = indexOf(position[k]);
    auto in = from[k].asConstant(), out = to[k].asConstant();
    auto whole = to[k].exactDiv(from[k]);
    auto times = whole ? whole->asConstant() : std::nullopt;
    bool isWhole = times && (scales[k] == 0 || scales[k] == double(*times));
    // (i + 1/2) / s - 1/2 is never half-way between two elements, so that rounding it is flooring i / s.
    bool isPlainFloor = (transformation == "asymmetric" && nearest == "floor") ||
                        ((transformation == "half_pixel" || transformation == "pytorch_half_pixel") &&
                         (nearest == "round_prefer_floor" || nearest == "round_prefer_ceil"));
    if (mode == "nearest" && isWhole && isPlainFloor) {
      // Each element `times` times.
      auto parts = delinearize(index, {from[k], DimExpr(*times)});
      if (!parts)
        return -1;
      at[k] = {(*parts)[0], false};
      continue;
    }
    double scale; // of positions: in / out
    if (isWhole)
      scale = 1.0 / double(*times);
    else if (scales[k] != 0)
      scale = 1.0 / scales[k];
    else if (in && out)
      scale = double(*in) / double(*out);
    else
      return fail("a resize by a factor that is not known");
    double shift = 0;
    if (transformation == "half_pixel" || transformation == "pytorch_half_pixel") {
      shift = 0.5 * scale - 0.5;
      if (transformation == "pytorch_half_pixel" && !(out && *out > 1))
        return fail("no vector code for this form of resize");
    } else if (transformation == "align_corners") {
      if (!in || !out || *out <= 1)
        return fail("no vector code for this form of resize");
      // With scales given the result's length is not rounded.
      double length = scales[k] != 0 ? scales[k] * double(*in) : double(*out);
      scale = double(*in - 1) / (length - 1);
    }
    Atom low{Atom::Nearest, from[k], index, DimExpr(1)};
    low.scale = scale;
    if (mode == "nearest") {
      // floor(x), ceil(x) = floor(x + 1) short of whole numbers, round halves down = ceil(x - 1/2), up = floor(x + 1/2)
      constexpr double almostOne = 1 - 1e-12;
      shift += nearest == "floor"               ? 0
               : nearest == "ceil"              ? almostOne
               : nearest == "round_prefer_ceil" ? 0.5
                                                : almostOne - 0.5;
      low.shift = shift;
      at[k] = {Linear::atom(addAtom(low)), false};
      continue;
    }
    low.shift = shift;
    unsigned number = addAtom(low);
    Node fraction{Node::Fraction};
    fraction.element = number;
    fraction.index = Linear::atom(number);
    fraction.elementType = Float32Type::get(op.getContext());
    Atom high{Atom::Clamp, from[k], Linear::atom(number) + Linear(DimExpr(1)), DimExpr(1)};
    blends.push_back({k, Linear::atom(number), Linear::atom(addAtom(high)), add(fraction)});
  }
  if (blends.empty())
    return pull(op.getX(), at);
  Type element = cast<RankedTensorType>(op.getResult().getType()).getElementType();
  if (!isa<FloatType>(element) || element.isF64() || blends.size() > 2)
    return fail("no vector code for this form of resize");
  Type f32 = Float32Type::get(op.getContext());
  std::function<int(size_t)> blend = [&](size_t i) -> int {
    if (i == blends.size())
      return castTo(pull(op.getX(), at), f32);
    at[blends[i].axis] = {blends[i].low, false};
    int low = blend(i + 1);
    at[blends[i].axis] = {blends[i].high, false};
    int high = blend(i + 1);
    if (low < 0 || high < 0)
      return -1;
    int difference = arith(Node::Sub, f32, {high, low});
    return arith(Node::Add, f32, {low, arith(Node::Mul, f32, {difference, blends[i].fraction})});
  };
  return castTo(blend(0), element);
}

} // namespace firn

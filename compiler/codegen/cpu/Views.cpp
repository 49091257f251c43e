#include "compiler/codegen/cpu/Views.h"

using namespace mlir;

namespace firn {

SmallVector<DimExpr> denseStrides(ArrayRef<DimExpr> dims) {
  SmallVector<DimExpr> strides(dims.size(), DimExpr(1));
  for (size_t i = dims.size(); i-- > 1;)
    strides[i - 1] = strides[i] * dims[i];
  return strides;
}

static bool isOne(const DimExpr &dim) { return dim.isConstant() && dim.constant() == 1; }

std::optional<SmallVector<DimExpr>> reshapeStrides(ArrayRef<DimExpr> dims, ArrayRef<DimExpr> strides,
                                                   ArrayRef<DimExpr> newDims) {
  SmallVector<DimExpr> result(newDims.size(), DimExpr(0));
  // From the right, take the shortest runs of old and new axes with one product.
  size_t o = dims.size(), n = newDims.size();
  while (true) {
    while (o > 0 && isOne(dims[o - 1]))
      --o;
    while (n > 0 && isOne(newDims[n - 1]))
      --n;
    if (o == 0 || n == 0)
      break;
    size_t oldEnd = o, newEnd = n;
    DimExpr oldProduct = dims[--o], newProduct = newDims[--n];
    while (oldProduct != newProduct) {
      // The side whose product divides the other's grows.
      if (n > 0 && (oldProduct.exactDiv(newProduct) || o == 0))
        newProduct = newProduct * newDims[--n];
      else if (o > 0 && newProduct.exactDiv(oldProduct))
        oldProduct = oldProduct * dims[--o];
      else if (o > 0 && n > 0) {
        oldProduct = oldProduct * dims[--o];
        newProduct = newProduct * newDims[--n];
      } else
        return std::nullopt;
    }
    DimExpr stride(0);
    bool isFirst = true;
    size_t last = oldEnd - 1;
    for (size_t i = oldEnd; i-- > o;) {
      if (isOne(dims[i]))
        continue;
      if (isFirst)
        stride = strides[i];
      else if (strides[i] != strides[last] * dims[last])
        return std::nullopt;
      isFirst = false;
      last = i;
    }
    for (size_t i = newEnd; i-- > n;) {
      result[i] = stride;
      stride = stride * newDims[i];
    }
  }
  for (; o > 0; --o)
    if (!isOne(dims[o - 1]))
      return std::nullopt;
  for (; n > 0; --n)
    if (!isOne(newDims[n - 1]))
      return std::nullopt;
  return result;
}

static std::optional<View> sliceView(SliceOp slice, View view) {
  auto bounds = [&](unsigned i) -> std::optional<SmallVector<int64_t>> {
    return slice.getBounds().size() > i && !isAbsent(slice.getBounds()[i]) ? constantIntegers(slice.getBounds()[i])
                                                                           : std::nullopt;
  };
  auto starts = bounds(0), axes = bounds(2), steps = bounds(3);
  if (!starts || (!axes && slice.getBounds().size() > 2 && !isAbsent(slice.getBounds()[2])) ||
      (!steps && slice.getBounds().size() > 3 && !isAbsent(slice.getBounds()[3])))
    return std::nullopt;
  view.dims = dimsOf(cast<RankedTensorType>(slice.getType()));
  auto inputDims = dimsOf(cast<RankedTensorType>(slice.getX().getType()));
  for (size_t i = 0; i < starts->size(); ++i) {
    int64_t axis = axes ? (*axes)[i] : int64_t(i), step = steps ? (*steps)[i] : 1;
    if (axis < 0)
      axis += view.rank();
    if (axis < 0 || axis >= int64_t(view.rank()) || step <= 0)
      return std::nullopt;
    DimExpr start((*starts)[i]);
    const DimExpr &size = inputDims[axis];
    if ((*starts)[i] < 0) {
      start = size + start;
      if (!start.isAtLeast(0))
        return std::nullopt;
    } else if (size.isConstant()) {
      start = DimExpr(std::min((*starts)[i], size.constant()));
    } else if ((*starts)[i] != 0 && !(size - start).isAtLeast(0)) {
      return std::nullopt;
    }
    view.offset = view.offset + start * view.strides[axis];
    view.strides[axis] = view.strides[axis] * DimExpr(step);
  }
  return view;
}

std::optional<View> viewOf(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type)
    return std::nullopt;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    SmallVector<DimExpr> dims = dimsOf(type);
    return View{argument, type.getElementType(), dims, denseStrides(dims), DimExpr(0)};
  }
  Operation *op = value.getDefiningOp();
  if (!isa<TransposeOp, ReshapeOp, FlattenOp, SqueezeOp, UnsqueezeOp, IdentityOp, SliceOp, SplitOp, ExpandOp>(op))
    return std::nullopt;
  std::optional<View> view = viewOf(op->getOperand(0));
  if (!view)
    return std::nullopt;
  SmallVector<DimExpr> dims = dimsOf(type);
  if (auto transpose = dyn_cast<TransposeOp>(op)) {
    View permuted = *view;
    for (unsigned i = 0; i < view->rank(); ++i) {
      int64_t from = transpose.getPerm() ? (*transpose.getPerm())[i] : view->rank() - 1 - i;
      permuted.dims[i] = view->dims[from];
      permuted.strides[i] = view->strides[from];
    }
    return permuted;
  }
  if (auto slice = dyn_cast<SliceOp>(op))
    return sliceView(slice, *view);
  if (auto split = dyn_cast<SplitOp>(op)) {
    auto axis = int64_t(split.getAxis()); // the accessor is unsigned
    axis += axis < 0 ? int64_t(view->rank()) : 0;
    for (Value output : split.getOutputs()) {
      if (output == value)
        break;
      auto part = dyn_cast<RankedTensorType>(output.getType());
      if (!part)
        return std::nullopt;
      view->offset = view->offset + dimOf(part, axis) * view->strides[axis];
    }
    view->dims = dims;
    return view;
  }
  if (isa<ExpandOp>(op))
    return broadcastView(*view, dims);
  auto strides = reshapeStrides(view->dims, view->strides, dims);
  if (!strides)
    return std::nullopt;
  view->dims = dims;
  view->strides = *strides;
  return view;
}

bool isView(Operation *op) { return isa<TransposeOp, ReshapeOp, FlattenOp, SqueezeOp, UnsqueezeOp, IdentityOp>(op); }

std::optional<View> viewBefore(Operation *op, const View &view) {
  auto type = isView(op) ? dyn_cast<RankedTensorType>(op->getOperand(0).getType()) : RankedTensorType();
  if (!type)
    return std::nullopt;
  View before = view;
  before.dims = dimsOf(type);
  if (auto transpose = dyn_cast<TransposeOp>(op)) {
    for (unsigned i = 0; i < view.rank(); ++i)
      before.strides[transpose.getPerm() ? (*transpose.getPerm())[i] : view.rank() - 1 - i] = view.strides[i];
    return before;
  }
  auto strides = reshapeStrides(view.dims, view.strides, before.dims);
  if (!strides)
    return std::nullopt;
  before.strides = *strides;
  return before;
}

std::optional<View> broadcastView(const View &view, ArrayRef<DimExpr> dims) {
  if (view.rank() > dims.size())
    return std::nullopt;
  View result = view;
  size_t lead = dims.size() - view.rank();
  result.dims.assign(dims.begin(), dims.end());
  result.strides.assign(dims.size(), DimExpr(0));
  for (size_t i = 0; i < view.rank(); ++i) {
    if (isOne(view.dims[i]))
      continue; // repeated, or the one element of an axis of length 1
    if (view.dims[i] != dims[lead + i])
      return std::nullopt;
    result.strides[lead + i] = view.strides[i];
  }
  return result;
}

std::optional<double> singleValue(Value value) {
  auto constant = dyn_cast_or_null<DenseElementsAttr>(constantOf(value));
  if (!constant || !constant.isSplat())
    return std::nullopt;
  Type element = constant.getElementType();
  if (auto type = dyn_cast<FloatType>(element)) {
    APFloat number = constant.getSplatValue<APFloat>();
    bool loses;
    number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &loses);
    return number.convertToDouble();
  }
  auto type = dyn_cast<IntegerType>(element);
  if (!type)
    return std::nullopt;
  APInt number = constant.getSplatValue<APInt>();
  bool isUnsigned = type.isUnsigned() || type.getWidth() == 1;
  return isUnsigned ? number.roundToDouble(false) : number.roundToDouble(true);
}

} // namespace firn

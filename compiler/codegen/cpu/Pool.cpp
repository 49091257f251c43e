// Pooling over windows and over whole images.
#include "compiler/codegen/cpu/Contraction.h"
#include "compiler/codegen/cpu/Tile.h"
#include "compiler/codegen/cpu/Window.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include <limits>

using namespace mlir;

namespace firn {
namespace {

/// Emits one pool. Channels last: vectors along channels, some at a time. Else one output at a time, and whole images
/// by vectors along their pixels.
class PoolEmitter {
public:
  PoolEmitter(KernelContext &kernelContext, Operation *operation, View inputView, WindowGeometry geometry,
              Epilogue poolEpilogue)
      : context(kernelContext), l(kernelContext.l), op(operation), input(std::move(inputView)), window(geometry),
        epilogue(std::move(poolEpilogue)) {
    isLast = isChannelsLast(op);
    isMax = isa<MaxPoolOp, GlobalMaxPoolOp>(op);
    isGlobal = isa<GlobalAveragePoolOp, GlobalMaxPoolOp>(op);
    if (auto norm = dyn_cast<LpPoolOp>(op))
      power = int64_t(norm.getP());
    auto includes = op->getAttrOfType<IntegerAttr>("count_include_pad");
    includesPadding = includes && includes.getInt() != 0;
    elementType = input.elementType;
    sumElement = isMax ? elementType : sumType(elementType);
  }

  void emit();

private:
  Value start(int64_t lanes);
  Value combine(Value sum, Value loaded);
  Value load(Value at, int64_t lanes, Value count);
  void windowsOfRow(Value number);
  void window3(Value width, Value channel, int64_t vectors, Value lastCount);
  void image(Value number);
  void plane(Value number);
  Value finished(Value sum, Value count);

  KernelContext &context;
  LoopBuilder &l;
  Operation *op;
  View input;
  WindowGeometry window;
  Epilogue epilogue;
  bool isLast, isMax, isGlobal, includesPadding;
  int64_t power = 0; // of a p-norm: 1 or 2
  Type elementType, sumElement;
  int64_t lanes = 0; // of vectors along channels; 0: scalars
  Value buffer, batch, depthIndex, heightIndex, channels;
};

} // namespace

Value PoolEmitter::start(int64_t width) {
  return context.elements.constant(isMax ? -std::numeric_limits<double>::infinity() : 0.0, sumElement, width);
}

Value PoolEmitter::combine(Value sum, Value loaded) {
  if (isMax)
    return context.elements.maximum(sum, loaded, elementType);
  if (getElementTypeOrSelf(loaded.getType()) != getElementTypeOrSelf(sum.getType()))
    loaded = context.elements.cast(loaded, elementType, sumElement);
  if (power == 1)
    loaded = l.b.create<math::AbsFOp>(l.loc, loaded);
  if (power == 2)
    return context.elements.fma(loaded, loaded, sum);
  return context.elements.add(sum, loaded);
}

Value PoolEmitter::load(Value at, int64_t width, Value count) {
  return context.elements.load(buffer, l.add(at, context.value(input.offset)), elementType, width, count);
}

/// The mean of `count` elements, the norm, or the maximum itself.
Value PoolEmitter::finished(Value sum, Value count) {
  if (isMax || power == 1)
    return sum;
  if (power == 2)
    return l.b.create<math::SqrtOp>(l.loc, sum);
  Value number = l.b.create<arith::IndexCastOp>(l.loc, l.b.getI64Type(), count);
  number = l.b.create<arith::SIToFPOp>(l.loc, getElementTypeOrSelf(sum.getType()), number);
  if (auto vector = dyn_cast<VectorType>(sum.getType()))
    number = l.splat(vector, number);
  return context.elements.div(sum, number, sumElement);
}

/// `vectors` neighbouring vectors of channels of one window.
void PoolEmitter::window3(Value widthIndex, Value channel, int64_t vectors, Value lastCount) {
  const WindowAxis &depth = window.axes[0], &height = window.axes[1], &width = window.axes[2];
  Range d = insideTaps(context, depth, depthIndex), h = insideTaps(context, height, heightIndex),
        w = insideTaps(context, width, widthIndex);
  auto first = [&](const WindowAxis &axis, Value index) { return l.add(l.mul(index, axis.stride), axis.first); };
  auto countOf = [&](int64_t j) { return j + 1 == vectors ? lastCount : Value(); };
  int64_t rank = input.rank();
  auto axisOf = [&](unsigned i) { return int64_t(i) - (3 - window.spatial) + (isLast ? 1 : 2); };
  auto stride = [&](unsigned i) { return context.value(input.strides[axisOf(i)]); };
  Value base = l.add(l.mul(batch, context.value(input.strides[0])),
                     l.mul(channel, context.value(input.strides[isLast ? rank - 1 : 1])));
  LoopBuilder::Values sums(vectors, start(lanes));
  sums = l.loop(d.begin, d.end, 1, sums, [&](Value i, LoopBuilder::Values outer) {
    Value plane = base;
    if (window.spatial == 3)
      plane = l.add(base, l.mul(l.add(first(depth, depthIndex), l.mul(i, depth.step)), stride(0)));
    return l.loop(h.begin, h.end, 1, outer, [&](Value j, LoopBuilder::Values middle) {
      Value row = plane;
      if (window.spatial >= 2)
        row = l.add(plane, l.mul(l.add(first(height, heightIndex), l.mul(j, height.step)), stride(1)));
      return l.loop(w.begin, w.end, 1, middle, [&](Value k, LoopBuilder::Values inner) {
        Value at = l.add(row, l.mul(l.add(first(width, widthIndex), l.mul(k, width.step)), stride(2)));
        for (int64_t v = 0; v < vectors; ++v)
          inner[v] = combine(inner[v], load(l.add(at, v * lanes), lanes, countOf(v)));
        return inner;
      });
    });
  });
  Value count = l.index(1);
  auto countTaps = [&](const WindowAxis &axis, Value index, Range inside) {
    Value taps = l.sub(inside.end, inside.begin);
    if (includesPadding) {
      // What ceil_mode adds behind the padding is not counted.
      Value room = l.max(l.index(0), l.sub(l.add(context.value(axis.in), axis.padAfter), first(axis, index)));
      taps = l.min(l.index(axis.taps), l.div(l.add(room, axis.step - 1), axis.step));
    }
    count = l.mul(count, taps);
  };
  countTaps(depth, depthIndex, d);
  countTaps(height, heightIndex, h);
  countTaps(width, widthIndex, w);
  epilogue.forget();
  unsigned axis = isLast ? window.spatial + 1 : 1;
  for (int64_t v = 0; v < vectors; ++v) {
    LoopBuilder::Values position =
        window.position(batch, {depthIndex, heightIndex, widthIndex}, l.add(channel, v * lanes));
    if (!isLast) {
      std::rotate(position.begin() + 1, position.end() - 1, position.end());
    }
    epilogue.store(context, finished(sums[v], count), position, axis, lanes, countOf(v), 0);
  }
}

/// One row of outputs: all windows, all channels.
void PoolEmitter::windowsOfRow(Value number) {
  auto next = [&](Value size) {
    Value index = l.rem(number, size);
    number = l.div(number, size);
    return index;
  };
  heightIndex = next(context.value(window.axes[1].out));
  depthIndex = next(context.value(window.axes[0].out));
  Value widthOut = context.value(window.axes[2].out);
  if (!isLast) {
    Value channel = next(channels);
    batch = number;
    l.loop(l.index(0), widthOut, 1, [&](Value width) { window3(width, channel, 1, {}); });
    return;
  }
  batch = number;
  auto known = window.channels.asConstant();
  l.loop(l.index(0), widthOut, 1, [&](Value width) {
    int64_t block = known ? std::clamp<int64_t>((*known + lanes - 1) / lanes, 1, 4) : 1;
    Value whole = l.mul(l.div(channels, block * lanes), block * lanes);
    l.loop(l.index(0), whole, block * lanes, [&](Value channel) { window3(width, channel, block, {}); });
    if (known) {
      int64_t rest = *known % (block * lanes);
      Value lastCount = rest % lanes ? l.index(rest % lanes) : Value();
      if (rest)
        window3(width, whole, (rest + lanes - 1) / lanes, lastCount);
    } else {
      l.loop(whole, channels, lanes, [&](Value channel) { window3(width, channel, 1, l.sub(channels, channel)); });
    }
  });
}

/// A whole image, channels last: some vectors of channels over all pixels.
void PoolEmitter::image(Value number) {
  auto known = window.channels.asConstant();
  Value perImage = l.ceilDiv(channels, lanes);
  Value channel = l.mul(l.rem(number, perImage), lanes);
  batch = l.div(number, perImage);
  Value pixels = l.index(1);
  for (const WindowAxis &axis : window.axes)
    pixels = l.mul(pixels, context.value(axis.in));
  Value base = l.add(l.mul(l.mul(batch, pixels), channels), channel);
  auto body = [&](Value count) {
    // Four sums, so that one does not wait for the other.
    LoopBuilder::Values sums(4, start(lanes));
    Value whole = l.mul(l.div(pixels, 4), 4);
    auto at = [&](Value pixel) { return l.add(base, l.mul(pixel, channels)); };
    sums = l.loop(l.index(0), whole, 4, sums, [&](Value pixel, LoopBuilder::Values acc) {
      for (int64_t i = 0; i < 4; ++i)
        acc[i] = combine(acc[i], load(at(l.add(pixel, i)), lanes, count));
      return acc;
    });
    LoopBuilder::Values total{sums[0]};
    for (int64_t i = 1; i < 4; ++i)
      total[0] =
          isMax ? context.elements.maximum(total[0], sums[i], elementType) : context.elements.add(total[0], sums[i]);
    total = l.loop(whole, pixels, 1, total, [&](Value pixel, LoopBuilder::Values acc) {
      return LoopBuilder::Values{combine(acc[0], load(at(pixel), lanes, count))};
    });
    LoopBuilder::Values position = window.position(batch, {l.index(0), l.index(0), l.index(0)}, channel);
    epilogue.forget();
    epilogue.store(context, finished(total[0], pixels), position, window.spatial + 1, lanes, count, 0);
  };
  if (known && *known % lanes == 0)
    return body({});
  l.when(l.less(channels, l.add(channel, lanes)), [&] { body(l.sub(channels, channel)); }, [&] { body({}); });
}

/// A whole image of one channel, pixels adjacent.
void PoolEmitter::plane(Value number) {
  Value channel = l.rem(number, channels);
  batch = l.div(number, channels);
  Value pixels = l.index(1);
  for (const WindowAxis &axis : window.axes)
    pixels = l.mul(pixels, context.value(axis.in));
  Value base = l.mul(number, pixels);
  LoopBuilder::Values sum{start(0)};
  if (sumElement.isF32() || sumElement.isF64()) {
    int64_t width = context.target.lanes(sumElement.getIntOrFloatBitWidth() / 8);
    LoopBuilder::Values sums(4, start(width));
    Value whole = l.mul(l.div(pixels, 4 * width), 4 * width);
    sums = l.loop(l.index(0), whole, 4 * width, sums, [&](Value pixel, LoopBuilder::Values acc) {
      for (int64_t i = 0; i < 4; ++i)
        acc[i] = combine(acc[i], load(l.add(l.add(base, pixel), i * width), width, {}));
      return acc;
    });
    auto both = [&](Value a, Value b) {
      return isMax ? context.elements.maximum(a, b, elementType) : context.elements.add(a, b);
    };
    Value all = both(both(sums[0], sums[1]), both(sums[2], sums[3]));
    sum[0] = l.b.create<vector::ExtractOp>(l.loc, all, int64_t(0));
    for (int64_t i = 1; i < width; ++i)
      sum[0] = both(sum[0], l.b.create<vector::ExtractOp>(l.loc, all, i));
    sum = l.loop(whole, pixels, 1, sum, [&](Value pixel, LoopBuilder::Values acc) {
      return LoopBuilder::Values{combine(acc[0], load(l.add(base, pixel), 0, {}))};
    });
  } else {
    sum = l.loop(l.index(0), pixels, 1, sum, [&](Value pixel, LoopBuilder::Values acc) {
      return LoopBuilder::Values{combine(acc[0], load(l.add(base, pixel), 0, {}))};
    });
  }
  LoopBuilder::Values position{batch, channel};
  position.append(window.spatial, l.index(0));
  epilogue.forget();
  epilogue.store(context, finished(sum[0], pixels), position, 1, 0, {}, 0);
}

void PoolEmitter::emit() {
  DimExpr work = contractionFlops(context.fused);
  context.func.setParallel(!(work.isConstant() && work.constant() < (64 << 10)));
  buffer = context.operand(input.argument.getArgNumber());
  channels = context.value(window.channels);
  if (isLast)
    lanes = context.target.lanes(std::max(1u, sumElement.getIntOrFloatBitWidth() / 8));
  Value total = context.value(window.batch);
  if (isGlobal) {
    total = l.mul(total, isLast ? l.ceilDiv(channels, lanes) : channels);
  } else {
    total = l.mul(total, l.mul(context.value(window.axes[0].out), context.value(window.axes[1].out)));
    if (!isLast)
      total = l.mul(total, channels);
  }
  Range range = workerRange(l.b, l.loc, context.func, total);
  l.loop(range.begin, range.end, 1, [&](Value number) {
    if (!isGlobal)
      windowsOfRow(number);
    else if (isLast)
      image(number);
    else
      plane(number);
  });
}

LogicalResult emitPool(FusedOp fused, kernel::FuncOp func, const TargetDescription &target, std::string &whyNot) {
  Operation *op = nullptr;
  for (Operation &candidate : fused.getBody().front())
    if (isa<MaxPoolOp, AveragePoolOp, LpPoolOp, GlobalAveragePoolOp, GlobalMaxPoolOp>(candidate))
      op = &candidate;
  if (!op) {
    whyNot = "a pool without a pooling operation";
    return failure();
  }
  auto input = viewOf(op->getOperand(0));
  auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  if (op->getNumResults() > 1 && !op->getResult(1).use_empty()) {
    whyNot = "the indices of maxima";
    return failure();
  }
  if (!input || !type || input->rank() < 3 || !Elements::supports(input->elementType) ||
      input->elementType.isInteger(1)) {
    whyNot = "an input that is no view of an operand";
    return failure();
  }
  bool isMax = isa<MaxPoolOp, GlobalMaxPoolOp>(op), isGlobal = isa<GlobalAveragePoolOp, GlobalMaxPoolOp>(op);
  if (auto norm = dyn_cast<LpPoolOp>(op); norm && norm.getP() != 1 && norm.getP() != 2) {
    whyNot = "a norm that is neither 1 nor 2";
    return failure();
  }
  bool isDense = input->strides == denseStrides(input->dims);
  bool isLastUnit = input->strides.back().isConstant() && input->strides.back().constant() == 1;
  if ((!isMax && !isFloatElement(input->elementType)) || (isGlobal && !isDense) ||
      (isChannelsLast(op) && !isLastUnit)) {
    whyNot = "a pool of " + elementTypeText(input->elementType) + " in this layout";
    return failure();
  }
  auto epilogue = Epilogue::analyse(fused, op->getResult(0), whyNot);
  if (!epilogue)
    return failure();
  SmallVector<int64_t> kernel(input->rank() - 2, 1);
  if (auto given = op->getAttrOfType<DenseI64ArrayAttr>("kernel_shape"); given && !isGlobal)
    kernel.assign(given.asArrayRef().begin(), given.asArrayRef().end());
  auto window = readWindow(op, input->dims, dimsOf(type), kernel, whyNot);
  if (!window)
    return failure();
  OpBuilder builder(func.getContext());
  builder.setInsertionPointToEnd(&func.getBody().front());
  KernelContext context(fused, func, target, builder);
  PoolEmitter(context, op, *input, *window, std::move(*epilogue)).emit();
  builder.create<kernel::ReturnOp>(fused.getLoc());
  return success();
}

} // namespace firn

// One axis of a Resize: output `at` is a sum of weights times neighbours of its source position, or the nearest one.
// Where elements behind the axis are adjacent they are the lanes; along the last axis lanes are neighbouring outputs.
#include "compiler/codegen/cpu/Sample.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace firn {

std::optional<AxisResize> AxisResize::of(ResizeOp op, std::string &whyNot) {
  AxisResize r;
  SmallVector<DimExpr> from = dimsOf(cast<RankedTensorType>(op.getX().getType()));
  SmallVector<DimExpr> to = dimsOf(cast<RankedTensorType>(op.getResult().getType()));
  auto axes = op.getAxes();
  auto axis = axes && axes->size() == 1 ? LoneOperation::axisOf((*axes)[0], from.size()) : std::nullopt;
  if (!axis || to.size() != from.size() || op.getKeepAspectRatioPolicy() != "stretch") {
    whyNot = "a resize of several axes";
    return std::nullopt;
  }
  auto numbers = [&](unsigned operand, size_t count) -> std::optional<SmallVector<double>> {
    Value given = operandOf(op, operand);
    ElementsAttr constant = given ? constantOf(given) : ElementsAttr();
    auto bytes = constant ? constantBytes(constant) : std::nullopt;
    if (!bytes || constant.getNumElements() != int64_t(count) || !constant.getElementType().isF32())
      return std::nullopt;
    SmallVector<double> values(count);
    for (size_t i = 0; i < count; ++i) {
      float value;
      memcpy(&value, bytes->bytes.data() + (bytes->isSplat ? 0 : i * sizeof value), sizeof value);
      values[i] = value;
    }
    return values;
  };
  auto isGiven = [&](unsigned operand) {
    Value given = operandOf(op, operand);
    auto type = given ? dyn_cast<RankedTensorType>(given.getType()) : RankedTensorType();
    return type && !(type.hasStaticShape() && type.getNumElements() == 0);
  };
  if (isGiven(2)) {
    auto scales = numbers(2, 1);
    if (!scales) {
      whyNot = "a resize whose scales are not known";
      return std::nullopt;
    }
    r.scale = (*scales)[0];
  }
  r.transformation = op.getCoordinateTransformationMode().str();
  if (r.transformation == "tf_crop_and_resize") {
    auto roi = numbers(1, 2);
    if (!roi) {
      whyNot = "a region of interest that is not known";
      return std::nullopt;
    }
    r.start = (*roi)[0];
    r.end = (*roi)[1];
  }
  r.axis = *axis;
  r.outer = product(ArrayRef(from).take_front(*axis));
  r.in = from[*axis];
  r.out = to[*axis];
  r.inner = product(ArrayRef(from).drop_front(*axis + 1));
  r.mode = op.getMode().str();
  r.nearestMode = op.getNearestMode().str();
  r.isAntialiased = op.getAntialias() != 0;
  r.excludesOutside = op.getExcludeOutside() != 0;
  r.cubicCoefficient = op.getCubicCoeffA().convertToFloat();
  r.extrapolation = op.getExtrapolationValue().convertToFloat();
  return r;
}

namespace {

class AxisResizeEmitter {
public:
  AxisResizeEmitter(KernelContext &kernelContext, const LoneOperation &operation, const AxisResize &axisResize)
      : context(kernelContext), l(kernelContext.l), lone(operation), r(axisResize) {
    elementType = lone.elementType(0);
    bool isFloat = isa<FloatType>(elementType) && !elementType.isF64();
    sumType = isFloat ? Type(l.b.getF32Type()) : Type(l.b.getF64Type());
    from = lone.buffer(context, 0);
    to = lone.result(context, 0);
  }
  void emit();

private:
  Value sourceOf(SampleMath &m, Value at);
  Value nearestOf(SampleMath &m, Value source);
  /// Calls use(position, weight) for each tap of `source`, in registers of m.
  void forTaps(SampleMath &m, Value source, LoopBuilder::Values carried,
               llvm::function_ref<LoopBuilder::Values(Value, Value, LoopBuilder::Values)> use,
               LoopBuilder::Values &result);
  Value clamped(SampleMath &m, Value position) {
    return m.toInteger(m.clamp(position, m.number(0), m.sub(m.toFloat(in), m.number(1))));
  }
  Value isOutside(SampleMath &m, Value source);
  void run(Value line, Value at);
  void outputs(Value first, Value beginLine, Value endLine, unsigned width);

  KernelContext &context;
  LoopBuilder &l;
  const LoneOperation &lone;
  const AxisResize &r;
  Type elementType, sumType;
  Value from, to, in, out, inner;
};

/// Where output `at` lies in the input's coordinates.
Value AxisResizeEmitter::sourceOf(SampleMath &m, Value at) {
  Value inSize = m.toFloat(in), outSize = m.toFloat(out), one = m.number(1), half = m.number(0.5);
  auto unscale = [&](Value value) {
    return r.scale ? m.div(value, m.number(*r.scale)) : m.div(m.mul(value, inSize), outSize);
  };
  Value centre = m.sub(unscale(m.add(at, half)), half);
  if (r.transformation == "half_pixel_symmetric") {
    Value adjustment = r.scale ? m.div(outSize, m.mul(inSize, m.number(*r.scale))) : one;
    return m.add(m.mul(m.mul(inSize, half), m.sub(one, adjustment)), centre);
  }
  Value isMany = m.less(one, outSize);
  if (r.transformation == "pytorch_half_pixel")
    return m.select(isMany, centre, m.number(0));
  if (r.transformation == "asymmetric")
    return unscale(at);
  Value reach = m.sub(inSize, one);
  if (r.transformation == "align_corners") {
    Value length = r.scale ? m.mul(inSize, m.number(*r.scale)) : outSize;
    Value steps = m.sub(length, one), isOne = m.isIn(steps, m.number(0), m.number(0));
    return m.select(isOne, m.number(0), m.div(m.mul(at, reach), m.select(isOne, one, steps)));
  }
  if (r.transformation == "tf_crop_and_resize") {
    Value steps = m.select(isMany, m.sub(outSize, one), one);
    Value many =
        m.add(m.mul(m.number(r.start), reach), m.div(m.mul(m.mul(at, m.number(r.end - r.start)), reach), steps));
    return m.select(isMany, many, m.mul(m.number(0.5 * (r.start + r.end)), reach));
  }
  return centre;
}

Value AxisResizeEmitter::nearestOf(SampleMath &m, Value source) {
  Value half = m.number(0.5);
  Value rounded = r.nearestMode == "round_prefer_floor"  ? m.ceil(m.sub(source, half))
                  : r.nearestMode == "round_prefer_ceil" ? m.floor(m.add(source, half))
                  : r.nearestMode == "floor"             ? m.floor(source)
                                                         : m.ceil(source);
  return clamped(m, rounded);
}

Value AxisResizeEmitter::isOutside(SampleMath &m, Value source) {
  if (r.transformation != "tf_crop_and_resize")
    return {};
  Value isInside = m.isIn(source, m.number(0), m.sub(m.toFloat(in), m.number(1)));
  Value yes = context.elements.integer(1, l.b.getI1Type(), m.lanes);
  return l.b.create<arith::XOrIOp>(l.loc, isInside, yes);
}

void AxisResizeEmitter::forTaps(SampleMath &m, Value source, LoopBuilder::Values carried,
                                llvm::function_ref<LoopBuilder::Values(Value, Value, LoopBuilder::Values)> use,
                                LoopBuilder::Values &result) {
  bool isLinear = r.mode == "linear";
  SampleMath scalar{context, l, 0};
  // Antialiasing stretches the kernel by 1 / scale where the axis shrinks: the number of taps turns out while running.
  Value stretch = m.number(1), before = l.index(isLinear ? 0 : 1);
  if (r.isAntialiased) {
    Value scale = r.scale ? scalar.number(*r.scale) : scalar.div(scalar.toFloat(out), scalar.toFloat(in));
    Value least = scalar.clamp(scale, scalar.number(1e-9), scalar.number(1));
    stretch = m.splat(least);
    Value radius = scalar.ceil(scalar.div(scalar.number(isLinear ? 1 : 2), least));
    before = l.sub(scalar.lane(scalar.toInteger(radius), 0), l.index(1));
  }
  Value taps = l.add(l.mul(before, 2), 2), last = m.sub(m.toFloat(in), m.number(1));
  // Far outside every tap reads the edge.
  Value reach = m.add(m.toFloat(in), m.toFloat(taps));
  source = m.clamp(source, m.sub(m.number(0), reach), reach);
  Value base = m.floor(source), start = m.sub(base, m.toFloat(before));
  auto tap = [&](Value k) {
    Value position = m.add(start, m.toFloat(k));
    Value distance = m.mul(stretch, m.sub(position, source));
    Value near = m.sub(m.number(1), m.abs(distance));
    Value weight =
        isLinear ? m.select(m.less(m.number(0), near), near, m.number(0)) : m.cubic(distance, r.cubicCoefficient);
    if (r.excludesOutside)
      weight = m.select(m.isIn(position, m.number(0), last), weight, m.number(0));
    return std::make_pair(position, weight);
  };
  auto overTaps = [&](LoopBuilder::Values state,
                      llvm::function_ref<LoopBuilder::Values(Value, LoopBuilder::Values)> body) {
    if (r.isAntialiased)
      return l.loop(l.index(0), taps, 1, state, body);
    for (int64_t k = 0; k < (isLinear ? 2 : 4); ++k)
      state = body(l.index(k), state);
    return state;
  };
  Value factor;
  if (r.isAntialiased || r.excludesOutside) {
    Value sum = overTaps({m.number(0)}, [&](Value k, LoopBuilder::Values state) {
      return LoopBuilder::Values{m.add(state[0], tap(k).second)};
    })[0];
    Value isZero = m.isIn(sum, m.number(0), m.number(0));
    factor = m.div(m.number(1), m.select(isZero, m.number(1), sum));
  }
  result = overTaps(carried, [&](Value k, LoopBuilder::Values state) {
    auto [position, weight] = tap(k);
    return use(clamped(m, position), factor ? m.mul(weight, factor) : weight, state);
  });
}

/// Output `at` of line `line`: a run of adjacent elements.
void AxisResizeEmitter::run(Value line, Value at) {
  SampleMath m{context, l, 0};
  Value source = sourceOf(m, m.toFloat(at)), outside = isOutside(m, source);
  Value base = l.mul(l.mul(line, in), inner), target = l.mul(l.add(l.mul(line, out), at), inner);
  auto fill = [&] {
    Value value = context.elements.constant(r.extrapolation, elementType, 0);
    l.loop(l.index(0), inner, 1, [&](Value i) { context.elements.store(value, to, l.add(target, i), elementType); });
  };
  auto sample = [&] {
    if (r.mode == "nearest") {
      Value row = m.lane(nearestOf(m, source), 0);
      return ScalarCode{context}.copy(from, l.add(base, l.mul(row, inner)), to, target, inner, elementType);
    }
    auto columns = [&](Value first, unsigned width) {
      LoopBuilder::Values sum;
      Value zero = context.elements.number(0, Elements::registerType(sumType, width));
      forTaps(
          m, source, {zero},
          [&](Value row, Value weight, LoopBuilder::Values state) {
            Value place = l.add(l.add(base, l.mul(m.lane(row, 0), inner)), first);
            Value value =
                context.elements.cast(context.elements.load(from, place, elementType, width), elementType, sumType);
            weight = context.elements.splat(context.elements.cast(weight, l.b.getF64Type(), sumType), width);
            return LoopBuilder::Values{m.weighted(state[0], weight, value)};
          },
          sum);
      context.elements.store(context.elements.cast(sum[0], sumType, elementType), to, l.add(target, first),
                             elementType);
    };
    unsigned lanes = context.target.lanes(sumType.getIntOrFloatBitWidth() / 8);
    Value whole = l.mul(l.div(inner, lanes), lanes);
    l.loop(l.index(0), whole, lanes, [&](Value first) { columns(first, lanes); });
    l.loop(whole, inner, 1, [&](Value first) { columns(first, 0); });
  };
  if (outside)
    l.when(outside, fill, sample);
  else
    sample();
}

/// Outputs [first, first + width) of some lines of adjacent elements.
void AxisResizeEmitter::outputs(Value first, Value beginLine, Value endLine, unsigned width) {
  SampleMath m{context, l, width};
  unsigned count = std::max(1u, width);
  Value source = sourceOf(m, m.counting(first)), outside = isOutside(m, source);
  l.loop(beginLine, endLine, 1, [&](Value line) {
    Value base = l.mul(line, in), target = l.add(l.mul(line, out), first), value;
    auto offsets = [&](Value rows) {
      SmallVector<Value> list;
      for (unsigned i = 0; i < count; ++i)
        list.push_back(m.lane(rows, i));
      return list;
    };
    if (r.mode == "nearest") {
      value = m.gathered(from, base, offsets(nearestOf(m, source)), elementType);
    } else {
      LoopBuilder::Values sum;
      forTaps(
          m, source, {context.elements.number(0, Elements::registerType(sumType, width))},
          [&](Value rows, Value weight, LoopBuilder::Values state) {
            Value read =
                context.elements.cast(m.gathered(from, base, offsets(rows), elementType), elementType, sumType);
            return LoopBuilder::Values{
                m.weighted(state[0], context.elements.cast(weight, l.b.getF64Type(), sumType), read)};
          },
          sum);
      value = context.elements.cast(sum[0], sumType, elementType);
    }
    if (outside)
      value = l.b.create<arith::SelectOp>(l.loc, outside,
                                          context.elements.constant(r.extrapolation, elementType, width), value);
    context.elements.store(value, to, target, elementType);
  });
}

void AxisResizeEmitter::emit() {
  context.func.setParallel(worthWorkers(r.outer * r.out * r.inner, 8));
  in = context.value(r.in);
  out = context.value(r.out);
  inner = context.value(r.inner);
  Value lines = context.value(r.outer);
  if (r.inner != DimExpr(1)) {
    Range range = workerRange(l.b, l.loc, context.func, l.mul(lines, out));
    return l.loop(range.begin, range.end, 1, [&](Value number) { run(l.div(number, out), l.rem(number, out)); });
  }
  // Some lines at a time, so that positions and weights serve them all while the lines are in cache.
  constexpr int64_t together = 16;
  Range range = workerRange(l.b, l.loc, context.func, lines);
  unsigned lanes = context.target.lanes(8);
  Value whole = l.mul(l.div(out, lanes), lanes);
  l.loop(range.begin, range.end, together, [&](Value begin) {
    Value end = l.min(range.end, l.add(begin, together));
    l.loop(l.index(0), whole, lanes, [&](Value first) { outputs(first, begin, end, lanes > 1 ? lanes : 0); });
    l.loop(whole, out, 1, [&](Value first) { outputs(first, begin, end, 0); });
  });
}

} // namespace

void emitAxisResize(KernelContext &context, const LoneOperation &lone, const AxisResize &resize) {
  AxisResizeEmitter(context, lone, resize).emit();
}

} // namespace firn

// Sampling: GridSample, and Resize along one axis, in every mode.
//
// Positions and weights are computed in f64, as the reference does, for a vector of positions at a time; what they
// select is summed in f32 (f64 for f64). A tap of weight 0 adds nothing, whatever it reads.
//
//   Workers: each has whole positions, so that results do not depend on their number
//   Faults:  GridSample of an image without elements
#include "compiler/codegen/cpu/Sample.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace firn {

// --- SampleMath ------------------------------------------------------------------------------------------------------

Value SampleMath::toFloat(Value index) {
  Value wide = l.b.create<arith::IndexCastOp>(l.loc, l.b.getI64Type(), index);
  return splat(l.b.create<arith::SIToFPOp>(l.loc, l.b.getF64Type(), wide));
}
Value SampleMath::number(double value) { return context.elements.number(value, type()); }
Value SampleMath::splat(Value scalar) { return context.elements.splat(scalar, lanes); }
Value SampleMath::div(Value x, Value y) { return l.b.create<arith::DivFOp>(l.loc, x, y); }
Value SampleMath::floor(Value x) { return l.b.create<math::FloorOp>(l.loc, x); }
Value SampleMath::ceil(Value x) { return l.b.create<math::CeilOp>(l.loc, x); }
Value SampleMath::roundEven(Value x) { return l.b.create<math::RoundEvenOp>(l.loc, x); }
Value SampleMath::abs(Value x) { return l.b.create<math::AbsFOp>(l.loc, x); }
Value SampleMath::less(Value x, Value y) { return l.b.create<arith::CmpFOp>(l.loc, arith::CmpFPredicate::OLT, x, y); }
Value SampleMath::atMost(Value x, Value y) { return l.b.create<arith::CmpFOp>(l.loc, arith::CmpFPredicate::OLE, x, y); }
Value SampleMath::select(Value c, Value x, Value y) { return l.b.create<arith::SelectOp>(l.loc, c, x, y); }
Value SampleMath::clamp(Value x, Value low, Value high) {
  x = select(less(x, low), low, x);
  return select(less(high, x), high, x);
}
Value SampleMath::isIn(Value x, Value low, Value high) {
  return l.b.create<arith::AndIOp>(l.loc, atMost(low, x), atMost(x, high));
}
Value SampleMath::toInteger(Value x) {
  Type i64 = l.b.getI64Type();
  return l.b.create<arith::FPToSIOp>(l.loc, lanes ? Type(VectorType::get(int64_t(lanes), i64)) : i64, x);
}
Value SampleMath::lane(Value integers, unsigned i) {
  Value scalar = lanes ? l.b.create<vector::ExtractOp>(l.loc, integers, int64_t(i)).getResult() : integers;
  return l.b.create<arith::IndexCastOp>(l.loc, l.b.getIndexType(), scalar);
}
Value SampleMath::counting(Value first) {
  Value start = toFloat(first);
  if (!lanes)
    return start;
  SmallVector<double> steps;
  for (unsigned i = 0; i < lanes; ++i)
    steps.push_back(i);
  auto vector = cast<VectorType>(type());
  return add(start, l.b.create<arith::ConstantOp>(l.loc, DenseElementsAttr::get(vector, ArrayRef(steps))));
}

Value SampleMath::cubic(Value distance, double a) {
  Value x = abs(distance);
  Value near = add(mul(mul(sub(mul(x, number(a + 2)), number(a + 3)), x), x), number(1));
  Value far = sub(mul(add(mul(sub(mul(x, number(a)), number(5 * a)), x), number(8 * a)), x), number(4 * a));
  return select(atMost(x, number(1)), near, select(less(x, number(2)), far, number(0)));
}

Value SampleMath::gathered(Value buffer, Value base, ArrayRef<Value> offsets, Type elementType) {
  auto read = [&](Value offset) { return context.elements.load(buffer, l.add(base, offset), elementType, 0); };
  if (!lanes)
    return read(offsets[0]);
  Type vector = Elements::registerType(elementType, lanes);
  Value result = l.b.create<arith::ConstantOp>(l.loc, l.b.getZeroAttr(vector));
  for (unsigned i = 0; i < lanes; ++i)
    result = l.b.create<vector::InsertOp>(l.loc, read(offsets[i]), result, int64_t(i));
  return result;
}

Value SampleMath::weighted(Value sum, Value weight, Value value) {
  Value isUsed =
      l.b.create<arith::CmpFOp>(l.loc, arith::CmpFPredicate::UNE, weight, context.elements.number(0, weight.getType()));
  value = l.b.create<arith::SelectOp>(l.loc, isUsed, value, context.elements.number(0, value.getType()));
  return context.elements.fma(weight, value, sum);
}

// --- GridSample ------------------------------------------------------------------------------------------------------

namespace {

class GridEmitter {
public:
  GridEmitter(KernelContext &kernelContext, const LoneOperation &operation)
      : context(kernelContext), l(kernelContext.l), lone(operation), dims(operation.dims(0)),
        gridDims(operation.dims(1)), m{kernelContext, kernelContext.l, kernelContext.target.lanes(8)} {
    axes = dims.size() - 2;
    mode = lone.text("mode", "linear");
    padding = lone.text("padding_mode", "zeros");
    isAligned = lone.integer("align_corners", 0) != 0;
    elementType = lone.elementType(0);
    sumType = elementType.isF64() ? elementType : Type(l.b.getF32Type());
    x = lone.buffer(context, 0);
    grid = lone.buffer(context, 1);
    to = lone.result(context, 0);
  }

  void emit();

private:
  struct Tap {
    Value element, weight; // i64, f64
  };
  Value reflect(Value position, Value size);
  Tap tapAt(Value at, Value size, Value weight);
  SmallVector<Tap> tapsOf(Value normalized, Value size);
  void block(Value batch, Value first, Value count);

  KernelContext &context;
  LoopBuilder &l;
  const LoneOperation &lone;
  SmallVector<DimExpr> dims, gridDims;
  SampleMath m;
  size_t axes;
  std::string mode, padding;
  bool isAligned;
  Type elementType, sumType;
  Value x, grid, to, points, image, channels;
};

/// Brings a position back between the borders by mirroring it at them.
Value GridEmitter::reflect(Value position, Value size) {
  Value low = m.number(isAligned ? 0 : -0.5);
  Value high = m.sub(size, m.number(isAligned ? 1 : 0.5)), range = m.sub(high, low);
  Value distance = m.abs(m.sub(position, low)), twice = m.add(range, range);
  Value isEmpty = m.atMost(range, m.number(0));
  Value turns = m.floor(m.div(distance, m.select(isEmpty, m.number(1), twice)));
  distance = m.sub(distance, m.mul(turns, twice));
  Value back = m.select(m.atMost(distance, range), m.add(low, distance), m.sub(high, m.sub(distance, range)));
  return m.select(isEmpty, low, back);
}

GridEmitter::Tap GridEmitter::tapAt(Value at, Value size, Value weight) {
  Value last = m.sub(size, m.number(1)), zero = m.number(0), isInside = m.isIn(at, zero, last);
  if (padding == "zeros")
    weight = m.select(isInside, weight, zero);
  else if (padding == "reflection")
    at = m.select(isInside, at, reflect(at, size));
  return {m.toInteger(m.clamp(at, zero, last)), weight};
}

SmallVector<GridEmitter::Tap> GridEmitter::tapsOf(Value normalized, Value size) {
  Value one = m.number(1), shifted = m.add(normalized, one);
  Value at = isAligned ? m.mul(m.mul(shifted, m.number(0.5)), m.sub(size, one))
                       : m.mul(m.sub(m.mul(shifted, size), one), m.number(0.5));
  Value isNumber = l.b.create<arith::CmpFOp>(l.loc, arith::CmpFPredicate::ORD, at, at);
  at = m.clamp(m.select(isNumber, at, m.number(-1)), m.number(-1e15), m.number(1e15));
  if (mode == "nearest")
    return {tapAt(m.roundEven(at), size, one)};
  if (mode == "linear") {
    if (padding == "border")
      at = m.clamp(at, m.number(0), m.sub(size, one));
    else if (padding == "reflection")
      at = reflect(at, size);
    Value first = m.floor(at), t = m.sub(at, first);
    return {tapAt(first, size, m.sub(one, t)), tapAt(m.add(first, one), size, t)};
  }
  Value first = m.floor(at), t = m.sub(at, first);
  SmallVector<Tap> taps;
  for (int k = -1; k < 3; ++k)
    taps.push_back(tapAt(m.add(first, m.number(k)), size, m.cubic(m.sub(t, m.number(k)), -0.75)));
  return taps;
}

/// The points [first, first + lanes) of one batch element, of which `count` exist (null: all), in all channels.
void GridEmitter::block(Value batch, Value first, Value count) {
  // Positions list the innermost axis first. Lanes that do not exist repeat the last point.
  Value last = l.sub(points, l.index(1));
  SmallVector<Value> rows;
  for (unsigned i = 0; i < std::max(1u, m.lanes); ++i)
    rows.push_back(l.mul(l.add(l.mul(batch, points), l.min(l.add(first, int64_t(i)), last)), int64_t(axes)));
  SmallVector<SmallVector<Tap>> taps;
  Type gridType = lone.elementType(1);
  for (size_t k = 0; k < axes; ++k) {
    Value position = m.gathered(grid, l.index(int64_t(axes - 1 - k)), rows, gridType);
    position = context.elements.cast(position, gridType, l.b.getF64Type());
    taps.push_back(tapsOf(position, m.toFloat(context.value(dims[2 + k]))));
  }
  // All combinations: an element of the image and a weight for each lane.
  struct Source {
    Value weight;
    SmallVector<Value> offsets;
  };
  std::vector<Source> sources;
  std::function<void(size_t, Value, Value)> combine = [&](size_t k, Value element, Value weight) {
    if (k == axes) {
      Source source{context.elements.cast(weight, l.b.getF64Type(), sumType), {}};
      for (unsigned i = 0; i < std::max(1u, m.lanes); ++i)
        source.offsets.push_back(m.lane(element, i));
      sources.push_back(source);
      return;
    }
    Value size = l.b.create<arith::IndexCastOp>(l.loc, l.b.getI64Type(), context.value(dims[2 + k]));
    for (const Tap &tap : taps[k])
      combine(k + 1,
              element ? context.elements.add(context.elements.mul(element, m.splat(size)), tap.element) : tap.element,
              weight ? m.mul(weight, tap.weight) : tap.weight);
  };
  combine(0, {}, {});
  l.loop(l.index(0), channels, 1, [&](Value channel) {
    Value plane = l.add(l.mul(batch, channels), channel), base = l.mul(plane, image);
    Value sum = context.elements.number(0, Elements::registerType(sumType, m.lanes));
    for (const Source &source : sources) {
      Value value = m.gathered(x, base, source.offsets, elementType);
      sum = m.weighted(sum, source.weight, context.elements.cast(value, elementType, sumType));
    }
    context.elements.store(context.elements.cast(sum, sumType, elementType), to, l.add(l.mul(plane, points), first),
                           elementType, count);
  });
}

void GridEmitter::emit() {
  DimExpr pointCount = product(ArrayRef(gridDims).slice(1, axes));
  context.func.setParallel(worthWorkers(dims[0] * dims[1] * pointCount, 16));
  points = context.value(pointCount);
  image = context.value(product(ArrayRef(dims).drop_front(2)));
  channels = context.value(dims[1]);
  int64_t width = std::max(1u, m.lanes);
  Value blocks = l.ceilDiv(points, width), total = l.mul(context.value(dims[0]), blocks);
  Value isEmpty = l.both(l.less(l.index(0), l.mul(total, channels)), l.equal(image, l.index(0)));
  ScalarCode{context}.fault(isEmpty);
  Range range = workerRange(l.b, l.loc, context.func, l.select(isEmpty, l.index(0), total));
  l.loop(range.begin, range.end, 1, [&](Value number) {
    Value batch = l.div(number, blocks), first = l.mul(l.rem(number, blocks), width), rest = l.sub(points, first);
    if (width == 1)
      return block(batch, first, {});
    l.when(l.less(rest, l.index(width)), [&] { block(batch, first, rest); }, [&] { block(batch, first, {}); });
  });
}

std::string gridRefusal(const LoneOperation &lone) {
  size_t rank = lone.dims(0).size();
  if (rank < 3 || rank > 5 || lone.dims(1).size() != rank || !isa<FloatType>(lone.elementType(0)) ||
      !isa<FloatType>(lone.elementType(1)))
    return "a grid over elements that are no floats, or of this rank";
  if (rank == 5 && lone.text("mode", "linear") == "cubic")
    return "64 taps an element";
  return "";
}

} // namespace

LogicalResult emitSample(FusedOp fused, kernel::FuncOp func, const TargetDescription &target, std::string &whyNot) {
  auto lone = LoneOperation::of(fused, whyNot);
  if (!lone)
    return failure();
  std::optional<AxisResize> resize;
  if (auto op = dyn_cast<ResizeOp>(lone->op)) {
    resize = AxisResize::of(op, whyNot);
    if (!resize)
      return failure();
  } else if (whyNot = gridRefusal(*lone); !whyNot.empty()) {
    return failure();
  }
  OpBuilder builder(func.getContext());
  builder.setInsertionPointToEnd(&func.getBody().front());
  KernelContext context(fused, func, target, builder);
  if (resize)
    emitAxisResize(context, *lone, *resize);
  else
    GridEmitter(context, *lone).emit();
  builder.create<kernel::ReturnOp>(fused.getLoc());
  return success();
}

} // namespace firn

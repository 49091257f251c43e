// Convolutions whose channels do not mix: vectors along channels, several neighbouring outputs at a time.
#include "compiler/codegen/cpu/Convolution.h"

using namespace mlir;

namespace firn {
namespace {

class DepthwiseEmitter {
public:
  DepthwiseEmitter(KernelContext &kernelContext, const ConvolutionShape &convolution, Epilogue &convolutionEpilogue,
                   const ByteZeros *byteZeros)
      : context(kernelContext), l(kernelContext.l), shape(convolution), window(convolution.window),
        epilogue(convolutionEpilogue), zeros(byteZeros) {}

  void emit();

private:
  void unit(Value number);
  void row(Value height);
  void outputs(Value height, Value column, int64_t count);
  void edge(Value height, Value column);
  Value input(Value plane, Value rowIndex, Value column);
  Value factorOf(Value tap);
  Value zeroOf(const std::optional<View> &view, double number);
  LoopBuilder::Values overRows(Value height, LoopBuilder::Values sums,
                               llvm::function_ref<LoopBuilder::Values(Value, Value, LoopBuilder::Values)> body);
  void finish(Value height, Value column, int64_t count, LoopBuilder::Values sums);

  KernelContext &context;
  LoopBuilder &l;
  const ConvolutionShape &shape;
  const WindowGeometry &window;
  Epilogue &epilogue;
  const ByteZeros *zeros; // null for floats
  Type type;
  int64_t lanes = 1, together = 1; // outputs of a step
  int64_t blockRows = 1, blockVectors = 1;

  Value batch, planeIndex, vectorIndex, channel, channelCount, scratchTile;
  Value inputZero, weightZero; // vectors; null: 0
  Value inputPixels;           // where the channel vector lies in pixel 0 of the batch's image
};

} // namespace

/// The vector of the input at a pixel that is inside of the image.
Value DepthwiseEmitter::input(Value plane, Value rowIndex, Value column) {
  Value pixel = l.add(
      l.mul(l.add(l.mul(plane, context.value(window.axes[1].in)), rowIndex), context.value(window.axes[2].in)), column);
  Value at = l.add(inputPixels, l.mul(pixel, shape.group));
  Type elementType = shape.input.elementType;
  Value loaded =
      context.elements.load(context.operand(shape.input.argument.getArgNumber()), at, elementType, lanes, channelCount);
  if (getElementTypeOrSelf(loaded.getType()) != type)
    loaded = context.elements.cast(loaded, elementType, type);
  return inputZero ? context.elements.sub(loaded, inputZero) : loaded;
}

/// The weights of a tap.
Value DepthwiseEmitter::factorOf(Value tap) {
  Type weightType = cast<RankedTensorType>(shape.op->getOperand(1).getType()).getElementType();
  Value at = l.mul(l.add(l.mul(vectorIndex, window.taps()), tap), lanes);
  Value factor = context.elements.load(context.operand(shape.weight), at, weightType, lanes);
  if (getElementTypeOrSelf(factor.getType()) != type)
    factor = context.elements.cast(factor, weightType, type);
  return weightZero ? context.elements.sub(factor, weightZero) : factor;
}

/// The zero points of the channels at hand.
Value DepthwiseEmitter::zeroOf(const std::optional<View> &view, double number) {
  if (!view)
    return number == 0 ? Value() : context.elements.constant(number, type, lanes);
  bool isOne = view->strides[0].isConstant() && view->strides[0].constant() == 0;
  Value at = context.offset({channel}, view->strides, view->offset);
  Value loaded = context.elements.load(context.operand(view->argument.getArgNumber()), at, view->elementType,
                                       isOne ? 0 : lanes, isOne ? Value() : channelCount);
  loaded = context.elements.cast(loaded, view->elementType, type);
  return isOne ? context.elements.splat(loaded, lanes) : loaded;
}

/// Adds what the rows of taps inside of the image give: body(input row, index of its first weight, sums).
LoopBuilder::Values
DepthwiseEmitter::overRows(Value height, LoopBuilder::Values sums,
                           llvm::function_ref<LoopBuilder::Values(Value, Value, LoopBuilder::Values)> body) {
  const WindowAxis &depth = window.axes[0], &rows = window.axes[1];
  Range planes = insideTaps(context, depth, planeIndex), taps = insideTaps(context, rows, height);
  return l.loop(planes.begin, planes.end, 1, sums, [&](Value d, LoopBuilder::Values outer) {
    Value plane = l.add(l.add(l.mul(planeIndex, depth.stride), depth.first), l.mul(d, depth.step));
    Value image = l.mul(plane, context.value(rows.in));
    return l.loop(taps.begin, taps.end, 1, outer, [&](Value h, LoopBuilder::Values inner) {
      Value row = l.add(l.add(l.mul(height, rows.stride), rows.first), l.mul(h, rows.step));
      Value weight = l.mul(l.add(l.mul(d, rows.taps), h), window.width().taps);
      return body(l.add(image, row), weight, inner);
    });
  });
}

void DepthwiseEmitter::finish(Value height, Value column, int64_t count, LoopBuilder::Values sums) {
  auto positionOf = [&](Value r) { return window.position(batch, {planeIndex, height, l.add(column, r)}, channel); };
  SmallVector<unsigned> rowAxes{window.spatial};
  LoopBuilder::Values counts;
  if (channelCount)
    counts.push_back(channelCount);
  if (zeros)
    for (Value &sum : sums)
      sum = context.elements.cast(sum, type, l.b.getI32Type());
  finishTile(context, epilogue, {count, 1, lanes}, sums, positionOf, window.spatial + 1, rowAxes, counts, scratchTile);
}

/// `count` neighbouring outputs whose windows are inside of the rows.
void DepthwiseEmitter::outputs(Value height, Value column, int64_t count) {
  const WindowAxis &width = window.width();
  VectorType vector = VectorType::get({lanes}, type);
  Value first = l.add(l.mul(column, width.stride), width.first);
  LoopBuilder::Values sums(count, l.zero(vector));
  sums = overRows(height, sums, [&](Value row, Value weight, LoopBuilder::Values acc) {
    // An input that several outputs meet is loaded once.
    std::map<int64_t, Value> inputs;
    for (int64_t t = 0; t < width.taps; ++t) {
      Value factor = factorOf(l.add(weight, t));
      for (int64_t i = 0; i < count; ++i) {
        Value &pixel = inputs[i * width.stride + t * width.step];
        if (!pixel)
          pixel = input(l.index(0), row, l.add(first, i * width.stride + t * width.step));
        acc[i] = context.multiplyAdd(pixel, factor, acc[i]);
      }
    }
    return acc;
  });
  finish(height, column, count, sums);
}

/// One output whose window reaches over an end of the rows.
void DepthwiseEmitter::edge(Value height, Value column) {
  const WindowAxis &width = window.width();
  Range taps = insideTaps(context, width, column);
  Value first = l.add(l.mul(column, width.stride), width.first);
  LoopBuilder::Values sums{l.zero(VectorType::get({lanes}, type))};
  sums = overRows(height, sums, [&](Value row, Value weight, LoopBuilder::Values outer) {
    return l.loop(taps.begin, taps.end, 1, outer, [&](Value t, LoopBuilder::Values acc) {
      Value factor = factorOf(l.add(weight, t));
      Value pixel = input(l.index(0), row, l.add(first, l.mul(t, width.step)));
      return LoopBuilder::Values{context.multiplyAdd(pixel, factor, acc[0])};
    });
  });
  finish(height, column, 1, sums);
}

void DepthwiseEmitter::row(Value height) {
  const WindowAxis &width = window.width();
  Value out = context.value(width.out), begin = l.index(0), end = out;
  if (width.hasBorder()) {
    begin = l.min(out, l.index((std::max<int64_t>(0, -width.first) + width.stride - 1) / width.stride));
    // The last output inside: index * stride + first + reach <= in - 1.
    Value room = l.sub(context.value(width.in), l.index(width.first + width.reach()));
    Value inside = l.div(l.add(l.max(room, l.index(0)), width.stride - 1), width.stride);
    end = l.max(begin, l.min(out, inside));
  }
  l.loop(l.index(0), begin, 1, [&](Value column) { edge(height, column); });
  Value whole = l.add(begin, l.mul(l.div(l.sub(end, begin), together), together));
  l.loop(begin, whole, together, [&](Value column) { outputs(height, column, together); });
  l.loop(whole, end, 1, [&](Value column) { outputs(height, column, 1); });
  l.loop(end, out, 1, [&](Value column) { edge(height, column); });
}

void DepthwiseEmitter::unit(Value number) {
  auto next = [&](Value size) {
    Value index = l.rem(number, size);
    number = l.div(number, size);
    return index;
  };
  int64_t vectors = (shape.group + lanes - 1) / lanes;
  Value first = l.mul(next(l.index((vectors + blockVectors - 1) / blockVectors)), blockVectors);
  Value row0 = l.mul(next(l.ceilDiv(context.value(window.axes[1].out), blockRows)), blockRows);
  Value row1 = l.min(context.value(window.axes[1].out), l.add(row0, blockRows));
  planeIndex = next(context.value(window.axes[0].out));
  batch = number;
  Value image = l.mul(l.mul(context.value(window.axes[0].in), context.value(window.axes[1].in)),
                      context.value(window.axes[2].in));
  Value start = l.mul(l.mul(batch, image), shape.group);
  auto vectorOfChannels = [&](Value index, Value count) {
    vectorIndex = index;
    channel = l.mul(index, lanes);
    channelCount = count;
    inputPixels = l.add(start, channel);
    if (zeros) {
      inputZero = zeroOf(zeros->input, zeros->inputNumber);
      weightZero = zeroOf(zeros->weight, zeros->weightNumber);
    }
    l.loop(row0, row1, 1, [&](Value height) { row(height); });
  };
  int64_t whole = shape.group / lanes, rest = shape.group % lanes;
  Value last = l.add(first, blockVectors);
  if (whole)
    l.loop(first, l.min(last, l.index(whole)), 1, [&](Value index) { vectorOfChannels(index, {}); });
  if (rest)
    l.when(l.less(l.index(whole), last), [&] { vectorOfChannels(l.index(whole), l.index(rest)); });
}

void DepthwiseEmitter::emit() {
  type = zeros ? l.b.getF32Type() : sumType(shape.input.elementType);
  int64_t bytes = type.getIntOrFloatBitWidth() / 8;
  lanes = context.target.lanes(bytes);
  const WindowAxis &width = window.width();
  // Sums, the inputs of a row and its weights stay in registers.
  int64_t registers = context.target.vectorRegisters;
  int64_t most = 1;
  while (most < 8 && (most + 1) + (most * width.stride + width.taps) + 2 <= registers)
    ++most;
  together = most;
  if (auto out = width.out.asConstant()) {
    int64_t left = (std::max<int64_t>(0, -width.first) + width.stride - 1) / width.stride;
    auto in = width.in.asConstant();
    int64_t inside =
        in ? std::max<int64_t>(0, (*in - width.first - width.reach() + width.stride - 1) / width.stride) : *out;
    int64_t interior = std::max<int64_t>(1, std::min(*out, inside) - left);
    // The number of steps counts, single ones at the end most.
    int64_t best = 1 << 30;
    for (int64_t candidate = 1; candidate <= most; ++candidate) {
      int64_t cost = interior / candidate * (candidate + 2) + interior % candidate * 4;
      if (cost <= best) {
        best = cost;
        together = candidate;
      }
    }
  }
  int64_t vectors = (shape.group + lanes - 1) / lanes;
  auto height = window.axes[1].out.asConstant();
  blockRows = height ? std::clamp<int64_t>(*height / 8, 1, 8) : 4;
  blockVectors = height && *height < 8 ? std::max<int64_t>(1, vectors / 4) : vectors;
  scratchTile = context.func.scratch();
  context.func.setScratchBytes(tileScratchBytes(epilogue, {together, 1, lanes}, bytes));

  Value total = l.mul(context.value(window.batch), context.value(window.axes[0].out));
  total = l.mul(total, l.ceilDiv(context.value(window.axes[1].out), blockRows));
  total = l.mul(total, (vectors + blockVectors - 1) / blockVectors);
  Range range = workerRange(l.b, l.loc, context.func, total);
  l.loop(range.begin, range.end, 1, [&](Value number) { unit(number); });
}

void emitDepthwise(KernelContext &context, const ConvolutionShape &shape, Epilogue &epilogue, const ByteZeros *zeros) {
  DepthwiseEmitter(context, shape, epilogue, zeros).emit();
}

bool isExactDepthwise(const ConvolutionShape &shape) {
  return shape.isDepthwise() && shape.window.taps() * 255 * 255 < (1 << 24);
}

} // namespace firn

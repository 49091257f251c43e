#include "compiler/codegen/cpu/Convolution.h"
#include "compiler/codegen/cpu/Panels.h"

#include "compiler/codegen/cpu/ByteProduct.h"

using namespace mlir;

namespace firn {

// --- reading ---------------------------------------------------------------------------------------------------------

std::optional<ConvolutionShape> readConvolution(Operation *op, std::string &whyNot) {
  ConvolutionShape shape;
  shape.op = op;
  auto resultType = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  auto weightType = dyn_cast<RankedTensorType>(op->getOperand(1).getType());
  auto input = viewOf(op->getOperand(0));
  auto weight = dyn_cast<BlockArgument>(op->getOperand(1));
  if (!isChannelsLast(op) || !resultType || !weightType || !weightType.hasStaticShape() || !input || !weight) {
    whyNot = "a convolution whose channels do not lie last or whose weight is no constant";
    return std::nullopt;
  }
  if (input->strides != denseStrides(input->dims) || input->rank() < 3) {
    whyNot = "a convolution of a view";
    return std::nullopt;
  }
  shape.input = *input;
  shape.weight = weight.getArgNumber();
  shape.kernel.assign(weightType.getShape().begin() + 2, weightType.getShape().end());
  auto group = op->getAttrOfType<IntegerAttr>("group");
  shape.group = group ? group.getInt() : 1;
  shape.groupInputs = weightType.getDimSize(1);
  shape.groupOutputs = weightType.getDimSize(0) / std::max<int64_t>(1, shape.group);
  auto window = readWindow(op, input->dims, dimsOf(resultType), shape.kernel, whyNot);
  if (!window)
    return std::nullopt;
  shape.window = *window;
  if (!shape.window.channels.isConstant() || shape.window.channels.constant() != shape.group * shape.groupInputs ||
      weightType.getNumElements() == 0) {
    whyNot = "channels that are not known";
    return std::nullopt;
  }
  return shape;
}

bool ConvolutionShape::hasBorder() const {
  return llvm::any_of(window.axes, [](const WindowAxis &axis) { return axis.hasBorder(); });
}

bool ConvolutionShape::isNarrow(const TargetDescription &target) const {
  if (groupOutputs > 4)
    return false;
  int64_t lanes = target.lanes(sumType(input.elementType).getIntOrFloatBitWidth() / 8);
  int64_t runs = window.axes[0].taps * window.axes[1].taps * runsPerRow();
  double along = double(groupOutputs) * (double(runs * ((runLength() + lanes - 1) / lanes)) * 1.5 + 5);
  return along < 0.7 * double(depth());
}

std::vector<int64_t> narrowRows(const ConvolutionShape &shape, const TargetDescription &target,
                                ArrayRef<int64_t> rows) {
  int64_t lanes = target.lanes(sumType(shape.input.elementType).getIntOrFloatBitWidth() / 8);
  int64_t run = shape.runLength(), padding = (run + lanes - 1) / lanes * lanes - run;
  std::vector<int64_t> padded;
  for (; !rows.empty(); rows = rows.drop_front(run)) {
    padded.insert(padded.end(), rows.begin(), rows.begin() + run);
    padded.insert(padded.end(), padding, -1);
  }
  return padded;
}

bool isPixelwise(const ConvolutionShape &shape) {
  return shape.group == 1 && shape.window.taps() == 1 &&
         llvm::none_of(shape.window.axes, [](const WindowAxis &axis) { return axis.hasBorder() || axis.first != 0; });
}

TileShape convolutionTile(const ConvolutionShape &shape) {
  Type type = sumType(shape.input.elementType);
  const WindowAxis &width = shape.window.width();
  TileShape tile{width.out.asConstant(), shape.groupOutputs, type.getIntOrFloatBitWidth() / 8};
  // A patch of the image holds the channels of one group only.
  int64_t pixel = shape.hasBorder() ? shape.groupInputs : shape.group * shape.groupInputs;
  tile.rowStride = width.stride * pixel * int64_t(tile.bytes);
  if (isPixelwise(shape) && shape.window.axes[0].stride == 1 && shape.window.axes[1].stride == 1 &&
      width.stride == 1) { // all pixels are rows of one product
    tile.m = std::nullopt;
    DimExpr all = shape.window.batch * shape.window.axes[0].out * shape.window.axes[1].out * width.out;
    tile.m = all.asConstant();
  }
  return tile;
}

std::optional<PackedWeight> planConvolutionPacking(FusedOp fused, Operation *op, const TargetDescription &target) {
  std::string whyNot;
  auto shape = readConvolution(op, whyNot);
  bool isInteger = isa<ConvIntegerOp>(op);
  if (!shape || !(isInteger ? isByte(shape->input.elementType) : isFloatElement(shape->input.elementType)) ||
      packingOf(fused, shape->weight) || !constantOf(fused.getInputs()[shape->weight]) ||
      !fused.getBody().getArgument(shape->weight).hasOneUse())
    return std::nullopt;
  PackedWeight w;
  w.operand = shape->weight;
  w.elementType = cast<RankedTensorType>(op->getOperand(1).getType()).getElementType();
  int64_t taps = shape->window.taps();
  if (isInteger ? isExactDepthwise(*shape) : shape->isDepthwise()) { // [vectors of channels][taps][lanes]
    w.n = shape->group;
    w.k = taps;
    w.nr = target.lanes(isInteger ? 4 : sumType(w.elementType).getIntOrFloatBitWidth() / 8);
    w.rows.emplace_back();
    for (int64_t t = 0; t < taps; ++t)
      w.rows[0].push_back(t);
    for (int64_t c = 0; c < w.n; ++c)
      w.columns.push_back(c * taps);
    return w;
  }
  w.groups = shape->group;
  w.n = shape->groupOutputs;
  w.nr = chooseTile(target, panelShape(fused, convolutionTile(*shape))).columns();
  w.groupStarts.clear();
  for (int64_t g = 0; g < w.groups; ++g)
    w.groupStarts.push_back(g * w.n * shape->depth());
  std::vector<int64_t> rows;
  for (int64_t t = 0; t < taps; ++t)
    for (int64_t c = 0; c < shape->groupInputs; ++c)
      rows.push_back(c * taps + t);
  if (isInteger)
    packBytes(w, target);
  if (shape->isNarrow(target) && !isInteger) {
    w.nr = 1;
    rows = narrowRows(*shape, target, rows);
  }
  w.k = rows.size();
  w.rows.push_back(rows);
  for (int64_t o = 0; o < w.n; ++o)
    w.columns.push_back(o * shape->depth());
  return w;
}

// --- emission --------------------------------------------------------------------------------------------------------

namespace {

/// Emits the loops of one convolution: blocks of output rows, for which a patch of the input is copied with its border
/// of zeros where it has one, then panels of output channels, rows, tiles of pixels.
class WindowProductEmitter {
public:
  WindowProductEmitter(KernelContext &kernelContext, const ConvolutionShape &convolution, Epilogue &convolutionEpilogue,
                       int64_t panelColumns, int64_t firstWeight, int64_t weightsPerGroup)
      : context(kernelContext), l(kernelContext.l), shape(convolution), window(convolution.window),
        epilogue(convolutionEpilogue), nr(panelColumns), weightStart(firstWeight), groupSize(weightsPerGroup) {}

  void emit();

private:
  void chooseBlocks();
  void unit(Value number);
  void fillPatch();
  void fillRow(Value inputRow, Value patchRow);
  void panel(Value number, Tile tile, const LoopBuilder::Values &counts);
  void narrowPixels(Value row, Value column, Value count);
  void pixels(Value row, Value column, int64_t rows, int64_t columns, Tile tile, const LoopBuilder::Values &counts);

  KernelContext &context;
  LoopBuilder &l;
  const ConvolutionShape &shape;
  const WindowGeometry &window;
  Epilogue &epilogue;
  int64_t nr, weightStart, groupSize;
  Type type;
  Tile tile;
  int64_t tileColumns = 1, tileRows = 1;   // pixels of a tile: tileRows rows of tileColumns
  int64_t blockRows = 1, blockColumns = 0; // output pixels of a unit; 0 columns: whole rows
  int64_t patchRows = 0, patchColumns = 0;
  bool hasPatch = false, isNarrow = false;
  int64_t panelCount = 1, chunkPanels = 1;

  // Of the unit at hand.
  Value batch, group, planeIndex, row0, row1, column0, column1;
  Value left, leftStart, pixelPitch, rowPitch, planePitch; // the image under tap 0 of the unit's first window
  Value panelFirst, panelFirstColumn; // of the panel at hand: its first channel, where its weights begin
  Value scratchTile;
};

} // namespace

void WindowProductEmitter::chooseBlocks() {
  TileShape wanted = convolutionTile(shape);
  auto width = window.width().out.asConstant(), height = window.axes[1].out.asConstant();
  wanted.m = width;
  isNarrow = nr == 1;
  tile = chooseRows(context.target, wanted, nr);
  if (isNarrow) {
    int64_t lanes = context.target.lanes(wanted.bytes);
    tile = {lanes, 1, lanes};
  }
  tileColumns = tile.rows;
  if (width && *width > 0 && *width <= 4 && !isNarrow) { // several short rows make a tile
    wanted.m = std::nullopt;
    int64_t most = chooseRows(context.target, wanted, nr).rows;
    tileColumns = std::min(*width, most);
    tileRows = std::max<int64_t>(1, std::min(most / tileColumns, height.value_or(1)));
    tile.rows = tileRows * tileColumns;
  }
  panelCount = (shape.groupOutputs + nr - 1) / nr;
  hasPatch = shape.hasBorder();

  // Rows: enough blocks for all workers, few enough that their patches overlap little.
  blockRows = height ? std::clamp<int64_t>(*height / 8, 1, 4) : 4;
  if (height && *height <= 8)
    blockRows = *height;
  if (blockRows % tileRows)
    blockRows = (blockRows + tileRows - 1) / tileRows * tileRows;
  const WindowAxis &rowAxis = window.axes[1], &columnAxis = window.axes[2];
  auto patchSize = [&](int64_t outputs, const WindowAxis &axis) {
    return (outputs - 1) * axis.stride + std::abs(axis.reach()) + 1;
  };
  // The patch of a unit stays in a quarter of the second level, where it can.
  int64_t pixelBytes = shape.groupInputs * window.axes[0].taps * int64_t(type.getIntOrFloatBitWidth() / 8);
  int64_t room = context.target.l2Bytes / 4;
  if (hasPatch) {
    int64_t columns = width.value_or(64);
    while (blockRows > tileRows && patchSize(blockRows, rowAxis) * patchSize(columns, columnAxis) * pixelBytes > room)
      blockRows -= tileRows;
    int64_t unit = std::max<int64_t>(tileColumns, 1);
    while (columns > 2 * unit && patchSize(blockRows, rowAxis) * patchSize(columns, columnAxis) * pixelBytes > 2 * room)
      columns = (columns / 2 + unit - 1) / unit * unit;
    blockColumns = width && columns >= *width ? 0 : columns / unit * unit;
    patchRows = patchSize(blockRows, rowAxis);
    patchColumns = patchSize(blockColumns ? blockColumns : *width, columnAxis);
  }
  DimExpr blocks = window.batch * DimExpr(shape.group) * window.axes[0].out * rowAxis.out.ceilDiv(DimExpr(blockRows));
  if (blockColumns)
    blocks = blocks * columnAxis.out.ceilDiv(DimExpr(blockColumns));
  int64_t count = blocks.asConstant().value_or(12);
  int64_t chunks = std::clamp<int64_t>((11 + count) / std::max<int64_t>(count, 1), 1, panelCount);
  chunkPanels = (panelCount + chunks - 1) / chunks;
}

/// Copies one row of the input, `patchColumns` pixels with zeros outside of the image, to the patch.
void WindowProductEmitter::fillRow(Value inputRow, Value patchRow) {
  const WindowAxis &axis = window.axes[2];
  int64_t lanes = tile.lanes, channels = shape.groupInputs;
  VectorType vector = VectorType::get({lanes}, type);
  Value patch = context.func.scratch();
  // Pixel i of the patch is pixel first + i of the image; [begin, end) of them exist.
  Value first = l.add(l.mul(column0, axis.stride), axis.first + std::min<int64_t>(0, axis.reach()));
  Value wanted = l.index(patchColumns);
  Value begin = l.min(wanted, l.max(l.index(0), l.sub(l.index(0), first)));
  Value end = l.max(begin, l.min(wanted, l.sub(context.value(axis.in), first)));
  auto zeros = [&](Value from, Value to) {
    Value start = l.add(patchRow, l.mul(from, channels)), count = l.mul(l.sub(to, from), channels);
    Value whole = l.mul(l.div(count, lanes), lanes);
    l.loop(l.index(0), whole, lanes, [&](Value i) { l.store(l.zero(vector), patch, l.add(start, i)); });
    l.loop(whole, count, 1, [&](Value i) { l.store(l.zero(type), patch, l.add(start, i)); });
  };
  zeros(l.index(0), begin);
  zeros(end, wanted);
  Type elementType = shape.input.elementType;
  auto copy = [&](Value from, Value to, Value count) {
    auto widened = [&](Value loaded) {
      return getElementTypeOrSelf(loaded.getType()) == type ? loaded : context.elements.cast(loaded, elementType, type);
    };
    Value whole = l.mul(l.div(count, lanes), lanes);
    l.loop(l.index(0), whole, lanes, [&](Value i) {
      l.store(widened(context.elements.load(left, l.add(from, i), elementType, lanes)), patch, l.add(to, i));
    });
    l.loop(whole, count, 1, [&](Value i) {
      l.store(widened(context.elements.load(left, l.add(from, i), elementType, 0)), patch, l.add(to, i));
    });
  };
  int64_t pixel = shape.group * channels;
  Value source = l.add(inputRow, l.add(l.mul(l.add(first, begin), pixel), l.mul(group, channels)));
  Value target = l.add(patchRow, l.mul(begin, channels)), count = l.sub(end, begin);
  if (shape.group == 1)
    return copy(source, target, l.mul(count, channels));
  l.loop(l.index(0), count, 1,
         [&](Value i) { copy(l.add(source, l.mul(i, pixel)), l.add(target, l.mul(i, channels)), l.index(channels)); });
}

void WindowProductEmitter::fillPatch() {
  const WindowAxis &depth = window.axes[0], &height = window.axes[1];
  int64_t rowSize = patchColumns * shape.groupInputs;
  Value imagePixel = l.index(shape.group * shape.groupInputs);
  Value imageRow = l.mul(context.value(window.axes[2].in), imagePixel);
  Value rowsWanted = l.add(l.mul(l.sub(l.sub(row1, row0), l.index(1)), height.stride), std::abs(height.reach()) + 1);
  l.loop(l.index(0), l.index(depth.taps), 1, [&](Value tap) {
    Value plane = l.add(l.add(l.mul(planeIndex, depth.stride), depth.first), l.mul(tap, depth.step));
    Value isPlane = l.both(l.less(l.index(-1), plane), l.less(plane, context.value(depth.in)));
    if (!depth.hasBorder())
      isPlane = l.less(l.index(0), l.index(1));
    l.loop(l.index(0), rowsWanted, 1, [&](Value i) {
      Value row = l.add(l.add(l.mul(row0, height.stride), height.first + std::min<int64_t>(0, height.reach())), i);
      Value isRow = l.both(l.less(l.index(-1), row), l.less(row, context.value(height.in)));
      if (!height.hasBorder())
        isRow = l.less(l.index(0), l.index(1));
      Value patchRow = l.mul(l.add(l.mul(tap, patchRows), i), rowSize);
      l.when(
          l.both(isPlane, isRow),
          [&] {
            Value image = l.add(l.mul(batch, context.value(depth.in)), plane);
            Value start = l.mul(l.add(l.mul(image, context.value(height.in)), row), imageRow);
            fillRow(start, patchRow);
          },
          [&] {
            VectorType vector = VectorType::get({tile.lanes}, type);
            int64_t whole = rowSize / tile.lanes * tile.lanes;
            l.loop(l.index(0), l.index(whole), tile.lanes,
                   [&](Value j) { l.store(l.zero(vector), context.func.scratch(), l.add(patchRow, j)); });
            l.loop(l.index(whole), l.index(rowSize), 1,
                   [&](Value j) { l.store(l.zero(type), context.func.scratch(), l.add(patchRow, j)); });
          });
    });
  });
}

/// A tile of rows x columns windows, the first one `row` rows and `column` columns into the unit.
void WindowProductEmitter::pixels(Value row, Value column, int64_t rows, int64_t columns, Tile part,
                                  const LoopBuilder::Values &counts) {
  const WindowAxis &depth = window.axes[0], &height = window.axes[1], &width = window.axes[2];
  part.rows = rows * columns;
  Value first = l.add(l.add(leftStart, l.mul(l.mul(row, height.stride), rowPitch)),
                      l.mul(l.mul(column, width.stride), pixelPitch));
  LoopBuilder::Values starts;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      starts.push_back(l.add(first, l.add(l.mul(rowPitch, r * height.stride), l.mul(pixelPitch, c * width.stride))));
  int64_t weightRow = width.taps * shape.groupInputs;
  Value weights = context.operand(shape.weight);
  // Rows of taps outside of the image add nothing; all windows of a tile in one row skip them together.
  Range taps{l.index(0), l.index(height.taps)};
  if (rows == 1 && height.step > 0)
    taps = insideTaps(context, height, l.add(row0, row));
  LoopBuilder::Values sums = zeroTile(context, part, type);
  Type leftType = hasPatch ? type : shape.input.elementType;
  Type rightType = cast<RankedTensorType>(shape.op->getOperand(1).getType()).getElementType();
  sums = l.loop(l.index(0), l.index(depth.taps), 1, sums, [&](Value d, LoopBuilder::Values outer) {
    Value plane = l.mul(d, planePitch), weightPlane = l.mul(d, height.taps);
    return l.loop(taps.begin, taps.end, 1, outer, [&](Value h, LoopBuilder::Values middle) {
      Value rowOffset = l.add(plane, l.mul(l.mul(h, rowPitch), height.step));
      Value weightOffset = l.mul(l.add(weightPlane, h), weightRow);
      return l.loop(l.index(0), l.index(shape.runsPerRow()), 1, middle, [&](Value w, LoopBuilder::Values inner) {
        Value offset = l.add(rowOffset, l.mul(l.mul(w, pixelPitch), width.step));
        LeftSide leftSide{left, {}, l.index(1), leftType};
        for (Value start : starts)
          leftSide.rows.push_back(l.add(start, offset));
        Value k = l.add(weightOffset, l.mul(w, shape.groupInputs));
        RightSide right{weights, l.add(panelFirstColumn, l.mul(k, nr)), l.index(nr), rightType};
        return multiplyTile(context, part, type, leftSide, right, l.index(shape.runLength()), inner);
      });
    });
  });
  Value channel = l.add(l.mul(group, shape.groupOutputs), panelFirst);
  auto positionOf = [&](Value pixel) {
    Value r = l.div(pixel, columns), c = l.rem(pixel, columns);
    return window.position(batch, {planeIndex, l.add(l.add(row0, row), r), l.add(l.add(column0, column), c)}, channel);
  };
  unsigned axis = window.spatial + 1;
  SmallVector<unsigned> rowAxes;
  for (unsigned i = 1; i <= window.spatial; ++i)
    rowAxes.push_back(i);
  finishTile(context, epilogue, part, sums, positionOf, axis, rowAxes, counts, scratchTile);
}

/// As many pixels of a row as a vector has lanes, for one output: sums of vectors along the runs of the windows.
/// `count`: how many of the pixels exist (null: all).
void WindowProductEmitter::narrowPixels(Value row, Value column, Value count) {
  const WindowAxis &depth = window.axes[0], &height = window.axes[1], &width = window.axes[2];
  int64_t lanes = tile.lanes, run = shape.runLength(), paddedRun = (run + lanes - 1) / lanes * lanes;
  Value first = l.add(l.add(leftStart, l.mul(l.mul(row, height.stride), rowPitch)),
                      l.mul(l.mul(column, width.stride), pixelPitch));
  SmallVector<Value> starts;
  for (int64_t i = 0; i < lanes; ++i) {
    // Pixels that do not exist repeat the last one.
    Value pixel = count ? l.min(l.index(i), l.sub(count, l.index(1))) : l.index(i);
    starts.push_back(l.add(first, l.mul(l.mul(pixel, width.stride), pixelPitch)));
  }
  Type leftType = hasPatch ? type : shape.input.elementType;
  Type rightType = cast<RankedTensorType>(shape.op->getOperand(1).getType()).getElementType();
  auto load = [&](Value buffer, Value at, Type elementType, Value exist) {
    Value loaded = context.elements.load(buffer, at, elementType, lanes, exist);
    return getElementTypeOrSelf(loaded.getType()) == type ? loaded : context.elements.cast(loaded, elementType, type);
  };
  Range taps =
      height.step > 0 ? insideTaps(context, height, l.add(row0, row)) : Range{l.index(0), l.index(height.taps)};
  LoopBuilder::Values sums(lanes, l.zero(VectorType::get({lanes}, type)));
  sums = l.loop(l.index(0), l.index(depth.taps), 1, sums, [&](Value d, LoopBuilder::Values outer) {
    return l.loop(taps.begin, taps.end, 1, outer, [&](Value h, LoopBuilder::Values middle) {
      Value rowOffset = l.add(l.mul(d, planePitch), l.mul(l.mul(h, rowPitch), height.step));
      return l.loop(l.index(0), l.index(shape.runsPerRow()), 1, middle, [&](Value w, LoopBuilder::Values inner) {
        Value offset = l.add(rowOffset, l.mul(l.mul(w, pixelPitch), width.step));
        Value weights = l.mul(l.add(l.mul(l.add(l.mul(d, height.taps), h), shape.runsPerRow()), w), paddedRun);
        weights = l.add(panelFirstColumn, weights);
        auto step = [&](Value at, LoopBuilder::Values acc, Value exist) {
          Value factor = load(context.operand(shape.weight), l.add(weights, at), rightType, {});
          for (int64_t i = 0; i < lanes; ++i)
            acc[i] =
                context.multiplyAdd(load(left, l.add(l.add(starts[i], offset), at), leftType, exist), factor, acc[i]);
          return acc;
        };
        int64_t whole = run / lanes * lanes;
        inner = l.loop(l.index(0), l.index(whole), lanes, inner,
                       [&](Value at, LoopBuilder::Values acc) { return step(at, acc, {}); });
        return run > whole ? step(l.index(whole), inner, l.index(run - whole)) : inner;
      });
    });
  });
  Value channel = l.add(l.mul(group, shape.groupOutputs), panelFirst);
  LoopBuilder::Values position =
      window.position(batch, {planeIndex, l.add(row0, row), l.add(column0, column)}, channel);
  epilogue.forget();
  epilogue.store(context, sumEach(l, sums), position, window.spatial, lanes, count, 0);
}

void WindowProductEmitter::panel(Value number, Tile part, const LoopBuilder::Values &counts) {
  panelFirst = l.mul(number, nr);
  panelFirstColumn = l.add(l.add(l.mul(group, groupSize), weightStart), l.mul(panelFirst, shape.packedDepth));
  Value rows = l.sub(row1, row0), columns = l.sub(column1, column0);
  auto rowOfTiles = [&](Value row, int64_t height) {
    Value whole = l.mul(l.div(columns, tileColumns), tileColumns);
    if (isNarrow) {
      l.loop(l.index(0), whole, tileColumns, [&](Value column) { narrowPixels(row, column, {}); });
      l.when(l.less(whole, columns), [&] { narrowPixels(row, whole, l.sub(columns, whole)); });
      return;
    }
    l.loop(l.index(0), whole, tileColumns,
           [&](Value column) { pixels(row, column, height, tileColumns, part, counts); });
    Value tail = l.sub(columns, whole);
    auto width = window.width().out.asConstant();
    if (width && (!blockColumns || blockColumns % tileColumns == 0)) {
      int64_t rest = *width % tileColumns;
      if (rest)
        l.when(l.less(l.index(0), tail), [&] { pixels(row, whole, height, rest, part, counts); });
      return;
    }
    l.oneOf(l.sub(tail, l.index(1)), tileColumns - 1,
            [&](int64_t i) { pixels(row, whole, height, i + 1, part, counts); });
  };
  Value wholeRows = l.mul(l.div(rows, tileRows), tileRows);
  l.loop(l.index(0), wholeRows, tileRows, [&](Value row) { rowOfTiles(row, tileRows); });
  if (tileRows > 1)
    l.loop(wholeRows, rows, 1, [&](Value row) { rowOfTiles(row, 1); });
}

void WindowProductEmitter::unit(Value number) {
  const WindowAxis &depth = window.axes[0], &height = window.axes[1], &width = window.axes[2];
  auto next = [&](Value size) {
    Value index = l.rem(number, size);
    number = l.div(number, size);
    return index;
  };
  int64_t chunks = (panelCount + chunkPanels - 1) / chunkPanels;
  Value chunk = next(l.index(chunks));
  column0 = l.index(0);
  column1 = context.value(width.out);
  if (blockColumns) {
    column0 = l.mul(next(l.ceilDiv(context.value(width.out), blockColumns)), blockColumns);
    column1 = l.min(context.value(width.out), l.add(column0, blockColumns));
  }
  row0 = l.mul(next(l.ceilDiv(context.value(height.out), blockRows)), blockRows);
  row1 = l.min(context.value(height.out), l.add(row0, blockRows));
  planeIndex = next(context.value(depth.out));
  group = next(l.index(shape.group));
  batch = number;
  left = context.operand(shape.input.argument.getArgNumber());
  if (hasPatch) {
    fillPatch();
    left = context.func.scratch();
    pixelPitch = l.index(shape.groupInputs);
    rowPitch = l.index(patchColumns * shape.groupInputs);
    planePitch = l.index(patchRows * patchColumns * shape.groupInputs);
    // Tap 0 is the last one in memory where taps go backwards.
    int64_t back = -std::min<int64_t>(0, height.reach()) * patchColumns - std::min<int64_t>(0, width.reach());
    leftStart = l.index(back * shape.groupInputs);
  } else {
    pixelPitch = l.index(shape.group * shape.groupInputs);
    rowPitch = l.mul(context.value(width.in), pixelPitch);
    Value imagePlane = l.mul(context.value(height.in), rowPitch);
    planePitch = l.mul(imagePlane, depth.step);
    Value plane = l.add(l.mul(batch, context.value(depth.in)), l.add(l.mul(planeIndex, depth.stride), depth.first));
    leftStart = l.add(l.mul(plane, imagePlane), l.mul(l.add(l.mul(row0, height.stride), height.first), rowPitch));
    leftStart = l.add(leftStart, l.mul(l.add(l.mul(column0, width.stride), width.first), pixelPitch));
    leftStart = l.add(leftStart, l.mul(group, shape.groupInputs));
  }
  int64_t rest = shape.groupOutputs % nr, wholePanels = shape.groupOutputs / nr;
  Tile narrow = tile;
  narrow.vectors = (rest + tile.lanes - 1) / tile.lanes;
  LoopBuilder::Values counts(narrow.vectors);
  if (rest % tile.lanes)
    counts.back() = l.index(rest % tile.lanes);
  Value begin = l.mul(chunk, chunkPanels), end = l.min(l.add(begin, chunkPanels), l.index(panelCount));
  Value wholeEnd = l.min(end, l.index(wholePanels));
  if (wholePanels)
    l.loop(begin, wholeEnd, 1, [&](Value i) { panel(i, tile, {}); });
  if (rest)
    l.when(l.less(wholeEnd, end), [&] { panel(l.index(wholePanels), narrow, counts); });
}

void WindowProductEmitter::emit() {
  type = sumType(shape.input.elementType);
  chooseBlocks();
  int64_t bytes = type.getIntOrFloatBitWidth() / 8;
  int64_t patchBytes = hasPatch ? window.axes[0].taps * patchRows * patchColumns * shape.groupInputs * bytes : 0;
  patchBytes = (patchBytes + 63) / 64 * 64;
  scratchTile = l.at(context.func.scratch(), l.index(patchBytes));
  int64_t needed = patchBytes + tileScratchBytes(epilogue, tile, bytes);
  context.func.setScratchBytes(std::max<int64_t>(needed, context.func.getScratchBytes()));

  Value total = l.mul(context.value(window.batch), shape.group);
  total = l.mul(total, context.value(window.axes[0].out));
  total = l.mul(total, l.ceilDiv(context.value(window.axes[1].out), blockRows));
  if (blockColumns)
    total = l.mul(total, l.ceilDiv(context.value(window.axes[2].out), blockColumns));
  total = l.mul(total, (panelCount + chunkPanels - 1) / chunkPanels);
  Range range = workerRange(l.b, l.loc, context.func, total);
  l.loop(range.begin, range.end, 1, [&](Value number) { unit(number); });
}

void emitWindowProduct(KernelContext &context, const ConvolutionShape &shape, Epilogue &epilogue, int64_t nr,
                       int64_t weightStart, int64_t groupSize) {
  WindowProductEmitter(context, shape, epilogue, nr, weightStart, groupSize).emit();
}

MatrixProduct pixelProduct(const ConvolutionShape &shape) {
  MatrixProduct p;
  const WindowGeometry &g = shape.window;
  p.op = shape.op;
  p.a = shape.input;
  p.b.argument = cast<BlockArgument>(shape.op->getOperand(1));
  p.b.elementType = cast<RankedTensorType>(shape.op->getOperand(1).getType()).getElementType();
  p.b.offset = DimExpr(0);
  p.k = g.channels;
  p.n = DimExpr(shape.groupOutputs);
  p.ak = DimExpr(1);
  DimExpr stride = g.channels;
  SmallVector<DimExpr> strides(3);
  for (unsigned i = 3; i-- > 0;) {
    strides[i] = stride * DimExpr(g.axes[i].stride);
    stride = stride * g.axes[i].in;
  }
  p.batch = {g.batch};
  p.aBatch = {stride};
  for (unsigned i = 3 - g.spatial; i < 2; ++i) {
    p.batch.push_back(g.axes[i].out);
    p.aBatch.push_back(strides[i]);
  }
  p.m = g.axes[2].out;
  p.am = strides[2];
  p.bBatch.assign(p.batch.size(), DimExpr(0));
  return p;
}

bool addBias(Operation *op, Epilogue &epilogue, std::string &whyNot) {
  if (op->getNumOperands() < 3 || isAbsent(op->getOperand(2)))
    return true;
  if (auto number = singleValue(op->getOperand(2))) {
    epilogue.addToRoot(*number);
    return true;
  }
  auto bias = viewOf(op->getOperand(2));
  if (bias && epilogue.addTerm(*bias, 1))
    return true;
  whyNot = "a bias that is no view of an input";
  return false;
}

LogicalResult emitConvolution(FusedOp fused, Operation *op, kernel::FuncOp func, const TargetDescription &target,
                              std::string &whyNot) {
  auto shape = readConvolution(op, whyNot);
  if (!shape)
    return failure();
  auto packed = packingOf(fused, shape->weight);
  if (!packed || !isFloatElement(shape->input.elementType)) {
    whyNot = packed ? "a convolution of " + elementTypeText(shape->input.elementType) : "a weight that is not packed";
    return failure();
  }
  auto epilogue = Epilogue::analyse(fused, op->getResult(0), whyNot);
  if (!epilogue)
    return failure();
  if (!addBias(op, *epilogue, whyNot))
    return failure();
  shape->packedDepth = packed->paddedK();
  OpBuilder builder(func.getContext());
  builder.setInsertionPointToEnd(&func.getBody().front());
  KernelContext context(fused, func, target, builder);
  if (isPixelwise(*shape) && packed->nr > 1) {
    MatrixProduct product = pixelProduct(*shape);
    product.packed = packed;
    emitProductLoops(context, std::move(product), *epilogue);
  } else {
    DimExpr work = contractionFlops(fused).floorDiv(DimExpr(2));
    func.setParallel(!(work.isConstant() && work.constant() < (64 << 10)));
    if (shape->isDepthwise())
      emitDepthwise(context, *shape, *epilogue);
    else
      emitWindowProduct(context, *shape, *epilogue, packed->nr, 0, packed->panels() * packed->paddedK() * packed->nr);
  }
  builder.create<kernel::ReturnOp>(fused.getLoc());
  return success();
}

} // namespace firn

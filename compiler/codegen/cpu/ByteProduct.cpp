// Loops over byte products: blocks of rows, whose left side is staged where the microkernel cannot read it as it lies
// (windows of an image, strides, targets that multiply 16-bit numbers), then panels of columns, packed by the compiler
// or, for a right side that is computed, by the kernel.
#include "compiler/codegen/cpu/ByteProduct.h"

#include "compiler/codegen/cpu/ByteTile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace firn {

void packBytes(PackedWeight &weight, const TargetDescription &target) {
  weight.kStep = byteStep(target);
  weight.hasSums = byteKernel(target) == ByteKernel::Quads;
  weight.shift = weight.hasSums && weight.elementType.isUnsignedInteger() ? 128 : 0;
}

bool readZeroPoint(Value value, const DimExpr &columns, std::optional<View> &along, double &number) {
  if (!value || isAbsent(value))
    return true;
  if (auto single = singleValue(value)) {
    number = *single;
    return true;
  }
  std::optional<View> view = viewOf(value);
  if (!view)
    return false;
  while (view->rank() > 1 && isConstantDim(view->dims[0], 1)) { // [1, n]: a row
    view->dims.erase(view->dims.begin());
    view->strides.erase(view->strides.begin());
  }
  if (view->rank() == 0 || (view->rank() == 1 && isConstantDim(view->dims[0], 1))) {
    along = View{view->argument, view->elementType, {columns}, {DimExpr(0)}, view->offset};
    return true;
  }
  if (view->rank() != 1 || view->dims[0] != columns)
    return false;
  along = view;
  return true;
}

namespace {

/// Below that many multiply-adds workers cost more than they bring (performance.md, section 5).
constexpr int64_t fewestProducts = 128 << 10;
/// Steps along k that a panel packed by the kernel has at most.
constexpr int64_t mostDepth = 1024;

class ByteProductEmitter {
public:
  ByteProductEmitter(KernelContext &kernelContext, MatrixProduct matrixProduct, const ConvolutionShape *imageWindows,
                     Epilogue productEpilogue)
      : context(kernelContext), l(kernelContext.l), p(std::move(matrixProduct)), windows(imageWindows),
        epilogue(std::move(productEpilogue)), step(byteStep(kernelContext.target)) {}

  void emit();

private:
  void mergeAxes();
  void chooseBlocks();
  void placeScratch();
  void unit(Value number);
  void panel(Value number, Tile shape, const LoopBuilder::Values &counts);
  void rowTiles(Tile shape, llvm::function_ref<void(Value, Tile)> body);
  LoopBuilder::Values sums(Value row, Tile shape, Value n0, Value depth);
  void finish(Value row, Tile shape, const LoopBuilder::Values &results, Value n0, const LoopBuilder::Values &counts);
  void readColumnZeros(Value n0, Tile shape, const LoopBuilder::Values &counts);

  void stageRows(Value k0, Value depth);
  void stageWindow(Value row, Value to);
  void copyLeft(Value from, Value count, Value to);
  void fillLeft(Value to, Value count, bool isZeroPoint);
  void stageColumns(Value n0, Tile shape, const LoopBuilder::Values &counts, Value k0, Value depth);
  void interleave(Value from, Value to, Tile shape, const LoopBuilder::Values &counts, Value exist);
  void scatterColumns(Value from, Tile shape, Value width, Value depth);

  Value rowOffset(Value row);
  bool isPacked() const { return p.packed.has_value(); }
  bool isQuads() const { return byteKernel(context.target) == ByteKernel::Quads; }
  bool isLeftSigned() const { return !p.a.elementType.isUnsignedInteger(); }
  bool isShifted() const {
    return isPacked() ? p.packed->shift != 0 : isQuads() && p.b.elementType.isUnsignedInteger();
  }
  int64_t nr() const { return isPacked() ? p.packed->nr : tile.columns(); }
  int64_t stagedBytes() const { return isQuads() ? 1 : 2; }
  unsigned axisM() const { return p.batch.size(); }
  unsigned axisN() const { return p.batch.size() + 1; }
  Type byte() { return l.b.getI8Type(); }
  Value byteNumber(int64_t value) { return l.b.create<arith::ConstantIntOp>(l.loc, value, 8); }

  KernelContext &context;
  LoopBuilder &l;
  MatrixProduct p;
  const ConvolutionShape *windows;
  Epilogue epilogue;
  int64_t step;
  Tile tile;
  SmallVector<DimExpr> rowAxes; // axes of the image that rows run over
  bool isStaged = false, isInPieces = false;
  int64_t blockRows = 1, chunkPanels = 1;
  int64_t pieceDepth = 0, pitch = 0; // elements of a staged row
  int64_t groups = 1;
  Value m, n, k, panels, chunks, blocks, leftZero;
  Value aBuffer, bBuffer, leftScratch, rightScratch, sumScratch, tileScratch;

  // Of the unit at hand.
  Value group, m0, m1, aStart, bStart;
  LoopBuilder::Values batchIndex;
  ByteColumns columns;
};

} // namespace

void ByteProductEmitter::mergeAxes() {
  rowAxes = {p.m};
  while (!p.batch.empty()) {
    unsigned last = p.batch.size() - 1;
    bool fits = windows || isConstantDim(p.batch[last], 1) ||
                (isConstantDim(p.bBatch[last], 0) && p.aBatch[last] == p.am * p.m);
    if (!fits || !epilogue.canMerge(last))
      break;
    rowAxes.insert(rowAxes.begin(), p.batch[last]);
    p.m = p.m * p.batch[last];
    epilogue.merge(last);
    p.batch.pop_back();
    p.aBatch.pop_back();
    p.bBatch.pop_back();
  }
}

void ByteProductEmitter::chooseBlocks() {
  auto rows = p.m.asConstant(), columnCount = p.n.asConstant(), depth = p.k.asConstant();
  TileShape shape = tileShape(p, accumulatorType(p));
  tile = isPacked() ? chooseRows(context.target, shape, p.packed->nr) : chooseTile(context.target, shape);
  // Beside the sums stand those of the rows, or the columns' zero points.
  bool hasZeros = p.zeroPoint || p.zeroPointNumber != 0;
  int64_t perRow = tile.vectors + (isQuads() && (hasZeros || isShifted()));
  int64_t others = tile.vectors * (!isQuads() && hasZeros ? 2 : 1) + 1;
  while (tile.rows > 1 && tile.rows * perRow + others > int64_t(context.target.vectorRegisters))
    --tile.rows;
  isStaged = windows || !isQuads() || !isConstantDim(p.ak, 1);
  pieceDepth = isPacked() || windows ? *depth : std::min(depth.value_or(mostDepth), mostDepth);
  isInPieces = !depth || pieceDepth < *depth;
  pitch = std::max<int64_t>(1, (pieceDepth + step - 1) / step) * step;
  // Staged rows stay in the second level while panels pass.
  int64_t most = std::max<int64_t>(tile.rows, context.target.l2Bytes / 8 / (pitch * stagedBytes()));
  int64_t tilesPerBlock = std::clamp<int64_t>(most / tile.rows, 1, 16);
  int64_t outer = groups;
  for (const DimExpr &dim : p.batch)
    outer *= dim.asConstant().value_or(4);
  int64_t panelCount = columnCount ? (*columnCount + nr() - 1) / nr() : 4;
  if (rows) // enough units that workers end at about the same time
    tilesPerBlock = std::clamp<int64_t>((*rows + tile.rows - 1) / tile.rows * outer / 12, 1, tilesPerBlock);
  blockRows = tilesPerBlock * tile.rows;
  int64_t blockCount = rows ? outer * ((*rows + blockRows - 1) / blockRows) : 12;
  int64_t chunkCount =
      std::clamp<int64_t>((11 + blockCount) / std::max<int64_t>(blockCount, 1), 1, std::max<int64_t>(1, panelCount));
  chunkPanels = isInPieces ? 1 : std::max<int64_t>(1, (panelCount + chunkCount - 1) / chunkCount);
}

void ByteProductEmitter::placeScratch() {
  int64_t size = 0;
  auto place = [&](int64_t bytes) {
    Value at = l.at(context.func.scratch(), l.index(size));
    size += (bytes + 63) / 64 * 64;
    return at;
  };
  leftScratch = place(isStaged ? blockRows * pitch * stagedBytes() : 0);
  rightScratch = place(isPacked() ? 0 : (pitch + 4) * nr()); // with the columns' sums
  sumScratch = place(isInPieces ? blockRows * nr() * 4 : 0);
  tileScratch = place(tileScratchBytes(epilogue, tile, 4));
  context.func.setScratchBytes(size);
}

// --- the left side ---------------------------------------------------------------------------------------------------

/// Copies `count` adjacent bytes of the left side to staged element `to`.
void ByteProductEmitter::copyLeft(Value from, Value count, Value to) {
  int64_t lanes = context.target.vectorBytes / stagedBytes();
  auto move = [&](Value at, int64_t width, Value exist) {
    Type type = width ? Type(VectorType::get({width}, byte())) : byte();
    Value loaded = l.load(type, aBuffer, l.add(from, at), exist);
    l.store(stagedLeft(context, loaded, isLeftSigned(), leftZero), leftScratch, l.add(to, at), exist);
  };
  Value whole = l.mul(l.div(count, lanes), lanes);
  l.loop(l.index(0), whole, lanes, [&](Value at) { move(at, lanes, {}); });
  Value rest = l.sub(count, whole);
  if (context.target.hasAvx512) {
    l.when(l.less(l.index(0), rest), [&] { move(whole, lanes, rest); });
    return;
  }
  l.loop(whole, count, 1, [&](Value at) { move(at, 0, {}); });
}

/// Fills staged elements with the left zero point, or with what adds nothing behind the last one.
void ByteProductEmitter::fillLeft(Value to, Value count, bool isZeroPoint) {
  Value element = l.zero(stagedType(context));
  if (isZeroPoint) {
    Value zero = l.b.create<arith::TruncIOp>(l.loc, byte(), leftZero);
    element = stagedLeft(context, zero, isLeftSigned(), leftZero);
  }
  int64_t lanes = context.target.vectorBytes / stagedBytes();
  Value whole = l.mul(l.div(count, lanes), lanes);
  Value vector = l.splat(VectorType::get({lanes}, element.getType()), element);
  l.loop(l.index(0), whole, lanes, [&](Value at) { l.store(vector, leftScratch, l.add(to, at)); });
  l.loop(whole, count, 1, [&](Value at) { l.store(element, leftScratch, l.add(to, at)); });
}

/// The pixels under the window of output `row`.
void ByteProductEmitter::stageWindow(Value row, Value to) {
  const WindowGeometry &g = windows->window;
  int64_t channels = windows->groupInputs, all = windows->group * channels;
  LoopBuilder::Values position = batchIndex;
  position.append(rowAxes.size(), Value());
  for (unsigned i = rowAxes.size(); i-- > 1;) {
    Value size = context.value(rowAxes[i]);
    position[batchIndex.size() + i] = l.rem(row, size);
    row = l.div(row, size);
  }
  position[batchIndex.size()] = row;
  std::array<Value, 3> output{l.index(0), l.index(0), l.index(0)};
  for (unsigned i = 0; i < g.spatial; ++i)
    output[3 - g.spatial + i] = position[1 + i];
  auto isInside = [&](const WindowAxis &axis, Value at) {
    return l.both(l.less(l.index(-1), at), l.less(at, context.value(axis.in)));
  };
  auto inputOf = [&](unsigned axis, Value tap) {
    return l.add(l.add(l.mul(output[axis], g.axes[axis].stride), g.axes[axis].first), l.mul(tap, g.axes[axis].step));
  };
  int64_t width = g.axes[2].taps, lineElements = width * channels;
  l.loop(l.index(0), l.index(g.axes[0].taps), 1, [&](Value d) {
    l.loop(l.index(0), l.index(g.axes[1].taps), 1, [&](Value h) {
      Value line = l.add(to, l.mul(l.add(l.mul(d, g.axes[1].taps), h), lineElements));
      Value plane = inputOf(0, d), inputRow = inputOf(1, h);
      auto copyLine = [&] {
        Value rowStart =
            l.add(l.mul(l.add(l.mul(position[0], context.value(g.axes[0].in)), plane), context.value(g.axes[1].in)),
                  inputRow);
        rowStart = l.add(l.mul(l.mul(rowStart, context.value(g.axes[2].in)), all), l.mul(group, channels));
        if (windows->group == 1 && g.axes[2].step == 1) { // taps lie one behind the other
          Range taps = insideTaps(context, g.axes[2], output[2]);
          fillLeft(line, l.mul(taps.begin, channels), true);
          copyLeft(l.add(rowStart, l.mul(inputOf(2, taps.begin), all)), l.mul(l.sub(taps.end, taps.begin), channels),
                   l.add(line, l.mul(taps.begin, channels)));
          fillLeft(l.add(line, l.mul(taps.end, channels)), l.mul(l.sub(l.index(width), taps.end), channels), true);
          return;
        }
        l.loop(l.index(0), l.index(width), 1, [&](Value w) {
          Value at = l.add(line, l.mul(w, channels)), column = inputOf(2, w);
          auto copyPixel = [&] { copyLeft(l.add(rowStart, l.mul(column, all)), l.index(channels), at); };
          if (!g.axes[2].hasBorder())
            return copyPixel();
          l.when(isInside(g.axes[2], column), copyPixel, [&] { fillLeft(at, l.index(channels), true); });
        });
      };
      bool mayMiss = g.axes[0].hasBorder() || g.axes[1].hasBorder();
      if (!mayMiss)
        return copyLine();
      l.when(l.both(isInside(g.axes[0], plane), isInside(g.axes[1], inputRow)), copyLine,
             [&] { fillLeft(line, l.index(lineElements), true); });
    });
  });
}

/// Steps [k0, k0 + depth) of the block's rows.
void ByteProductEmitter::stageRows(Value k0, Value depth) {
  Value am = context.value(p.am), ak = context.value(p.ak);
  Value padding = l.sub(l.mul(l.ceilDiv(depth, step), step), depth);
  l.loop(m0, m1, 1, [&](Value row) {
    Value to = l.mul(l.sub(row, m0), pitch);
    if (windows) {
      stageWindow(row, to);
    } else {
      Value from = l.add(l.add(aStart, l.mul(row, am)), l.mul(k0, ak));
      if (isConstantDim(p.ak, 1))
        copyLeft(from, depth, to);
      else
        l.loop(l.index(0), depth, 1, [&](Value at) {
          Value loaded = l.load(byte(), aBuffer, l.add(from, l.mul(at, ak)));
          l.store(stagedLeft(context, loaded, isLeftSigned(), leftZero), leftScratch, l.add(to, at));
        });
    }
    fillLeft(l.add(to, depth), padding, false);
  });
}

// --- the right side --------------------------------------------------------------------------------------------------

/// `step` rows of b that begin at `from`, of which `exist` exist, interleaved at byte `to` of the panel.
void ByteProductEmitter::interleave(Value from, Value to, Tile shape, const LoopBuilder::Values &counts, Value exist) {
  Value bk = context.value(p.bk);
  VectorType vector = VectorType::get({shape.lanes}, byte());
  for (int64_t j = 0; j < shape.vectors; ++j) {
    SmallVector<Value> rows;
    for (int64_t i = 0; i < step; ++i) {
      // Rows that do not exist repeat the last one, as zeros.
      Value row = exist ? l.min(l.index(i), l.sub(exist, l.index(1))) : l.index(i);
      Value loaded = l.load(vector, bBuffer, l.add(l.add(from, l.mul(row, bk)), j * shape.lanes),
                            counts.empty() ? Value() : counts[j]);
      if (isShifted())
        loaded = l.b.create<arith::XOrIOp>(l.loc, loaded, l.splat(vector, byteNumber(-128)));
      if (exist)
        loaded = l.select(l.less(l.index(i), exist), loaded, l.zero(vector));
      rows.push_back(loaded);
    }
    // Neighbours of neighbours, until all rows are one vector.
    for (int64_t span = 1; rows.size() > 1; span *= 2) {
      SmallVector<Value> merged;
      int64_t length = shape.lanes * span;
      SmallVector<int64_t> mask;
      for (int64_t i = 0; i < length; i += span)
        for (int64_t side : {int64_t(0), length})
          for (int64_t o = 0; o < span; ++o)
            mask.push_back(side + i + o);
      for (size_t i = 0; i < rows.size(); i += 2)
        merged.push_back(l.b.create<vector::ShuffleOp>(l.loc, rows[i], rows[i + 1], mask));
      rows = merged;
    }
    l.store(rows[0], rightScratch, l.add(to, j * shape.lanes * step));
  }
}

/// Where step `row` along k lies behind the first one. A weight as the model has it holds the taps of a channel one
/// behind the other.
Value ByteProductEmitter::rowOffset(Value row) {
  if (!windows)
    return l.mul(row, context.value(p.bk));
  Value tap = l.div(row, windows->groupInputs), channel = l.rem(row, windows->groupInputs);
  return l.add(l.mul(channel, windows->window.taps()), tap);
}

/// The panel from columns that are not adjacent, byte by byte.
void ByteProductEmitter::scatterColumns(Value from, Tile shape, Value width, Value depth) {
  Value bn = context.value(p.bn);
  Value whole = l.mul(l.div(depth, step), step), padded = l.mul(l.ceilDiv(depth, step), step);
  bool isWord = step == 4 && isConstantDim(p.bk, 1);
  l.loop(l.index(0), l.index(shape.columns()), 1, [&](Value column) {
    // Columns that do not exist repeat the last one.
    Value start = l.add(from, l.mul(l.min(column, l.sub(width, l.index(1))), bn));
    auto place = [&](Value row) {
      Value line = l.mul(l.add(l.mul(l.div(row, step), nr()), column), step);
      return l.add(line, l.rem(row, step));
    };
    auto one = [&](Value row) {
      Value loaded = l.load(byte(), bBuffer, l.add(start, rowOffset(row)));
      if (isShifted())
        loaded = l.b.create<arith::XOrIOp>(l.loc, loaded, byteNumber(-128));
      l.store(loaded, rightScratch, place(row));
    };
    if (isWord)
      l.loop(l.index(0), whole, 4, [&](Value row) {
        Value word = l.load(l.b.getI32Type(), l.at(bBuffer, l.add(start, row)), l.index(0));
        if (isShifted())
          word =
              l.b.create<arith::XOrIOp>(l.loc, word, l.b.create<arith::ConstantIntOp>(l.loc, int32_t(0x80808080u), 32));
        l.store(word, l.at(rightScratch, place(row)), l.index(0));
      });
    l.loop(isWord ? whole : l.index(0), depth, 1, one);
    l.loop(depth, padded, 1, [&](Value row) { l.store(byteNumber(0), rightScratch, place(row)); });
  });
}

/// Steps [k0, k0 + depth) of a panel of b, as the compiler would have packed them.
void ByteProductEmitter::stageColumns(Value n0, Tile shape, const LoopBuilder::Values &counts, Value k0, Value depth) {
  Value bk = context.value(p.bk), bn = context.value(p.bn);
  Value from = l.add(l.add(bStart, l.mul(n0, bn)), l.mul(k0, bk));
  if (isConstantDim(p.bn, 1)) {
    Value whole = l.div(depth, step), rest = l.rem(depth, step);
    auto rowsAt = [&](Value index, Value exist) {
      interleave(l.add(from, l.mul(l.mul(index, step), bk)), l.mul(index, nr() * step), shape, counts, exist);
    };
    l.loop(l.index(0), whole, 1, [&](Value index) { rowsAt(index, {}); });
    l.when(l.less(l.index(0), rest), [&] { rowsAt(whole, rest); });
  } else {
    bool hasAll = counts.empty() || !counts.back();
    Value width = hasAll ? l.index(shape.columns()) : l.min(l.sub(n, n0), l.index(shape.columns()));
    scatterColumns(from, shape, width, depth);
  }
  if (!isQuads())
    return;
  // The columns' sums: a product with a row of ones.
  Value ones = l.at(rightScratch, l.index(pitch * nr()));
  VectorType vector = VectorType::get({shape.lanes}, l.b.getI32Type());
  LoopBuilder::Values sums(shape.vectors, l.zero(vector));
  sums = l.loop(l.index(0), l.ceilDiv(depth, step), 1, sums, [&](Value index, LoopBuilder::Values acc) {
    for (int64_t j = 0; j < shape.vectors; ++j) {
      Value at = l.add(l.mul(index, nr() * step), j * shape.lanes * step);
      acc[j] = dotWithOnes(context, acc[j], l.load(vector, l.at(rightScratch, at), l.index(0)));
    }
    return acc;
  });
  for (int64_t j = 0; j < shape.vectors; ++j)
    l.store(sums[j], ones, l.index(j * shape.lanes));
}

void ByteProductEmitter::readColumnZeros(Value n0, Tile shape, const LoopBuilder::Values &counts) {
  columns = {};
  columns.isUnsigned = p.b.elementType.isUnsignedInteger();
  columns.isShifted = isShifted();
  Type i32 = l.b.getI32Type();
  for (int64_t j = 0; j < shape.vectors && (p.zeroPoint || p.zeroPointNumber != 0); ++j) {
    if (!p.zeroPoint) {
      columns.zeros.push_back(context.elements.constant(p.zeroPointNumber, i32, shape.lanes));
      continue;
    }
    bool isOne = isConstantDim(p.zeroPoint->strides[0], 0);
    Value channel = l.add(l.mul(group, context.value(p.n)), l.add(n0, j * shape.lanes));
    Value at = context.offset({channel}, p.zeroPoint->strides, p.zeroPoint->offset);
    Value zero =
        context.elements.load(context.operand(p.zeroPoint->argument.getArgNumber()), at, p.zeroPoint->elementType,
                              isOne ? 0 : shape.lanes, isOne || counts.empty() ? Value() : counts[j]);
    zero = context.elements.cast(zero, p.zeroPoint->elementType, i32);
    columns.zeros.push_back(isOne ? context.elements.splat(zero, shape.lanes) : zero);
  }
}

// --- tiles -----------------------------------------------------------------------------------------------------------

/// All tiles of the block's rows: whole ones, then the rest.
void ByteProductEmitter::rowTiles(Tile shape, llvm::function_ref<void(Value, Tile)> body) {
  Value whole = l.add(m0, l.mul(l.div(l.sub(m1, m0), tile.rows), tile.rows));
  auto withRows = [&](int64_t rows) {
    Tile part = shape;
    part.rows = rows;
    return part;
  };
  l.loop(m0, whole, tile.rows, [&](Value row) { body(row, withRows(tile.rows)); });
  Value tail = l.sub(m1, whole);
  if (auto known = p.m.asConstant()) {
    // Blocks are whole tiles, so only the last one has a tail.
    if (int64_t rest = *known % tile.rows)
      l.when(l.less(l.index(0), tail), [&] { body(whole, withRows(rest)); });
    return;
  }
  l.oneOf(l.sub(tail, l.index(1)), tile.rows - 1, [&](int64_t number) { body(whole, withRows(number + 1)); });
}

LoopBuilder::Values ByteProductEmitter::sums(Value row, Tile shape, Value n0, Value depth) {
  ByteTile bytes;
  bytes.left = isStaged ? leftScratch : aBuffer;
  bytes.isStaged = isStaged;
  bytes.isSigned = isLeftSigned();
  bytes.leftZero = leftZero;
  for (int64_t r = 0; r < shape.rows; ++r)
    bytes.rows.push_back(isStaged ? l.mul(l.add(l.sub(row, m0), r), pitch)
                                  : l.add(aStart, l.mul(l.add(row, r), context.value(p.am))));
  bytes.panelColumns = nr();
  bytes.depth = depth;
  bytes.columns = columns;
  if (isPacked()) {
    bytes.right = bBuffer;
    bytes.panel = l.add(bStart, l.mul(n0, p.packed->paddedK()));
    if (p.packed->hasSums)
      bytes.columnSums = l.at(bBuffer, l.add(bytes.panel, (p.packed->paddedK() - 4) * nr()));
  } else {
    bytes.right = rightScratch;
    bytes.panel = l.index(0);
    bytes.columnSums = l.at(rightScratch, l.index(pitch * nr()));
  }
  return multiplyBytes(context, shape, bytes);
}

void ByteProductEmitter::finish(Value row, Tile shape, const LoopBuilder::Values &results, Value n0,
                                const LoopBuilder::Values &counts) {
  Value channel = l.add(l.mul(group, context.value(p.n)), n0);
  auto positionOf = [&](Value r) {
    LoopBuilder::Values position = batchIndex;
    position.append({l.add(row, r), channel});
    return position;
  };
  finishTile(context, epilogue, shape, results, positionOf, axisN(), {axisM()}, counts, tileScratch);
}

void ByteProductEmitter::panel(Value number, Tile shape, const LoopBuilder::Values &counts) {
  Value n0 = l.mul(number, nr());
  readColumnZeros(n0, shape, counts);
  if (!isInPieces) {
    if (!isPacked())
      stageColumns(n0, shape, counts, l.index(0), k);
    return rowTiles(shape, [&](Value row, Tile part) { finish(row, part, sums(row, part, n0, k), n0, counts); });
  }
  VectorType vector = VectorType::get({shape.lanes}, l.b.getI32Type());
  auto at = [&](Value row, int64_t i) {
    return l.add(l.mul(l.sub(row, m0), nr()), i / shape.vectors * nr() + i % shape.vectors * shape.lanes);
  };
  // A product of depth 0 has one piece as well, of zeros.
  Value pieces = l.max(l.index(1), l.ceilDiv(k, pieceDepth));
  l.loopAlways(l.index(0), pieces, 1, [&](Value piece) {
    Value k0 = l.mul(piece, pieceDepth), depth = l.min(l.sub(k, k0), l.index(pieceDepth));
    Value isFirst = l.equal(piece, l.index(0));
    if (isStaged)
      stageRows(k0, depth);
    stageColumns(n0, shape, counts, k0, depth);
    Value start = aStart;
    aStart = l.add(aStart, k0); // of rows that are not staged
    rowTiles(shape, [&](Value row, Tile part) {
      LoopBuilder::Values results = sums(row, part, n0, depth);
      for (auto [i, result] : llvm::enumerate(results)) {
        Value before = l.select(isFirst, l.zero(vector), l.load(vector, sumScratch, at(row, i)));
        l.store(l.b.create<arith::AddIOp>(l.loc, before, result), sumScratch, at(row, i));
      }
    });
    aStart = start;
  });
  rowTiles(shape, [&](Value row, Tile part) {
    LoopBuilder::Values results;
    for (int64_t i = 0; i < part.rows * part.vectors; ++i)
      results.push_back(l.load(vector, sumScratch, at(row, i)));
    finish(row, part, results, n0, counts);
  });
}

void ByteProductEmitter::unit(Value number) {
  auto next = [&](Value size) {
    Value index = l.rem(number, size);
    number = l.div(number, size);
    return index;
  };
  Value chunk = next(chunks);
  m0 = l.mul(next(blocks), blockRows);
  m1 = l.min(l.add(m0, blockRows), m);
  batchIndex.assign(p.batch.size(), Value());
  for (unsigned i = p.batch.size(); i-- > 0;)
    batchIndex[i] = next(context.value(p.batch[i]));
  group = groups > 1 ? number : l.index(0);
  aStart = windows ? l.index(0) : context.offset(batchIndex, p.aBatch, p.a.offset);
  bStart = windows ? l.mul(group, isPacked() ? p.packed->panels() * p.packed->paddedK() * nr()
                                             : windows->groupOutputs * windows->depth())
                   : context.offset(batchIndex, p.bBatch, isPacked() ? DimExpr(0) : p.b.offset);
  if (isStaged && !isInPieces)
    stageRows(l.index(0), k);
  Value begin = l.mul(chunk, chunkPanels), end = l.min(l.add(begin, chunkPanels), panels);
  if (auto known = p.n.asConstant()) {
    int64_t whole = *known / nr(), rest = *known % nr();
    Tile narrow = tile;
    narrow.vectors = (rest + tile.lanes - 1) / tile.lanes;
    LoopBuilder::Values counts(narrow.vectors);
    if (rest % tile.lanes)
      counts.back() = l.index(rest % tile.lanes);
    Value wholeEnd = l.min(end, l.index(whole));
    if (whole)
      l.loop(begin, wholeEnd, 1, [&](Value i) { panel(i, tile, {}); });
    if (rest)
      l.when(l.less(l.index(whole), end), [&] { panel(l.index(whole), narrow, counts); });
    return;
  }
  l.loop(begin, end, 1, [&](Value i) {
    Value n0 = l.mul(i, nr());
    l.when(
        l.less(n, l.add(n0, nr())),
        [&] {
          LoopBuilder::Values counts;
          for (int64_t j = 0; j < tile.vectors; ++j)
            counts.push_back(l.max(l.index(0), l.min(l.sub(n, l.add(n0, j * tile.lanes)), l.index(tile.lanes))));
          panel(i, tile, counts);
        },
        [&] { panel(i, tile, {}); });
  });
}

void ByteProductEmitter::emit() {
  groups = windows ? windows->group : 1;
  mergeAxes();
  chooseBlocks();
  placeScratch();
  m = context.value(p.m);
  n = context.value(p.n);
  k = context.value(p.k);
  aBuffer = context.operand(p.a.argument.getArgNumber());
  bBuffer = context.operand(p.b.argument.getArgNumber());
  Type i32 = l.b.getI32Type();
  leftZero = context.elements.integer(int64_t(p.leftZeroPointNumber), i32, 0);
  if (p.leftZeroPoint) {
    Value loaded = context.elements.load(context.operand(p.leftZeroPoint->argument.getArgNumber()),
                                         context.value(p.leftZeroPoint->offset), p.leftZeroPoint->elementType, 0);
    leftZero = context.elements.cast(loaded, p.leftZeroPoint->elementType, i32);
  }
  panels = l.ceilDiv(n, nr());
  chunks = l.ceilDiv(panels, chunkPanels);
  blocks = l.ceilDiv(m, blockRows);
  DimExpr batches(groups);
  for (const DimExpr &dim : p.batch)
    batches = batches * dim;
  DimExpr work = batches * p.m * p.n * p.k;
  bool isSerial = work.isConstant() && work.constant() < fewestProducts;
  context.func.setParallel(!isSerial);
  Value total = l.mul(l.mul(context.value(batches), blocks), chunks);
  Range range = isSerial ? Range{l.index(0), total} : workerRange(l.b, l.loc, context.func, total);
  if (!isSerial && !work.isConstant()) {
    Value few = l.less(context.value(work), l.index(fewestProducts));
    Value isFirst = l.equal(context.func.worker(), l.index(0));
    range.begin = l.select(few, l.index(0), range.begin);
    range.end = l.select(few, l.select(isFirst, total, l.index(0)), range.end);
  }
  l.loop(range.begin, range.end, 1, [&](Value number) { unit(number); });
}

void emitByteProduct(KernelContext &context, MatrixProduct product, const ConvolutionShape *windows,
                     Epilogue epilogue) {
  ByteProductEmitter(context, std::move(product), windows, std::move(epilogue)).emit();
}

// --- convolutions ----------------------------------------------------------------------------------------------------

LogicalResult emitIntegerConvolution(FusedOp fused, Operation *op, kernel::FuncOp func, const TargetDescription &target,
                                     std::string &whyNot) {
  auto shape = readConvolution(op, whyNot);
  if (!shape)
    return failure();
  auto packed = packingOf(fused, shape->weight);
  if (!isByte(shape->input.elementType)) {
    whyNot = "an integer convolution of " + elementTypeText(shape->input.elementType);
    return failure();
  }
  auto epilogue = Epilogue::analyse(fused, op->getResult(0), whyNot);
  if (!epilogue)
    return failure();
  // Strides of the left side count where windows are single pixels.
  MatrixProduct p = pixelProduct(*shape);
  p.packed = packed;
  p.k = DimExpr(shape->depth());
  p.bk = isConstantDim(p.k, shape->groupInputs) ? DimExpr(1) : DimExpr(0); // of windows: rowOffset()
  p.bn = p.k;
  if (!readZeroPoint(operandOf(op, 2), DimExpr(1), p.leftZeroPoint, p.leftZeroPointNumber) ||
      !readZeroPoint(operandOf(op, 3), DimExpr(shape->group * shape->groupOutputs), p.zeroPoint, p.zeroPointNumber)) {
    whyNot = "zero points that are neither one number nor one an output channel";
    return failure();
  }
  OpBuilder builder(func.getContext());
  builder.setInsertionPointToEnd(&func.getBody().front());
  KernelContext context(fused, func, target, builder);
  if (packed && isExactDepthwise(*shape)) {
    DimExpr work = contractionFlops(fused).floorDiv(DimExpr(2));
    func.setParallel(!(work.isConstant() && work.constant() < fewestProducts));
    ByteZeros zeros{p.leftZeroPoint, p.zeroPoint, p.leftZeroPointNumber, p.zeroPointNumber};
    emitDepthwise(context, *shape, *epilogue, &zeros);
  } else {
    emitByteProduct(context, std::move(p), isPixelwise(*shape) ? nullptr : &*shape, std::move(*epilogue));
  }
  builder.create<kernel::ReturnOp>(fused.getLoc());
  return success();
}

} // namespace firn

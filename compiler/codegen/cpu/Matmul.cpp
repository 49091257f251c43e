#include "compiler/codegen/cpu/Matmul.h"

#include "compiler/codegen/cpu/ByteProduct.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace firn {

namespace {

/// From here on a copy of a panel of b pays.
constexpr int64_t fewRows = 6;

/// How vectors of b come into registers.
enum class RightLayout { Packed, Rows, Scratch, Lanes };

class ProductEmitter {
public:
  ProductEmitter(KernelContext &kernelContext, MatrixProduct matrixProduct, Epilogue productEpilogue)
      : context(kernelContext), l(kernelContext.l), p(std::move(matrixProduct)), epilogue(std::move(productEpilogue)) {}

  void emit();

private:
  void mergeAxes();
  void chooseBlocks();
  void unit(Value number);
  void dotUnit(Value number);
  LoopBuilder::Values batchPosition(Value batch);
  void panel(Value m0, Value m1, Value n0, Tile shape, const LoopBuilder::Values &counts);
  void tileRows(Value row, Tile shape, Value n0, const LoopBuilder::Values &counts);
  LoopBuilder::Values sums(Value row, Tile shape, Value n0, const LoopBuilder::Values &counts, Value k0, Value depth,
                           LoopBuilder::Values accumulators);
  void rowTiles(Value m0, Value m1, Tile shape, llvm::function_ref<void(Value, Tile)> body);
  void deepPanel(Value m0, Value m1, Value n0, Tile shape, const LoopBuilder::Values &counts);
  LoopBuilder::Values parameters(const View &view, Tile shape, Value n0, const LoopBuilder::Values &counts,
                                 Value block = {});
  void forBlocks(Value k0, Value depth, llvm::function_ref<void(Value, Value, Value)> body);
  LoopBuilder::Values blockSums(Value row, Tile shape, Value n0, const LoopBuilder::Values &counts, Value k0,
                                Value depth, LoopBuilder::Values accumulators);
  void fillScratch(Value n0, Tile shape, const LoopBuilder::Values &counts, Value k0, Value depth);
  void fillTransposed(Value start, Tile shape, Value width, Value depth);
  void tilesOf(Value m0, Value m1, Value n0, Tile shape, const LoopBuilder::Values &counts);
  void chooseDotTile();
  void runUnits(bool isDotLoop);
  unsigned axisM() const { return p.batch.size(); }
  unsigned axisN() const { return p.batch.size() + 1; }
  unsigned bytes() const { return type.getIntOrFloatBitWidth() / 8; }
  bool isUnit(const DimExpr &stride) const { return isConstantDim(stride, 1); }
  /// Whether rows of both sides lie along k, and few results share them: sums of products of vectors.
  bool canDot() const { return !p.packed && !p.isDequantized && isUnit(p.ak) && isUnit(p.bk); }
  bool isDot() const;

  KernelContext &context;
  LoopBuilder &l;
  MatrixProduct p;
  Epilogue epilogue;
  Type type; // of accumulators
  Tile tile;
  RightLayout layout = RightLayout::Rows;
  int64_t blockRows = 0;  // rows of one unit of work
  int64_t blockDepth = 0; // steps along k that one pass takes, 0: all
  bool isColumnOuter = true;
  bool mayBeFlat = false; // rows are dynamic: few of them do not pay for a copy of b
  Value m, n, k, panels, blocks, aBuffer, bBuffer;
  Value aStart, bStart; // of the unit's batch
  LoopBuilder::Values batchIndex;
  Value scratchTile; // for heavy epilogues
  LoopBuilder::Values zeroPoints;
};

} // namespace

void ProductEmitter::mergeAxes() {
  // Batches that lie one behind the other, of one b, are more rows; batches next to each other are one axis.
  auto drop = [&](unsigned axis) {
    p.batch.erase(p.batch.begin() + axis);
    p.aBatch.erase(p.aBatch.begin() + axis);
    p.bBatch.erase(p.bBatch.begin() + axis);
  };
  while (!p.batch.empty()) {
    unsigned last = p.batch.size() - 1;
    bool fits = isConstantDim(p.bBatch[last], 0) && p.aBatch[last] == p.am * p.m && epilogue.canMerge(last);
    // An a without batch would repeat its rows, a batch of one adds none.
    if (!fits && !isConstantDim(p.batch[last], 1) && !(isConstantDim(p.m, 1) && isConstantDim(p.bBatch[last], 0)))
      break;
    if (isConstantDim(p.batch[last], 1)) {
      if (!epilogue.canMerge(last))
        break;
    } else if (isConstantDim(p.m, 1) && !fits) {
      // One row per batch: the batch's stride is the rows'.
      if (!epilogue.canMerge(last))
        break;
      p.am = p.aBatch[last];
    }
    p.m = p.m * p.batch[last];
    epilogue.merge(last);
    drop(last);
  }
  for (unsigned i = p.batch.size(); i-- > 1;) {
    bool fits = p.aBatch[i - 1] == p.aBatch[i] * p.batch[i] && p.bBatch[i - 1] == p.bBatch[i] * p.batch[i];
    if (!fits || !epilogue.canMerge(i - 1))
      continue;
    epilogue.merge(i - 1);
    p.batch[i - 1] = p.batch[i - 1] * p.batch[i];
    p.aBatch[i - 1] = p.aBatch[i];
    p.bBatch[i - 1] = p.bBatch[i];
    drop(i);
  }
}

bool ProductEmitter::isDot() const {
  auto few = [](const DimExpr &dim) { return dim.isConstant() && dim.constant() <= 2; };
  return canDot() && (few(p.m) || few(p.n));
}

void ProductEmitter::chooseBlocks() {
  auto rows = p.m.asConstant(), columns = p.n.asConstant(), depth = p.k.asConstant();
  if (p.packed) {
    // Panels of other elements are converted once for many rows.
    bool isConverted = p.b.elementType != type && !(rows && *rows < 3 * fewRows);
    layout = isConverted ? RightLayout::Scratch : RightLayout::Packed;
    mayBeFlat = isConverted && !rows;
    tile = chooseRows(context.target, tileShape(p, type), p.packed->nr);
  } else {
    tile = chooseTile(context.target, tileShape(p, type));
    // A copy of the panel in order costs little where many rows share it, and spares the caches long strides.
    bool isCompact = isUnit(p.bn) && p.bk == p.n && depth && columns &&
                     *depth * *columns * int64_t(bytes()) <= 2 * context.target.l1Bytes;
    layout = isUnit(p.bn) ? RightLayout::Rows : RightLayout::Lanes;
    if (!isCompact && !(rows && *rows < fewRows)) {
      layout = RightLayout::Scratch;
      mayBeFlat = !rows;
    }
  }
  // A block of rows of a stays in the second level while panels of b pass, or a panel while blocks do.
  int64_t rowBytes = depth.value_or(512) * bytes();
  int64_t rightBytes = columns.value_or(1024) * rowBytes;
  isColumnOuter = rightBytes > context.target.l2Bytes / 2 || layout == RightLayout::Scratch;
  int64_t most = std::max<int64_t>(tile.rows, context.target.l2Bytes / 4 / std::max<int64_t>(rowBytes, 1));
  int64_t tilesPerBlock = std::clamp<int64_t>(most / tile.rows, 1, 16);
  if (layout == RightLayout::Scratch)
    tilesPerBlock = 32; // a panel is copied once per block
  if (rows) {
    // Enough units that workers end at about the same time.
    int64_t batches = 1;
    for (const DimExpr &dim : p.batch)
      batches *= dim.asConstant().value_or(8);
    int64_t panelCount = columns ? (*columns + tile.columns() - 1) / tile.columns() : 4;
    int64_t tiles = std::max<int64_t>(1, (*rows + tile.rows - 1) / tile.rows);
    int64_t wanted = std::max<int64_t>(1, 12 / std::max<int64_t>(1, batches * panelCount));
    tilesPerBlock = std::max<int64_t>(1, std::min(tilesPerBlock, tiles / wanted));
  }
  blockRows = tilesPerBlock * tile.rows;
  // A panel that is too long for the second level passes in pieces over a block of rows, whose sums wait in scratch.
  int64_t panelBytes = depth.value_or(0) * tile.columns() * bytes();
  int64_t most2 = context.target.l2Bytes / 3;
  if (layout == RightLayout::Packed && panelBytes > most2 && !(rows && *rows <= tile.rows)) {
    int64_t pieces = (panelBytes + most2 / 2 - 1) / (most2 / 2);
    blockDepth = (*depth + pieces - 1) / pieces;
  }
  if (layout == RightLayout::Scratch && (!depth || panelBytes > most2)) {
    blockDepth = most2 / 2 / (tile.columns() * bytes()) / 16 * 16;
    if (depth)
      blockDepth = std::min(blockDepth, *depth);
  }
}

LoopBuilder::Values ProductEmitter::batchPosition(Value batch) {
  LoopBuilder::Values position(p.batch.size());
  for (unsigned i = p.batch.size(); i-- > 0;) {
    if (i == 0) {
      position[0] = batch;
      break;
    }
    Value size = context.value(p.batch[i]);
    position[i] = l.rem(batch, size);
    batch = l.div(batch, size);
  }
  return position;
}

/// The panel from columns that lie along k.
void ProductEmitter::fillTransposed(Value start, Tile shape, Value width, Value depth) {
  Value scratch = context.func.scratch(), bn = context.value(p.bn);
  int64_t lanes = shape.lanes;
  // Columns that do not exist repeat the last one.
  auto column = [&](Value first, int64_t i) {
    return l.add(start, l.mul(l.min(l.add(first, i), l.sub(width, l.index(1))), bn));
  };
  Value whole = l.mul(l.div(depth, lanes), lanes);
  l.loop(l.index(0), l.index(shape.columns()), lanes, [&](Value first) {
    SmallVector<Value> from;
    for (int64_t i = 0; i < lanes; ++i)
      from.push_back(column(first, i));
    l.loop(l.index(0), whole, lanes, [&](Value row) {
      SmallVector<Value> rows;
      for (int64_t i = 0; i < lanes; ++i) {
        Value loaded = context.elements.load(bBuffer, l.add(from[i], row), p.b.elementType, lanes);
        rows.push_back(getElementTypeOrSelf(loaded.getType()) == type
                           ? loaded
                           : context.elements.cast(loaded, p.b.elementType, type));
      }
      transposeSquare(l, rows);
      for (int64_t i = 0; i < lanes; ++i)
        l.store(rows[i], scratch, l.add(l.mul(l.add(row, i), shape.columns()), first));
    });
    l.loop(whole, depth, 1, [&](Value row) {
      for (int64_t i = 0; i < lanes; ++i) {
        Value element = context.elements.load(bBuffer, l.add(from[i], row), p.b.elementType, 0);
        if (element.getType() != type)
          element = context.elements.cast(element, p.b.elementType, type);
        l.store(element, scratch, l.add(l.add(l.mul(row, shape.columns()), first), i));
      }
    });
  });
}

/// Scales or zero points of a panel's columns in registers, of one block along k where they are in blocks.
LoopBuilder::Values ProductEmitter::parameters(const View &view, Tile shape, Value n0,
                                               const LoopBuilder::Values &counts, Value block) {
  LoopBuilder::Values vectors;
  bool isOne = isConstantDim(view.strides.back(), 0);
  for (int64_t j = 0; j < shape.vectors; ++j) {
    LoopBuilder::Values position{l.add(n0, j * shape.lanes)};
    if (block)
      position.insert(position.begin(), block);
    Value at = context.offset(position, view.strides, view.offset);
    Value loaded = context.elements.load(context.operand(view.argument.getArgNumber()), at, view.elementType,
                                         isOne ? 0 : shape.lanes, isOne || counts.empty() ? Value() : counts[j]);
    if (getElementTypeOrSelf(loaded.getType()) != type)
      loaded = context.elements.cast(loaded, view.elementType, type);
    vectors.push_back(isOne ? context.elements.splat(loaded, shape.lanes) : loaded);
  }
  return vectors;
}

/// body(block, begin, end) for the steps [k0, k0 + depth) of each block along k.
void ProductEmitter::forBlocks(Value k0, Value depth, llvm::function_ref<void(Value, Value, Value)> body) {
  Value last = l.add(k0, depth);
  l.loop(l.div(k0, p.blockSize), l.ceilDiv(last, p.blockSize), 1, [&](Value block) {
    Value first = l.mul(block, p.blockSize);
    body(block, l.max(k0, first), l.min(last, l.add(first, p.blockSize)));
  });
}

/// Copies steps [k0, k0 + depth) of a panel of b to scratch, as [depth][columns].
void ProductEmitter::fillScratch(Value n0, Tile shape, const LoopBuilder::Values &counts, Value k0, Value depth) {
  Value scratch = context.func.scratch(), bk = context.value(p.bk), bn = context.value(p.bn);
  Value start = l.add(l.add(bStart, l.mul(n0, bn)), l.mul(k0, bk));
  bool hasAll = counts.empty() || !counts.back();
  Value width = hasAll ? l.index(shape.columns()) : l.min(l.sub(n, n0), l.index(shape.columns()));
  if (p.packed) {
    Value from = l.add(l.add(bStart, l.mul(n0, p.packed->paddedK())), l.mul(k0, p.packed->nr));
    auto convertRow = [&](Value row, const LoopBuilder::Values &zeros, const LoopBuilder::Values &scales) {
      for (int64_t j = 0; j < shape.vectors; ++j) {
        Value at = l.add(l.add(from, l.mul(row, p.packed->nr)), j * shape.lanes);
        Value loaded = context.elements.load(bBuffer, at, p.b.elementType, shape.lanes);
        if (getElementTypeOrSelf(loaded.getType()) != type)
          loaded = context.elements.cast(loaded, p.b.elementType, type);
        if (!zeros.empty())
          loaded = context.elements.sub(loaded, zeros[j]);
        if (!scales.empty())
          loaded = context.elements.mul(loaded, scales[j]);
        l.store(loaded, scratch, l.add(l.mul(row, shape.columns()), j * shape.lanes));
      }
    };
    if (!p.blockSize || !p.scale) {
      l.loop(l.index(0), depth, 1, [&](Value row) { convertRow(row, zeroPoints, {}); });
      return;
    }
    forBlocks(k0, depth, [&](Value block, Value begin, Value end) {
      LoopBuilder::Values scales = parameters(*p.scale, shape, n0, counts, block), zeros = zeroPoints;
      if (p.zeroPoint)
        zeros = parameters(*p.zeroPoint, shape, n0, counts, block);
      l.loop(l.sub(begin, k0), l.sub(end, k0), 1, [&](Value row) { convertRow(row, zeros, scales); });
    });
    return;
  }
  if (isUnit(p.bn)) {
    l.loop(l.index(0), depth, 1, [&](Value row) {
      for (int64_t j = 0; j < shape.vectors; ++j) {
        Value loaded = context.elements.load(bBuffer, l.add(l.add(start, l.mul(row, bk)), j * shape.lanes),
                                             p.b.elementType, shape.lanes, hasAll ? Value() : counts[j]);
        if (getElementTypeOrSelf(loaded.getType()) != type)
          loaded = context.elements.cast(loaded, p.b.elementType, type);
        l.store(loaded, scratch, l.add(l.mul(row, shape.columns()), j * shape.lanes));
      }
    });
    return;
  }
  if (isUnit(p.bk))
    return fillTransposed(start, shape, width, depth);
  l.loop(l.index(0), l.index(shape.columns()), 1, [&](Value column) {
    Value from = l.add(start, l.mul(l.min(column, l.sub(width, l.index(1))), bn));
    l.loop(l.index(0), depth, 1, [&](Value row) {
      Value element = context.elements.load(bBuffer, l.add(from, l.mul(row, bk)), p.b.elementType, 0);
      if (element.getType() != type)
        element = context.elements.cast(element, p.b.elementType, type);
      l.store(element, scratch, l.add(l.mul(row, shape.columns()), column));
    });
  });
}

/// The same of packed columns whose scales are in blocks: each block's sums are scaled before they are added.
LoopBuilder::Values ProductEmitter::blockSums(Value row, Tile shape, Value n0, const LoopBuilder::Values &counts,
                                              Value k0, Value depth, LoopBuilder::Values accumulators) {
  Value last = l.add(k0, depth);
  Value firstBlock = l.div(k0, p.blockSize), endBlock = l.ceilDiv(last, p.blockSize);
  return l.loop(firstBlock, endBlock, 1, accumulators, [&](Value block, LoopBuilder::Values acc) {
    Value first = l.mul(block, p.blockSize);
    Value begin = l.max(k0, first), end = l.min(last, l.add(first, p.blockSize));
    LeftSide left{aBuffer, {}, context.value(p.ak), p.a.elementType};
    for (int64_t r = 0; r < shape.rows; ++r)
      left.rows.push_back(l.add(l.add(aStart, l.mul(begin, left.step)), l.mul(l.add(row, r), context.value(p.am))));
    RightSide right{bBuffer, {}, l.index(p.packed->nr), p.b.elementType};
    right.start = l.add(l.add(bStart, l.mul(n0, p.packed->paddedK())), l.mul(begin, right.step));
    right.zeroPoints = p.zeroPoint ? parameters(*p.zeroPoint, shape, n0, counts, block) : zeroPoints;
    LoopBuilder::Values scales = parameters(*p.scale, shape, n0, counts, block);
    LoopBuilder::Values products =
        multiplyTile(context, shape, type, left, right, l.sub(end, begin), zeroTile(context, shape, type));
    for (auto [i, product] : llvm::enumerate(products))
      acc[i] = context.multiplyAdd(product, scales[i % shape.vectors], acc[i]);
    return acc;
  });
}

/// Adds the products of steps [k0, k0 + depth) to the accumulators of a tile.
LoopBuilder::Values ProductEmitter::sums(Value row, Tile shape, Value n0, const LoopBuilder::Values &counts, Value k0,
                                         Value depth, LoopBuilder::Values accumulators) {
  if (p.blockSize && p.scale && layout == RightLayout::Packed)
    return blockSums(row, shape, n0, counts, k0, depth, std::move(accumulators));
  LeftSide left{aBuffer, {}, context.value(p.ak), p.a.elementType};
  Value am = context.value(p.am), start = l.add(aStart, l.mul(k0, left.step));
  for (int64_t r = 0; r < shape.rows; ++r)
    left.rows.push_back(l.add(start, l.mul(l.add(row, r), am)));
  RightSide right{bBuffer, bStart, {}, p.b.elementType};
  switch (layout) {
  case RightLayout::Packed:
    // Panel n0 / nr begins at its first column times k.
    right.start = l.add(bStart, l.mul(n0, p.packed->paddedK()));
    right.step = l.index(p.packed->nr);
    break;
  case RightLayout::Rows:
    right.start = l.add(bStart, n0);
    right.step = context.value(p.bk);
    right.counts = counts;
    break;
  case RightLayout::Scratch:
    right = {context.func.scratch(), l.index(0), l.index(shape.columns()), type};
    break;
  case RightLayout::Lanes:
    right.start = l.add(bStart, l.mul(n0, context.value(p.bn)));
    right.step = context.value(p.bk);
    right.counts = counts;
    right.laneStep = context.value(p.bn);
    break;
  }
  if (layout != RightLayout::Scratch) // which holds these steps alone
    right.start = l.add(right.start, l.mul(k0, right.step));
  if (layout != RightLayout::Scratch || !p.packed) // which subtracted them already
    right.zeroPoints = zeroPoints;
  return multiplyTile(context, shape, type, left, right, depth, std::move(accumulators));
}

void ProductEmitter::tileRows(Value row, Tile shape, Value n0, const LoopBuilder::Values &counts) {
  LoopBuilder::Values results = sums(row, shape, n0, counts, l.index(0), k, zeroTile(context, shape, type));
  auto positionOf = [&](Value r) {
    LoopBuilder::Values position = batchIndex;
    position.push_back(l.add(row, r));
    position.push_back(n0);
    return position;
  };
  finishTile(context, epilogue, shape, results, positionOf, axisN(), {axisM()}, counts, scratchTile);
}

/// All tiles of rows [m0, m1): whole ones, then the rest.
void ProductEmitter::rowTiles(Value m0, Value m1, Tile shape, llvm::function_ref<void(Value, Tile)> body) {
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

void ProductEmitter::deepPanel(Value m0, Value m1, Value n0, Tile shape, const LoopBuilder::Values &counts) {
  VectorType vector = VectorType::get({shape.lanes}, type);
  auto at = [&](Value row, int64_t r, int64_t j) {
    return l.add(l.mul(l.add(l.sub(row, m0), r), tile.columns()), j * shape.lanes);
  };
  // A product of depth 0 has one piece as well, of zeros.
  Value pieces = l.max(l.index(1), l.ceilDiv(k, blockDepth));
  l.loopAlways(l.index(0), pieces, 1, [&](Value piece) {
    Value k0 = l.mul(piece, blockDepth), depth = l.min(l.sub(k, k0), l.index(blockDepth));
    Value isFirst = l.equal(piece, l.index(0));
    if (layout == RightLayout::Scratch)
      fillScratch(n0, shape, counts, k0, depth);
    rowTiles(m0, m1, shape, [&](Value row, Tile part) {
      // The first piece starts from zero, whatever scratch holds (a NaN there times 0 would stay).
      LoopBuilder::Values accumulators;
      for (int64_t r = 0; r < part.rows; ++r)
        for (int64_t j = 0; j < part.vectors; ++j)
          accumulators.push_back(l.select(isFirst, l.zero(vector), l.load(vector, scratchTile, at(row, r, j))));
      accumulators = sums(row, part, n0, counts, k0, depth, accumulators);
      for (int64_t r = 0; r < part.rows; ++r)
        for (int64_t j = 0; j < part.vectors; ++j)
          l.store(accumulators[r * part.vectors + j], scratchTile, at(row, r, j));
    });
  });
  LoopBuilder::Values position = batchIndex;
  position.append({m0, n0});
  epilogue.forget();
  for (int64_t j = 0; j < shape.vectors; ++j) {
    LoopBuilder::Values column = position;
    column.back() = l.add(n0, j * shape.lanes);
    epilogue.preload(context, column, axisN(), shape.lanes, counts.empty() ? Value() : counts[j], {axisM()}, j);
  }
  l.loop(m0, m1, 1, [&](Value row) {
    for (int64_t j = 0; j < shape.vectors; ++j) {
      LoopBuilder::Values column = batchIndex;
      column.append({row, l.add(n0, j * shape.lanes)});
      epilogue.store(context, l.load(vector, scratchTile, at(row, 0, j)), column, axisN(), shape.lanes,
                     counts.empty() ? Value() : counts[j], j);
    }
  });
  epilogue.forget();
}

void ProductEmitter::panel(Value m0, Value m1, Value n0, Tile shape, const LoopBuilder::Values &counts) {
  zeroPoints.clear();
  if (p.zeroPoint && !p.blockSize)
    zeroPoints = parameters(*p.zeroPoint, shape, n0, counts);
  if (!p.zeroPoint && p.zeroPointNumber != 0)
    zeroPoints.assign(shape.vectors, context.elements.constant(p.zeroPointNumber, type, shape.lanes));
  if (!mayBeFlat)
    return tilesOf(m0, m1, n0, shape, counts);
  l.when(
      l.less(m, l.index(fewRows)),
      [&] {
        RightLayout usual = std::exchange(layout, p.packed       ? RightLayout::Packed
                                                  : isUnit(p.bn) ? RightLayout::Rows
                                                                 : RightLayout::Lanes);
        int64_t usualDepth = std::exchange(blockDepth, 0);
        tilesOf(m0, m1, n0, shape, counts);
        layout = usual;
        blockDepth = usualDepth;
      },
      [&] { tilesOf(m0, m1, n0, shape, counts); });
}

void ProductEmitter::tilesOf(Value m0, Value m1, Value n0, Tile shape, const LoopBuilder::Values &counts) {
  if (blockDepth)
    return deepPanel(m0, m1, n0, shape, counts);
  if (layout == RightLayout::Scratch)
    fillScratch(n0, shape, counts, l.index(0), k);
  rowTiles(m0, m1, shape, [&](Value row, Tile part) { tileRows(row, part, n0, counts); });
}

void ProductEmitter::unit(Value number) {
  Value first, second;
  Value inner = isColumnOuter ? blocks : panels, outer = isColumnOuter ? panels : blocks;
  second = l.rem(number, inner);
  Value rest = l.div(number, inner);
  first = p.batch.empty() ? rest : l.rem(rest, outer);
  batchIndex = batchPosition(p.batch.empty() ? l.index(0) : l.div(rest, outer));
  Value panelNumber = isColumnOuter ? first : second, block = isColumnOuter ? second : first;
  aStart = context.offset(batchIndex, p.aBatch, p.a.offset);
  bStart = context.offset(batchIndex, p.bBatch, p.packed ? DimExpr(0) : p.b.offset);
  Value m0 = l.mul(block, blockRows), m1 = l.min(l.add(m0, blockRows), m);
  Value n0 = l.mul(panelNumber, tile.columns());
  Tile shape = tile;
  if (auto columns = p.n.asConstant()) {
    int64_t whole = *columns / tile.columns(), rest2 = *columns % tile.columns();
    auto last = [&] {
      Tile narrow = tile;
      narrow.vectors = (rest2 + tile.lanes - 1) / tile.lanes;
      LoopBuilder::Values counts(narrow.vectors);
      if (rest2 % tile.lanes)
        counts.back() = l.index(rest2 % tile.lanes);
      panel(m0, m1, n0, narrow, counts);
    };
    if (rest2 == 0)
      return panel(m0, m1, n0, shape, {});
    if (whole == 0)
      return last();
    return l.when(l.less(panelNumber, l.index(whole)), [&] { panel(m0, m1, n0, shape, {}); }, last);
  }
  l.when(
      l.less(n, l.add(n0, tile.columns())),
      [&] {
        LoopBuilder::Values counts;
        for (int64_t j = 0; j < shape.vectors; ++j)
          counts.push_back(l.max(l.index(0), l.min(l.sub(n, l.add(n0, j * shape.lanes)), l.index(shape.lanes))));
        panel(m0, m1, n0, shape, counts);
      },
      [&] { panel(m0, m1, n0, shape, {}); });
}

/// `tile.rows` x `tile.vectors` results, each a sum of vectors along k.
void ProductEmitter::dotUnit(Value number) {
  Value perRow = panels;
  Value column = l.mul(l.rem(number, perRow), tile.vectors);
  Value rest = l.div(number, perRow);
  Value row = l.mul(p.batch.empty() ? rest : l.rem(rest, blocks), tile.rows);
  batchIndex = batchPosition(p.batch.empty() ? l.index(0) : l.div(rest, blocks));
  aStart = context.offset(batchIndex, p.aBatch, p.a.offset);
  bStart = context.offset(batchIndex, p.bBatch, p.b.offset);
  int64_t lanes = tile.lanes;
  VectorType vector = VectorType::get({lanes}, type);
  Value am = context.value(p.am), bn = context.value(p.bn);
  // Rows and columns beyond the end repeat the last one and are not stored.
  auto start = [&](Value base, Value first, int64_t i, Value size, Value stride) {
    return l.add(base, l.mul(l.min(l.add(first, i), l.sub(size, l.index(1))), stride));
  };
  SmallVector<Value> rowsAt, columnsAt;
  for (int64_t r = 0; r < tile.rows; ++r)
    rowsAt.push_back(start(aStart, row, r, m, am));
  for (int64_t c = 0; c < tile.vectors; ++c)
    columnsAt.push_back(start(bStart, column, c, n, bn));
  auto step = [&](Value at, LoopBuilder::Values acc, Value count) {
    auto load = [&](Value buffer, Value from, Type elementType) {
      Value loaded = context.elements.load(buffer, l.add(from, at), elementType, lanes, count);
      return getElementTypeOrSelf(loaded.getType()) == type ? loaded : context.elements.cast(loaded, elementType, type);
    };
    SmallVector<Value> lefts;
    for (Value from : rowsAt)
      lefts.push_back(load(aBuffer, from, p.a.elementType));
    for (auto [c, from] : llvm::enumerate(columnsAt)) {
      Value right = load(bBuffer, from, p.b.elementType);
      for (int64_t r = 0; r < tile.rows; ++r)
        acc[r * tile.vectors + c] = context.multiplyAdd(lefts[r], right, acc[r * tile.vectors + c]);
    }
    return acc;
  };
  LoopBuilder::Values sums(tile.rows * tile.vectors, l.zero(vector));
  Value whole = l.mul(l.div(k, lanes), lanes);
  sums = l.loop(l.index(0), whole, lanes, sums, [&](Value at, LoopBuilder::Values acc) { return step(at, acc, {}); });
  sums = l.loop(whole, k, lanes, sums, [&](Value at, LoopBuilder::Values acc) { return step(at, acc, l.sub(k, at)); });
  epilogue.forget();
  for (int64_t r = 0; r < tile.rows; ++r)
    for (int64_t c = 0; c < tile.vectors; ++c) {
      Value sum = l.b.create<vector::ReductionOp>(l.loc, vector::CombiningKind::ADD, sums[r * tile.vectors + c],
                                                  arith::FastMathFlags::reassoc);
      Value i = l.add(row, r), j = l.add(column, c);
      l.when(l.both(l.less(i, m), l.less(j, n)), [&] {
        LoopBuilder::Values position = batchIndex;
        position.append({i, j});
        epilogue.store(context, sum, position, axisN(), 0, {}, 0);
      });
    }
}

void ProductEmitter::chooseDotTile() {
  bool isRow = !p.m.isConstant() || p.m.constant() <= 2;
  int64_t two = p.m.isConstant() && p.m.constant() >= 2 ? 2 : 1;
  tile = isRow ? Tile{two, 4, 0} : Tile{4, std::min<int64_t>(2, p.n.constant()), 0};
  tile.lanes = context.target.lanes(bytes());
  if (auto depth = p.k.asConstant()) // not wider than k
    while (tile.lanes > 4 && tile.lanes / 2 >= *depth)
      tile.lanes /= 2;
  blocks = l.ceilDiv(m, tile.rows);
  panels = l.ceilDiv(n, tile.vectors);
}

/// All units of work of this worker.
void ProductEmitter::runUnits(bool isDotLoop) {
  DimExpr batches(1);
  for (const DimExpr &dim : p.batch)
    batches = batches * dim;
  Value total = l.mul(l.mul(context.value(batches), blocks), panels);
  Range range = productRange(context, total, batches * p.m * p.n * p.k);
  l.loop(range.begin, range.end, 1, [&](Value number) { isDotLoop ? dotUnit(number) : unit(number); });
}

void ProductEmitter::emit() {
  type = accumulatorType(p);
  mergeAxes();
  m = context.value(p.m);
  n = context.value(p.n);
  k = context.value(p.k);
  aBuffer = context.operand(p.a.argument.getArgNumber());
  bBuffer = context.operand(p.b.argument.getArgNumber());
  DimExpr work = p.m * p.n * p.k;
  for (const DimExpr &dim : p.batch)
    work = work * dim;
  bool isSerial = work.isConstant() && !worthProducts(work.constant());
  context.func.setParallel(!isSerial);
  if (isDot()) {
    chooseDotTile();
    return runUnits(true);
  }
  auto tiles = [&] {
    chooseBlocks();
    blocks = l.ceilDiv(m, blockRows);
    panels = l.ceilDiv(n, tile.columns());
    int64_t scratch = 0;
    if (layout == RightLayout::Scratch)
      scratch = ((blockDepth ? blockDepth : p.k.constant()) * tile.columns() * bytes() + 63) / 64 * 64;
    scratchTile = l.at(context.func.scratch(), l.index(scratch));
    // A flat product has no blocks along k, so it may need room for a tile.
    int64_t sums = blockDepth ? blockRows * tile.columns() * bytes() : 0;
    context.func.setScratchBytes(scratch + std::max(sums, tileScratchBytes(epilogue, tile, bytes())));
    runUnits(false);
  };
  if (!canDot() || p.m.isConstant())
    return tiles();
  l.when(
      l.less(m, l.index(3)),
      [&] {
        chooseDotTile();
        runUnits(true);
      },
      tiles);
}

void emitProductLoops(KernelContext &context, MatrixProduct product, Epilogue epilogue) {
  ProductEmitter(context, std::move(product), std::move(epilogue)).emit();
}

LogicalResult emitProduct(FusedOp fused, Operation *op, kernel::FuncOp func, const TargetDescription &target,
                          std::string &whyNot) {
  auto product = readProduct(op, whyNot);
  if (!product)
    return failure();
  product->packed = packingOf(fused, product->b.argument.getArgNumber());
  bool isFloat = isFloatElement(product->elementType()) &&
                 (product->isDequantized || product->b.elementType == product->elementType());
  if (product->blockSize && (!product->packed || (!product->scale && product->zeroPoint))) {
    whyNot = "weights quantised in blocks that are no packed constant, or zero points in blocks behind one scale";
    return failure();
  }
  bool isBytes = isByte(product->elementType()) && isByte(product->b.elementType);
  if (!isFloat && !isBytes) {
    whyNot = "a product of " + elementTypeText(product->elementType());
    return failure();
  }
  auto epilogue = Epilogue::analyse(fused, op->getResult(0), whyNot);
  if (!epilogue)
    return failure();
  if (auto gemm = dyn_cast<GemmOp>(op)) {
    epilogue->scaleRoot(gemm.getAlpha().convertToFloat());
    Value c = gemm.getC();
    if (auto number = c && !isAbsent(c) ? singleValue(c) : std::nullopt) {
      epilogue->addToRoot(*number * gemm.getBeta().convertToFloat());
    } else if (c && !isAbsent(c)) {
      auto view = viewOf(c);
      if (!view || !epilogue->addTerm(*view, gemm.getBeta().convertToFloat())) {
        whyNot = "a summand that is no view of an input";
        return failure();
      }
    }
  }
  if (product->isVectorA)
    epilogue->insertAxis(product->batch.size());
  if (product->isVectorB)
    epilogue->insertAxis(product->batch.size() + 1);
  epilogue->scaleRoot(product->scaleNumber);
  if (product->scale && !product->blockSize) {
    if (!epilogue->multiplyRoot(*product->scale)) {
      whyNot = "scales that do not fit the product's columns";
      return failure();
    }
  }
  if (product->packed) {
    // Batches of b are groups of panels.
    const PackedWeight &w = *product->packed;
    View groups{{}, {}, {}, {}, DimExpr(0)};
    groups.dims.assign(product->b.dims.begin(), product->b.dims.end() - 2);
    groups.strides = denseStrides(groups.dims);
    for (DimExpr &stride : groups.strides)
      stride = stride * DimExpr(w.panels() * w.paddedK() * w.nr);
    auto wide = broadcastView(groups, product->batch);
    if (!wide) {
      whyNot = "batch axes that may not broadcast";
      return failure();
    }
    product->bBatch = wide->strides;
  }
  OpBuilder builder(func.getContext());
  builder.setInsertionPointToEnd(&func.getBody().front());
  KernelContext context(fused, func, target, builder);
  if (isBytes)
    emitByteProduct(context, std::move(*product), nullptr, std::move(*epilogue));
  else
    emitProductLoops(context, std::move(*product), std::move(*epilogue));
  builder.create<kernel::ReturnOp>(fused.getLoc());
  return success();
}

} // namespace firn

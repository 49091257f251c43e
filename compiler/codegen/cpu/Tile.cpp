#include "compiler/codegen/cpu/Tile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include <numeric>

using namespace mlir;

namespace firn {

bool isFloatElement(Type type) { return type.isF32() || type.isF16() || type.isBF16() || type.isF64(); }

Type sumType(Type elementType) {
  return elementType.isF64() ? elementType : Type(Float32Type::get(elementType.getContext()));
}

// Register tiles that LLVM 19 keeps in registers (no spill in the k loop), by registers of the target. Measured on
// AVX-512 and AVX2 machines: 32 registers hold 24 accumulators beside 2-4 vectors of B, 16 hold 12.
static bool fitsRegisters(const TargetDescription &target, int64_t rows, int64_t vectors) {
  int64_t accumulators = rows * vectors;
  if (target.vectorRegisters >= 32)
    return vectors == 1 ? rows <= 16 : accumulators <= 24;
  // Without a broadcast inside of the FMA one more register holds A.
  return accumulators + vectors + 1 <= 16;
}

/// Where a wide FMA is two of half the width, vectors of half the width lose nothing and waste fewer lanes.
static bool mayHalve(const TargetDescription &target) { return target.vectorBytes == 64 && target.fmaUnits == 1; }

int64_t panelLanes(const TargetDescription &target, int64_t columns, unsigned bytes) {
  int64_t lanes = target.lanes(bytes);
  return columns % lanes != 0 && lanes % 2 == 0 && columns % (lanes / 2) == 0 ? lanes / 2 : lanes;
}

/// Cycles of one step along k of a tile, in units of one FMA of the target's full width at its full rate.
static double tileCost(const TargetDescription &target, int64_t rows, int64_t vectors, bool isHalf) {
  double width = isHalf ? 0.5 : 1;
  double arithmetic = width * double(rows * vectors);
  // Two loads a cycle where two FMAs start in one, one where one does: a full vector or a broadcast each.
  double loads = double(rows) * 0.5 + double(vectors) * width;
  // Accumulators wait for themselves: 4 cycles' worth of FMAs must be independent.
  double latency = 2.0 * target.fmaUnits;
  return std::max({arithmetic, loads, latency});
}

/// Rows whose distance is a multiple of 4096 bytes share one set of the first-level cache: few of them fit.
static double conflictFactor(const TileShape &shape, int64_t rows) {
  if (!shape.rowStride || *shape.rowStride <= 0)
    return 1;
  int64_t step = std::gcd(*shape.rowStride, int64_t(4096)), sets = 4096 / std::max<int64_t>(step, 64);
  return (rows + sets - 1) / sets > 5 ? 1.4 : 1;
}

static double shapeCost(const TargetDescription &target, const TileShape &shape, Tile tile) {
  int64_t columns = tile.columns();
  int64_t totalColumns = shape.n.value_or(8 * columns), totalRows = shape.m.value_or(12 * tile.rows);
  bool isHalf = tile.lanes * int64_t(shape.bytes) < int64_t(target.vectorBytes);
  auto panel = [&](int64_t width) {
    double cost = double(totalRows / tile.rows) * tileCost(target, tile.rows, width, isHalf);
    if (int64_t tail = totalRows % tile.rows)
      cost += tileCost(target, tail, width, isHalf);
    return cost;
  };
  double cost = double(totalColumns / columns) * panel(tile.vectors);
  if (int64_t tail = totalColumns % columns)
    cost += panel((tail + tile.lanes - 1) / tile.lanes);
  cost = cost / (double(totalRows) * double(totalColumns)) + 1e-6 / double(tile.rows * tile.vectors);
  // Tails of a dynamic m run on smaller copies of the tile: fewer rows, fewer copies.
  if (!shape.m && tile.rows > 8)
    cost *= 1.1;
  return cost * conflictFactor(shape, tile.rows);
}

static bool isPossible(const TargetDescription &target, const TileShape &shape, int64_t rows, int64_t vectors) {
  return fitsRegisters(target, rows, vectors) && (!shape.m || rows <= std::max<int64_t>(*shape.m, 1));
}

Tile chooseTile(const TargetDescription &target, const TileShape &shape) {
  int64_t full = target.lanes(shape.bytes);
  Tile best{1, 1, full};
  double bestCost = 1e30;
  for (int64_t lanes : {full, full / 2}) {
    if (lanes != full && !mayHalve(target))
      continue;
    int64_t widest = shape.n ? std::clamp<int64_t>((*shape.n + lanes - 1) / lanes, 1, 4) : 4;
    for (int64_t vectors = 1; vectors <= widest; ++vectors) {
      Tile tile = chooseRows(target, shape, vectors * lanes);
      if (tile.lanes != lanes) // panels of that many columns are made of wider vectors
        continue;
      if (double cost = shapeCost(target, shape, tile); cost < bestCost) {
        bestCost = cost;
        best = tile;
      }
    }
  }
  return best;
}

Tile chooseRows(const TargetDescription &target, const TileShape &shape, int64_t columns) {
  int64_t lanes = panelLanes(target, columns, shape.bytes), vectors = std::max<int64_t>(1, columns / lanes);
  Tile best{1, vectors, lanes};
  double bestCost = 1e30;
  for (int64_t rows = 1; rows <= 16; ++rows) {
    Tile tile{rows, vectors, lanes};
    if (rows > 1 && !isPossible(target, shape, rows, vectors))
      continue;
    if (double cost = shapeCost(target, shape, tile); cost < bestCost) {
      bestCost = cost;
      best = tile;
    }
  }
  return best;
}

Value sumEach(LoopBuilder &l, SmallVector<Value> vectors) {
  int64_t lanes = vectors.size();
  for (int64_t distance = 1; distance < lanes; distance *= 2) {
    // Halves the vectors: a lane keeps the sum of its own source and takes that of its neighbour `distance` away.
    SmallVector<int64_t> low(lanes), high(lanes);
    for (int64_t i = 0; i < lanes; ++i) {
      low[i] = i & distance ? lanes + i - distance : i;
      high[i] = i & distance ? lanes + i : i + distance;
    }
    SmallVector<Value> halved;
    for (size_t i = 0; i < vectors.size(); i += 2) {
      Value x = l.b.create<vector::ShuffleOp>(l.loc, vectors[i], vectors[i + 1], low);
      Value y = l.b.create<vector::ShuffleOp>(l.loc, vectors[i], vectors[i + 1], high);
      halved.push_back(l.b.create<arith::AddFOp>(l.loc, x, y));
    }
    vectors = halved;
  }
  return vectors[0];
}

void transposeSquare(LoopBuilder &l, SmallVectorImpl<Value> &rows) {
  int64_t size = rows.size();
  for (int64_t distance = 1; distance < size; distance *= 2) {
    // Swap the off-diagonal blocks of distance x distance.
    SmallVector<int64_t> low(size), high(size);
    for (int64_t i = 0; i < size; ++i) {
      low[i] = i & distance ? size + i - distance : i;
      high[i] = i & distance ? size + i : i + distance;
    }
    for (int64_t i = 0; i < size; ++i) {
      if (i & distance)
        continue;
      Value a = rows[i], b = rows[i + distance];
      rows[i] = l.b.create<vector::ShuffleOp>(l.loc, a, b, low);
      rows[i + distance] = l.b.create<vector::ShuffleOp>(l.loc, a, b, high);
    }
  }
}

constexpr int64_t fewestProducts = 64 << 10;

bool worthProducts(int64_t products) { return products >= fewestProducts; }

Range productRange(KernelContext &context, Value total, const DimExpr &work) {
  LoopBuilder &l = context.l;
  Range range = workerRange(l.b, l.loc, context.func, total);
  if (work.isConstant())
    return range;
  Value few = l.less(context.value(work), l.index(fewestProducts));
  Value isFirst = l.equal(context.func.worker(), l.index(0));
  range.begin = l.select(few, l.index(0), range.begin);
  range.end = l.select(few, l.select(isFirst, total, l.index(0)), range.end);
  return range;
}

// --- the microkernel -------------------------------------------------------------------------------------------------

static VectorType vectorOf(Tile tile, Type type) { return VectorType::get({tile.lanes}, type); }

LoopBuilder::Values zeroTile(KernelContext &context, Tile tile, Type type) {
  return LoopBuilder::Values(tile.rows * tile.vectors, context.l.zero(vectorOf(tile, type)));
}

/// An element or vector as loaded, in registers of `type` (a float type).
static Value widen(KernelContext &context, Value loaded, Type elementType, Type type) {
  if (getElementTypeOrSelf(loaded.getType()) == type)
    return loaded;
  return context.elements.cast(loaded, elementType, type);
}

/// Lanes that are not adjacent, one by one; those that do not exist repeat the last one, or the first element.
static Value loadLanes(KernelContext &context, const RightSide &right, Value row, int64_t first, int64_t lanes,
                       Value count) {
  LoopBuilder &l = context.l;
  Value vector = l.zero(Elements::registerType(right.elementType, lanes));
  for (int64_t i = 0; i < lanes; ++i) {
    Value lane = l.index(first + i);
    if (count)
      lane = l.select(l.less(l.index(i), count), lane, l.index(0));
    Value element = context.elements.load(right.buffer, l.add(row, l.mul(lane, right.laneStep)), right.elementType, 0);
    vector = l.b.create<vector::InsertOp>(l.loc, element, vector, i);
  }
  return vector;
}

LoopBuilder::Values multiplyTile(KernelContext &context, Tile tile, Type type, const LeftSide &left,
                                 const RightSide &right, Value count, LoopBuilder::Values accumulators) {
  LoopBuilder &l = context.l;
  VectorType vector = vectorOf(tile, type);
  int64_t size = tile.rows * tile.vectors;
  auto step = [&](Value k, ArrayRef<Value> acc) {
    LoopBuilder::Values next(acc.begin(), acc.end());
    SmallVector<Value> columns;
    Value row = l.add(right.start, l.mul(k, right.step));
    for (int64_t j = 0; j < tile.vectors; ++j) {
      Value exists = right.counts.empty() ? Value() : right.counts[j];
      Value loaded = right.laneStep ? loadLanes(context, right, row, j * tile.lanes, tile.lanes, exists)
                                    : context.elements.load(right.buffer, l.add(row, j * tile.lanes), right.elementType,
                                                            tile.lanes, exists);
      loaded = widen(context, loaded, right.elementType, type);
      if (!right.zeroPoints.empty())
        loaded = context.elements.sub(loaded, right.zeroPoints[j]);
      columns.push_back(loaded);
    }
    Value along = l.mul(k, left.step);
    for (int64_t r = 0; r < tile.rows; ++r) {
      Value element = context.elements.load(left.buffer, l.add(left.rows[r], along), left.elementType, 0);
      Value splat = l.splat(vector, widen(context, element, left.elementType, type));
      for (int64_t j = 0; j < tile.vectors; ++j)
        next[r * tile.vectors + j] = context.multiplyAdd(splat, columns[j], acc[r * tile.vectors + j]);
    }
    return next;
  };

  // A small tile would wait for its own accumulators: several k in flight, each with its own.
  int64_t flight = std::max<int64_t>(1, std::min<int64_t>(4, 4 * context.target.fmaUnits / size));
  auto known = l.constant(count);
  if (flight == 1 || (known && *known < 2 * flight))
    return l.loop(l.index(0), count, 1, accumulators, step);
  LoopBuilder::Values sums = accumulators;
  sums.append(size * (flight - 1), l.zero(vector));
  Value whole = known ? l.index(*known / flight * flight) : l.mul(l.div(count, flight), flight);
  sums = l.loop(l.index(0), whole, flight, sums, [&](Value k, LoopBuilder::Values acc) {
    LoopBuilder::Values next;
    for (int64_t f = 0; f < flight; ++f)
      next.append(step(l.add(k, f), ArrayRef(acc).slice(f * size, size)));
    return next;
  });
  LoopBuilder::Values total(sums.begin(), sums.begin() + size);
  for (int64_t f = 1; f < flight; ++f)
    for (int64_t i = 0; i < size; ++i)
      total[i] = l.b.create<arith::AddFOp>(l.loc, total[i], sums[f * size + i]);
  return l.loop(whole, count, 1, total, step);
}

// --- the epilogue of a tile ------------------------------------------------------------------------------------------

int64_t tileScratchBytes(const Epilogue &epilogue, Tile tile, unsigned bytes) {
  return epilogue.isHeavy() && tile.rows * tile.vectors > 2 ? tile.rows * tile.columns() * bytes : 0;
}

void finishTile(KernelContext &context, Epilogue &epilogue, Tile tile, LoopBuilder::Values accumulators,
                llvm::function_ref<LoopBuilder::Values(Value)> positionOf, unsigned axis, ArrayRef<unsigned> rowAxes,
                const LoopBuilder::Values &counts, Value scratch) {
  LoopBuilder &l = context.l;
  auto columnOf = [&](LoopBuilder::Values position, Value j) {
    position[axis] = l.add(position[axis], j);
    return position;
  };
  auto countOf = [&](int64_t j) { return counts.empty() ? Value() : counts[j]; };
  epilogue.forget();
  if (epilogue.isHeavy() && tile.rows * tile.vectors > 2) {
    // Through the cache, so that the epilogue's code is there once for every vector of a row and not for every tile.
    for (auto [i, accumulator] : llvm::enumerate(accumulators))
      l.store(accumulator, scratch, l.index(i * tile.lanes));
    l.loop(l.index(0), l.index(tile.rows), 1, [&](Value row) {
      LoopBuilder::Values position = positionOf(row);
      int64_t whole = 0; // vectors with all lanes
      while (whole < tile.vectors && !countOf(whole))
        ++whole;
      auto one = [&](Value column, Value count) {
        Value at = l.add(l.mul(row, tile.columns()), column);
        Value root = l.load(accumulators[0].getType(), scratch, at);
        epilogue.store(context, root, columnOf(position, column), axis, tile.lanes, count, 0);
      };
      l.loop(l.index(0), l.index(whole * tile.lanes), tile.lanes, [&](Value column) { one(column, {}); });
      for (int64_t j = whole; j < tile.vectors; ++j)
        one(l.index(j * tile.lanes), countOf(j));
    });
    return;
  }
  SmallVector<LoopBuilder::Values> positions;
  for (int64_t r = 0; r < tile.rows; ++r)
    positions.push_back(positionOf(l.index(r)));
  for (int64_t j = 0; j < tile.vectors; ++j)
    epilogue.preload(context, columnOf(positions[0], l.index(j * tile.lanes)), axis, tile.lanes, countOf(j), rowAxes,
                     j);
  for (int64_t r = 0; r < tile.rows; ++r)
    for (int64_t j = 0; j < tile.vectors; ++j)
      epilogue.store(context, accumulators[r * tile.vectors + j], columnOf(positions[r], l.index(j * tile.lanes)), axis,
                     tile.lanes, countOf(j), j);
  epilogue.forget();
}

} // namespace firn

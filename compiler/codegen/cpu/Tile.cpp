#include "compiler/codegen/cpu/Tile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace firn {

// Register tiles that LLVM 19 keeps in registers (no spill in the k loop), by registers of the target. Measured on
// AVX-512 and AVX2 machines: 32 registers hold 24 accumulators beside 2-4 vectors of B, 16 hold 12.
static bool fitsRegisters(const TargetDescription &target, int64_t rows, int64_t vectors) {
  int64_t accumulators = rows * vectors;
  if (target.vectorRegisters >= 32)
    return vectors == 1 ? rows <= 16 : accumulators + vectors + (vectors == 2 ? 1 : 2) <= 31 && accumulators <= 28;
  // Without a broadcast inside of the FMA one more register holds A.
  return accumulators + vectors + 1 <= 16;
}

double tileCost(const TargetDescription &target, int64_t rows, int64_t vectors) {
  double arithmetic = double(rows * vectors);
  // Two loads a cycle where two FMAs start in one, one where one does: a full vector or a broadcast each.
  double loads = double(rows) * 0.5 + double(vectors);
  // Accumulators wait for themselves: 4 cycles' worth of FMAs must be independent.
  double latency = 2.0 * target.fmaUnits;
  return std::max({arithmetic, loads, latency});
}

static double shapeCost(const TargetDescription &target, std::optional<int64_t> m, std::optional<int64_t> n,
                        int64_t rows, int64_t vectors, int64_t lanes) {
  int64_t columns = vectors * lanes;
  int64_t totalColumns = n.value_or(8 * columns), totalRows = m.value_or(12 * rows);
  auto panel = [&](int64_t width) {
    double cost = double(totalRows / rows) * tileCost(target, rows, width);
    if (int64_t tail = totalRows % rows)
      cost += tileCost(target, tail, width);
    return cost;
  };
  double cost = double(totalColumns / columns) * panel(vectors);
  if (int64_t tail = totalColumns % columns)
    cost += panel((tail + lanes - 1) / lanes);
  return cost / (double(totalRows) * double(totalColumns)) + 1e-6 / double(rows * vectors);
}

Tile chooseTile(const TargetDescription &target, std::optional<int64_t> m, std::optional<int64_t> n, unsigned bytes) {
  int64_t lanes = target.lanes(bytes);
  Tile best{1, 1, lanes};
  double bestCost = 1e30;
  int64_t widest = n ? (*n + lanes - 1) / lanes : 4;
  for (int64_t vectors = 1; vectors <= std::min<int64_t>(4, std::max<int64_t>(widest, 1)); ++vectors)
    for (int64_t rows = 1; rows <= 16; ++rows) {
      if (!fitsRegisters(target, rows, vectors) || (m && rows > std::max<int64_t>(*m, 1)))
        continue;
      double cost = shapeCost(target, m, n, rows, vectors, lanes);
      // Tails of a dynamic m run on smaller copies of the tile: fewer rows, fewer copies.
      if (!m)
        cost *= rows > 8 ? 1.1 : 1;
      if (cost < bestCost) {
        bestCost = cost;
        best = {rows, vectors, lanes};
      }
    }
  return best;
}

Tile chooseRows(const TargetDescription &target, std::optional<int64_t> m, int64_t columns, unsigned bytes) {
  int64_t lanes = target.lanes(bytes);
  Tile best{1, std::max<int64_t>(1, columns / lanes), lanes};
  double bestCost = 1e30;
  for (int64_t rows = 1; rows <= 16; ++rows) {
    if (rows > 1 && (!fitsRegisters(target, rows, best.vectors) || (m && rows > *m)))
      continue;
    double cost = shapeCost(target, m, columns, rows, best.vectors, lanes) * (!m && rows > 8 ? 1.1 : 1);
    if (cost < bestCost) {
      bestCost = cost;
      best.rows = rows;
    }
  }
  return best;
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

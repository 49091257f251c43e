// Attention: softmax(scale Q K^T + mask) V, a block of keys at a time, so that no score leaves the worker's scratch.
//
// A unit of work is one batch, one head of K and V, and a block of rows: queries of all heads that share the head.
// Keys (turned into panels), values and scaled queries are copied to scratch in f32; for each block of keys the rows'
// scores, their running maximum and sum, and the output so far (scaled when the maximum grows) are kept there.
// Few rows do not pay for copies: they read keys and values where they are, a dot product per key.
//
//   Range:       scores finite in f32; operands f32, f16, bf16
//   Error:       (2 size + 2 length + 8) eps of f32 relative to sums of magnitudes, 16-bit results rounded once
//   NaN, inf:    a NaN score makes its query's row NaN; keys that are not seen do not count, whatever their score
//   No key seen: zeros, NaN with `nan_rows`
//   Determinism: same bits for any number of workers
//   Reads:       nothing outside the operands
#include "compiler/codegen/cpu/Attention.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include <cmath>
#include <limits>

using namespace mlir;

namespace firn {
namespace {

/// Fewer rows than that read keys and values where they are.
constexpr int64_t fewestRows = 6;
/// Keys of a block and rows of a unit, about.
constexpr int64_t mostKeys = 256, mostRows = 192;
constexpr double infinity = std::numeric_limits<double>::infinity();

int64_t roundUp(int64_t value, int64_t to) { return (value + to - 1) / to * to; }

class AttentionEmitter {
public:
  AttentionEmitter(KernelContext &kernelContext, AttentionShape attention)
      : context(kernelContext), l(kernelContext.l), e(kernelContext.elements), a(std::move(attention)),
        f32(kernelContext.l.b.getF32Type()), lanes(kernelContext.target.lanes(4)) {}

  void emit();

private:
  struct Row {
    Value head, query; // of Q
  };
  struct Span {
    Value begin, end; // keys seen, relative to the block; end may be below begin
  };

  void chooseBlocks();
  void placeScratch();
  void unit(Value number, bool isFew);
  void manyRows();
  void fewRows();
  void startRows(Value padded);
  void keyBlocks(Value first, Value last, llvm::function_ref<void(Value begin, Value keys)> body);
  Row rowOf(Value row);
  Span spanOf(Value query, Value begin);
  Value start(const HeadsView &heads, Value head, Value row);

  void packKeys(Value begin, Value keys);
  void packTransposed(Value begin, Value keys, Value panel);
  void packRow(const HeadsView &heads, Value from, Value to, double factor, Value buffer);
  void packQuery(Value row);
  void scoresOf(Value tileRow, Value here, Value keys);
  void fewScores(Value begin, Value keys, Value row);
  void softmaxRow(Value row, Value slot, Value begin, Value keys);
  void outputsOf(Value tileRow, Value here, Value keys);
  void fewOutputs(Value row, Value begin, Value keys);
  void finishRow(Value row);

  Value vectorOf(double number) { return e.constant(number, f32, lanes); }
  VectorType vectorType() { return VectorType::get({lanes}, f32); }
  Value loadFloats(const HeadsView &heads, Value at, unsigned width, Value count = {});
  Value reduced(Value vector, bool isMax);
  bool hasSpans() const { return a.isCausal || a.leftWindow >= 0 || a.rightWindow >= 0; }
  bool hasOneHead() const { return isConstantDim(a.group, 1); }
  bool hasOneBlock() const { return a.k.length.isConstant() && a.k.length.constant() <= blockKeys; }
  /// Whether every row certainly meets its one block of keys.
  bool isSure() const {
    bool seesAll = !a.mask || (a.maskedKeys.isConstant() && a.maskedKeys.constant() > 0);
    return hasOneBlock() && a.k.length.constant() > 0 && seesAll && !a.keyCounts && !hasSpans();
  }
  bool scalesQueries() const { return std::fabs(a.scale) <= 1; }
  int64_t size() const { return a.q.size.constant(); }
  int64_t valueSize() const { return a.v.size.constant(); }

  KernelContext &context;
  LoopBuilder &l;
  Elements &e;
  AttentionShape a;
  Type f32;
  int64_t lanes;

  Tile scoreTile, valueTile;
  int64_t tileRows = 0;  // rows whose scores are there at once
  int64_t blockRows = 0; // of a unit
  int64_t blockKeys = 0;
  int64_t querySize = 0, paddedValueSize = 0, scoreStride = 0;
  Value keyPanels, valueRows, queryRows, scores, outputs, maxima, sums, factors; // in scratch
  Value rows, queries, keysInAll, unitRows; // sizes; rows of a unit, at most blockRows
  // Of the unit: batch, head of K, its rows, keys that exist, position of the first query.
  Value batch, head, firstRow, rowCount, limit, position;
};

void AttentionEmitter::chooseBlocks() {
  const TargetDescription &target = context.target;
  DimExpr allRows = a.group * a.q.length;
  auto knownRows = allRows.asConstant(), knownKeys = a.k.length.asConstant();
  TileShape shape{knownRows, knownKeys ? std::min(*knownKeys, mostKeys) : std::optional<int64_t>()};
  // Sizes that vary waste less of a narrow tile.
  scoreTile = knownRows && knownKeys ? chooseTile(target, shape) : chooseRows(target, shape, 2 * lanes);
  if (scoreTile.lanes != lanes) // panels of half vectors: the rest works on whole ones
    scoreTile = chooseRows(target, shape, lanes * std::max<int64_t>(1, scoreTile.columns() / lanes));
  int64_t columns = scoreTile.columns();
  int64_t fitting = std::max<int64_t>(1, target.l2Bytes / 4 / 4 / (size() + valueSize()));
  blockKeys = std::max(columns, std::min(mostKeys, fitting) / columns * columns);
  if (knownKeys)
    blockKeys = std::min(blockKeys, std::max(columns, roundUp(*knownKeys, columns)));
  valueTile = chooseTile(target, {std::nullopt, valueSize()});
  if (valueTile.lanes != lanes)
    valueTile = chooseRows(target, {std::nullopt, valueSize()}, roundUp(valueTile.columns(), lanes));
  // Rows that both tiles divide.
  tileRows = roundUp(12, scoreTile.rows);
  while (tileRows < 48 && tileRows % valueTile.rows)
    tileRows += scoreTile.rows;
  while (tileRows % valueTile.rows)
    --valueTile.rows;
  blockRows = roundUp(mostRows, tileRows);
  if (knownRows)
    blockRows = std::min(blockRows, roundUp(std::max<int64_t>(*knownRows, 1), tileRows));
}

void AttentionEmitter::placeScratch() {
  querySize = roundUp(size(), lanes);
  paddedValueSize = roundUp(valueSize(), lanes);
  scoreStride = roundUp(blockKeys, lanes) + lanes;
  int64_t bytes = 0;
  auto place = [&](int64_t floats) {
    Value at = l.at(context.func.scratch(), l.index(bytes));
    bytes += roundUp(floats * 4, 64);
    return at;
  };
  keyPanels = place(blockKeys * size());
  valueRows = place(blockKeys * paddedValueSize);
  queryRows = place(blockRows * querySize);
  scores = place(tileRows * scoreStride);
  outputs = place(blockRows * paddedValueSize);
  maxima = place(blockRows);
  sums = place(blockRows);
  factors = place(tileRows);
  context.func.setScratchBytes(bytes);
}

// --- positions -------------------------------------------------------------------------------------------------------

/// Which query row `row` of the unit is.
AttentionEmitter::Row AttentionEmitter::rowOf(Value row) {
  Value number = l.add(firstRow, row);
  if (hasOneHead())
    return {head, number};
  Value first = l.mul(head, context.value(a.group));
  return {l.add(first, l.div(number, queries)), l.rem(number, queries)};
}

/// The element where a row of a head begins.
Value AttentionEmitter::start(const HeadsView &heads, Value headNumber, Value row) {
  return context.offset({batch, headNumber, row}, {heads.batchStride, heads.headStride, heads.rowStride}, heads.offset);
}

AttentionEmitter::Span AttentionEmitter::spanOf(Value query, Value begin) {
  Value at = l.add(position, query), from = l.index(0), to = limit;
  constexpr int64_t most = int64_t(1) << 40;
  if (a.isCausal)
    to = l.min(to, l.add(at, 1));
  if (a.rightWindow >= 0)
    to = l.min(to, l.add(at, std::min(a.rightWindow, most) + 1));
  if (a.leftWindow >= 0)
    from = l.max(from, l.sub(at, l.index(std::min(a.leftWindow, most))));
  return {l.sub(from, begin), l.sub(to, begin)};
}

/// Blocks of the keys [first, last).
void AttentionEmitter::keyBlocks(Value first, Value last, llvm::function_ref<void(Value, Value)> body) {
  Value from = l.mul(l.div(first, blockKeys), blockKeys);
  auto block = [&](Value begin) { body(begin, l.min(l.index(blockKeys), l.sub(last, begin))); };
  l.loop(from, last, blockKeys, block);
}

// --- copies ----------------------------------------------------------------------------------------------------------

Value AttentionEmitter::loadFloats(const HeadsView &heads, Value at, unsigned width, Value count) {
  return e.load(context.operand(heads.argument.getArgNumber()), at, heads.elementType, width, count);
}

/// A row of elements to `to`, whole vectors, zeros behind its end.
void AttentionEmitter::packRow(const HeadsView &heads, Value from, Value to, double factor, Value buffer) {
  int64_t length = heads.size.constant(), whole = length / lanes * lanes;
  auto one = [&](Value at, Value count) {
    Value loaded;
    if (isConstantDim(heads.elementStride, 1)) {
      loaded = loadFloats(heads, l.add(from, at), lanes, count);
    } else {
      Value stride = context.value(heads.elementStride);
      loaded = l.zero(vectorType());
      for (int64_t i = 0, n = l.constant(count ? count : l.index(lanes)).value_or(lanes); i < n; ++i) {
        Value element = loadFloats(heads, l.add(from, l.mul(l.add(at, i), stride)), 0);
        loaded = l.b.create<vector::InsertOp>(l.loc, element, loaded, i);
      }
    }
    if (factor != 1)
      loaded = e.mul(loaded, vectorOf(factor));
    l.store(loaded, buffer, l.add(to, at));
  };
  l.loop(l.index(0), l.index(whole), lanes, [&](Value at) { one(at, {}); });
  if (length % lanes)
    one(l.index(whole), l.index(length % lanes));
}

/// Panels [keys / columns][size][columns] of the block of keys from `begin`; columns behind the last repeat it.
void AttentionEmitter::packKeys(Value begin, Value keys) {
  int64_t columns = scoreTile.columns();
  l.loop(l.index(0), keys, columns, [&](Value panel) {
    if (isConstantDim(a.k.elementStride, 1))
      return packTransposed(begin, keys, panel);
    Value from = start(a.k, head, begin), to = l.mul(panel, size());
    Value keyStride = context.value(a.k.rowStride), stride = context.value(a.k.elementStride);
    if (isConstantDim(a.k.rowStride, 1)) {
      l.loop(l.index(0), l.index(size()), 1, [&](Value i) {
        for (int64_t j = 0; j < columns; j += lanes) {
          Value at = l.add(panel, j);
          Value count = l.max(l.index(0), l.min(l.index(lanes), l.sub(keys, at)));
          Value loaded = loadFloats(a.k, l.add(l.add(from, at), l.mul(i, stride)), lanes, count);
          l.store(loaded, keyPanels, l.add(to, l.add(l.mul(i, columns), j)));
        }
      });
      return;
    }
    l.loop(l.index(0), l.index(columns), 1, [&](Value column) {
      Value key = l.min(l.add(panel, column), l.sub(keys, l.index(1)));
      Value at = l.add(from, l.mul(key, keyStride));
      l.loop(l.index(0), l.index(size()), 1, [&](Value i) {
        Value element = loadFloats(a.k, l.add(at, l.mul(i, stride)), 0);
        l.store(element, keyPanels, l.add(to, l.add(l.mul(i, columns), column)));
      });
    });
  });
}

/// One panel of keys whose elements are adjacent, squares of vectors at a time.
void AttentionEmitter::packTransposed(Value begin, Value keys, Value panel) {
  int64_t columns = scoreTile.columns();
  Value from = start(a.k, head, begin), stride = context.value(a.k.rowStride), to = l.mul(panel, size());
  l.loop(l.index(0), l.index(columns), lanes, [&](Value column) {
    SmallVector<Value> keysAt;
    for (int64_t i = 0; i < lanes; ++i) {
      Value key = l.min(l.add(l.add(panel, column), i), l.sub(keys, l.index(1)));
      keysAt.push_back(l.add(from, l.mul(key, stride)));
    }
    auto square = [&](Value at, int64_t depth) {
      SmallVector<Value> vectors;
      for (Value key : keysAt)
        vectors.push_back(loadFloats(a.k, l.add(key, at), lanes, depth < lanes ? l.index(depth) : Value()));
      transposeSquare(l, vectors);
      for (int64_t i = 0; i < depth; ++i)
        l.store(vectors[i], keyPanels, l.add(l.add(to, column), l.mul(l.add(at, i), columns)));
    };
    int64_t whole = size() / lanes * lanes;
    l.loop(l.index(0), l.index(whole), lanes, [&](Value at) { square(at, lanes); });
    if (size() % lanes)
      square(l.index(whole), size() % lanes);
  });
}

void AttentionEmitter::packQuery(Value row) {
  Row where = rowOf(row);
  packRow(a.q, start(a.q, where.head, where.query), l.mul(row, querySize), scalesQueries() ? a.scale : 1, queryRows);
}

// --- scores ----------------------------------------------------------------------------------------------------------

/// Scores of `here` rows from `tileRow` (and some behind, to fill a tile) with the first `keys` keys of the block.
void AttentionEmitter::scoresOf(Value tileRow, Value here, Value keys) {
  int64_t columns = scoreTile.columns();
  l.loop(l.index(0), keys, columns, [&](Value panel) {
    RightSide right{keyPanels, l.mul(panel, size()), l.index(columns), f32};
    l.loop(l.index(0), here, scoreTile.rows, [&](Value first) {
      LeftSide left{queryRows, {}, l.index(1), f32};
      for (int64_t r = 0; r < scoreTile.rows; ++r)
        left.rows.push_back(l.mul(l.add(l.add(tileRow, first), r), querySize));
      auto tile =
          multiplyTile(context, scoreTile, f32, left, right, l.index(size()), zeroTile(context, scoreTile, f32));
      for (int64_t r = 0; r < scoreTile.rows; ++r)
        for (int64_t j = 0; j < scoreTile.vectors; ++j)
          l.store(tile[r * scoreTile.vectors + j], scores,
                  l.add(l.mul(l.add(first, r), scoreStride), l.add(panel, j * lanes)));
    });
  });
}

/// Scores of one row, keys where they are.
void AttentionEmitter::fewScores(Value begin, Value keys, Value row) {
  Value from = start(a.k, head, begin), query = l.mul(row, querySize);
  Value stride = context.value(a.k.rowStride);
  if (!isConstantDim(a.k.elementStride, 1)) {
    RightSide right{
        context.operand(a.k.argument.getArgNumber()), {}, context.value(a.k.elementStride), a.k.elementType};
    if (!isConstantDim(a.k.rowStride, 1))
      right.laneStep = stride;
    l.loop(l.index(0), keys, lanes, [&](Value key) {
      right.start = l.add(from, l.mul(key, stride));
      right.counts = {l.min(l.index(lanes), l.sub(keys, key))};
      Tile tile{1, 1, lanes};
      auto sum = multiplyTile(context, tile, f32, {queryRows, {query}, l.index(1), f32}, right, l.index(size()),
                              zeroTile(context, tile, f32));
      l.store(sum[0], scores, key);
    });
    return;
  }
  l.loop(l.index(0), keys, lanes, [&](Value key) {
    SmallVector<Value> keysAt;
    for (int64_t i = 0; i < lanes; ++i)
      keysAt.push_back(l.add(from, l.mul(l.min(l.add(key, i), l.sub(keys, l.index(1))), stride)));
    auto step = [&](Value at, LoopBuilder::Values sum, Value count) {
      Value q = l.load(vectorType(), queryRows, l.add(query, at));
      for (int64_t i = 0; i < lanes; ++i)
        sum[i] = context.multiplyAdd(q, loadFloats(a.k, l.add(keysAt[i], at), lanes, count), sum[i]);
      return sum;
    };
    int64_t whole = size() / lanes * lanes;
    LoopBuilder::Values sum(lanes, l.zero(vectorType()));
    sum = l.loop(l.index(0), l.index(whole), lanes, sum,
                 [&](Value at, LoopBuilder::Values carried) { return step(at, carried, {}); });
    if (size() % lanes)
      sum = step(l.index(whole), sum, l.index(size() % lanes));
    l.store(sumEach(l, sum), scores, key);
  });
}

// --- softmax ---------------------------------------------------------------------------------------------------------

/// The sum or maximum of all lanes.
Value AttentionEmitter::reduced(Value vector, bool isMax) {
  // A NaN among the scores comes back from the exponentials.
  return l.b.create<vector::ReductionOp>(l.loc, isMax ? vector::CombiningKind::MAXNUMF : vector::CombiningKind::ADD,
                                         vector, isMax ? arith::FastMathFlags::nnan : arith::FastMathFlags::reassoc);
}

/// Scores of the unit's row `row`, in `slot` of the tile, become probabilities that are not yet divided by their sum;
/// maximum, sum and the factor of what was summed before follow.
void AttentionEmitter::softmaxRow(Value row, Value slot, Value begin, Value keys) {
  Value first = l.mul(slot, scoreStride);
  Row where = rowOf(row);
  Value maskAt;
  if (a.mask)
    maskAt =
        l.add(context.offset({batch, where.head, where.query}, ArrayRef(a.mask->strides).take_front(3), a.mask->offset),
              l.mul(begin, context.value(a.mask->strides[3])));
  Type i32 = l.b.getI32Type();
  Value iota, seenFrom, seenTo;
  auto bound = [&](Value index) {
    Value clamped = l.min(l.max(index, l.index(0)), l.index(blockKeys));
    Value number = l.b.create<arith::IndexCastOp>(l.loc, i32, clamped);
    return l.splat(VectorType::get({lanes}, i32), number);
  };
  Span span{l.index(0), keys};
  if (hasSpans()) {
    Span seen = spanOf(where.query, begin);
    span = {seen.begin, l.min(seen.end, keys)};
  }
  SmallVector<int32_t> numbers;
  for (int64_t i = 0; i < lanes; ++i)
    numbers.push_back(int32_t(i));
  iota = l.b.create<arith::ConstantOp>(l.loc, DenseElementsAttr::get(VectorType::get({lanes}, i32), ArrayRef(numbers)));
  seenFrom = hasSpans() ? bound(span.begin) : Value();
  seenTo = bound(span.end);
  Value never = vectorOf(-infinity);

  // The score as the softmax sees it; `isLast`: keys may end inside of the vector.
  auto finished = [&](Value key, bool isLast) {
    Value at = l.add(first, key);
    Value x = l.load(vectorType(), scores, at);
    if (!scalesQueries())
      x = e.mul(x, vectorOf(a.scale));
    if (a.softcap > 0) {
      x = e.mul(x, vectorOf(1 / a.softcap));
      x = e.mul(l.b.create<math::TanhOp>(l.loc, x), vectorOf(a.softcap));
    }
    if (a.mask) {
      Value buffer = context.operand(a.mask->argument.getArgNumber());
      Value count = isLast ? l.sub(keys, key) : Value();
      Value mask;
      if (isConstantDim(a.mask->strides[3], 1)) {
        mask = e.load(buffer, l.add(maskAt, key), a.mask->elementType, lanes, count);
      } else { // one number for all keys, or numbers that are not adjacent
        Value stride = context.value(a.mask->strides[3]);
        mask = l.zero(Elements::registerType(a.mask->elementType, lanes));
        for (int64_t i = 0; i < lanes; ++i) {
          Value lane = l.min(l.add(key, i), l.sub(keys, l.index(1)));
          Value element = e.load(buffer, l.add(maskAt, l.mul(lane, stride)), a.mask->elementType, 0);
          mask = l.b.create<vector::InsertOp>(l.loc, element, mask, i);
        }
      }
      x = a.mask->elementType.isInteger(1) ? l.select(mask, x, vectorOf(a.maskedScore)) : e.add(x, mask);
    }
    if (isLast || hasSpans()) {
      Value lane = l.b.create<arith::AddIOp>(
          l.loc, iota, l.splat(VectorType::get({lanes}, i32), l.b.create<arith::IndexCastOp>(l.loc, i32, key)));
      Value isSeen = l.b.create<arith::CmpIOp>(l.loc, arith::CmpIPredicate::slt, lane, seenTo);
      if (seenFrom)
        isSeen = l.b.create<arith::AndIOp>(l.loc, isSeen,
                                           l.b.create<arith::CmpIOp>(l.loc, arith::CmpIPredicate::sge, lane, seenFrom));
      x = l.select(isSeen, x, never);
    }
    bool isChanged = isLast || hasSpans() || a.mask || a.softcap > 0 || !scalesQueries();
    if (isChanged)
      l.store(x, scores, at);
    return x;
  };
  auto greater = [&](Value x, Value y) {
    return l.select(l.b.create<arith::CmpFOp>(l.loc, arith::CmpFPredicate::OGT, x, y), x, y);
  };
  // Some vectors at a time, each with its own maximum and sum: one would wait for the other.
  constexpr int64_t flight = 4;
  Value many = l.mul(l.div(keys, flight * lanes), flight * lanes), whole = l.mul(l.div(keys, lanes), lanes);
  LoopBuilder::Values most(flight, never);
  most = l.loop(l.index(0), many, flight * lanes, most, [&](Value key, LoopBuilder::Values carried) {
    for (int64_t i = 0; i < flight; ++i)
      carried[i] = greater(finished(l.add(key, i * lanes), false), carried[i]);
    return carried;
  });
  most = {greater(greater(most[0], most[1]), greater(most[2], most[3]))};
  most = l.loop(many, whole, lanes, most, [&](Value key, LoopBuilder::Values carried) {
    return LoopBuilder::Values{greater(finished(key, false), carried[0])};
  });
  most = l.loop(whole, keys, lanes, most, [&](Value key, LoopBuilder::Values carried) {
    return LoopBuilder::Values{greater(finished(key, true), carried[0])};
  });
  Value none = e.constant(-infinity, f32, 0);
  Value before, greatest = reduced(most[0], true);
  if (!hasOneBlock()) {
    before = l.load(f32, maxima, row);
    greatest = greater(greatest, before);
    l.store(greatest, maxima, row);
  }
  // Where no key was seen yet, exponents are taken from 0, so that they are -inf and not NaN.
  Value isNone = l.b.create<arith::CmpFOp>(l.loc, arith::CmpFPredicate::OEQ, greatest, none);
  Value base = l.select(isNone, l.zero(f32), greatest);
  auto exponential = [&](Value x) { return l.b.create<math::ExpOp>(l.loc, x); };
  Value factor;
  if (!hasOneBlock()) {
    factor = exponential(e.sub(before, base));
    l.store(factor, factors, slot);
  }
  Value wide = l.splat(vectorType(), base);
  auto probability = [&](Value key) {
    Value at = l.add(first, key), p = exponential(e.sub(l.load(vectorType(), scores, at), wide));
    l.store(p, scores, at);
    return p;
  };
  LoopBuilder::Values sum(flight, l.zero(vectorType()));
  sum = l.loop(l.index(0), many, flight * lanes, sum, [&](Value key, LoopBuilder::Values carried) {
    for (int64_t i = 0; i < flight; ++i)
      carried[i] = e.add(carried[i], probability(l.add(key, i * lanes)));
    return carried;
  });
  sum = {e.add(e.add(sum[0], sum[1]), e.add(sum[2], sum[3]))};
  sum = l.loop(many, keys, lanes, sum, [&](Value key, LoopBuilder::Values carried) {
    return LoopBuilder::Values{e.add(carried[0], probability(key))};
  });
  Value total = reduced(sum[0], false);
  if (!hasOneBlock())
    total = context.multiplyAdd(l.load(f32, sums, row), factor, total);
  l.store(total, sums, row);
}

// --- outputs ---------------------------------------------------------------------------------------------------------

/// outputs = outputs * factor + probabilities * values, for the rows of a tile.
void AttentionEmitter::outputsOf(Value tileRow, Value here, Value keys) {
  int64_t columns = valueTile.columns();
  for (int64_t column = 0; column < paddedValueSize; column += columns) {
    Tile tile = valueTile;
    tile.vectors = std::min(columns, paddedValueSize - column) / lanes;
    RightSide right{valueRows, l.index(column), l.index(paddedValueSize), f32};
    l.loop(l.index(0), here, tile.rows, [&](Value first) {
      LeftSide left{scores, {}, l.index(1), f32};
      LoopBuilder::Values accumulators;
      auto at = [&](int64_t r, int64_t j) {
        return l.add(l.mul(l.add(l.add(tileRow, first), r), paddedValueSize), column + j * lanes);
      };
      for (int64_t r = 0; r < tile.rows; ++r) {
        left.rows.push_back(l.mul(l.add(first, r), scoreStride));
        Value factor = hasOneBlock() ? Value() : l.splat(vectorType(), l.load(f32, factors, l.add(first, r)));
        for (int64_t j = 0; j < tile.vectors; ++j)
          accumulators.push_back(factor ? e.mul(l.load(vectorType(), outputs, at(r, j)), factor)
                                        : l.zero(vectorType()));
      }
      accumulators = multiplyTile(context, tile, f32, left, right, keys, accumulators);
      for (int64_t r = 0; r < tile.rows; ++r)
        for (int64_t j = 0; j < tile.vectors; ++j)
          l.store(accumulators[r * tile.vectors + j], outputs, at(r, j));
    });
  }
}

/// The same for one row, values where they are.
void AttentionEmitter::fewOutputs(Value row, Value begin, Value keys) {
  Value from = start(a.v, head, begin), to = l.mul(row, paddedValueSize), stride = context.value(a.v.elementStride);
  Value factor = hasOneBlock() ? Value() : l.splat(vectorType(), l.load(f32, factors, l.index(0)));
  for (int64_t column = 0; column < paddedValueSize; column += 4 * lanes) {
    Tile tile{1, std::min<int64_t>(4, (paddedValueSize - column) / lanes), lanes};
    RightSide right{context.operand(a.v.argument.getArgNumber()), l.add(from, l.mul(l.index(column), stride)),
                    context.value(a.v.rowStride), a.v.elementType};
    if (!isConstantDim(a.v.elementStride, 1))
      right.laneStep = stride;
    if (column + tile.columns() > valueSize()) {
      right.counts.resize(tile.vectors);
      right.counts.back() = l.index(valueSize() % lanes);
    }
    LoopBuilder::Values accumulators;
    for (int64_t j = 0; j < tile.vectors; ++j)
      accumulators.push_back(factor ? e.mul(l.load(vectorType(), outputs, l.add(to, column + j * lanes)), factor)
                                    : l.zero(vectorType()));
    accumulators = multiplyTile(context, tile, f32, {scores, {l.index(0)}, l.index(1), f32}, right, keys, accumulators);
    for (int64_t j = 0; j < tile.vectors; ++j)
      l.store(accumulators[j], outputs, l.add(to, column + j * lanes));
  }
}

/// Row `row` of the unit, divided by its sum and stored.
void AttentionEmitter::finishRow(Value row) {
  Row where = rowOf(row);
  Value sum = l.load(f32, sums, row);
  Value inverse = e.div(e.constant(1, f32, 0), sum, f32);
  // Where the row is zeros whatever was summed: no key was seen, or a sum over no key at all.
  Value isZero;
  if (a.hasNanRows)
    isZero = l.equal(keysInAll, l.index(0));
  else
    isZero = l.b.create<arith::CmpFOp>(l.loc, a.hasZeroNan ? arith::CmpFPredicate::UEQ : arith::CmpFPredicate::OEQ, sum,
                                       l.zero(f32));
  Value factor = l.splat(vectorType(), inverse);
  Value from = l.mul(row, paddedValueSize);
  Value to = context.offset({batch, where.head, where.query},
                            {a.result.batchStride, a.result.headStride, a.result.rowStride}, DimExpr(0));
  auto one = [&](Value at, Value count) {
    Value x = e.mul(l.load(vectorType(), outputs, l.add(from, at)), factor);
    x = l.select(isZero, l.zero(vectorType()), x);
    e.store(e.round(x, a.result.elementType), context.result(), l.add(to, at), a.result.elementType, count);
  };
  int64_t whole = valueSize() / lanes * lanes;
  l.loop(l.index(0), l.index(whole), lanes, [&](Value at) { one(at, {}); });
  if (valueSize() % lanes)
    one(l.index(whole), l.index(valueSize() % lanes));
}

// --- units -----------------------------------------------------------------------------------------------------------

/// No key seen yet, for `padded` rows.
void AttentionEmitter::startRows(Value padded) {
  l.loop(l.index(0), rowCount, 1, [&](Value row) { packQuery(row); });
  if (isSure()) // which writes all of them
    return;
  l.loop(l.index(0), padded, 1, [&](Value row) {
    l.store(e.constant(-infinity, f32, 0), maxima, row);
    l.store(l.zero(f32), sums, row);
  });
  l.loop(l.index(0), l.mul(padded, paddedValueSize), lanes,
         [&](Value at) { l.store(l.zero(vectorType()), outputs, at); });
}

void AttentionEmitter::manyRows() {
  Value padded = l.mul(l.ceilDiv(rowCount, tileRows), tileRows);
  startRows(padded);
  // Rows behind the last are computed as zeros and not stored.
  l.loop(l.mul(rowCount, querySize), l.mul(padded, querySize), lanes,
         [&](Value at) { l.store(l.zero(vectorType()), queryRows, at); });
  if (!hasOneBlock())
    l.loop(l.index(0), l.index(tileRows), 1, [&](Value slot) { l.store(l.zero(f32), factors, slot); });
  Span all{l.index(0), limit};
  if (hasSpans()) {
    bool isOrdered = hasOneHead();
    Value firstQuery = isOrdered ? firstRow : l.index(0);
    Value lastQuery = l.sub(isOrdered ? l.add(firstRow, rowCount) : queries, l.index(1));
    all = {spanOf(firstQuery, l.index(0)).begin, spanOf(lastQuery, l.index(0)).end};
  }
  keyBlocks(all.begin, all.end, [&](Value begin, Value keys) {
    packKeys(begin, keys);
    l.loop(l.index(0), keys, 1, [&](Value key) {
      packRow(a.v, start(a.v, head, l.add(begin, key)), l.mul(key, paddedValueSize), 1, valueRows);
    });
    l.loop(l.index(0), padded, tileRows, [&](Value tileRow) {
      Value here = l.min(l.index(tileRows), l.sub(rowCount, tileRow));
      auto tile = [&](Value seen) {
        scoresOf(tileRow, here, seen);
        l.loop(l.index(0), here, 1, [&](Value slot) { softmaxRow(l.add(tileRow, slot), slot, begin, seen); });
        outputsOf(tileRow, here, seen);
      };
      if (!hasSpans() || !hasOneHead())
        return tile(keys);
      // Keys behind those that the tile's last row sees are nothing to all its rows.
      Value last = l.sub(l.add(l.add(firstRow, tileRow), here), l.index(1));
      Value seen = l.min(keys, spanOf(last, begin).end);
      l.when(l.less(l.index(0), seen), [&] { tile(seen); });
    });
  });
}

void AttentionEmitter::fewRows() {
  startRows(rowCount);
  keyBlocks(l.index(0), limit, [&](Value begin, Value keys) {
    l.loop(l.index(0), rowCount, 1, [&](Value row) {
      fewScores(begin, keys, row);
      softmaxRow(row, l.index(0), begin, keys);
      fewOutputs(row, begin, keys);
    });
  });
}

void AttentionEmitter::unit(Value number, bool isFew) {
  if (isFew) {
    firstRow = l.index(0);
    rowCount = rows;
  } else {
    Value blocks = l.ceilDiv(rows, unitRows);
    firstRow = l.mul(l.rem(number, blocks), unitRows);
    rowCount = l.min(unitRows, l.sub(rows, firstRow));
    number = l.div(number, blocks);
  }
  Value heads = context.value(a.k.heads);
  head = l.rem(number, heads);
  batch = l.div(number, heads);
  limit = keysInAll;
  if (a.mask)
    limit = l.min(limit, context.value(a.maskedKeys));
  position = context.value(a.past);
  if (a.keyCounts) {
    Value at = context.offset({batch}, a.keyCounts->strides, a.keyCounts->offset);
    Value count = e.load(context.operand(a.keyCounts->argument.getArgNumber()), at, a.keyCounts->elementType, 0);
    count = l.b.create<arith::IndexCastOp>(l.loc, l.b.getIndexType(), count);
    limit = l.max(l.index(0), l.min(limit, count));
    position = l.sub(count, queries);
  }
  isFew ? fewRows() : manyRows();
  l.loop(l.index(0), rowCount, 1, [&](Value row) { finishRow(row); });
}

void AttentionEmitter::emit() {
  chooseBlocks();
  placeScratch();
  queries = context.value(a.q.length);
  DimExpr allRows = a.group * a.q.length, heads = a.batch * a.k.heads;
  rows = context.value(allRows);
  keysInAll = context.value(a.k.length);
  DimExpr work = heads * allRows * a.k.length * (a.q.size + a.v.size);
  bool isSerial = work.isConstant() && !worthProducts(work.constant());
  context.func.setParallel(!isSerial);
  auto run = [&](bool isFew) {
    Value total = context.value(heads);
    if (!isFew) {
      // Some units for each worker, so that they end at about the same time.
      Value each = l.ceilDiv(l.ceilDiv(l.mul(total, rows), l.mul(context.func.workers(), 4)), tileRows);
      unitRows = l.min(l.index(blockRows), l.mul(l.max(each, l.index(1)), tileRows));
      total = l.mul(total, l.ceilDiv(rows, unitRows));
    }
    Range range = productRange(context, total, work);
    l.loop(range.begin, range.end, 1, [&](Value number) { unit(number, isFew); });
  };
  l.when(l.less(rows, l.index(fewestRows)), [&] { run(true); }, [&] { run(false); });
}

} // namespace

LogicalResult emitAttention(FusedOp fused, kernel::FuncOp func, const TargetDescription &target, std::string &whyNot) {
  auto ops = fused.getBody().front().getOps<AttentionOp>();
  Operation *yield = fused.getBody().front().getTerminator();
  if (ops.empty() || yield->getNumOperands() != 1 || yield->getOperand(0) != (*ops.begin())->getResult(0)) {
    whyNot = "attention with more than one result";
    return failure();
  }
  auto shape = readAttention(*ops.begin(), whyNot);
  if (!shape)
    return failure();
  OpBuilder builder(func.getContext());
  builder.setInsertionPointToEnd(&func.getBody().front());
  KernelContext context(fused, func, target, builder);
  AttentionEmitter(context, std::move(*shape)).emit();
  builder.create<kernel::ReturnOp>(fused.getLoc());
  return success();
}

} // namespace firn

// Choices of a nest (which loop is the vectors', how wide they are), the split among workers, and transposition by
// tiles.
#include "compiler/codegen/cpu/Nest.h"

#include "dialects/kernel/Kernel.h"

using namespace mlir;

namespace firn {
namespace {

/// Rows and columns of a tile that is transposed in registers.
constexpr int64_t tileSize = 8;
/// Outer iterations that are enough to give every worker an equal part.
constexpr int64_t enoughIterations = 64;

} // namespace

Nest::Nest(TracedNest &nest, FusedOp op, kernel::FuncOp function, const TargetDescription &forTarget, DimValues &sizes,
           OpBuilder &at)
    : trace(*nest.trace), traced(nest), fused(op), func(function), target(forTarget), dims(sizes), builder(at),
      loc(op.getLoc()), elements(at, op.getLoc(), forTarget) {}

double Nest::weightOf(const Node &n) const {
  switch (n.kind) {
  case Node::Compute:
    return TypeSwitch<Operation *, double>(n.op)
        .Case<AddOp, SubOp, MulOp, MaxOp, MinOp, ReluOp, AndOp, OrOp, XorOp, NotOp, IdentityOp, WhereOp, ClipOp,
              EqualOp, LessOp, GreaterOp, NegOp, AbsOp, CastOp, DequantizeLinearOp, LeakyReluOp, PReluOp, FloorOp,
              CeilOp, RoundOp>([](auto) { return 1.0; })
        .Case<DivOp, SqrtOp, ReciprocalOp, QuantizeLinearOp, HardSwishOp, HardSigmoidOp>([](auto) { return 4.0; })
        .Default([](Operation *) { return 14.0; });
  case Node::Arith:
    return n.code == Node::Exp || n.code == Node::Log ? 12 : n.code == Node::Div || n.code == Node::Sqrt ? 5 : 1;
  case Node::Load:
  case Node::Table:
    return 1;
  case Node::IsAtLeast:
  case Node::Index:
    return 2;
  case Node::Fraction:
    return 8;
  default:
    return 0;
  }
}

int64_t Nest::cyclesPerElement() const {
  double weight = double(traced.stores.size());
  for (const Node &n : trace.nodes)
    weight += weightOf(n);
  return std::max<int64_t>(1, int64_t(weight / 8));
}

DimExpr Nest::elementCount() const {
  DimExpr total(1);
  for (unsigned loop : traced.order)
    total = total * (trace.loops[loop].end - trace.loops[loop].begin);
  return total;
}

unsigned Nest::lanesFor(unsigned loop) const {
  unsigned least = 8, most = 1;
  for (const Node &n : trace.nodes) {
    if (!(n.loops >> loop & 1) || n.elementType.isInteger(1) || n.kind == Node::IsAtLeast)
      continue;
    unsigned bytes = Elements::bytes(getElementTypeOrSelf(Elements::registerType(n.elementType, 0)));
    least = std::min(least, bytes);
    most = std::max(most, bytes);
  }
  most = std::max(most, least);
  unsigned lanesThen = std::min(target.vectorBytes / least, 2 * target.vectorBytes / most);
  if (auto extent = extentOf(loop)) {
    // No wider than the loop: with masks the next power of two, else the one below.
    while (lanesThen > 1 && int64_t(lanesThen) > *extent && !(target.hasAvx512 && int64_t(lanesThen) < 2 * *extent))
      lanesThen /= 2;
  }
  return lanesThen < 2 ? 0 : lanesThen;
}

double Nest::costOf(unsigned loop, unsigned width) const {
  double vector = 0; // cycles of one vector
  double perLane = double(width) * 1.5;
  auto access = [&](const Linear &index) {
    DimExpr stride = index.coefficient(loop);
    bool isLinear = true;
    for (const auto &[number, coefficient] : index.terms)
      isLinear = isLinear && (number == loop || !(trace.atoms[number].loops >> loop & 1));
    if (!isLinear)
      return 2 * perLane;
    return stride == DimExpr(0) ? 0.1 : stride == DimExpr(1) ? 1.0 : perLane;
  };
  for (const Node &n : trace.nodes) {
    if (n.kind == Node::Load || n.kind == Node::Table)
      vector += access(n.index);
    else
      vector += (n.loops >> loop & 1) ? weightOf(n) : weightOf(n) * 0.1;
  }
  for (const Linear &index : traced.indices)
    vector += 2 * access(index);
  auto extent = extentOf(loop);
  if (!extent || *extent <= 0)
    return vector / double(width);
  int64_t whole = *extent / width, rest = *extent % width;
  double iterations = double(whole) + (rest == 0 ? 0 : target.hasAvx512 ? 1.2 : double(rest) * 0.6);
  double horizontal = trace.loops[loop].isRow ? 12 : 0;
  return (iterations * vector + horizontal) / double(*extent);
}

void Nest::chooseVectorLoop() {
  double best = 1e30;
  for (unsigned loop : traced.order) {
    if (trace.loops[loop].isRow && loop != traced.order.back())
      continue;
    unsigned width = lanesFor(loop);
    if (width == 0)
      continue;
    double cost = costOf(loop, width);
    if (cost < best + 1e-9) {
      best = cost;
      chosenLoop = loop;
      fullLanes = width;
    }
  }
  double scalar = 2 * double(traced.stores.size());
  for (const Node &n : trace.nodes)
    scalar += weightOf(n);
  if (best > 2 * scalar) {
    chosenLoop = ~0u;
    fullLanes = 0;
  }
}

bool Nest::findTransposition() {
  if (!trace.rowLoops.empty())
    return false;
  // j: consecutive in the results; i: consecutive in the operands that are not along j.
  unsigned j = ~0u;
  for (unsigned loop : traced.order)
    if (llvm::all_of(traced.indices, [&](const Linear &index) { return index.coefficient(loop) == DimExpr(1); }))
      j = loop;
  if (j == ~0u)
    return false;
  unsigned i = ~0u;
  SmallVector<int> across;
  double weight = 0;
  for (auto [number, n] : llvm::enumerate(trace.nodes)) {
    weight += weightOf(n);
    if (n.kind == Node::Table || n.kind == Node::Reduce)
      return false;
    if (n.kind != Node::Load)
      continue;
    for (const auto &term : n.index.terms)
      if (trace.atoms[term.first].kind != Atom::Counter)
        return false;
    DimExpr stride = n.index.coefficient(j);
    if (stride == DimExpr(0) || stride == DimExpr(1))
      continue;
    unsigned unit = ~0u;
    for (unsigned loop : traced.order)
      if (loop != j && n.index.coefficient(loop) == DimExpr(1))
        unit = loop;
    if (unit == ~0u || (i != ~0u && i != unit))
      return false;
    i = unit;
    across.push_back(int(number));
  }
  auto isLong = [&](unsigned loop) {
    auto extent = extentOf(loop);
    return !extent || *extent >= tileSize;
  };
  if (i == ~0u || weight > 16 || !isLong(i) || !isLong(j))
    return false;
  tileLoop = i;
  chosenLoop = j;
  fullLanes = unsigned(tileSize);
  for (int number : across)
    tiles[number] = {};
  return true;
}

void Nest::workerLoops(ArrayRef<unsigned> loops, llvm::function_ref<void()> body) {
  if (!func.getParallel() || loops.empty())
    return nestedLoops(loops, body);
  // The outermost loops, as many as give enough iterations to share, run as one. Of a size that is not known, the first
  // is taken for a batch of one and others for long ones: each loop that joins costs a division an iteration.
  size_t sharedCount = 0;
  int64_t iterations = 1;
  while (sharedCount < loops.size() && iterations < enoughIterations) {
    iterations *= extentOf(loops[sharedCount]).value_or(sharedCount == 0 ? 1 : enoughIterations);
    ++sharedCount;
  }
  ArrayRef<unsigned> shared = loops.take_front(sharedCount);
  DimExpr total(1);
  SmallVector<Value> extents, begins;
  for (unsigned loop : shared) {
    const Loop &l = trace.loops[loop];
    DimExpr extent = l.end - l.begin;
    total = total * extent;
    extents.push_back(dims.get(extent));
    begins.push_back(l.begin == DimExpr(0) ? Value() : dims.get(l.begin));
  }
  Value all = dims.get(total), one = dims.constant(1);
  unsigned outside = unsigned(frames.size()) - 1;
  OpBuilder::InsertionGuard guard(builder);
  insertAt(outside);
  Range range = workerRange(builder, loc, func, all);
  auto op = builder.create<scf::ForOp>(loc, range.begin, range.end, one);
  Operation *savedAnchor = frames[outside].anchor;
  frames[outside].anchor = op;
  Frame frame(op.getBody());
  builder.setInsertionPointToStart(op.getBody());
  Value rest = op.getInductionVar();
  for (size_t k = sharedCount; k-- > 0;) {
    Value position = rest;
    if (k > 0) {
      position = builder.create<arith::RemUIOp>(loc, rest, extents[k]);
      rest = builder.create<arith::DivUIOp>(loc, rest, extents[k]);
    }
    frame.loops |= uint64_t(1) << shared[k];
    frame.counters.push_back({shared[k], begins[k] ? add(position, begins[k]) : position});
  }
  frames.push_back(std::move(frame));
  nestedLoops(loops.drop_front(sharedCount), body);
  frames.pop_back();
  frames[outside].anchor = savedAnchor;
}

bool Nest::emit() {
  if (!findTransposition())
    chooseVectorLoop();
  isRowVector = chosenLoop != ~0u && trace.loops[chosenLoop].isRow;
  for (unsigned loop : traced.order)
    if (!trace.loops[loop].isRow && loop != chosenLoop && loop != tileLoop)
      outerLoops.push_back(loop);
  frames.clear();
  frames.push_back(Frame(&func.getBody().front()));
  OpBuilder::InsertionGuard guard(builder);
  if (tileLoop != ~0u) {
    transposedLoops();
    return whyNot.empty();
  }
  planSpills();
  if (chosenLoop == ~0u || isRowVector) {
    workerLoops(outerLoops, [&] { emitBody(); });
    return whyNot.empty();
  }
  // Workers share the outer loops, or where these are short, the vectors.
  const Loop &loop = trace.loops[chosenLoop];
  DimExpr extent = loop.end - loop.begin;
  auto known = extent.asConstant();
  bool isMultiple = known && *known % fullLanes == 0;
  int64_t iterations = 1;
  bool areOuterKnown = true;
  for (unsigned outer : outerLoops) {
    auto outerExtent = extentOf(outer);
    areOuterKnown = areOuterKnown && outerExtent;
    iterations *= outerExtent.value_or(1);
  }
  bool splitsVectors = func.getParallel() && areOuterKnown && iterations < enoughIterations / 4 &&
                       (!known || *known >= 16 * int64_t(fullLanes));
  if (!splitsVectors) {
    workerLoops(outerLoops, [&] {
      vectorLoops(chosenLoop, dims.get(loop.begin), dims.get(loop.end), extent, isMultiple, [&] { emitBody(); });
    });
    return whyNot.empty();
  }
  Value total = dims.get(extent), begin = dims.get(loop.begin);
  insertAt(0);
  Range range = workerRange(builder, loc, func, total, fullLanes);
  range.begin = add(range.begin, begin);
  range.end = add(range.end, begin);
  nestedLoops(outerLoops, [&] {
    vectorLoops(chosenLoop, range.begin, range.end, DimExpr::symbol("part"), isMultiple, [&] { emitBody(); });
  });
  return whyNot.empty();
}

// --- transposition ---------------------------------------------------------------------------------------------------

/// The registers of a tile, transposed: 24 shuffles within and between the halves.
static SmallVector<Value> transposed(OpBuilder &b, Location loc, ArrayRef<Value> rows) {
  auto shuffle = [&](Value x, Value y, ArrayRef<int64_t> mask) -> Value {
    return b.create<vector::ShuffleOp>(loc, x, y, mask);
  };
  const int64_t low[] = {0, 8, 1, 9, 4, 12, 5, 13}, high[] = {2, 10, 3, 11, 6, 14, 7, 15};
  const int64_t lowPair[] = {0, 1, 8, 9, 4, 5, 12, 13}, highPair[] = {2, 3, 10, 11, 6, 7, 14, 15};
  const int64_t lowHalf[] = {0, 1, 2, 3, 8, 9, 10, 11}, highHalf[] = {4, 5, 6, 7, 12, 13, 14, 15};
  SmallVector<Value> t, u, result;
  for (size_t k = 0; k < 8; k += 2) {
    t.push_back(shuffle(rows[k], rows[k + 1], low));
    t.push_back(shuffle(rows[k], rows[k + 1], high));
  }
  for (size_t k = 0; k < 8; k += 4)
    for (size_t part = 0; part < 2; ++part) {
      u.push_back(shuffle(t[k + part], t[k + part + 2], lowPair));
      u.push_back(shuffle(t[k + part], t[k + part + 2], highPair));
    }
  for (size_t k = 0; k < 4; ++k)
    result.push_back(shuffle(u[k], u[k + 4], lowHalf));
  for (size_t k = 0; k < 4; ++k)
    result.push_back(shuffle(u[k], u[k + 4], highHalf));
  return result;
}

void Nest::tile(Value i, Value j) {
  SmallVector<Value> steps;
  for (int64_t k = 0; k < tileSize; ++k)
    steps.push_back(dims.constant(k));
  OpBuilder::InsertionGuard guard(builder);
  lanes = unsigned(tileSize);
  vectorLoop = chosenLoop;
  for (auto &[number, columns] : tiles) {
    const Node &n = trace.nodes[number];
    SmallVector<Value> rows;
    for (int64_t k = 0; k < tileSize; ++k) {
      insertAt(unsigned(frames.size()) - 1);
      bind(chosenLoop, k == 0 ? j : add(j, steps[size_t(k)]));
      Value offset = index(n.index);
      insertAt(unsigned(frames.size()) - 1);
      rows.push_back(elements.load(func.buffer(n.buffer), offset, n.elementType, lanes));
      unbind();
    }
    insertAt(unsigned(frames.size()) - 1);
    columns = transposed(builder, loc, rows);
  }
  for (int64_t k = 0; k < tileSize; ++k) {
    insertAt(unsigned(frames.size()) - 1);
    bind(chosenLoop, j);
    bind(tileLoop, k == 0 ? i : add(i, steps[size_t(k)]));
    tileRow = unsigned(k);
    direct();
    unbind();
    unbind();
  }
  lanes = 0;
}

void Nest::direct() {
  for (auto [to, at] : llvm::zip(traced.stores, traced.indices))
    store(to, at);
}

void Nest::transposedLoops() {
  const Loop &li = trace.loops[tileLoop], &lj = trace.loops[chosenLoop];
  auto extentI = extentOf(tileLoop), extentJ = extentOf(chosenLoop);
  // Two tiles side by side fill the cache lines that they write.
  int64_t stepJ = !extentJ || *extentJ >= 2 * tileSize ? 2 * tileSize : tileSize;
  Value beginI = dims.get(li.begin), endI = dims.get(li.end), beginJ = dims.get(lj.begin), endJ = dims.get(lj.end);
  Value granuleI = dims.constant(tileSize), granuleJ = dims.constant(stepJ), half = dims.constant(tileSize);
  // Where the outer loops are short, workers share the rows of tiles.
  int64_t iterations = 1;
  for (unsigned outer : outerLoops)
    iterations *= extentOf(outer).value_or(enoughIterations);
  bool splitsTiles = func.getParallel() && iterations < enoughIterations / 4;
  if (splitsTiles) {
    Value total = dims.get(lj.end - lj.begin);
    insertAt(0);
    Range range = workerRange(builder, loc, func, total, stepJ);
    endJ = add(range.end, beginJ);
    beginJ = add(range.begin, beginJ);
  }
  auto wholeTiles = [&](Value begin, Value end, Value granule) -> Value {
    insertAt(0);
    Value length = builder.create<arith::SubIOp>(loc, end, begin);
    Value rest = builder.create<arith::RemUIOp>(loc, length, granule);
    return builder.create<arith::SubIOp>(loc, end, rest);
  };
  Value mainI = wholeTiles(beginI, endI, granuleI), mainJ = wholeTiles(beginJ, endJ, granuleJ);
  auto body = [&] {
    forLoop(chosenLoop, beginJ, mainJ, stepJ, {}, [&](Values) {
      forLoop(tileLoop, beginI, mainI, tileSize, {}, [&](Values) {
        tile(counter(tileLoop), counter(chosenLoop));
        if (stepJ > tileSize) {
          insertAt(unsigned(frames.size()) - 1);
          tile(counter(tileLoop), add(counter(chosenLoop), half));
        }
        return Values();
      });
      return Values();
    });
    // What is left of i, then of j, element by element.
    unsigned savedTile = tileLoop;
    auto rest = [&](Value fromI, Value toI, Value fromJ, Value toJ) {
      forLoop(savedTile, fromI, toI, 1, {}, [&](Values) {
        forLoop(chosenLoop, fromJ, toJ, 1, {}, [&](Values) {
          direct();
          return Values();
        });
        return Values();
      });
    };
    if (!extentI || *extentI % tileSize != 0)
      rest(mainI, endI, beginJ, mainJ);
    if (!extentJ || *extentJ % stepJ != 0)
      rest(beginI, endI, mainJ, endJ);
  };
  if (splitsTiles)
    nestedLoops(outerLoops, body);
  else
    workerLoops(outerLoops, body);
}

} // namespace firn

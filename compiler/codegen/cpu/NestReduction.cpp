// Reductions in a nest: loops over rows with several accumulators, and values that are kept for a second loop.
//
//   Error:       sums of n floats have the bound of (n / (4 lanes) + log2(4 lanes)) eps times the sum of magnitudes
//   NaN:         a NaN in a row is the row's maximum, minimum, sum
//   Determinism: the same bits for any number of workers; other vector widths sum in another order
#include "compiler/codegen/cpu/Nest.h"

#include "dialects/kernel/Kernel.h"
#include <limits>

using namespace mlir;

namespace firn {
namespace {

/// A node that takes longer than this is kept instead of computed again.
constexpr double keepWeight = 5;
/// Scratch that stays in the first-level cache beside the row itself.
constexpr int64_t scratchLimit = 256 << 10;

/// A maximum or minimum of f32 whose NaNs are looked for beside it: values are the extreme and the greatest bits of a
/// magnitude, which is less work than asking for NaN at every step of the extreme.
bool hasMagnitude(const Node &n, Type type) {
  return (n.code == Node::Max || n.code == Node::Min) && type.isF32() && !n.skipsNaN;
}

/// How many values one accumulator has.
size_t valuesOf(const Node &n, Type type) {
  return n.code == Node::ArgMax || n.code == Node::ArgMin || hasMagnitude(n, type) ? 2 : 1;
}

} // namespace

void Nest::reductionsBelow(int number, SmallVector<int> &ordered, llvm::DenseSet<int> &seen) const {
  if (!seen.insert(number).second)
    return;
  const Node &n = trace.nodes[size_t(number)];
  for (int operand : n.operands)
    if (operand >= 0)
      reductionsBelow(operand, ordered, seen);
  for (const auto &term : n.index.terms)
    if (int element = trace.atoms[term.first].node; element >= 0)
      reductionsBelow(element, ordered, seen);
  if (n.kind == Node::Reduce)
    ordered.push_back(number);
}

void Nest::planSpills() {
  if (trace.rowLoops.empty())
    return;
  uint64_t rows = 0, outer = 0;
  DimExpr length(1);
  for (unsigned loop : trace.rowLoops) {
    rows |= uint64_t(1) << loop;
    length = length * trace.loops[loop].size;
  }
  for (unsigned loop : traced.order)
    if (!trace.loops[loop].isRow)
      outer |= uint64_t(1) << loop;
  SmallVector<int> reductions;
  llvm::DenseSet<int> seen;
  for (const NestStore &to : traced.stores)
    reductionsBelow(to.node, reductions, seen);
  for (int number : reductions)
    if (trace.nodes[size_t(number)].loops != outer)
      return; // loops at several depths
  auto known = length.asConstant();
  SmallVector<int> roots;
  for (int number : reductions)
    roots.push_back(trace.nodes[size_t(number)].operands[0]);
  int rowStore = -1;
  for (auto [i, to] : llvm::enumerate(traced.stores))
    if (trace.loopsOf(traced.indices[i]) & rows) {
      roots.push_back(to.node);
      rowStore = int(i);
    }
  // Weight of making a node from what is loaded.
  std::function<double(int)> weight = [&](int number) -> double {
    const Node &n = trace.nodes[size_t(number)];
    double sum = weightOf(n);
    if (n.kind == Node::Load && chosenLoop != ~0u && (n.loops >> chosenLoop & 1) &&
        n.index.coefficient(chosenLoop) != DimExpr(1))
      sum += 8;
    if (n.kind != Node::Reduce)
      for (int operand : n.operands)
        sum += operand < 0 ? 0 : weight(operand);
    return sum;
  };
  llvm::DenseMap<int, int> firstLoop;
  std::function<void(int, int)> visit = [&](int number, int loop) {
    const Node &n = trace.nodes[size_t(number)];
    if (n.kind == Node::Reduce || !(n.loops & rows))
      return;
    auto [found, isNew] = firstLoop.try_emplace(number, loop);
    if (!isNew && found->second == loop)
      return;
    if (!isNew && !spills.count(number) && weight(number) > keepWeight && !n.elementType.isInteger(1)) {
      Spill spill;
      int64_t bytes = Elements::bytes(Elements::registerType(n.elementType, 0));
      int64_t perElement = isRowVector || fullLanes == 0 ? 1 : fullLanes;
      if (known && *known < scratchLimit / (bytes * perElement) &&
          scratchBytes + bytes * perElement * (*known + 64) <= scratchLimit) {
        spill.bytesOffset = scratchBytes;
        scratchBytes += (bytes * perElement * (*known + 64) + 63) / 64 * 64; // a last vector may reach beyond the row
        spills[number] = spill;
        return;
      }
      // A row of unknown length: its place in the result, where that has this type.
      bool isTaken = llvm::any_of(spills, [](auto &entry) { return entry.second.outputStore >= 0; });
      if (rowStore >= 0 && !isTaken && traced.stores[size_t(rowStore)].elementType == n.elementType &&
          (n.elementType.isF32() || n.elementType.isF64()) &&
          (chosenLoop == ~0u || traced.indices[size_t(rowStore)].coefficient(chosenLoop) == DimExpr(1))) {
        spill.outputStore = rowStore;
        spills[number] = spill;
        return;
      }
    }
    if (spills.count(number))
      return;
    for (int operand : n.operands)
      if (operand >= 0)
        visit(operand, loop);
  };
  for (auto [loop, root] : llvm::enumerate(roots))
    visit(root, int(loop));
}

Value Nest::spillOffset(unsigned width) {
  Linear position;
  for (unsigned loop : trace.rowLoops)
    position = position * trace.loops[loop].size + Linear::atom(loop);
  if (!isRowVector && width > 0)
    position = position * DimExpr(int64_t(fullLanes));
  return index(position);
}

Value Nest::spillPlace(int number, unsigned width, Value &offset) {
  const Spill spill = spills[number];
  if (spill.outputStore >= 0) {
    offset = index(traced.indices[size_t(spill.outputStore)]);
    return func.buffer(traced.stores[size_t(spill.outputStore)].buffer);
  }
  offset = spillOffset(width);
  if (spill.bytesOffset == 0)
    return func.scratch();
  Value distance = dims.constant(spill.bytesOffset);
  OpBuilder::InsertionGuard guard(builder);
  insertAt(0);
  return builder.create<kernel::OffsetOp>(loc, func.scratch().getType(), func.scratch(), distance);
}

void Nest::finishSpills() {
  for (int number : storedNow)
    spills[number].isStored = true;
  storedNow.clear();
}

void Nest::rowLoops(ArrayRef<unsigned> loops, llvm::function_ref<void()> body) {
  const Loop &loop = trace.loops[loops.front()];
  Value begin = dims.get(loop.begin), end = dims.get(loop.end);
  if (loops.size() > 1 || !isRowVector) {
    forLoop(loops.front(), begin, end, 1, {}, [&](Values) {
      loops.size() > 1 ? rowLoops(loops.drop_front(), body) : body();
      return Values();
    });
    return;
  }
  auto known = loop.size.asConstant();
  vectorLoops(loops.front(), begin, end, loop.size, known && *known % fullLanes == 0, body);
}

void Nest::emitBody() {
  for (auto &[number, spill] : spills)
    spill.isStored = false;
  storedNow.clear();
  uint64_t rows = 0;
  for (unsigned loop : trace.rowLoops)
    rows |= uint64_t(1) << loop;
  SmallVector<int> reductions;
  llvm::DenseSet<int> seen;
  for (const NestStore &to : traced.stores)
    reductionsBelow(to.node, reductions, seen);
  for (int number : reductions)
    if (!node(number))
      return;
  bool hasRowStores = false;
  for (auto [to, at] : llvm::zip(traced.stores, traced.indices)) {
    if (trace.loopsOf(at) & rows)
      hasRowStores = true;
    else
      store(to, at);
  }
  if (!hasRowStores)
    return;
  rowLoops(trace.rowLoops, [&] {
    for (auto [to, at] : llvm::zip(traced.stores, traced.indices))
      if (trace.loopsOf(at) & rows)
        store(to, at);
  });
}

// --- one reduction ---------------------------------------------------------------------------------------------------

Nest::Values Nest::identity(const Node &n, Type type, unsigned width) {
  OpBuilder::InsertionGuard guard(builder);
  insertAt(0);
  bool isFloat = isa<FloatType>(type);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  auto bound = [&](bool lowest) -> Value {
    if (isFloat)
      return elements.constant(lowest ? -infinity : infinity, type, width);
    unsigned bits = type.getIntOrFloatBitWidth();
    bool isUnsigned = type.isUnsignedInteger() || bits == 1;
    APInt value = isUnsigned ? (lowest ? APInt::getZero(bits) : APInt::getMaxValue(bits))
                             : (lowest ? APInt::getSignedMinValue(bits) : APInt::getSignedMaxValue(bits));
    return elements.integer(int64_t(isUnsigned ? value.getZExtValue() : uint64_t(value.getSExtValue())), type, width);
  };
  switch (n.code) {
  case Node::Sum:
    return {elements.integer(0, type, width)};
  case Node::Product:
    return {elements.integer(1, type, width)};
  case Node::Max:
  case Node::Min: {
    Values result{bound(n.code == Node::Max)};
    if (hasMagnitude(n, type))
      result.push_back(elements.integer(0, builder.getI32Type(), width));
    return result;
  }
  default:
    return {bound(n.code == Node::ArgMax), elements.integer(0, n.elementType, width)};
  }
}

Nest::Values Nest::combine(const Node &n, ValueRange a, ValueRange b, Type type) {
  switch (n.code) {
  case Node::Sum:
    return {elements.add(a[0], b[0])};
  case Node::Product:
    return {elements.mul(a[0], b[0])};
  case Node::Max:
  case Node::Min: {
    bool isMax = n.code == Node::Max;
    if (!isa<FloatType>(type) || (!n.skipsNaN && !hasMagnitude(n, type)))
      return {isMax ? elements.maximum(a[0], b[0], type) : elements.minimum(a[0], b[0], type)};
    Value takesB =
        builder.create<arith::CmpFOp>(loc, isMax ? arith::CmpFPredicate::OGT : arith::CmpFPredicate::OLT, b[0], a[0]);
    Values result{builder.create<arith::SelectOp>(loc, takesB, b[0], a[0])};
    if (hasMagnitude(n, type))
      result.push_back(builder.create<arith::MaxSIOp>(loc, a[1], b[1]));
    return result;
  }
  default:
    break;
  }
  // Whether b comes before a: greater, NaN before numbers; of equals the lesser index (the greater with selectLast).
  bool isMax = n.code == Node::ArgMax;
  auto beyond = [&](Value x, Value y) -> Value {
    if (!isa<FloatType>(type)) {
      bool isUnsigned = type.isUnsignedInteger();
      auto predicate = isMax ? (isUnsigned ? arith::CmpIPredicate::ugt : arith::CmpIPredicate::sgt)
                             : (isUnsigned ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt);
      return builder.create<arith::CmpIOp>(loc, predicate, x, y);
    }
    Value isBeyond =
        builder.create<arith::CmpFOp>(loc, isMax ? arith::CmpFPredicate::OGT : arith::CmpFPredicate::OLT, x, y);
    Value isNan = builder.create<arith::CmpFOp>(loc, arith::CmpFPredicate::UNO, x, x);
    Value isNumber = builder.create<arith::CmpFOp>(loc, arith::CmpFPredicate::ORD, y, y);
    return builder.create<arith::OrIOp>(loc, isBeyond, builder.create<arith::AndIOp>(loc, isNan, isNumber));
  };
  Value isBefore = builder.create<arith::CmpIOp>(
      loc, n.selectLast ? arith::CmpIPredicate::sgt : arith::CmpIPredicate::slt, b[1], a[1]);
  Value bWins = beyond(b[0], a[0]), aWins = beyond(a[0], b[0]);
  Value loses = builder.create<arith::XOrIOp>(loc, aWins, elements.number(-1, aWins.getType()));
  Value takesB = builder.create<arith::OrIOp>(loc, bWins, builder.create<arith::AndIOp>(loc, loses, isBefore));
  return {builder.create<arith::SelectOp>(loc, takesB, b[0], a[0]),
          builder.create<arith::SelectOp>(loc, takesB, b[1], a[1])};
}

Nest::Values Nest::nextElement(const Node &n, unsigned width) {
  Value x = atLanes(n.operands[0], width);
  Type operandType = trace.nodes[size_t(n.operands[0])].elementType;
  if (x && hasMagnitude(n, operandType)) {
    OpBuilder::InsertionGuard guard(builder);
    insertAt(unsigned(frames.size()) - 1);
    Type bits = Elements::registerType(builder.getI32Type(), width);
    Value raw = builder.create<arith::BitcastOp>(loc, bits, x);
    return {x, builder.create<arith::AndIOp>(loc, raw, elements.number(0x7fffffff, bits))};
  }
  if (n.code != Node::ArgMax && n.code != Node::ArgMin)
    return {x};
  Linear position;
  for (unsigned loop : trace.rowLoops)
    position = position * trace.loops[loop].size + Linear::atom(loop);
  Node at(Node::Index);
  at.index = position;
  at.elementType = n.elementType;
  at.loops = trace.loopsOf(position);
  Value index = indexNode(at, dependsOnVector(at.loops));
  OpBuilder::InsertionGuard guard(builder);
  insertAt(unsigned(frames.size()) - 1);
  return {x, elements.splat(index, width)};
}

Nest::Values Nest::horizontal(const Node &n, Values accumulated, Type type) {
  int64_t width = cast<VectorType>(accumulated[0].getType()).getNumElements();
  for (int64_t half = width / 2; half > 0; half /= 2) {
    SmallVector<int64_t> low, high;
    for (int64_t i = 0; i < half; ++i) {
      low.push_back(i);
      high.push_back(half + i);
    }
    Values a, b;
    for (Value v : accumulated) {
      a.push_back(builder.create<vector::ShuffleOp>(loc, v, v, low));
      b.push_back(builder.create<vector::ShuffleOp>(loc, v, v, high));
    }
    accumulated = combine(n, a, b, type);
  }
  for (Value &v : accumulated)
    v = builder.create<vector::ExtractOp>(loc, v, ArrayRef<int64_t>{int64_t(0)});
  return accumulated;
}

/// Runs `loops` over elements of `width` lanes (0: scalars); `carried` are `unroll` accumulators and, behind them, one
/// scalar accumulator where a row ends in scalars.
Nest::Values Nest::accumulate(const Node &n, ArrayRef<unsigned> loops, Values carried, unsigned unroll,
                              unsigned width) {
  const Loop &loop = trace.loops[loops.front()];
  Value begin = dims.get(loop.begin), end = dims.get(loop.end);
  if (loops.size() > 1)
    return forLoop(loops.front(), begin, end, 1, carried,
                   [&](Values inner) { return accumulate(n, loops.drop_front(), inner, unroll, width); });
  Type type = trace.nodes[size_t(n.operands[0])].elementType;
  size_t per = valuesOf(n, type);
  unsigned row = loops.front(), outside = unsigned(frames.size()) - 1;
  auto known = loop.size.asConstant();
  int64_t step = isRowVector ? std::max(1u, fullLanes) : 1;
  auto wholeEnd = [&](Value from, int64_t granule) -> Value {
    if (granule == 1)
      return end;
    Value by = dims.constant(granule);
    OpBuilder::InsertionGuard guard(builder);
    insertAt(outside);
    Value length = builder.create<arith::SubIOp>(loc, end, from);
    Value rest = builder.create<arith::RemUIOp>(loc, length, by);
    return builder.create<arith::SubIOp>(loc, end, rest);
  };
  unsigned savedLoop = vectorLoop;
  if (isRowVector)
    vectorLoop = row;
  // One element (or vector) into accumulator `at` of the values of an iteration.
  auto take = [&](Values &values, size_t at, unsigned lanesThen) {
    unsigned savedLanes = lanes;
    if (isRowVector)
      lanes = lanesThen;
    Values next = nextElement(n, lanesThen);
    lanes = savedLanes;
    if (!next[0])
      return;
    OpBuilder::InsertionGuard guard(builder);
    insertAt(unsigned(frames.size()) - 1);
    Values now = combine(n, ValueRange(values).slice(at * per, per), next, type);
    if (isRowVector && count && lanesThen > 0) { // lanes beyond the row keep what they have
      SmallVector<int32_t> iota;
      for (unsigned lane = 0; lane < lanesThen; ++lane)
        iota.push_back(int32_t(lane));
      auto vector = VectorType::get(int64_t(lanesThen), builder.getI32Type());
      Value lane = builder.create<arith::ConstantOp>(loc, DenseElementsAttr::get(vector, ArrayRef(iota)));
      Value most = builder.create<arith::IndexCastOp>(loc, builder.getI32Type(), count);
      Value exists =
          builder.create<arith::CmpIOp>(loc, arith::CmpIPredicate::slt, lane, elements.splat(most, lanesThen));
      for (size_t k = 0; k < per; ++k)
        now[k] = builder.create<arith::SelectOp>(loc, exists, now[k], values[at * per + k]);
    }
    for (size_t k = 0; k < per; ++k)
      values[at * per + k] = now[k];
  };
  Value at = begin;
  if (unroll > 1) {
    Value mainEnd = known && *known % (step * unroll) == 0 ? end : wholeEnd(at, step * unroll);
    carried = forLoop(row, at, mainEnd, step * unroll, carried, [&](Values values) {
      Value base = counter(row);
      for (unsigned k = 0; k < unroll; ++k) {
        Value distance = dims.constant(step * k);
        insertAt(unsigned(frames.size()) - 1);
        bind(row, k == 0 ? base : add(base, distance));
        take(values, k, width);
        unbind();
      }
      return values;
    });
    at = mainEnd;
  }
  if (!(known && unroll > 1 && *known % (step * unroll) == 0) && !(known && *known < step)) {
    Value vectorEnd = known && *known % step == 0 ? end : wholeEnd(at, step);
    carried = forLoop(row, at, vectorEnd, step, carried, [&](Values values) {
      take(values, 0, width);
      return values;
    });
    at = vectorEnd;
  }
  if (step > 1 && !(known && *known % step == 0)) {
    if (target.hasAvx512) { // a loop of one or no iteration, masked
      carried = forLoop(row, at, end, step, carried, [&](Values values) {
        Value from = counter(row);
        insertAt(unsigned(frames.size()) - 1);
        count = builder.create<arith::SubIOp>(loc, end, from);
        laneEnd = end;
        take(values, 0, width);
        count = laneEnd = {};
        return values;
      });
    } else {
      carried = forLoop(row, at, end, 1, carried, [&](Values values) {
        take(values, unroll, 0);
        return values;
      });
    }
  }
  vectorLoop = savedLoop;
  return carried;
}

Value Nest::reduce(int number) {
  const Node n = trace.nodes[size_t(number)];
  Type type = trace.nodes[size_t(n.operands[0])].elementType;
  size_t per = valuesOf(n, type);
  // In the frame of the loops that it depends on: frames further in wait.
  std::vector<Frame> waiting;
  unsigned place = frameOf(n.loops);
  while (frames.size() > place + 1) {
    waiting.push_back(std::move(frames.back()));
    frames.pop_back();
  }
  auto resume = [&] {
    for (Frame &frame : llvm::reverse(waiting))
      frames.push_back(std::move(frame));
  };
  Values result;
  if (trace.rowLoops.empty()) {
    // A row of one element.
    Value x = atLanes(n.operands[0], dependsOnVector(n.loops) ? lanes : 0);
    OpBuilder::InsertionGuard guard(builder);
    insertAt(place);
    bool isPosition = n.code == Node::ArgMax || n.code == Node::ArgMin;
    Value first = isPosition ? elements.integer(0, n.elementType, dependsOnVector(n.loops) ? lanes : 0) : x;
    resume();
    return first;
  }
  unsigned width = isRowVector ? fullLanes : lanes;
  double weight = 0;
  for (const Node &other : trace.nodes)
    weight += weightOf(other);
  unsigned unroll = weight > 40 ? 2 : 4;
  if (auto known = trace.loops[trace.rowLoops.back()].size.asConstant())
    while (unroll > 1 && *known < int64_t(unroll) * (isRowVector ? int64_t(fullLanes) : 1))
      unroll /= 2;
  Values carried;
  for (unsigned k = 0; k < unroll; ++k)
    carried.append(identity(n, type, width));
  bool hasScalar = isRowVector && !target.hasAvx512;
  if (hasScalar)
    carried.append(identity(n, type, 0));
  carried = accumulate(n, trace.rowLoops, carried, unroll, width);
  finishSpills();
  OpBuilder::InsertionGuard guard(builder);
  insertAt(unsigned(frames.size()) - 1);
  // A tree over the accumulators.
  SmallVector<Values> parts;
  for (unsigned k = 0; k < unroll; ++k)
    parts.push_back(Values(carried.begin() + long(k * per), carried.begin() + long((k + 1) * per)));
  while (parts.size() > 1) {
    SmallVector<Values> next;
    for (size_t k = 0; k + 1 < parts.size(); k += 2)
      next.push_back(combine(n, parts[k], parts[k + 1], type));
    parts = std::move(next);
  }
  result = parts.front();
  if (isRowVector) {
    result = horizontal(n, result, type);
    if (hasScalar)
      result = combine(n, result, ValueRange(carried).take_back(per), type);
  }
  if (hasMagnitude(n, type)) {
    Value greatest = elements.number(0x7f800000, result[1].getType());
    Value isNan = builder.create<arith::CmpIOp>(loc, arith::CmpIPredicate::sgt, result[1], greatest);
    Value notANumber = elements.number(std::numeric_limits<double>::quiet_NaN(), result[0].getType());
    result = {builder.create<arith::SelectOp>(loc, isNan, notANumber, result[0])};
  }
  resume();
  return result.back();
}

} // namespace firn

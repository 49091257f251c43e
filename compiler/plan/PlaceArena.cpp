// PlaceArena: offsets for the buffers of a program whose sizes are known, or bounded by the ranges of its dimensions.
#include "compiler/plan/Program.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <optional>

namespace firn {

namespace {

/// All that a value may be. Numbers beyond `huge` stand for anything.
struct Interval {
  int64_t low, high;
};
constexpr int64_t huge = int64_t(1) << 40;
constexpr Interval anything = {-huge, huge};

Interval among(std::initializer_list<__int128> candidates) {
  auto clamped = [](__int128 number) { return int64_t(std::min<__int128>(huge, std::max<__int128>(-huge, number))); };
  return {clamped(std::min(candidates)), clamped(std::max(candidates))};
}

bool isOpen(Interval x) { return x.low <= -huge || x.high >= huge; }

/// The result where an operand is open: open in each direction that the operand may lead to.
Interval applyOpen(int32_t op, Interval a, Interval b) {
  auto either = [](bool isOpenBelow, int64_t low, bool isOpenAbove, int64_t high) {
    return Interval{isOpenBelow ? -huge : low, isOpenAbove ? huge : high};
  };
  bool below[] = {a.low <= -huge, b.low <= -huge}, above[] = {a.high >= huge, b.high >= huge};
  switch (op) {
  case FIRN_VALUE_ADD:
    return either(below[0] || below[1], a.low + b.low, above[0] || above[1], a.high + b.high);
  case FIRN_VALUE_SUB:
    return either(below[0] || above[1], a.low - b.high, above[0] || below[1], a.high - b.low);
  case FIRN_VALUE_MUL:
    return a.low >= 0 && b.low >= 0 ? Interval{0, huge} : anything;
  case FIRN_VALUE_FLOOR_DIV:
  case FIRN_VALUE_CEIL_DIV: // a positive divisor leads towards 0
    return b.low <= 0 ? anything
                      : either(below[0], std::min<int64_t>(a.low, op == FIRN_VALUE_FLOOR_DIV ? -1 : 0), above[0],
                               std::max<int64_t>(a.high, 1));
  }
  return anything;
}

Interval apply(int32_t op, Interval a, Interval b) {
  using Wide = __int128;
  bool isSelection = op == FIRN_VALUE_MIN || op == FIRN_VALUE_MAX || op == FIRN_VALUE_MOD;
  if (!isSelection && (isOpen(a) || isOpen(b)))
    return applyOpen(op, a, b);
  switch (op) {
  case FIRN_VALUE_ADD:
    return among({Wide(a.low) + b.low, Wide(a.high) + b.high});
  case FIRN_VALUE_SUB:
    return among({Wide(a.low) - b.high, Wide(a.high) - b.low});
  case FIRN_VALUE_MUL:
    return among({Wide(a.low) * b.low, Wide(a.low) * b.high, Wide(a.high) * b.low, Wide(a.high) * b.high});
  case FIRN_VALUE_MIN:
    return {std::min(a.low, b.low), std::min(a.high, b.high)};
  case FIRN_VALUE_MAX:
    return {std::max(a.low, b.low), std::max(a.high, b.high)};
  }
  if (b.low <= 0)
    return anything;
  switch (op) {
  case FIRN_VALUE_FLOOR_DIV:
  case FIRN_VALUE_CEIL_DIV: {
    auto divided = [&](int64_t x, int64_t y) -> Wide {
      return op == FIRN_VALUE_FLOOR_DIV ? llvm::divideFloorSigned(x, y) : llvm::divideCeilSigned(x, y);
    };
    return among({divided(a.low, b.low), divided(a.low, b.high), divided(a.high, b.low), divided(a.high, b.high)});
  }
  case FIRN_VALUE_MOD:
    return {0, b.high >= huge ? huge : b.high - 1};
  }
  return anything;
}

std::vector<Interval> intervalsOf(const Program &program) {
  std::vector<Interval> intervals;
  for (auto [i, value] : llvm::enumerate(program.values)) {
    Interval interval = anything;
    if (value.op == FIRN_VALUE_CONSTANT)
      interval = among({value.a});
    else if (value.op == FIRN_VALUE_INPUT_DIM)
      interval.low = 0;
    else if (value.op >= FIRN_VALUE_ADD)
      interval = apply(value.op, intervals[value.a], intervals[value.b]);
    // What the executor refuses need not fit.
    for (const ProgramConstraint &constraint : program.constraints)
      if (constraint.value == int32_t(i))
        interval = {std::max(interval.low, constraint.lower), std::min(interval.high, constraint.upper)};
    intervals.push_back(interval);
  }
  return intervals;
}

/// The most bytes that a buffer can have, if there is such a number.
std::optional<int64_t> mostBytes(const ProgramBuffer &buffer, llvm::ArrayRef<Interval> intervals) {
  int64_t count = 1;
  for (int32_t dim : buffer.dims) {
    if (intervals[dim].high >= huge ||
        __builtin_mul_overflow(count, std::max<int64_t>(0, intervals[dim].high), &count) || count >= huge)
      return std::nullopt;
  }
  return firn_dtype_bytes(buffer.dtype, count);
}

} // namespace

void placeArena(Program &program) {
  struct Item {
    int32_t buffer;
    int64_t bytes;
  };
  std::vector<Interval> intervals = intervalsOf(program);
  std::vector<Item> items;
  for (auto [i, b] : llvm::enumerate(program.buffers)) {
    if (b.kind != FIRN_BUFFER_ARENA)
      continue;
    std::optional<int64_t> bytes = mostBytes(b, intervals);
    if (!bytes)
      return;
    items.push_back({int32_t(i), int64_t(llvm::alignTo(uint64_t(*bytes), FIRN_BUFFER_ALIGNMENT))});
  }
  // Largest first; each takes the tightest gap between those that live at the same time.
  std::sort(items.begin(), items.end(),
            [](const Item &a, const Item &b) { return a.bytes != b.bytes ? a.bytes > b.bytes : a.buffer < b.buffer; });
  std::vector<Item> placed;
  int64_t total = 0;
  for (const Item &item : items) {
    ProgramBuffer &mine = program.buffers[item.buffer];
    std::vector<std::pair<int64_t, int64_t>> busy;
    for (const Item &other : placed) {
      const ProgramBuffer &theirs = program.buffers[other.buffer];
      if (theirs.firstStep <= mine.lastStep && mine.firstStep <= theirs.lastStep)
        busy.push_back({theirs.offset, theirs.offset + other.bytes});
    }
    llvm::sort(busy);
    int64_t at = 0, best = -1, bestGap = INT64_MAX;
    for (auto [begin, end] : busy) {
      if (begin - at >= item.bytes && begin - at < bestGap) {
        best = at;
        bestGap = begin - at;
      }
      at = std::max(at, end);
    }
    mine.offset = best >= 0 ? best : at;
    total = std::max(total, mine.offset + item.bytes);
    placed.push_back(item);
  }
  program.arenaBytes = total;
}

} // namespace firn

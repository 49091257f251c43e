// From the results of a fused operation to traced nests: makes a trace, and makes it again with the loops it asks for.
#include "compiler/codegen/cpu/Nest.h"

using namespace mlir;

namespace firn {
namespace {

/// The iteration space of some results, on the way to its final form.
struct Space {
  std::vector<Loop> loops;
  std::vector<unsigned> order;
  SmallVector<Linear> axes; // of the first result: the position on each axis
  Trace::Decisions decisions;
};

constexpr unsigned loopLimit = 48, boxLimit = 81, retryLimit = 64;

DimExpr product(ArrayRef<DimExpr> dims) {
  DimExpr total(1);
  for (const DimExpr &dim : dims)
    total = total * dim;
  return total;
}

class Tracer {
public:
  Tracer(FusedOp op, bool reduces, std::vector<TracedNest> &result, std::string &why)
      : fused(op), mayReduce(reduces), nests(result), whyNot(why) {
    yielded = cast<YieldOp>(fused.getBody().front().getTerminator()).getOperands();
  }

  bool run() {
    // Large results first: the others may share their loops.
    SmallVector<unsigned> left;
    for (unsigned i = 0; i < yielded.size(); ++i)
      left.push_back(i);
    llvm::sort(left, [&](unsigned a, unsigned b) {
      double first = sizeOf(a), second = sizeOf(b);
      return first != second ? first > second : a < b;
    });
    while (!left.empty()) {
      SmallVector<unsigned> group{left.front()}, rest;
      for (unsigned other : ArrayRef(left).drop_front())
        (mayShare(left.front(), other) ? group : rest).push_back(other);
      shared.clear();
      if (!box(spaceOf(left.front()), group))
        return false;
      // What could not share after all is on its own.
      for (unsigned other : group)
        if (!shared.count(other))
          rest.push_back(other);
      left = rest;
    }
    return true;
  }

private:
  /// For sorting: the number of known elements times (1 + symbolic dims).
  double sizeOf(unsigned result) const {
    double size = 1;
    for (const DimExpr &dim : dimsOfValue(yielded[result]))
      size *= dim.asConstant() ? double(*dim.asConstant()) : 1e6;
    return size;
  }
  bool mayShare(unsigned first, unsigned other) const {
    return mayReduce || dimsOfValue(yielded[first]) == dimsOfValue(yielded[other]);
  }
  Space spaceOf(unsigned result) const {
    Space space;
    for (const DimExpr &dim : dimsOfValue(yielded[result])) {
      if (dim == DimExpr(1)) {
        space.axes.push_back(Linear());
        continue;
      }
      space.axes.push_back(Linear::atom(unsigned(space.loops.size())));
      space.order.push_back(unsigned(space.loops.size()));
      space.loops.push_back(Loop(dim));
    }
    return space;
  }

  /// Positions of another result over the loops of `trace`, if its elements are those of the outer loops, or of all.
  std::optional<Trace::Position> positionOf(Trace &trace, ArrayRef<unsigned> order, unsigned result) {
    SmallVector<DimExpr> dims = dimsOfValue(yielded[result]);
    DimExpr total = product(dims);
    for (bool withRows : {false, true}) {
      Linear index;
      DimExpr count(1);
      for (unsigned number : order) {
        if (trace.loops[number].isRow && !withRows)
          continue;
        index = index * trace.loops[number].size + Linear::atom(number);
        count = count * trace.loops[number].size;
      }
      if (count != total)
        continue;
      auto parts = trace.delinearize(index, dims);
      if (!parts)
        return std::nullopt;
      Trace::Position position;
      for (auto [part, dim] : llvm::zip(*parts, dims))
        position.push_back({part, dim == DimExpr(1)});
      return position;
    }
    return std::nullopt;
  }

  bool box(Space space, ArrayRef<unsigned> group) {
    for (unsigned attempt = 0; attempt < retryLimit; ++attempt) {
      if (space.loops.size() > loopLimit) {
        whyNot = "too many loops";
        return false;
      }
      TracedNest traced;
      traced.trace = std::make_unique<Trace>(fused, space.loops, space.decisions);
      Trace &trace = *traced.trace;
      trace.mayReduce = mayReduce;
      bool isComplete = tracedAll(trace, space, group, traced);
      if (isComplete) {
        // Row loops go inside.
        std::vector<unsigned> order;
        for (bool isRow : {false, true})
          for (unsigned number : space.order)
            if (trace.loops[number].isRow == isRow)
              order.push_back(number);
        traced.order = order;
        trace.collapse(traced.order, traced.indices);
        nests.push_back(std::move(traced));
        if (nests.size() > boxLimit) {
          whyNot = "too many pieces";
          return false;
        }
        return true;
      }
      switch (trace.request) {
      case Trace::Split:
        split(space, trace.requestLoop, trace.splitInner);
        break;
      case Trace::Row:
        for (const DimExpr &size : trace.rowSizes) {
          space.order.push_back(unsigned(space.loops.size()));
          space.loops.push_back(Loop(size));
          space.loops.back().isRow = true;
        }
        break;
      case Trace::Cut:
        for (auto [i, part] : llvm::enumerate(trace.cuts)) {
          if (part.first == part.second)
            continue;
          Space piece = space;
          piece.loops[trace.requestLoop].begin = part.first;
          piece.loops[trace.requestLoop].end = part.second;
          piece.decisions[trace.cutSite] = int(i);
          if (!box(std::move(piece), group))
            return false;
        }
        return true;
      default:
        whyNot = trace.whyNot.empty() ? "the body cannot be traced" : trace.whyNot;
        return false;
      }
    }
    whyNot = "the loops find no final form";
    return false;
  }

  bool tracedAll(Trace &trace, const Space &space, ArrayRef<unsigned> group, TracedNest &traced) {
    SmallVector<DimExpr> firstDims = dimsOfValue(yielded[group.front()]);
    Trace::Position first;
    for (auto [axis, dim] : llvm::zip(space.axes, firstDims))
      first.push_back({axis, dim == DimExpr(1)});
    for (unsigned result : group) {
      Value value = yielded[result];
      Trace::Position position = first;
      if (result != group.front() && dimsOfValue(value) != firstDims) {
        auto own = positionOf(trace, space.order, result);
        if (!own) {
          if (trace.request != Trace::None)
            return false;
          continue; // in a nest of its own
        }
        position = *own;
      }
      int node = trace.pull(value, position);
      if (node < 0)
        return false;
      shared.insert(result);
      traced.stores.push_back(
          {unsigned(fused.getNumOperands()) + result, cast<RankedTensorType>(value.getType()).getElementType(), node});
      traced.indices.push_back(trace.linearize(position, dimsOfValue(value)));
    }
    return true;
  }

  static void split(Space &space, unsigned number, const DimExpr &innerSize) {
    unsigned inner = unsigned(space.loops.size());
    Loop &outer = space.loops[number];
    Loop added(innerSize);
    added.isRow = outer.isRow;
    outer.size = *outer.size.exactDiv(innerSize);
    outer.begin = *outer.begin.exactDiv(innerSize);
    outer.end = *outer.end.exactDiv(innerSize);
    space.loops.push_back(added);
    space.order.insert(std::find(space.order.begin(), space.order.end(), number) + 1, inner);
    for (Linear &axis : space.axes)
      if (auto found = axis.terms.find(number); found != axis.terms.end()) {
        DimExpr coefficient = found->second;
        found->second = coefficient * innerSize;
        axis.terms.emplace(inner, coefficient);
      }
  }

  FusedOp fused;
  bool mayReduce;
  std::vector<TracedNest> &nests;
  std::string &whyNot;
  OperandRange yielded{nullptr, 0};
  llvm::DenseSet<unsigned> shared;
};

} // namespace

bool traceResults(FusedOp fused, bool mayReduce, std::vector<TracedNest> &nests, std::string &whyNot) {
  for (Type type : llvm::concat<const Type>(SmallVector<Type>(fused->getOperandTypes()),
                                            SmallVector<Type>(fused->getResultTypes())))
    if (!isa<RankedTensorType>(type)) {
      whyNot = "a tensor without a rank";
      return false;
    }
  return Tracer(fused, mayReduce, nests, whyNot).run();
}

} // namespace firn

// Reductions and normalisations as nodes: each is a few sums, maxima and arithmetic over the row loops.
//
// Arithmetic is in f32 (f64 for f64, integers in their own type), rounded to the result's type once.
#include "compiler/codegen/cpu/Elements.h"
#include "compiler/codegen/cpu/Trace.h"

using namespace mlir;

namespace firn {
namespace {

Type elementOf(Value value) { return cast<RankedTensorType>(value.getType()).getElementType(); }

/// The type to compute in.
Type wideType(Type element) {
  return element.isF64() || !isa<FloatType>(element) ? element : Float32Type::get(element.getContext());
}

} // namespace

bool Trace::isWholeAxis(const Linear &index, const DimExpr &size) const {
  DimExpr count(1);
  if (index.terms.empty() || index.constant != DimExpr(0))
    return false;
  for (const auto &[number, coefficient] : index.terms) {
    if (atoms[number].kind != Atom::Counter || !loops[number].isWhole())
      return false;
    count = count * loops[number].size;
  }
  auto [least, most] = boundsOf(index);
  return count == size && most == size - DimExpr(1);
}

bool Trace::enterRow(Position &position, ArrayRef<DimExpr> dims, ArrayRef<int64_t> axes) {
  if (!mayReduce) {
    fail("a reduction in a kernel of another kind");
    return false;
  }
  SmallVector<int64_t> longAxes;
  for (int64_t axis : axes) {
    if (dims[size_t(axis)] == DimExpr(1))
      position[size_t(axis)] = {Linear(), true};
    else
      longAxes.push_back(axis);
  }
  if (longAxes.empty())
    return true;
  auto matches = [&](ArrayRef<std::pair<DimExpr, Linear>> known) {
    return known.size() == longAxes.size() && llvm::all_of(llvm::zip(known, longAxes), [&](auto pair) {
             return std::get<0>(pair).first == dims[size_t(std::get<1>(pair))];
           });
  };
  if (rowAxes.empty()) {
    // The loops that the consumer runs over these axes, or loops of the nest that are there for this.
    bool isConsumed = true;
    for (int64_t axis : longAxes)
      isConsumed = isConsumed && isWholeAxis(position[size_t(axis)].at, dims[size_t(axis)]);
    if (isConsumed) {
      for (int64_t axis : longAxes) {
        rowAxes.push_back({dims[size_t(axis)], position[size_t(axis)].at});
        for (const auto &term : position[size_t(axis)].at.terms)
          if (!loops[term.first].isRow) {
            loops[term.first].isRow = true;
            rowLoops.push_back(term.first);
          }
      }
    } else {
      size_t next = 0;
      for (int64_t axis : longAxes) {
        const DimExpr &size = dims[size_t(axis)];
        Linear index;
        DimExpr count(1);
        while (next < rowLoops.size() && count != size) {
          unsigned number = rowLoops[next++];
          index = index * loops[number].size + Linear::atom(number);
          count = count * loops[number].size;
        }
        if (count != size)
          break;
        rowAxes.push_back({size, index});
      }
      if (!matches(rowAxes) || next != rowLoops.size()) {
        rowAxes.clear();
        if (!rowLoops.empty()) {
          fail("reductions over axes of different sizes");
          return false;
        }
        request = Row;
        for (int64_t axis : longAxes)
          rowSizes.push_back(dims[size_t(axis)]);
        return false;
      }
    }
  }
  if (!matches(rowAxes)) {
    fail("reductions over axes of different sizes");
    return false;
  }
  for (auto [known, axis] : llvm::zip(rowAxes, longAxes))
    position[size_t(axis)] = {known.second, false};
  return true;
}

int Trace::pullReduction(Operation *op, ArrayRef<Coordinate> given) {
  Value x = op->getOperand(0);
  SmallVector<DimExpr> dims = dimsOfValue(x);
  int64_t rank = int64_t(dims.size());
  SmallVector<int64_t> axes;
  bool keepsDims = true;
  auto add = [&](int64_t axis) {
    axis += axis < 0 ? rank : 0;
    if (axis >= 0 && axis < rank && !llvm::is_contained(axes, axis))
      axes.push_back(axis);
  };
  auto integer = [&](StringRef name, int64_t fallback) {
    auto attribute = op->getAttrOfType<IntegerAttr>(name);
    return attribute ? attribute.getInt() : fallback;
  };
  if (isa<GlobalAveragePoolOp, GlobalMaxPoolOp>(op)) {
    for (int64_t axis = 2; axis < rank; ++axis)
      add(axis);
  } else if (isa<ArgMaxOp, ArgMinOp>(op)) {
    add(integer("axis", 0));
    keepsDims = integer("keepdims", 1) != 0;
  } else {
    keepsDims = integer("keepdims", 1) != 0;
    if (Value list = operandOf(op, 1)) {
      auto known = constantIntegers(list);
      if (!known)
        return fail("a reduction over axes that are not known");
      for (int64_t axis : *known)
        add(axis);
    }
    if (axes.empty() && integer("noop_with_empty_axes", 0) == 0)
      for (int64_t axis = 0; axis < rank; ++axis)
        add(axis);
  }
  llvm::sort(axes);
  Position position;
  for (int64_t axis = 0, next = 0; axis < rank; ++axis) {
    if (!keepsDims && llvm::is_contained(axes, axis))
      position.push_back({Linear(), true});
    else
      position.push_back(given[size_t(next++)]);
  }
  if (!enterRow(position, dims, axes))
    return -1;
  int node = pull(x, position);
  if (node < 0)
    return -1;
  Type element = elementOf(x), type = wideType(element);
  bool isFloat = isa<FloatType>(element);
  node = castTo(node, type);
  if (isa<ArgMaxOp, ArgMinOp>(op)) {
    Node reduce{Node::Reduce};
    reduce.code = isa<ArgMaxOp>(op) ? Node::ArgMax : Node::ArgMin;
    reduce.elementType = elementOf(op->getResult(0));
    reduce.selectLast = integer("select_last_index", 0) != 0;
    reduce.operands.push_back(node);
    return this->add(std::move(reduce));
  }
  DimExpr count(1);
  for (int64_t axis : axes)
    count = count * dims[size_t(axis)];
  auto countNode = [&]() {
    if (auto number = count.asConstant())
      return splat(double(*number), type);
    Node index{Node::Index};
    index.index = Linear(count);
    index.elementType = type;
    return this->add(std::move(index));
  };
  auto logSumExp = [&]() {
    int largest = reduction(Node::Max, type, node);
    // Differences from an infinity would be NaN.
    int infinity = splat(std::numeric_limits<double>::infinity(), type);
    int isInfinite =
        arith(Node::IsEqual, IntegerType::get(op->getContext(), 1), {arith(Node::Abs, type, {largest}), infinity});
    int base = arith(Node::Select, type, {isInfinite, splat(0, type), largest});
    int sum = reduction(Node::Sum, type, arith(Node::Exp, type, {arith(Node::Sub, type, {node, base})}));
    int log = arith(Node::Log, type, {sum});
    return arith(Node::Add, type, {base, log});
  };
  int result =
      TypeSwitch<Operation *, int>(op)
          .Case([&](ReduceSumOp) { return reduction(Node::Sum, type, node); })
          .Case([&](ReduceProdOp) { return reduction(Node::Product, type, node); })
          .Case<ReduceMaxOp, GlobalMaxPoolOp>([&](auto) { return reduction(Node::Max, type, node); })
          .Case([&](ReduceMinOp) { return reduction(Node::Min, type, node); })
          .Case<ReduceMeanOp, GlobalAveragePoolOp>([&](auto) {
            return isFloat ? arith(Node::Div, type, {reduction(Node::Sum, type, node), countNode()})
                           : fail("the mean of integers");
          })
          .Case([&](ReduceL1Op) { return reduction(Node::Sum, type, arith(Node::Abs, type, {node})); })
          .Case([&](ReduceSumSquareOp) { return reduction(Node::Sum, type, arith(Node::Square, type, {node})); })
          .Case([&](ReduceL2Op) {
            return isFloat ? arith(Node::Sqrt, type, {reduction(Node::Sum, type, arith(Node::Square, type, {node}))})
                           : fail("the norm of integers");
          })
          .Case([&](ReduceLogSumOp) {
            return isFloat ? arith(Node::Log, type, {reduction(Node::Sum, type, node)})
                           : fail("the logarithm of integers");
          })
          .Case([&](ReduceLogSumExpOp) { return isFloat ? logSumExp() : fail("the logarithm of integers"); })
          .Default([&](Operation *) { return fail("no vector code for " + op->getName().getStringRef()); });
  return castTo(result, elementOf(op->getResult(0)));
}

int Trace::pullNormalization(OpResult result, ArrayRef<Coordinate> given) {
  Operation *op = result.getOwner();
  Value x = op->getOperand(0);
  SmallVector<DimExpr> dims = dimsOfValue(x);
  int64_t rank = int64_t(dims.size());
  Type element = elementOf(x), type = wideType(element), outType = elementOf(result);
  if (!isa<FloatType>(element))
    return fail("a normalisation of integers");
  auto number = [&](const APFloat &value) { return splat(double(value.convertToFloat()), type); };
  auto add = [&](int a, int b) { return arith(Node::Add, type, {a, b}); };
  auto sub = [&](int a, int b) { return arith(Node::Sub, type, {a, b}); };
  auto mul = [&](int a, int b) { return arith(Node::Mul, type, {a, b}); };
  auto div = [&](int a, int b) { return arith(Node::Div, type, {a, b}); };
  auto root = [&](int a) { return arith(Node::Sqrt, type, {a}); };
  auto square = [&](int a) { return arith(Node::Square, type, {a}); };
  auto countNode = [&](const DimExpr &count) {
    if (auto known = count.asConstant())
      return splat(double(*known), type);
    Node index{Node::Index};
    index.index = Linear(count);
    index.elementType = type;
    return this->add(std::move(index));
  };
  /// Element [c] of a parameter of rank 1.
  auto perChannel = [&](Value parameter, const Coordinate &c) {
    bool isOne = dimsOfValue(parameter)[0] == DimExpr(1);
    return castTo(pull(parameter, {isOne ? Coordinate{Linear(), true} : c}), type);
  };
  if (auto batch = dyn_cast<BatchNormalizationOp>(op)) {
    if (batch.getTrainingMode() || result.getResultNumber() != 0)
      return fail("batch normalisation in training");
    const Coordinate &c = given[1];
    int deviation = root(add(perChannel(batch.getVariance(), c), number(batch.getEpsilon())));
    int factor = div(perChannel(batch.getScale(), c), deviation);
    int centered = sub(castTo(pull(x, given), type), perChannel(batch.getMean(), c));
    return castTo(add(mul(centered, factor), perChannel(batch.getBias(), c)), outType);
  }
  // The axes of the row.
  SmallVector<int64_t> axes;
  auto axisAttribute = [&](int64_t fallback) {
    auto attribute = op->getAttrOfType<IntegerAttr>("axis");
    int64_t axis = attribute ? attribute.getInt() : fallback;
    return axis < 0 ? axis + rank : axis;
  };
  Position position(given.begin(), given.end()); // of x at the result's element
  SmallVector<DimExpr> virtualDims(dims.begin(), dims.end());
  auto groups = dyn_cast<GroupNormalizationOp>(op);
  if (isa<SoftmaxOp, LogSoftmaxOp, LpNormalizationOp>(op)) {
    axes.push_back(axisAttribute(-1));
  } else if (isa<LayerNormalizationOp, RMSNormalizationOp>(op)) {
    for (int64_t axis = axisAttribute(-1); axis < rank; ++axis)
      axes.push_back(axis);
  } else if (groups) {
    // x as [N, groups, channels of a group, spatial].
    DimExpr count(groups.getNumGroups());
    auto inner = dims[1].exactDiv(count);
    auto parts = inner ? delinearize(indexOf(given[1]), {count, *inner}) : std::nullopt;
    if (!parts)
      return inner ? -1 : fail("groups that do not divide the channels");
    virtualDims[1] = count;
    virtualDims.insert(virtualDims.begin() + 2, *inner);
    position[1] = {(*parts)[0], false};
    position.insert(position.begin() + 2, Coordinate{(*parts)[1], false});
    for (int64_t axis = 2; axis <= rank; ++axis)
      axes.push_back(axis);
  } else {
    for (int64_t axis = 2; axis < rank; ++axis)
      axes.push_back(axis);
  }
  Position row = position;
  if (!enterRow(row, virtualDims, axes))
    return -1;
  DimExpr count(1);
  for (int64_t axis : axes)
    count = count * virtualDims[size_t(axis)];
  auto pullX = [&](Position at) {
    if (groups) {
      Linear channel = indexOf(at[1]) * virtualDims[2] + indexOf(at[2]);
      at[1] = {channel, false};
      at.erase(at.begin() + 2);
    }
    return castTo(pull(x, at), type);
  };
  int rowX = pullX(row);
  if (rowX < 0)
    return -1;
  auto atElement = [&]() { return pullX(position); };
  auto sum = [&](int node) { return reduction(Node::Sum, type, node); };
  if (isa<SoftmaxOp, LogSoftmaxOp>(op)) {
    Node reduce(Node::Reduce); // a NaN makes its exponential, hence the sum, hence the row NaN
    reduce.code = Node::Max;
    reduce.elementType = type;
    reduce.operands.push_back(rowX);
    reduce.skipsNaN = true;
    int largest = this->add(std::move(reduce));
    auto exp = [&](int node) { return arith(Node::Exp, type, {sub(node, largest)}); };
    int total = sum(exp(rowX));
    int node = isa<SoftmaxOp>(op) ? mul(exp(atElement()), div(splat(1, type), total))
                                  : sub(sub(atElement(), largest), arith(Node::Log, type, {total}));
    return castTo(node, outType);
  }
  if (auto lp = dyn_cast<LpNormalizationOp>(op)) {
    int norm = lp.getP() == 1 ? sum(arith(Node::Abs, type, {rowX})) : root(sum(square(rowX)));
    int isZero = arith(Node::IsEqual, IntegerType::get(op->getContext(), 1), {norm, splat(0, type)});
    int safe = arith(Node::Select, type, {isZero, splat(1, type), norm});
    return castTo(div(atElement(), safe), outType);
  }
  int mean = -1;
  int n = countNode(count);
  auto centered = [&](int node) { return mean < 0 ? node : sub(node, mean); };
  if (!isa<RMSNormalizationOp>(op))
    mean = div(sum(rowX), n);
  int variance = div(sum(square(centered(rowX))), n);
  FloatAttr epsilon = op->getAttrOfType<FloatAttr>("epsilon");
  int rootVariance =
      root(add(variance, splat(epsilon ? double(epsilon.getValue().convertToFloat()) : double(1e-5f), type)));
  int inverse = div(splat(1, type), rootVariance);
  if (result.getResultNumber() == 1)
    return castTo(mean, outType);
  if (result.getResultNumber() == 2)
    return castTo(inverse, outType);
  int y = mul(centered(atElement()), inverse);
  auto parameter = [&](Value value) {
    if (isa<InstanceNormalizationOp>(op) || groups)
      return perChannel(value, given[1]);
    SmallVector<DimExpr> own = dimsOfValue(value);
    Position at;
    size_t offset = dims.size() - own.size();
    for (auto [k, dim] : llvm::enumerate(own))
      at.push_back(dim == DimExpr(1) ? Coordinate{Linear(), true} : given[offset + k]);
    return castTo(pull(value, at), type);
  };
  if (Value scale = operandOf(op, 1))
    y = mul(y, parameter(scale));
  if (Value bias = operandOf(op, 2))
    y = add(y, parameter(bias));
  return castTo(y, outType);
}

} // namespace firn

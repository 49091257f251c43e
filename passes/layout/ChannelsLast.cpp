// ChannelsLast: axes, constants and attributes of operations whose channels move to the end.
#include "passes/layout/ChannelsLast.h"

#include "runtime/abi/dtype.h"
#include <cstring>

using namespace mlir;

namespace firn {

// --- axes ------------------------------------------------------------------------------------------------------------

SmallVector<int64_t> toChannelsLast(int64_t rank) {
  SmallVector<int64_t> perm{0};
  for (int64_t axis = 2; axis < rank; ++axis)
    perm.push_back(axis);
  perm.push_back(1);
  return perm;
}

SmallVector<int64_t> toChannelsFirst(int64_t rank) {
  SmallVector<int64_t> perm{0, rank - 1};
  for (int64_t axis = 1; axis < rank - 1; ++axis)
    perm.push_back(axis);
  return perm;
}

int64_t movedAxis(int64_t axis, int64_t rank) {
  if (axis < 0)
    axis += rank;
  return axis == 0 ? 0 : axis == 1 ? rank - 1 : axis - 1;
}

RankedTensorType permutedType(RankedTensorType type, ArrayRef<int64_t> perm) {
  SmallVector<DimExpr> from = dimsOf(type), dims;
  for (int64_t axis : perm)
    dims.push_back(from[axis]);
  return tensorType(type.getElementType(), dims);
}

RankedTensorType channelsLast(RankedTensorType type) { return permutedType(type, toChannelsLast(type.getRank())); }

Value permuted(OpBuilder &builder, Location loc, Value x, ArrayRef<int64_t> perm) {
  auto type = rankedType(x);
  if (isViewPermutation(type, perm))
    return builder.create<ReshapeOp>(loc, permutedType(type, perm), x, Value());
  return makeTranspose(builder, loc, x, perm);
}

Value permutedConstant(OpBuilder &builder, Location loc, ElementsAttr constant, ArrayRef<int64_t> perm) {
  auto type = cast<RankedTensorType>(constant.getType());
  auto bytes = constantBytes(constant);
  int64_t size = firn_dtype_bits(dtypeOf(type.getElementType())) / 8;
  if (!bytes || size == 0)
    return {};
  RankedTensorType newType = permutedType(type, perm);
  if (bytes->isSplat) {
    std::vector<char> all;
    for (int64_t i = 0; i < newType.getNumElements(); ++i)
      all.insert(all.end(), bytes->bytes.begin(), bytes->bytes.begin() + size);
    return builder.create<ConstantOp>(loc, constantFromBytes(newType, all));
  }
  int64_t rank = type.getRank(), count = type.getNumElements();
  SmallVector<int64_t> strides(rank, size), steps, position(rank, 0);
  for (int64_t axis = rank - 2; axis >= 0; --axis)
    strides[axis] = strides[axis + 1] * type.getDimSize(axis + 1);
  for (int64_t axis : perm)
    steps.push_back(strides[axis]);
  std::vector<char> moved(count * size);
  int64_t from = 0;
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(moved.data() + i * size, bytes->bytes.data() + from, size);
    for (int64_t axis = rank - 1; axis >= 0; --axis) {
      from += steps[axis];
      if (++position[axis] < newType.getDimSize(axis))
        break;
      from -= steps[axis] * newType.getDimSize(axis);
      position[axis] = 0;
    }
  }
  return builder.create<ConstantOp>(loc, constantFromBytes(newType, moved));
}

// --- parts -----------------------------------------------------------------------------------------------------------

static bool isReduction(Operation *op) {
  return isa<ReduceSumOp, ReduceMeanOp, ReduceMaxOp, ReduceMinOp, ReduceProdOp, ReduceL1Op, ReduceL2Op, ReduceLogSumOp,
             ReduceLogSumExpOp, ReduceSumSquareOp>(op);
}

static bool isPool(Operation *op) {
  return isa<MaxPoolOp, AveragePoolOp, LpPoolOp, GlobalAveragePoolOp, GlobalMaxPoolOp>(op);
}

static int64_t intAttribute(Operation *op, StringRef name, int64_t fallback) {
  auto attribute = op->getAttrOfType<IntegerAttr>(name);
  return attribute ? attribute.getInt() : fallback;
}

static bool hasConstantOperand(Operation *op, unsigned i) {
  Value value = operandOf(op, i);
  return !value || constantIntegers(value);
}

/// Reductions that drop their axes: the order of the others must be the same for both layouts.
static bool keepsOrder(Operation *op, int64_t rank) {
  auto axes = reducedAxes(op);
  if (!axes)
    return false;
  bool hasChannels = llvm::is_contained(*axes, 1);
  int64_t spatial = llvm::count_if(*axes, [](int64_t axis) { return axis > 1; });
  return hasChannels || spatial == rank - 2;
}

/// A reshape of the spatial axes alone, whose elements stand in the same order for both layouts.
static bool reshapesSpaceOnly(ReshapeOp op) {
  auto from = rankedType(op.getX()), to = rankedType(op.getResult());
  return !op.getShape() && from && to && from.getRank() >= 3 && to.getRank() >= 3 && dimOf(from, 0) == dimOf(to, 0) &&
         dimOf(from, 1) == dimOf(to, 1);
}

int64_t layoutRank(Operation *op) {
  if (op->getNumOperands() == 0 || op->getNumResults() == 0)
    return -1;
  auto type = rankedType(isBroadcasting(op) ? op->getResult(0) : op->getOperand(0));
  return type ? type.getRank() : -1;
}

static bool hasOnes(RankedTensorType type) { return type.hasStaticShape() && type.getNumElements() == 1; }

bool followsLayout(OpOperand &operand) {
  Operation *op = operand.getOwner();
  auto type = rankedType(operand.get());
  if (!type || (!isBroadcasting(op) && !isa<ConcatOp>(op) && operand.getOperandNumber() != 0))
    return false;
  return type.getRank() == layoutRank(op) && !constantOf(operand.get()) && !hasOnes(type);
}

/// Implicit padding of a size that only run time knows: no code is generated for it.
static bool hasDynamicPadding(Operation *op) {
  auto type = rankedType(op->getOperand(0));
  auto rule = op->getAttrOfType<StringAttr>("auto_pad");
  if (!rule || !rule.getValue().starts_with("SAME"))
    return false;
  auto strides = op->getAttrOfType<DenseI64ArrayAttr>("strides");
  for (int64_t axis = 2; axis < type.getRank(); ++axis)
    if (type.isDynamicDim(axis) && strides && strides.asArrayRef()[axis - 2] != 1)
      return true;
  return false;
}

static bool isConvertible(Operation *op) {
  auto type = rankedType(op->getOperand(0)), weight = rankedType(op->getOperand(1)),
       resultType = rankedType(op->getResult(0));
  bool isInteger = isa<ConvIntegerOp>(op); // of bytes; its kernel packs weights that are computed
  return type && weight && resultType &&
         (isInteger || (isFloat(type.getElementType()) && constantOf(op->getOperand(1)))) && weight.hasStaticShape() &&
         weight.getNumElements() > 0 && type.getRank() >= 3 && type.getRank() <= 5 &&
         weight.getRank() == type.getRank() && !type.isDynamicDim(1) && !hasDynamicPadding(op);
}

Part partOf(Operation *op) {
  if (isa<TransposeOp>(op))
    return Part::Fixed;
  int64_t rank = layoutRank(op);
  if (rank < 3 || op->hasAttr("layout") || op->hasAttr("firn.id") || op->getNumRegions() != 0)
    return Part::Fixed;
  for (Value result : op->getResults())
    if (!rankedType(result) && !(isPool(op) && result.use_empty()))
      return Part::Fixed;
  if (isUnaryElementwise(op) || isBroadcasting(op)) {
    for (Value operand : op->getOperands())
      if (!isAbsent(operand) && !rankedType(operand))
        return Part::Fixed;
    return Part::Either;
  }
  if (isa<ConvOp, ConvIntegerOp, ConvTransposeOp>(op))
    return isConvertible(op) ? Part::Converted : Part::Fixed;
  if (isPool(op)) {
    bool isSimple = rank <= 5 && isFloat(getElementTypeOrSelf(op->getOperand(0))) && !hasDynamicPadding(op) &&
                    llvm::all_of(op->getResults().drop_front(), [](Value result) { return result.use_empty(); });
    return isSimple ? Part::Either : Part::Fixed;
  }
  if (isReduction(op)) {
    if (!reducedAxes(op))
      return Part::Fixed;
    return intAttribute(op, "keepdims", 1) ? Part::Either : keepsOrder(op, rank) ? Part::Sink : Part::Fixed;
  }
  if (isa<ArgMaxOp, ArgMinOp>(op)) // dropped: the others keep their order only where channels are searched
    return intAttribute(op, "keepdims", 1)                            ? Part::Either
           : movedAxis(intAttribute(op, "axis", 0), rank) == rank - 1 ? Part::Sink
                                                                      : Part::Fixed;
  if (isa<QuantizeLinearOp, DequantizeLinearOp>(op)) {
    auto scale = rankedType(op->getOperand(1));
    return scale && scale.getRank() <= 1 && intAttribute(op, "block_size", 0) == 0 ? Part::Either : Part::Fixed;
  }
  if (isa<ConcatOp>(op))
    return llvm::all_of(op->getOperands(), [&](Value x) { return rankedType(x) && rankedType(x).getRank() == rank; })
               ? Part::Either
               : Part::Fixed;
  if (auto reshape = dyn_cast<ReshapeOp>(op))
    return reshapesSpaceOnly(reshape) ? Part::Either : Part::Fixed;
  if (isa<SoftmaxOp, LogSoftmaxOp, HardmaxOp>(op))
    return Part::Either;
  if (isa<CumSumOp>(op)) // its axis is a scalar, counted from the front here
    return constantIntegers(op->getOperand(1)) ? Part::Either : Part::Fixed;
  if (isa<SplitOp>(op))
    return Part::Either;
  if (isa<SliceOp>(op)) {
    auto starts = rankedType(op->getOperand(1));
    bool hasLength = starts && starts.getRank() == 1 && starts.hasStaticShape();
    return hasLength && hasConstantOperand(op, 3) ? Part::Either : Part::Fixed;
  }
  if (isa<PadOp>(op))
    return hasConstantOperand(op, 3) ? Part::Either : Part::Fixed;
  if (isa<ResizeOp>(op))
    return Part::Either;
  return Part::Fixed;
}

// --- building --------------------------------------------------------------------------------------------------------

Value permutedOperand(OpBuilder &builder, Value value, ArrayRef<int64_t> perm) {
  int64_t rank = perm.size();
  auto type = rankedType(value);
  if (!type || type.getRank() == 0 || hasOnes(type))
    return value;
  SmallVector<DimExpr> dims(rank - type.getRank(), DimExpr(1));
  llvm::append_range(dims, dimsOf(type));
  RankedTensorType wide = tensorType(type.getElementType(), dims);
  Location loc = value.getLoc();
  if (ElementsAttr constant = constantOf(value)) {
    auto bytes = constantBytes(constant);
    if (bytes && firn_dtype_bits(dtypeOf(type.getElementType())) >= 8) {
      ElementsAttr reshaped;
      if (bytes->isSplat) {
        std::vector<char> all;
        for (int64_t i = 0; i < wide.getNumElements(); ++i)
          all.insert(all.end(), bytes->bytes.begin(), bytes->bytes.end());
        reshaped = constantFromBytes(wide, all);
      } else {
        reshaped = constantFromBytes(wide, bytes->bytes);
      }
      return permutedConstant(builder, loc, reshaped, perm);
    }
  }
  if (type.getRank() != rank)
    value = builder.create<ReshapeOp>(loc, wide, value, Value());
  return permuted(builder, loc, value, perm);
}

static Value movedAxes(OpBuilder &builder, Location loc, ArrayRef<int64_t> axes, int64_t rank) {
  SmallVector<int64_t> moved;
  for (int64_t axis : axes)
    moved.push_back(movedAxis(axis, rank));
  return makeIntegers(builder, loc, moved);
}

/// Operand `position` becomes the axes (given, or all up to `count`) where they are now; operands in between are
/// absent.
static void setAxes(OpBuilder &builder, Operation *op, SmallVector<Value> &operands, unsigned position, int64_t count,
                    int64_t rank) {
  SmallVector<int64_t> axes;
  if (Value given = operandOf(op, position)) {
    axes = *constantIntegers(given);
  } else {
    for (int64_t axis = 0; axis < count; ++axis)
      axes.push_back(axis);
  }
  while (operands.size() <= position)
    operands.push_back(makeAbsent(builder, op->getLoc()));
  operands[position] = movedAxes(builder, op->getLoc(), axes, rank);
}

/// What else changes: axes in operands and attributes.
static void moveAxes(OpBuilder &builder, Operation *op, SmallVector<Value> &operands, NamedAttrList &attributes,
                     int64_t rank) {
  Location loc = op->getLoc();
  auto setAxis = [&](int64_t fallback) {
    attributes.set("axis", builder.getI64IntegerAttr(movedAxis(intAttribute(op, "axis", fallback), rank)));
  };
  if (isa<ConvOp, ConvIntegerOp, ConvTransposeOp>(op) || isPool(op)) {
    attributes.set("layout", builder.getStringAttr("nhwc"));
    if (isa<ConvOp, ConvIntegerOp, ConvTransposeOp>(op)) // the weight may be stored packed later
      attributes.set("kernel_shape",
                     builder.getDenseI64ArrayAttr(rankedType(op->getOperand(1)).getShape().drop_front(2)));
  } else if (isReduction(op)) {
    if (auto axes = *reducedAxes(op); !axes.empty()) {
      operands.resize(1);
      operands.push_back(movedAxes(builder, loc, axes, rank));
    }
  } else if (isa<ConcatOp, SplitOp, ArgMaxOp, ArgMinOp>(op)) {
    setAxis(0);
  } else if (isa<SoftmaxOp, LogSoftmaxOp, HardmaxOp>(op)) {
    setAxis(-1);
  } else if (isa<QuantizeLinearOp, DequantizeLinearOp>(op)) {
    setAxis(1);
  } else if (isa<CumSumOp>(op)) {
    int64_t axis = movedAxis((*constantIntegers(op->getOperand(1)))[0], rank);
    operands[1] = makeNumbers(builder, loc, rankedType(op->getOperand(1)), {double(axis)});
  } else if (isa<SliceOp>(op)) {
    setAxes(builder, op, operands, 3, rankedType(op->getOperand(1)).getDimSize(0), rank);
  } else if (isa<PadOp>(op)) {
    setAxes(builder, op, operands, 3, rank, rank);
  } else if (auto resize = dyn_cast<ResizeOp>(op)) {
    SmallVector<int64_t> axes;
    if (auto given = resize.getAxes())
      axes.assign(given->begin(), given->end());
    else
      for (int64_t axis = 0; axis < rank; ++axis)
        axes.push_back(axis);
    for (int64_t &axis : axes)
      axis = movedAxis(axis, rank);
    attributes.set("axes", builder.getDenseI64ArrayAttr(axes));
  }
}

Operation *buildChannelsLast(OpBuilder &builder, Operation *op,
                             llvm::function_ref<Value(OpOperand &)> channelsLastOperand) {
  int64_t rank = layoutRank(op);
  SmallVector<Value> operands;
  for (OpOperand &operand : op->getOpOperands()) {
    if (followsLayout(operand))
      operands.push_back(channelsLastOperand(operand));
    else if ((isBroadcasting(op) || isa<ConcatOp>(op)) || operand.getOperandNumber() == 0)
      operands.push_back(permutedOperand(builder, operand.get(), toChannelsLast(rank)));
    else
      operands.push_back(operand.get());
  }
  NamedAttrList attributes(op->getAttrs());
  moveAxes(builder, op, operands, attributes, rank);
  SmallVector<Type> types;
  for (Value result : op->getResults()) {
    if (isPool(op) && !types.empty())
      break; // the indices, which nobody reads
    auto type = cast<RankedTensorType>(result.getType());
    types.push_back(partOf(op) == Part::Sink ? type : channelsLast(type));
  }
  OperationState state(op->getLoc(), op->getName(), operands, types, attributes);
  return builder.create(state);
}

} // namespace firn

#include "compiler/codegen/cpu/LoneOperation.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "runtime/abi/model.h"

using namespace mlir;

namespace firn {

std::optional<LoneOperation> LoneOperation::of(FusedOp fused, std::string &whyNot) {
  LoneOperation lone;
  for (Operation &candidate : fused.getBody().front().without_terminator()) {
    if (isa<ConstantOp, AbsentOp, DimValuesOp>(candidate))
      continue;
    if (lone.op) {
      whyNot = "more than one operation";
      return std::nullopt;
    }
    lone.op = &candidate;
  }
  if (!lone.op) {
    whyNot = "no operation";
    return std::nullopt;
  }
  auto isSupported = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return isa<NoneType>(type) || (tensor && Elements::supports(tensor.getElementType()));
  };
  if (!llvm::all_of(lone.op->getOperandTypes(), isSupported) || !llvm::all_of(lone.op->getResultTypes(), isSupported)) {
    whyNot = "elements without registers, or a rank that is not known";
    return std::nullopt;
  }
  auto call = dyn_cast<CallOp>(lone.op);
  lone.name = call ? call.getCallee().str() : lone.op->getName().stripDialect().str();
  return lone;
}

SmallVector<DimExpr> LoneOperation::dims(unsigned operand) const {
  return dimsOf(cast<RankedTensorType>(op->getOperand(operand).getType()));
}

Type LoneOperation::elementType(unsigned operand) const { return getElementTypeOrSelf(op->getOperand(operand)); }

Value LoneOperation::buffer(KernelContext &context, unsigned operand) const {
  Value value = operandOf(op, operand);
  auto argument = value ? dyn_cast<BlockArgument>(value) : BlockArgument();
  return argument ? context.operand(argument.getArgNumber()) : Value();
}

Value LoneOperation::result(KernelContext &context, unsigned number) const {
  for (auto [i, yielded] : llvm::enumerate(op->getBlock()->getTerminator()->getOperands()))
    if (yielded == op->getResult(number))
      return context.result(unsigned(i));
  return {};
}

int64_t LoneOperation::integer(StringRef attribute, int64_t otherwise) const {
  auto given = op->getAttrOfType<IntegerAttr>(attribute);
  return given ? given.getInt() : otherwise;
}

std::string LoneOperation::text(StringRef attribute, StringRef otherwise) const {
  auto given = op->getAttrOfType<StringAttr>(attribute);
  return (given ? given.getValue() : otherwise).str();
}

std::optional<size_t> LoneOperation::axisOf(int64_t axis, size_t rank) {
  if (axis < 0)
    axis += int64_t(rank);
  if (axis < 0 || axis >= int64_t(rank))
    return std::nullopt;
  return size_t(axis);
}

DimExpr product(ArrayRef<DimExpr> dims) {
  DimExpr total(1);
  for (const DimExpr &dim : dims)
    total = total * dim;
  return total;
}

Value ScalarCode::loadIndex(Value buffer, Value offset, Type elementType) {
  LoopBuilder &l = context.l;
  Value element = context.elements.load(buffer, offset, elementType, 0);
  if (elementType.isUnsignedInteger())
    return l.b.create<arith::IndexCastUIOp>(l.loc, l.b.getIndexType(), element);
  return l.b.create<arith::IndexCastOp>(l.loc, l.b.getIndexType(), element);
}

Value ScalarCode::normalized(Value index, Value size, Value &isInside) {
  LoopBuilder &l = context.l;
  Value fromEnd = l.b.create<arith::AddIOp>(l.loc, index, size);
  Value normal = l.select(l.less(index, l.index(0)), fromEnd, index);
  isInside = isBelow(normal, size);
  Value yes = l.b.create<arith::ConstantIntOp>(l.loc, 1, 1);
  fault(l.b.create<arith::XOrIOp>(l.loc, isInside, yes));
  return normal;
}

Value ScalarCode::isBelow(Value x, Value size) {
  return context.l.b.create<arith::CmpIOp>(context.l.loc, arith::CmpIPredicate::ult, x, size);
}

void ScalarCode::fault(Value condition) {
  OpBuilder &b = context.l.b;
  b.create<kernel::FaultOp>(context.l.loc, condition, b.getI32IntegerAttr(FIRN_FAULT_INDEX));
}

void ScalarCode::copy(Value from, Value fromOffset, Value to, Value toOffset, Value count, Type elementType) {
  LoopBuilder &l = context.l;
  int64_t bytes = Elements::bytes(elementType);
  l.b.create<kernel::CopyOp>(l.loc, l.at(from, l.mul(fromOffset, bytes)), l.at(to, l.mul(toOffset, bytes)),
                             l.mul(count, bytes));
}

} // namespace firn

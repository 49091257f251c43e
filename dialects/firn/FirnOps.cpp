// The operations of the firn dialect: generated definitions and the table of operator names.
#include "dialects/firn/Firn.h"
#include "dialects/firn/Inference.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;

#include "dialects/firn/FirnInterfaces.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/firn/FirnOps.cpp.inc"

namespace firn {

void FirnDialect::registerOperations() {
  addOperations<
#define GET_OP_LIST
#include "dialects/firn/FirnOps.cpp.inc"
      >();
}

namespace {
template <typename Op, typename = void> struct OnnxName {
  static constexpr StringLiteral value = "";
};
template <typename Op> struct OnnxName<Op, std::void_t<decltype(Op::onnxName)>> {
  static constexpr StringLiteral value = Op::onnxName;
};
template <> struct OnnxName<IfOp> {
  static constexpr StringLiteral value = "If";
};
template <> struct OnnxName<LoopOp> {
  static constexpr StringLiteral value = "Loop";
};
template <> struct OnnxName<ConstantOp> {
  static constexpr StringLiteral value = "Constant";
};

template <typename... Ops> llvm::StringMap<StringRef> operationTable() {
  llvm::StringMap<StringRef> table;
  ((OnnxName<Ops>::value.empty() ? void() : void(table[OnnxName<Ops>::value] = Ops::getOperationName())), ...);
  return table;
}
} // namespace

StringRef operationFor(StringRef onnxName) {
  static const llvm::StringMap<StringRef> table = operationTable<
#define GET_OP_LIST
#include "dialects/firn/FirnOps.cpp.inc"
      >();
  return table.lookup(onnxName);
}

void ConstantOp::build(OpBuilder &, OperationState &state, ElementsAttr value) {
  state.addAttribute("value", value);
  state.addTypes(value.getType());
}
OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }
std::string ConstantOp::operatorName() { return "ai.onnx::Constant"; }
void ConstantOp::inferShapes(Inference &inference) {
  auto type = cast<RankedTensorType>(getType());
  inference.result(0, type.getElementType(), dimsOf(type));
}

LogicalResult DimValuesOp::verify() {
  auto type = dyn_cast<RankedTensorType>(getType());
  if (!type || type.getRank() > 1 || !type.hasStaticShape() || type.getNumElements() != int64_t(getExprs().size()))
    return emitOpError("expected a static result of rank 0 or 1 with ")
           << getExprs().size() << " elements, found " << getType();
  for (Attribute text : getExprs()) {
    StringRef s = cast<StringAttr>(text).getValue();
    if (!DimExpr::parse(std::string_view(s.data(), s.size())))
      return emitOpError("'") << s << "' is no dimension expression";
  }
  return success();
}

} // namespace firn

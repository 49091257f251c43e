// The firn dialect: neural networks on tensors.
#ifndef FIRN_DIALECTS_FIRN_FIRN_H
#define FIRN_DIALECTS_FIRN_FIRN_H

#include "dialects/firn/DimExpr.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace firn {
class Inference;
}
#include "dialects/firn/FirnInterfaces.h.inc"

#include "dialects/firn/FirnOpsDialect.h.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/firn/FirnOpsTypes.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/firn/FirnOpsAttrs.h.inc"
#define GET_OP_CLASSES
#include "dialects/firn/FirnOps.h.inc"

namespace firn {

// --- types -----------------------------------------------------------------------------------------------------------

/// A tensor type with these dimensions: constants become static, the others `?` with the expression in the encoding.
/// A constant below 0 counts as unknown.
mlir::RankedTensorType tensorType(mlir::Type elementType, llvm::ArrayRef<DimExpr> dims);

/// The dimensions of a tensor type. A dimension that nothing is known of becomes a symbol of its own ("?1", "?2", ...),
/// equal to no other.
llvm::SmallVector<DimExpr> dimsOf(mlir::RankedTensorType type);
DimExpr dimOf(mlir::RankedTensorType type, int64_t axis);

/// "[batch, 384]", for messages.
std::string shapeText(llvm::ArrayRef<DimExpr> dims);
std::string shapeText(mlir::Type type);

/// The element type of a number of runtime/abi/dtype.h (TensorProto.DataType), null if unknown; and back, 0 if none.
/// Signed integers are signless (i8), unsigned ones `ui8`, bool i1.
mlir::Type elementTypeOf(mlir::MLIRContext *context, int32_t dtype);
int32_t dtypeOf(mlir::Type elementType);
/// "float32", as ONNX users say it, for messages.
std::string elementTypeText(mlir::Type elementType);

// --- operators -------------------------------------------------------------------------------------------------------

/// The operation name ("firn.conv") for operator `onnxName` of domain ai.onnx, empty if it is a library operator.
llvm::StringRef operationFor(llvm::StringRef onnxName);

// --- constants -------------------------------------------------------------------------------------------------------

/// The bytes of a frozen tensor: element i at i * size (packed below 8 bits, bool as bytes). A splat has `isSplat` and
/// one element.
struct ConstantBytes {
  llvm::ArrayRef<char> bytes;
  bool isSplat = false;
};
/// The bytes behind a constant's value, where it is a numeric tensor.
std::optional<ConstantBytes> constantBytes(mlir::Attribute value);

/// An elements attribute for `bytes` (copied): splats and tensors of at most 64 bytes become `dense`, others blobs
/// named by their content, so that equal tensors share one blob.
mlir::ElementsAttr constantFromBytes(mlir::RankedTensorType type, llvm::ArrayRef<char> bytes);
/// The same without a copy: the bytes must outlive the context, `keepAlive` is released with the blob.
mlir::ElementsAttr constantFromMapped(mlir::RankedTensorType type, llvm::ArrayRef<char> bytes,
                                      std::shared_ptr<void> keepAlive);

/// The integer contents of a value where at least some are known (others are DimExpr::unknown()): a constant of i64,
/// i32 or bool, firn.dim_values, or what inference found (firn.elements). At most 4096 elements.
std::optional<llvm::SmallVector<DimExpr>> integerElements(mlir::Value value);
/// The same, of small f32 and f64 tensors too, where they hold simple fractions.
std::optional<llvm::SmallVector<DimExpr>> knownNumbers(mlir::Value value);
/// The same of a constant.
std::optional<llvm::SmallVector<DimExpr>> constantNumbers(mlir::ElementsAttr constant);
/// The attribute firn.elements for the results of `op` with these contents (nothing: not known); null if none is known.
/// A list of texts for one result, a list of lists for several.
mlir::Attribute elementsAttribute(mlir::Operation *op,
                                  llvm::ArrayRef<std::optional<llvm::SmallVector<DimExpr>>> contents);
/// The same where all are numbers.
std::optional<llvm::SmallVector<int64_t>> constantIntegers(mlir::Value value);
/// The constant that defines `value`, null if none does.
mlir::ElementsAttr constantOf(mlir::Value value);

/// Whether an operand stands for an absent optional input.
inline bool isAbsent(mlir::Value value) { return mlir::isa<mlir::NoneType>(value.getType()); }
/// Operand i, null where it is absent or left out.
mlir::Value operandOf(mlir::Operation *op, unsigned i);

/// The name of the model's node behind an operation, for messages and symbols ("" where there is none). Locations are
/// NameLoc(node) or fused from such.
std::string nodeName(mlir::Location location);

/// On a firn.call: what it computes is not known, or differs from call to call; so calls are neither merged nor folded.
constexpr llvm::StringLiteral opaqueAttribute = "firn.opaque";
/// On a firn.call of an unknown operator that has graphs: attribute to bytes (compiler/export/firn/Writer.h), and the
/// names by which they read values from outside, which are the last operands.
constexpr llvm::StringLiteral carriedGraphsAttribute = "firn.graphs", capturesAttribute = "firn.captures";

} // namespace firn
#endif

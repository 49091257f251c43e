// Shape and type inference: what a rule sees of one operation, and the rules of all families.
#ifndef FIRN_DIALECTS_FIRN_INFERENCE_H
#define FIRN_DIALECTS_FIRN_INFERENCE_H

#include "dialects/firn/Firn.h"
#include <functional>

namespace firn {

/// Where an operation lost results: for each that is left, the number that the names of its unknown dimensions carry.
constexpr llvm::StringLiteral resultIdsAttribute = "firn.result_ids";
int64_t unknownResultId(mlir::Operation *op, unsigned resultIndex);
/// The number for the dimensions of a carried value inside the loop, whose result has the number `resultId`.
constexpr int64_t carriedResultId(int64_t resultId) { return 1000 + resultId; }
/// On a function: pairs of a dimension and a message, for dimensions that must be at least 2 at every run.
constexpr llvm::StringLiteral assumptionsAttribute = "firn.assumptions";

/// One operation under inference. A rule reads operands and attributes, reports every broken constraint by error(), and
/// says what the results are by result(). Results that it does not mention stay unknown.
class Inference {
public:
  using Dims = llvm::SmallVector<DimExpr>;
  struct Result {
    mlir::Type elementType;
    mlir::Type type; // where it is known as a whole: of lists, and of tensors whose rank only running tells
    std::optional<Dims> dims;
    std::optional<Dims> elements; // contents of a small tensor, each known or DimExpr::unknown()
  };
  /// What must hold of sizes that only a run tells: `a` equals `b`, or without `b`, `a` is at least 0.
  struct Requirement {
    DimExpr a;
    std::optional<DimExpr> b;
    std::string message;
  };
  /// Called for operations without a symbolic rule, or whose result dims depend on data that is not constant.
  using Fallback = std::function<void(Inference &)>;

  explicit Inference(mlir::Operation *operation, Fallback byLibrary = {});

  mlir::Operation *operation() const { return op; }
  unsigned operandCount() const { return op->getNumOperands(); }
  bool has(unsigned i) const;
  /// Element type of operand i, null where absent, no tensor or not known yet.
  mlir::Type elementType(unsigned i) const;
  /// Dimensions of operand i, nothing where absent or of unknown rank.
  std::optional<Dims> dims(unsigned i) const;
  /// Integer contents of operand i, nothing where none is known; some may be DimExpr::unknown().
  std::optional<Dims> elements(unsigned i) const;
  /// The same, of f32 and f64 tensors too: those may hold inverse(q).
  std::optional<Dims> numbers(unsigned i) const;

  int64_t intAttribute(llvm::StringRef name, int64_t fallback) const;
  llvm::StringRef stringAttribute(llvm::StringRef name, llvm::StringRef fallback) const;
  std::optional<llvm::SmallVector<int64_t>> intsAttribute(llvm::StringRef name) const;

  /// An unknown dimension becomes unknownDim().
  void result(unsigned i, mlir::Type elementType, std::optional<Dims> dims);
  /// Of a sequence, an optional or a map, or of a tensor whose rank is not known.
  void resultType(unsigned i, mlir::Type type);
  void resultElements(unsigned i, Dims elements);
  /// A dimension that only running can tell: a symbol named after the node, result and axis, the same at every
  /// inference.
  DimExpr unknownDim(unsigned result, unsigned axis) const;
  /// Result i has this rank, all dimensions unknown.
  void unknownResult(unsigned i, mlir::Type elementType, unsigned rank);

  /// Reports a broken constraint, in the form "what: expected e, found f" or "expected e, found f"; inference of other
  /// operations goes on. `code`: one of compiler/DiagnosticCodes.inc.
  void error(const llvm::Twine &message, llvm::StringRef code = "import.shape");
  /// States that two sizes are equal, that one broadcasts to the other (is equal or 1), or that one is at least the
  /// other. Wrong numbers are an error now, others are checked when a run brings the sizes. `what`: which sizes, for
  /// the message.
  void requireEqual(const DimExpr &a, const DimExpr &b, const llvm::Twine &what);
  void requireBroadcast(const DimExpr &a, const DimExpr &b, const llvm::Twine &what);
  void requireAtLeast(const DimExpr &size, const DimExpr &least, const llvm::Twine &what);
  /// Axis counted from the front; reports and returns nothing if it is outside [-rank, rank).
  std::optional<int64_t> axis(int64_t axis, int64_t rank);
  void fallback();

  struct Error {
    std::string message;
    llvm::StringRef code; // a literal
  };
  const std::vector<Error> &errors() const { return messages; }
  const std::vector<Requirement> &requirements() const { return required; }
  const llvm::SmallVector<Result> &inferred() const { return results; }

private:
  mlir::Operation *op;
  Fallback library;
  llvm::SmallVector<Result> results;
  std::vector<Error> messages;
  std::vector<Requirement> required;
};

/// Where to report a problem of `operation`: its location with what the text of the report does not tell, the code and
/// the operands, each as [location, number of the result, type].
mlir::Location problemLocation(mlir::Operation *operation, llvm::StringRef code);
constexpr llvm::StringLiteral problemCodeKey = "firn.problem", problemInputsKey = "firn.inputs";

/// Runs the rule of `operation` and compares: success unless the rule reports an error or a result's type contradicts
/// it.
llvm::LogicalResult verifyInferred(mlir::Operation *operation);

/// Numpy broadcasting of two shapes; reports where they do not fit.
std::optional<Inference::Dims> broadcast(Inference &inference, const Inference::Dims &a, const Inference::Dims &b);

// The rules, by family. Where an operand's type is not known yet, a rule leaves its results unknown.
void inferByLibrary(Inference &);
// Elements.cpp: contents of an elementwise result, where those of the operands are known. Called after result().
void inferElements(Inference &);
// Elementwise.cpp
void inferUnary(Inference &);
void inferPredicate(Inference &);
void inferBinary(Inference &);
void inferComparison(Inference &);
void inferVariadic(Inference &);
void inferWhere(Inference &);
void inferCast(Inference &);
void inferCastLike(Inference &);
void inferDropout(Inference &);
// Contraction.cpp
void inferMatMul(Inference &);
void inferGemm(Inference &);
void inferEinsum(Inference &);
void inferMatMulInteger(Inference &);
void inferQLinearMatMul(Inference &);
void inferAttention(Inference &);
void inferRotaryEmbedding(Inference &);
// Window.cpp
void inferConv(Inference &);
void inferConvTranspose(Inference &);
void inferPool(Inference &);
void inferGlobalPool(Inference &);
// Reduction.cpp
void inferReduce(Inference &);
void inferArgReduce(Inference &);
void inferAxisUnary(Inference &);
void inferBatchNormalization(Inference &);
void inferLayerNormalization(Inference &);
void inferChannelNormalization(Inference &);
// Movement.cpp
void inferReshape(Inference &);
void inferFlatten(Inference &);
void inferSqueeze(Inference &);
void inferUnsqueeze(Inference &);
void inferTranspose(Inference &);
void inferConcat(Inference &);
void inferSplit(Inference &);
void inferSlice(Inference &);
void inferPad(Inference &);
void inferExpand(Inference &);
void inferTile(Inference &);
void inferGather(Inference &);
void inferGatherElements(Inference &);
void inferGatherND(Inference &);
void inferScatterElements(Inference &);
void inferScatterND(Inference &);
void inferDepthToSpace(Inference &);
void inferSpaceToDepth(Inference &);
void inferResize(Inference &);
void inferOneHot(Inference &);
void inferTopK(Inference &);
void inferNonZero(Inference &);
// ShapeOps.cpp
void inferShape(Inference &);
void inferSize(Inference &);
void inferConstantOfShape(Inference &);
void inferRange(Inference &);
// Sequence.cpp
void inferSequenceEmpty(Inference &);
void inferSequenceConstruct(Inference &);
void inferSequenceInsert(Inference &);
void inferSequenceErase(Inference &);
void inferSequenceAt(Inference &);
void inferSequenceLength(Inference &);
void inferSplitToSequence(Inference &);
void inferConcatFromSequence(Inference &);
void inferOptional(Inference &);
void inferOptionalHasElement(Inference &);
void inferOptionalGetElement(Inference &);
// Recurrent.cpp, Quantization.cpp
void inferRecurrent(Inference &);
void inferQuantize(Inference &);
void inferDequantize(Inference &);
void inferDynamicQuantize(Inference &);

} // namespace firn
#endif

// Rules: local rewrites of firn operations, applied until none fits.
//
// A rule looks at one operation and either rewrites it by the RuleRewriter and returns true, or leaves everything as it
// is and returns false. Unlike MLIR's greedy driver this one neither folds nor moves nor merges constants, so that
// locations (the model's names) and the order of operations stay.
#ifndef FIRN_PASSES_RULES_H
#define FIRN_PASSES_RULES_H

#include "dialects/firn/Firn.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/TypeUtilities.h"
#include "passes/PassReport.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include <functional>

namespace firn {

class RuleRewriter : public mlir::RewriterBase, private mlir::RewriterBase::Listener {
public:
  RuleRewriter(mlir::MLIRContext *context, PassReport &to) : RewriterBase(context), report(to) { setListener(this); }

  /// Replaces the results of `op`, erases it and counts a rewrite. A result that the function returns gets a
  /// firn.identity of its own where the replacement is an input, a constant or another output: outputs stay distinct.
  void replace(mlir::Operation *op, mlir::ValueRange values, llvm::StringRef what);
  /// One new operation in place of `op`, with results of these types and the fused locations of `op` and `others`.
  template <typename NewOp, typename... Args>
  NewOp replaceWith(mlir::Operation *op, llvm::ArrayRef<mlir::Operation *> others, llvm::StringRef what,
                    Args &&...args) {
    setInsertionPoint(op);
    auto made = create<NewOp>(fused(op, others), std::forward<Args>(args)...);
    replace(op, made->getResults(), what);
    return made;
  }
  /// Replaces `op` by its first operand if it has one result of that operand's type.
  bool dropIfUnchanged(mlir::Operation *op, llvm::StringRef what);
  /// Says why `op` stays, once.
  void refuse(mlir::Operation *op, llvm::StringRef why);
  /// Counts a rewrite of `op` in place and looks at it and its users again.
  void changed(mlir::Operation *op, llvm::StringRef what);
  /// Whether an operator that ONNX has since opset `since` may take the place of `op`; where the graph is for an older
  /// one (GraphForm.h), says so.
  bool mayWrite(mlir::Operation *op, llvm::StringRef name, int64_t since);
  mlir::Location fused(mlir::Operation *op, llvm::ArrayRef<mlir::Operation *> others);
  bool done() const { return report.done(); }

private:
  friend class RuleSet;
  void notifyOperationInserted(mlir::Operation *op, InsertPoint) override { push(op); }
  void notifyOperationErased(mlir::Operation *op) override;
  void push(mlir::Operation *op);
  mlir::Operation *pop();
  void pushUsers(mlir::Value value);

  PassReport &report;
  int64_t targetOpset = INT64_MAX;
  // A stack without repetitions. Erased operations leave holes (null): a removal costs no search.
  std::vector<mlir::Operation *> worklist;
  llvm::DenseMap<mlir::Operation *, size_t> places;
  llvm::DenseSet<std::pair<mlir::Operation *, size_t>> refused;
};

class RuleSet {
public:
  using Rule = std::function<bool(mlir::Operation *, RuleRewriter &)>;

  /// `rule(OpT, RuleRewriter &)`, tried in the order of addition.
  template <typename OpT> void add(bool (*rule)(OpT, RuleRewriter &)) {
    rules[mlir::TypeID::get<OpT>()].push_back(
        [rule](mlir::Operation *op, RuleRewriter &rewriter) { return rule(llvm::cast<OpT>(op), rewriter); });
  }
  /// The same rule for several operations.
  template <typename... Ops> void addFor(bool (*rule)(mlir::Operation *, RuleRewriter &)) {
    (rules[mlir::TypeID::get<Ops>()].push_back(rule), ...);
  }

  /// Applies the rules to all operations of `module`, in regions too, until none fits or the report's limit is reached;
  /// then lets function types follow what they return.
  void apply(mlir::ModuleOp module, PassReport &report) const;

private:
  llvm::DenseMap<mlir::TypeID, llvm::SmallVector<Rule, 2>> rules;
};

/// Function types follow the types of the values returned.
void updateFunctionTypes(mlir::ModuleOp module);
/// Whether a function of the module returns `value`.
bool isReturned(mlir::Value value);
/// Whether the value cannot stand for one more output: it is an input, a constant or an output already.
bool isTakenAsOutput(mlir::Value value);
/// Whether `type` mentions a symbol that `op` finds at run time.
bool mentionsSymbolsOf(mlir::Type type, mlir::Operation *op);

/// Whether firn.dim_values or a reshape to known dimensions elsewhere mentions a symbol that `op` finds at run time, so
/// that no other operation may take its place.
bool findsSymbolsForOthers(mlir::Operation *op);

// --- reading ---------------------------------------------------------------------------------------------------------

/// The one number that all elements of a constant are (bool: 0 or 1), nothing for other values.
std::optional<double> splatOf(mlir::Value value);
/// Whether `value` is a constant of one number, and which (-0 is not 0).
bool isSplatOf(mlir::Value value, double number);
/// The same where the shape may be open: a firn.constant_of_shape or firn.expand of one number counts too.
bool isUniformlyOf(mlir::Value value, double number);
/// All elements of a floating-point or integer constant (integers beyond 2^53 lose digits); nothing for more than
/// `most`.
std::optional<std::vector<double>> numbersOf(mlir::Value value, int64_t most = int64_t(1) << 31);
/// Whether each element of the one result depends on that element of the first operand alone (others are scalars).
bool isUnaryElementwise(mlir::Operation *op);
/// Whether each element of the one result depends on one element of each operand, broadcast as ONNX has it.
bool isBroadcasting(mlir::Operation *op);
/// Whether `value` is a constant of integers that are all `number`.
bool areAll(mlir::Value value, int64_t number);
/// The attribute `axis` of an operation on tensors of this rank, counted from the front.
int64_t axisOf(mlir::Operation *op, int64_t rank);
mlir::RankedTensorType rankedType(mlir::Value value);
/// Whether both are ranked, of one element type, and every dimension is known to be equal.
bool haveSameType(mlir::Value a, mlir::Value b);
bool haveSameDims(llvm::ArrayRef<DimExpr> a, llvm::ArrayRef<DimExpr> b);
inline bool isOne(const DimExpr &dim) { return dim.isConstant() && dim.constant() == 1; }
/// The shape of two broadcast operands if it is certain (no symbol that may be 1).
std::optional<llvm::SmallVector<DimExpr>> broadcastDims(llvm::ArrayRef<DimExpr> a, llvm::ArrayRef<DimExpr> b);
/// The axes that a firn.reduce_* runs over, ascending, if they are known.
std::optional<llvm::SmallVector<int64_t>> reducedAxes(mlir::Operation *reduce);
llvm::SmallVector<int64_t> permutationOf(TransposeOp transpose);
/// Why what `reader` does cannot become part of what gives `value`: "the output of 'Conv_12' is also read by 'Add_40'",
/// or that it is an output of the graph; "" where `reader` alone reads it.
std::string otherReader(mlir::Value value, mlir::Operation *reader);
bool isFloat(mlir::Type elementType);
/// Whether the permutation moves only axes of length 1, so that it is a reshape.
bool isViewPermutation(mlir::RankedTensorType type, llvm::ArrayRef<int64_t> perm);

// --- building --------------------------------------------------------------------------------------------------------

/// A constant of these numbers, rounded to nearest even in the element type. One number makes a splat.
mlir::Value makeNumbers(mlir::OpBuilder &builder, mlir::Location loc, mlir::RankedTensorType type,
                        llvm::ArrayRef<double> numbers);
/// An i64 constant of rank 1.
mlir::Value makeIntegers(mlir::OpBuilder &builder, mlir::Location loc, llvm::ArrayRef<int64_t> numbers);
/// firn.reshape without shape operand.
mlir::Value makeReshape(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value x, llvm::ArrayRef<DimExpr> dims);
mlir::Value makeTranspose(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value x, llvm::ArrayRef<int64_t> perm);
mlir::Value makeAbsent(mlir::OpBuilder &builder, mlir::Location loc);

} // namespace firn
#endif

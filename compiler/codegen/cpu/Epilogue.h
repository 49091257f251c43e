// What happens to the result of a contraction or pool before it is stored: elementwise operations in registers.
#ifndef FIRN_COMPILER_CODEGEN_CPU_EPILOGUE_H
#define FIRN_COMPILER_CODEGEN_CPU_EPILOGUE_H

#include "compiler/codegen/cpu/Elements.h"
#include "compiler/codegen/cpu/KernelEmitter.h"
#include "compiler/codegen/cpu/LoopBuilder.h"
#include "compiler/codegen/cpu/Views.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"

namespace firn {

/// All that emitters of one kernel share.
struct KernelContext {
  KernelContext(FusedOp fused, kernel::FuncOp func, const TargetDescription &target, mlir::OpBuilder &builder)
      : fused(fused), func(func), target(target), l(builder, fused.getLoc()), dims(fused, func),
        elements(builder, fused.getLoc(), target) {}

  FusedOp fused;
  kernel::FuncOp func;
  const TargetDescription &target;
  LoopBuilder l;
  DimValues dims;
  Elements elements;

  /// The buffer of an operand of the fused op; of a result.
  mlir::Value operand(unsigned i) { return func.buffer(i); }
  mlir::Value result(unsigned i = 0) { return func.buffer(fused.getNumOperands() + i); }
  /// Sum of products as an index value.
  mlir::Value value(const DimExpr &expr) { return dims.get(expr); }
  /// a * b + c where c or a may be expressions over constants.
  mlir::Value offset(mlir::ArrayRef<mlir::Value> position, mlir::ArrayRef<DimExpr> strides, const DimExpr &start);
  /// acc + a * b on floats: fused where the target can.
  mlir::Value multiplyAdd(mlir::Value a, mlir::Value b, mlir::Value acc);
};

/// The part of a fused body behind `root` (the contraction's result).
class Epilogue {
public:
  /// Nothing, with the reason in whyNot, if the body computes anything else.
  static std::optional<Epilogue> analyse(FusedOp fused, mlir::Value root, std::string &whyNot);

  /// Dimensions of the root, which all positions below are over.
  mlir::ArrayRef<DimExpr> dims() const { return rootDims; }
  mlir::Type resultType() const { return output.elementType; }
  /// Where root element (i0, i1, ...) is stored.
  const View &result() const { return output; }
  /// Adds `view` (broadcast to the root) times `scale` to the root's element first: a bias. False if it does not fit.
  bool addTerm(const View &view, double scale);
  void scaleRoot(double factor) { rootScale *= factor; }
  /// Multiplies the root's element by `view` before terms are added: a scale per column. False if it does not fit.
  bool multiplyRoot(const View &view);
  /// Adds a number to the scaled root.
  void addToRoot(double number) { rootOffset += number; }
  /// Whether it is long enough not to be repeated for every accumulator of a tile.
  bool isHeavy() const { return weight > 12; }
  bool isEmpty() const { return operations.empty() && terms.empty() && rootScale == 1 && rootOffset == 0; }
  /// Operands and stores are consecutive along this axis, or repeated.
  bool isContiguousAlong(unsigned axis) const;
  /// All views of operands and the result.
  llvm::SmallVector<View> views() const;
  /// Whether adjacent axes `axis` and `axis + 1` can be one in every view.
  bool canMerge(unsigned axis) const;
  void merge(unsigned axis);
  /// From now on index i along `axis` means i * step + start.
  void restrict(unsigned axis, int64_t step, int64_t start);
  /// A new axis of length 1 before `axis`.
  void insertAxis(unsigned axis);

  /// Starts a new point in the code: forgets operands loaded so far.
  void forget() { loaded.clear(); }
  /// Loads what does not depend on axes in `varying` for the lanes at `position` (lanes along `axis`).
  void preload(KernelContext &context, mlir::ArrayRef<mlir::Value> position, unsigned axis, unsigned lanes,
               mlir::Value count, mlir::ArrayRef<unsigned> varying, unsigned key);
  /// Computes and stores the elements of `root` (registers of the root's element type) at `position`: `lanes` along
  /// `axis`, of which only `count` exist. `key` names the lanes that preload() loaded.
  void store(KernelContext &context, mlir::Value root, mlir::ArrayRef<mlir::Value> position, unsigned axis,
             unsigned lanes, mlir::Value count, unsigned key);

private:
  struct Term {
    View view;
    double scale;
    bool isFactor = false;
  };
  mlir::Value leaf(KernelContext &context, const View &view, mlir::ArrayRef<mlir::Value> position, unsigned axis,
                   unsigned lanes, mlir::Value count);

  bool visit(mlir::Value value, mlir::Operation *user, std::string &whyNot);
  std::optional<View> beforeViews(View view, mlir::ArrayRef<mlir::Operation *> path);

  mlir::Value rootValue;
  llvm::SmallVector<DimExpr> rootDims;
  /// Of values that depend on the root: the views between the root's positions and theirs, the nearest to the root
  /// first.
  llvm::DenseMap<mlir::Value, llvm::SmallVector<mlir::Operation *>> paths;
  llvm::SmallVector<mlir::Operation *> operations; // elementwise, in order
  llvm::MapVector<mlir::Value, View> leaves;       // operands read, as functions of the root's position
  llvm::SmallVector<Term> terms;
  double rootScale = 1, rootOffset = 0;
  mlir::Value last; // the value stored
  View output;
  unsigned weight = 0;
  std::map<std::pair<unsigned, unsigned>, mlir::Value> loaded; // (key, leaf) -> register
};

} // namespace firn
#endif

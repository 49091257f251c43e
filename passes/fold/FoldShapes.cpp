// FoldShapes: shape arithmetic on tensors becomes dimension expressions.
//
// In:      inferred types, firn.elements attributes.     Out: each such value is a firn.constant (all numbers) or
//          firn.dim_values; reshapes whose result dimensions are all known lose their shape operand.
// Keeps:   every value.
// Leaves:  values of which an element is unknown; in a module that stays a graph (passes/GraphForm.h) also arithmetic
// on open dimensions, which a file says shorter as it was.
#include "dialects/firn/Inference.h"
#include "passes/GraphForm.h"
#include "passes/PassReport.h"
#include "passes/Passes.h"
#include "passes/Rules.h"
#include "runtime/abi/dtype.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace firn {
#define GEN_PASS_DEF_FOLDSHAPES
#include "passes/Passes.h.inc"

namespace {
/// Whether a result dimension is a symbol that only the running operation itself can bind.
bool dependsOnOwnSymbols(Operation *op) {
  return llvm::any_of(op->getResultTypes(), [&](Type type) { return mentionsSymbolsOf(type, op); });
}

struct FoldShapes : impl::FoldShapesBase<FoldShapes> {
  void runOnOperation() override {
    PassReport report("fold-shapes");
    isGraph = staysGraph(getOperation());
    SmallVector<Operation *> known, reshapes;
    getOperation().walk([&](Operation *op) {
      if (op->hasAttr("firn.elements"))
        known.push_back(op);
      if (auto reshape = dyn_cast<ReshapeOp>(op);
          reshape && reshape.getShape() && !dependsOnOwnSymbols(op) && isa<RankedTensorType>(reshape.getX().getType()))
        if (auto type = dyn_cast<RankedTensorType>(reshape.getType()); type && (!isGraph || isNumbers(op, type)))
          reshapes.push_back(op);
    });
    for (Operation *op : reshapes)
      op->eraseOperand(1);
    for (Operation *op : known) {
      if (report.done())
        break;
      for (OpResult result : op->getResults())
        replace(result, report);
      if (op->use_empty() && !isa<IfOp, LoopOp>(op))
        op->erase();
    }
  }

  static bool isNumbers(Operation *reshape, RankedTensorType to) {
    auto from = dyn_cast<RankedTensorType>(reshape->getOperand(0).getType());
    return from && reshapeNumbers(from, to);
  }

  void replace(OpResult result, PassReport &report) {
    Operation *op = result.getOwner();
    auto type = dyn_cast<RankedTensorType>(result.getType());
    auto elements = result.use_empty() ? std::nullopt : integerElements(result);
    if (!type || !elements || !type.hasStaticShape() || type.getNumElements() != int64_t(elements->size()) ||
        llvm::any_of(*elements, [](const DimExpr &e) { return e.isUnknown(); }) ||
        !(type.getElementType().isSignlessInteger(64) || type.getElementType().isSignlessInteger(32) ||
          type.getElementType().isInteger(1)))
      return;
    OpBuilder builder(op);
    type = RankedTensorType::get(type.getShape(), type.getElementType());
    size_t size = firn_dtype_bytes(dtypeOf(type.getElementType()), 1);
    Operation *replacement;
    if (llvm::all_of(*elements, [](const DimExpr &e) { return e.isConstant(); })) {
      std::vector<char> bytes(elements->size() * size);
      for (auto [i, e] : llvm::enumerate(*elements)) {
        int64_t wide = e.constant(); // little-endian: the low bytes come first
        std::memcpy(bytes.data() + i * size, &wide, size);
      }
      replacement = builder.create<ConstantOp>(op->getLoc(), constantFromBytes(type, bytes));
    } else if (isGraph || type.getElementType().isInteger(1) || type.getRank() > 1) {
      return;
    } else {
      SmallVector<StringRef> texts;
      SmallVector<std::string> storage;
      for (const DimExpr &e : *elements)
        storage.push_back(e.str());
      for (const std::string &s : storage)
        texts.push_back(s);
      replacement = builder.create<DimValuesOp>(op->getLoc(), type, builder.getStrArrayAttr(texts));
    }
    report.rewrite(op);
    result.replaceAllUsesWith(replacement->getResult(0));
  }

  bool isGraph = false;
};
} // namespace

} // namespace firn

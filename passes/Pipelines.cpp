// Optimise: runs the passes that fold, simplify and fuse until a round changes nothing; and the pipelines around it.
//
// In:      a module of firn ops, any result types.     Out: inferred, folded, simplified, fused.
// Keeps:   names, order and types of inputs and outputs; values bit for bit with rounding = false, else up to rounding.
// Running twice changes nothing more (unless a round limit is met, which is reported as a remark).
#include "passes/Pipelines.h"
#include "passes/PassReport.h"
#include "passes/Passes.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OperationSupport.h"

using namespace mlir;

namespace firn {
#define GEN_PASS_DEF_OPTIMISE
#include "passes/Passes.h.inc"

namespace {

void buildRound(OpPassManager &manager, bool rounding, int64_t maxGrowth) {
  FoldConstantsOptions folding;
  folding.maxGrowth = maxGrowth;
  manager.addPass(createSimplifyControl()); // before inference: a branch that is not taken may be wrong
  manager.addPass(createInferShapes());
  manager.addPass(createFoldShapes());
  manager.addPass(createFoldConstants(folding));
  manager.addPass(createSimplifyAlgebra());
  manager.addPass(createSimplifyMovement());
  manager.addPass(createEliminateCommon());
  if (rounding) {
    manager.addPass(createRecognizeNormalizations());
    manager.addPass(createRecognizeActivations());
    manager.addPass(createFoldConvBatchNorm());
    manager.addPass(createFuseBias());
  }
  manager.addPass(createEliminateDead());
}

struct Optimise : impl::OptimiseBase<Optimise> {
  using OptimiseBase::OptimiseBase;

  void runOnOperation() override {
    OpPassManager round(ModuleOp::getOperationName());
    buildRound(round, rounding, maxGrowth);
    for (unsigned i = 0; i < maxRounds; ++i) {
      OperationFingerPrint before(getOperation());
      if (failed(runPipeline(round, getOperation())))
        return signalPassFailure();
      if (before == OperationFingerPrint(getOperation()))
        return;
    }
    PassReport("Optimise").refuse(getOperation(), "more rounds might change more");
  }
};

} // namespace

void buildOptimisePipeline(OpPassManager &manager, const PipelineOptions &options) {
  OptimiseOptions optimise;
  optimise.rounding = options.rounding;
  optimise.maxGrowth = options.maxGrowth;
  optimise.maxRounds = options.maxRounds;
  manager.addPass(createOptimise(optimise));
}

void buildPreparePipeline(OpPassManager &manager, const PipelineOptions &options) {
  buildOptimisePipeline(manager, options);
  manager.addPass(createDecomposeEinsum());
  manager.addPass(createDecompose());
  buildOptimisePipeline(manager, options);
  manager.addPass(createAssignLayout());
  buildOptimisePipeline(manager, options);
}

} // namespace firn

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

void buildRound(OpPassManager &manager, const PipelineOptions &options) {
  const auto &isWanted = options.isWanted;
  auto add = [&](std::unique_ptr<Pass> pass) {
    if (!isWanted || isWanted(pass->getArgument()))
      manager.addPass(std::move(pass));
  };
  FoldConstantsOptions folding;
  folding.maxGrowth = options.maxGrowth;
  folding.maxBytes = options.maxFolded;
  add(createSimplifyControl());         // before inference: a branch that is not taken may be wrong
  manager.addPass(createInferShapes()); // all others read what it finds
  add(createFoldShapes());
  add(createSimplifySequences());
  add(createFoldConstants(folding));
  add(createSimplifyAlgebra());
  if (options.fast)
    add(createRelaxAlgebra());
  add(createSimplifyMovement());
  add(createSimplifyParts());
  add(createAbsorbMovement());
  add(createSimplifyQuantization());
  add(createEliminateCommon());
  if (options.rounding) {
    add(createRecognizeNormalizations());
    add(createRecognizeActivations());
    add(createRecognizeAttention());
    add(createMergeQKV());
    add(createFoldConvBatchNorm());
    add(createFuseBias());
  }
  if (options.isGraph) {
    add(createDecomposeEinsum());
    add(createMoveTransposes());
  }
  add(createEliminateDead());
}

/// What folding would undo, behind the rounds.
void buildEnd(OpPassManager &manager, const PipelineOptions &options) {
  std::unique_ptr<Pass> shrink = createShrinkConstants();
  if (options.isGraph && (!options.isWanted || options.isWanted(shrink->getArgument())))
    manager.addPass(std::move(shrink));
}

struct Optimise : impl::OptimiseBase<Optimise> {
  using OptimiseBase::OptimiseBase;
  Optimise(const OptimiseOptions &options, std::function<bool(StringRef)> wanted)
      : OptimiseBase(options), isWanted(std::move(wanted)) {}

  void runOnOperation() override {
    OpPassManager round(ModuleOp::getOperationName());
    buildRound(round, {rounding, fast, maxGrowth, maxFolded, maxRounds, graph, isWanted});
    for (unsigned i = 0; i < maxRounds; ++i) {
      OperationFingerPrint before(getOperation());
      if (failed(runPipeline(round, getOperation())))
        return signalPassFailure();
      if (before == OperationFingerPrint(getOperation()))
        return;
    }
    PassReport("Optimise").refuse(getOperation(), "more rounds might change more");
  }

private:
  std::function<bool(StringRef)> isWanted;
};

} // namespace

std::vector<std::pair<std::string, std::string>> optimisePasses() {
  OpPassManager round(ModuleOp::getOperationName());
  PipelineOptions every;
  every.fast = every.isGraph = true;
  buildRound(round, every);
  buildEnd(round, every);
  std::vector<std::pair<std::string, std::string>> passes;
  for (Pass &pass : round.getPasses())
    passes.emplace_back(pass.getArgument().str(), pass.getDescription().str());
  return passes;
}

void buildOptimisePipeline(OpPassManager &manager, const PipelineOptions &options) {
  OptimiseOptions optimise;
  optimise.rounding = options.rounding;
  optimise.fast = options.fast;
  optimise.graph = options.isGraph;
  optimise.maxGrowth = options.maxGrowth;
  optimise.maxFolded = options.maxFolded;
  optimise.maxRounds = options.maxRounds;
  manager.addPass(std::make_unique<Optimise>(optimise, options.isWanted));
  buildEnd(manager, options);
}

void buildPreparePipeline(OpPassManager &manager, const PipelineOptions &options) {
  auto expandComposites = [&] {
    if (!options.isWanted || options.isWanted("firn-expand-composites"))
      manager.addPass(createExpandComposites());
  };
  expandComposites(); // first, before others mention dimensions that a call finds
  buildOptimisePipeline(manager, options);
  expandComposites(); // where folding told what was not known
  manager.addPass(createDecomposeEinsum());
  manager.addPass(createDecompose());
  buildOptimisePipeline(manager, options);
  manager.addPass(createAssignLayout());
  buildOptimisePipeline(manager, options);
  manager.addPass(createDecompose()); // transposes that became one and only move axes of length 1 are views
  FoldConstantsOptions settling;
  settling.maxGrowth = options.maxGrowth;
  settling.quantized = "read";
  manager.addPass(createFoldConstants(settling));
  buildOptimisePipeline(manager, options);
}

} // namespace firn

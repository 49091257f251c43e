// Optimise: the passes on the firn dialect, in order.
#include "compiler/driver/Stages.h"

#include "compiler/codegen/cpu/Contraction.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Passes.h"
#include "passes/Pipelines.h"

using namespace mlir;

namespace firn {

LogicalResult optimise(ModuleOp module, const CompileModelOptions &options) {
  PassManager manager(module.getContext());
  manager.enableVerifier(false);
  PipelineOptions pipeline;
  pipeline.rounding = !options.strictMath;
  pipeline.maxFolded = options.limits.foldedBytes;
  pipeline.maxGrowth = int64_t(64) << 20; // compiled weights may grow: a fold saves work at every run
  if (options.optLevel == 0) {
    // Only what code generation needs: types, shapes, branches that are decided.
    for (int round = 0; round < 3; ++round) {
      manager.addPass(createSimplifyControl());
      manager.addPass(createInferShapes());
      manager.addPass(createFoldShapes());
      FoldConstantsOptions folding;
      folding.maxGrowth = pipeline.maxGrowth;
      folding.quantized = "none"; // each operation is a kernel of its own
      folding.maxBytes = pipeline.maxFolded;
      manager.addPass(createFoldConstants(folding));
      manager.addPass(createEliminateDead());
    }
  } else {
    buildPreparePipeline(manager, pipeline);
  }
  return manager.run(module);
}

LogicalResult groupKernels(ModuleOp module, const TargetDescription &target, const CompileModelOptions &options) {
  PassManager manager(module.getContext());
  GroupKernelsOptions grouping;
  grouping.single = options.optLevel == 0;
  manager.addPass(createGroupKernels(grouping));
  if (failed(manager.run(module)))
    return failure();
  module.walk([&](FusedOp fused) { packConstants(fused, target); });
  return success();
}

} // namespace firn

// Proof: inputs and the reference evaluator's outputs, stored for the deployment machine.
#include "compiler/driver/RandomInputs.h"
#include "compiler/driver/Stages.h"

using namespace mlir;

namespace firn {

bool makeProof(const CompileModelOptions &options, MLIRContext &context, ArtifactContents &contents,
               std::string &whyNot) {
  Diagnostics diagnostics(options.input);
  OwningOpRef<ModuleOp> module = importSource(options, false, context, diagnostics);
  if (!module || !fixDimensions(*module, options, diagnostics)) {
    whyNot = "the model cannot be read again";
    return false;
  }
  std::optional<ModelRun> run = runOnRandomInputs(*module, {}, options.ranges, whyNot);
  if (!run)
    return false;
  for (const auto *list : {&run->inputs, &run->outputs})
    for (const ReferenceTensor &tensor : *list) {
      int64_t count = 1;
      for (int32_t i = 0; i < tensor.view.rank; ++i)
        count *= tensor.view.dims[i];
      const char *data = static_cast<const char *>(tensor.view.data);
      contents.proof.push_back(
          {tensor.view, std::vector<char>(data, data + firn_dtype_bytes(tensor.view.dtype, count))});
    }
  contents.proofRtol = 1e-3;
  contents.proofAtol = 1e-4;
  return true;
}

} // namespace firn

#include "compiler/driver/ValueTypes.h"
#include "compiler/driver/Stages.h"
#include "compiler/export/Collect.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Passes.h"

using namespace mlir;

namespace firn {

std::map<std::string, model::Type> inferredTypes(const SourceOptions &options) {
  SourceOptions whole = options;
  whole.edits = {};
  std::map<std::string, model::Type> types;
  MLIRContext context{MLIRContext::Threading::DISABLED};
  context.printOpOnDiagnostic(false);
  Diagnostics unsaid;
  MlirDiagnosticCollector collector(&context, unsaid, "import.shape");
  OwningOpRef<ModuleOp> module = importSource(whole, false, context, unsaid);
  if (!module)
    return types;
  PassManager manager(&context);
  manager.enableVerifier(false);
  manager.addPass(createInferShapes());
  (void)manager.run(*module); // what could be found is there also where something is wrong
  (*module)->setAttr("firn.value_info", UnitAttr::get(&context));
  if (std::optional<model::Model> found = collectModel(*module, {}, unsaid))
    for (const auto *values : {&found->graph.values, &found->graph.inputs, &found->graph.outputs})
      for (const model::Value &value : *values)
        types.emplace(value.name, value.type);
  return types;
}

} // namespace firn

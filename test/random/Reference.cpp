#include "test/random/Reference.h"

#include "compiler/driver/Evaluate.h"
#include "compiler/driver/Options.h"
#include "compiler/import/Import.h"
#include "dialects/firn/Firn.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "runtime/abi/dtype.h"
#include "runtime/kernels/Table.h"

using namespace firn;

bool evaluateByReference(const std::string &path, const std::vector<firn_view> &inputs, std::vector<firn_view> &outputs,
                         std::vector<std::vector<char>> &storage, std::string &whyNot) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<FirnDialect, mlir::func::FuncDialect>();
  Diagnostics diagnostics(path);
  ImportOptions import;
  import.isKnown = [](llvm::StringRef name) {
    return kernels::find(std::string_view(name.data(), name.size())) != nullptr;
  };
  mlir::OwningOpRef<mlir::ModuleOp> module = importModel(path, import, context, diagnostics);
  if (!module) {
    whyNot = "the model cannot be read";
    return false;
  }
  std::vector<ReferenceTensor> tensors;
  for (const firn_view &view : inputs)
    tensors.push_back({view, nullptr});
  auto results = evaluateModule(*module, tensors, int64_t(1) << 30, whyNot);
  if (!results)
    return false;
  for (const ReferenceTensor &result : *results) {
    int64_t count = 1;
    for (int32_t i = 0; i < result.view.rank; ++i)
      count *= result.view.dims[i];
    const char *data = static_cast<const char *>(result.view.data);
    storage.emplace_back(data, data + firn_dtype_bytes(result.view.dtype, count));
    outputs.push_back(result.view);
    outputs.back().data = storage.back().data();
  }
  return true;
}

bool compileForThisMachine(const std::string &path, const std::string &artifact, unsigned level, std::string &whyNot) {
  CompileModelOptions options;
  options.input = path;
  options.output = artifact;
  options.optLevel = level;
  options.hostThreads = 1;
  int status = compileModel(options);
  whyNot = "firnc ends with " + std::to_string(status);
  return status == exitDone;
}

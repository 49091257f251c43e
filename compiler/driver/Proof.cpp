// Proof: inputs and the reference evaluator's outputs, stored for the deployment machine.
#include "compiler/driver/Evaluate.h"
#include "compiler/driver/Stages.h"
#include "compiler/import/Import.h"
#include "runtime/kernels/Table.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <random>

using namespace mlir;

namespace firn {

namespace {

constexpr int64_t mostBytes = int64_t(1) << 31;

/// A seeded input in a plausible range: floats about 0 with spread 1, integers below `integers`.
ReferenceTensor randomTensor(RankedTensorType type, const std::map<std::string, int64_t> &sizes, uint32_t integers,
                             std::mt19937 &generator) {
  ReferenceTensor tensor{};
  tensor.view.dtype = dtypeOf(type.getElementType());
  tensor.view.rank = type.getRank();
  int64_t count = 1;
  for (int64_t i = 0; i < type.getRank(); ++i) {
    DimExpr dim = dimOf(type, i);
    tensor.view.dims[i] = dim.isConstant() ? dim.constant() : sizes.at(dim.str());
    count *= tensor.view.dims[i];
  }
  tensor.bytes = std::make_shared<std::vector<char>>(firn_dtype_bytes(tensor.view.dtype, count));
  tensor.view.data = tensor.bytes->data();
  auto fill = [&](auto example, auto next) {
    auto *data = reinterpret_cast<decltype(example) *>(tensor.bytes->data());
    for (int64_t i = 0; i < count; ++i)
      data[i] = decltype(example)(next());
  };
  // The same numbers on every machine: the library's distributions are not specified to the bit.
  auto uniform = [&] { return double(generator()) / 4294967296.0; };
  auto bell = [&] { return uniform() + uniform() + uniform() + uniform() - 2.0; };
  switch (tensor.view.dtype) {
  case FIRN_F32:
    fill(float(), bell);
    break;
  case FIRN_F64:
    fill(double(), bell);
    break;
  case FIRN_BOOL:
    fill(uint8_t(), [&] { return generator() & 1; });
    break;
  case FIRN_I64:
    fill(int64_t(), [&] { return generator() % integers; });
    break;
  case FIRN_I32:
    fill(int32_t(), [&] { return generator() % integers; });
    break;
  case FIRN_U8:
  case FIRN_I8:
    fill(uint8_t(), [&] { return generator() % std::min(integers, 128u); });
    break;
  default:
    break; // zeros
  }
  return tensor;
}

bool isSupported(Type element) {
  int32_t dtype = dtypeOf(element);
  return dtype != 0 && dtype != FIRN_STRING;
}

} // namespace

bool makeProof(const CompileModelOptions &options, MLIRContext &context, ArtifactContents &contents,
               std::string &whyNot) {
  Diagnostics diagnostics(options.input);
  OwningOpRef<ModuleOp> module = importSource(options, false, context, diagnostics);
  if (!module || !fixDimensions(*module, options, diagnostics)) {
    whyNot = "the model cannot be read again";
    return false;
  }
  auto main = *module->getOps<func::FuncOp>().begin();
  std::set<std::string> symbols;
  for (Type type : main.getArgumentTypes()) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || !isSupported(tensor.getElementType())) {
      whyNot = "an input has no fixed rank or is of strings";
      return false;
    }
    for (const DimExpr &dim : dimsOf(tensor))
      if (!dim.isConstant())
        symbols.insert(dim.str());
  }
  // Dynamic dimensions: the first sizes at which the reference evaluator accepts the model.
  for (int64_t size : {int64_t(1), int64_t(2), int64_t(8), int64_t(32), int64_t(64), int64_t(160), int64_t(224)}) {
    std::map<std::string, int64_t> sizes;
    for (const std::string &symbol : symbols) {
      bool isBatch = StringRef(symbol).lower().find("batch") != std::string::npos ||
                     StringRef(symbol).ends_with(".0") || symbol == "N" || symbol == "n";
      sizes[symbol] = isBatch ? 1 : size;
      if (auto range = options.ranges.find(symbol); range != options.ranges.end())
        sizes[symbol] = std::clamp(sizes[symbol], range->second.lower, range->second.upper);
    }
    // Integers may index tables: the widest range that the reference evaluator accepts.
    std::vector<ReferenceTensor> inputs;
    std::optional<std::vector<ReferenceTensor>> outputs;
    for (uint32_t integers : {256u, 16u, 2u}) {
      std::mt19937 generator(20);
      inputs.clear();
      for (Type type : main.getArgumentTypes())
        inputs.push_back(randomTensor(cast<RankedTensorType>(type), sizes, integers, generator));
      outputs = evaluateModule(*module, inputs, mostBytes, whyNot);
      if (outputs)
        break;
    }
    if (outputs) {
      for (const auto *list : {&inputs, &*outputs})
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
    if (symbols.empty())
      return false;
  }
  return false;
}

} // namespace firn

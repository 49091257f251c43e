#include "compiler/driver/RandomInputs.h"
#include "compiler/driver/Evaluate.h"
#include "dialects/firn/Firn.h"

#include "llvm/ADT/APFloat.h"
#include <algorithm>
#include <random>

using namespace mlir;

namespace firn {

namespace {

/// Floats about 0 with spread 1, integers below `integers`.
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
  auto below = [&] { return generator() % integers; };
  switch (tensor.view.dtype) {
  case FIRN_F32:
    fill(float(), bell);
    break;
  case FIRN_F64:
    fill(double(), bell);
    break;
  case FIRN_F16:
  case FIRN_BF16:
    fill(uint16_t(), [&] {
      llvm::APFloat value(bell());
      bool isInexact = false;
      value.convert(cast<FloatType>(type.getElementType()).getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven,
                    &isInexact);
      return value.bitcastToAPInt().getZExtValue();
    });
    break;
  case FIRN_BOOL:
    fill(uint8_t(), [&] { return generator() & 1; });
    break;
  case FIRN_I64:
  case FIRN_U64:
    fill(int64_t(), below);
    break;
  case FIRN_I32:
  case FIRN_U32:
    fill(int32_t(), below);
    break;
  case FIRN_I16:
  case FIRN_U16:
    fill(int16_t(), below);
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

bool looksLikeBatch(StringRef symbol) {
  return symbol.lower().find("batch") != std::string::npos || symbol.ends_with(".0") || symbol == "N" || symbol == "n";
}

} // namespace

std::optional<std::set<std::string>> inputSymbols(func::FuncOp main, std::string &whyNot) {
  std::set<std::string> symbols;
  for (Type type : main.getArgumentTypes()) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || !isSupported(tensor.getElementType())) {
      whyNot = "an input has no fixed rank or is of strings";
      return std::nullopt;
    }
    for (const DimExpr &dim : dimsOf(tensor))
      if (!dim.isConstant())
        symbols.insert(dim.str());
  }
  return symbols;
}

std::optional<ModelRun> runOnRandomInputs(ModuleOp module, const RunChoice &choice, const DimRanges &ranges,
                                          std::string &whyNot) {
  auto main = *module.getOps<func::FuncOp>().begin();
  std::optional<std::set<std::string>> symbols = inputSymbols(main, whyNot);
  if (!symbols)
    return std::nullopt;
  for (int64_t size : llvm::ArrayRef(sizesToTry).drop_front(choice.firstSize)) {
    ModelRun run;
    for (const std::string &symbol : *symbols) {
      run.sizes[symbol] = looksLikeBatch(symbol) ? choice.batch : size;
      if (auto range = ranges.find(symbol); range != ranges.end())
        run.sizes[symbol] = std::clamp(run.sizes[symbol], range->second.lower, range->second.upper);
    }
    for (uint32_t integers : {256u, 16u, 2u}) {
      std::mt19937 generator(choice.seed);
      run.inputs.clear();
      for (Type type : main.getArgumentTypes())
        run.inputs.push_back(randomTensor(cast<RankedTensorType>(type), run.sizes, integers, generator));
      if (auto outputs = evaluateModule(module, run.inputs, mostTensorBytes, whyNot)) {
        run.outputs = std::move(*outputs);
        return run;
      }
    }
    if (symbols->empty())
      break;
  }
  return std::nullopt;
}

} // namespace firn

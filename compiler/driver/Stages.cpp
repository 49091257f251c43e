// Stages: dimensions, optimisation, ranks.
#include "compiler/driver/Stages.h"
#include "compiler/driver/ValueTypes.h"
#include "compiler/import/EditModel.h"
#include "compiler/import/Import.h"
#include "compiler/operators/OperatorLibrary.h"
#include "runtime/kernels/Table.h"

#include "dialects/firn/Lists.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "passes/Passes.h"

using namespace mlir;

namespace firn {

OwningOpRef<ModuleOp> importSource(const SourceOptions &options, bool refusesUnknown, MLIRContext &context,
                                   Diagnostics &diagnostics) {
  if (!loadOperatorLibraries(options.operatorLibraries, diagnostics))
    return {};
  ImportOptions import;
  import.limits = options.limits;
  import.refuseUnknown = refusesUnknown;
  import.isKnown = [](StringRef name) { return kernels::find(std::string_view(name.data(), name.size())) != nullptr; };
  import.isPure = [](StringRef name) {
    const firn_custom_operator *custom = kernels::findCustom(std::string_view(name.data(), name.size()));
    return !custom || !(custom->flags & FIRN_CUSTOM_IMPURE);
  }; // namespace firn
  if (options.edits.any())
    import.edit = [&](model::Model &model, Diagnostics &found) {
      auto types = [&] { return inferredTypes(options); };
      return editModel(model, options.edits, types, found);
    };
  return importModel(options.input, import, context, diagnostics);
}

int rejection(const Diagnostics &diagnostics) {
  return diagnostics.hasOnly("import.unreadable") ? exitFile
         : diagnostics.hasOnly("options.ops")     ? exitBadCommandLine
                                                  : exitRejected;
}

std::string optionText(const CompileModelOptions &options) {
  std::string text = "-O" + std::to_string(options.optLevel) + " --target " + options.target;
  if (options.threads)
    text += " --threads " + std::to_string(options.threads);
  for (const auto &[name, size] : options.dims)
    text += " --dim " + name + "=" + std::to_string(size);
  for (const auto &[name, range] : options.ranges)
    text += " --dim " + name + "=" + std::to_string(range.lower) + ".." + std::to_string(range.upper);
  for (const auto &[name, sizes] : options.variants) {
    text += " --dim " + name + "=";
    for (auto [i, size] : llvm::enumerate(sizes))
      text += (i ? "," : "") + std::to_string(size);
  }
  for (const auto &[name, dims] : options.shapes) {
    text += " --shape " + name + "=";
    for (auto [i, d] : llvm::enumerate(dims))
      text += (i ? "x" : "") + std::to_string(d);
  }
  if (options.strictMath)
    text += " --strict-math";
  return text;
}

std::vector<CompileModelOptions> variantOptions(const CompileModelOptions &options) {
  std::vector<CompileModelOptions> result;
  if (options.variants.empty())
    return result;
  result.push_back(options);
  result.back().variants.clear();
  for (const auto &[name, sizes] : options.variants) {
    std::vector<CompileModelOptions> extended;
    for (const CompileModelOptions &variant : result)
      for (int64_t size : sizes) {
        extended.push_back(variant);
        extended.back().dims[name] = size;
      }
    result = std::move(extended);
  }
  return result;
}

bool fixDimensions(ModuleOp module, const SourceOptions &options, Diagnostics &diagnostics) {
  auto main = *module.getOps<func::FuncOp>().begin();
  std::map<std::string, int64_t> sizes = options.dims;
  std::set<std::string> unusedDims, unusedShapes, symbols, names;
  for (const auto &[name, size] : options.dims)
    unusedDims.insert(name);
  for (const auto &[name, range] : options.ranges)
    unusedDims.insert(name);
  for (const auto &[name, list] : options.variants)
    unusedDims.insert(name);
  for (const auto &[name, dims] : options.shapes)
    unusedShapes.insert(name);
  auto nameOf = [&](unsigned i) {
    auto name = main.getArgAttrOfType<StringAttr>(i, "firn.name");
    return name ? name.getValue().str() : "";
  };
  std::map<std::string, std::string> places; // who said the size of a symbol first
  // A symbol that --shape fixes in one input is fixed in all.
  for (BlockArgument argument : main.getArguments()) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    auto shape = options.shapes.find(nameOf(argument.getArgNumber()));
    names.insert(nameOf(argument.getArgNumber()));
    if (shape == options.shapes.end())
      continue;
    unusedShapes.erase(shape->first);
    if (!type) { // the model leaves even the rank open
      auto element = cast<TensorType>(argument.getType()).getElementType();
      argument.setType(tensorType(element, SmallVector<DimExpr>(shape->second.begin(), shape->second.end())));
      continue;
    }
    if (type.getRank() != int64_t(shape->second.size())) {
      diagnostics.error("options.shape", "--shape gives input '" + shape->first + "' " +
                                             std::to_string(shape->second.size()) + " dimensions, the model " +
                                             std::to_string(type.getRank()));
      continue;
    }
    for (auto [axis, size] : llvm::enumerate(shape->second)) {
      DimExpr dim = dimOf(type, axis);
      auto symbol = dim.asSymbol();
      std::string where = "dimension " + std::to_string(axis) + " of input '" + shape->first + "'";
      if (!symbol && dim != DimExpr(size))
        diagnostics.error("options.shape",
                          "--shape gives " + where + " " + std::to_string(size) + ", the model " + dim.str());
      else if (symbol) {
        auto [at, isNew] = sizes.try_emplace(*symbol, size);
        std::string &first = places.try_emplace(*symbol, isNew ? where : "--dim " + *symbol).first->second;
        if (!isNew && at->second != size)
          diagnostics.error("options.shape", "two sizes for " + *symbol + ": " + std::to_string(at->second) + " by " +
                                                 first + ", " + std::to_string(size) + " by " + where);
      }
    }
  }
  for (BlockArgument argument : main.getArguments()) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (!type)
      continue;
    SmallVector<DimExpr> dims = dimsOf(type);
    for (DimExpr &dim : dims)
      if (auto symbol = dim.asSymbol()) {
        symbols.insert(*symbol);
        unusedDims.erase(*symbol);
        if (auto at = sizes.find(*symbol); at != sizes.end())
          dim = DimExpr(at->second);
      }
    argument.setType(tensorType(type.getElementType(), dims));
  }
  // What the file says of its outputs holds for the fixed sizes too.
  SmallVector<DictionaryAttr> declarations;
  for (unsigned i = 0; i < main.getNumResults(); ++i) {
    NamedAttrList attributes(main.getResultAttrDict(i));
    auto declared = dyn_cast_or_null<TypeAttr>(attributes.get("firn.declared"));
    auto type = declared ? dyn_cast<RankedTensorType>(declared.getValue()) : RankedTensorType();
    SmallVector<DimExpr> dims = type ? dimsOf(type) : SmallVector<DimExpr>();
    bool isFixed = false;
    for (DimExpr &dim : dims)
      if (auto symbol = dim.asSymbol())
        if (auto at = sizes.find(*symbol); at != sizes.end()) {
          dim = DimExpr(at->second);
          isFixed = true;
        }
    if (isFixed)
      attributes.set("firn.declared", TypeAttr::get(tensorType(type.getElementType(), dims)));
    declarations.push_back(attributes.getDictionary(main.getContext()));
  }
  main.setAllResultAttrs(declarations);
  auto list = [](const std::set<std::string> &set) {
    return set.empty() ? std::string("none") : llvm::join(set, ", ");
  };
  for (const auto &[name, size] : sizes)
    if (!options.dims.count(name) && (options.ranges.count(name) || options.variants.count(name)))
      diagnostics.error("options.dim",
                        "--dim gives several sizes for '" + name + "', --shape fixes it to " + std::to_string(size));
  for (const std::string &name : unusedDims)
    diagnostics.error("options.dim", "--dim names '" + name + "', which is no dimension of an input",
                      "known: " + list(symbols));
  for (const std::string &name : unusedShapes)
    diagnostics.error("options.shape", "--shape names '" + name + "', which is no input", "known: " + list(names));
  main.setType(
      FunctionType::get(module.getContext(), main.getBody().front().getArgumentTypes(), main.getResultTypes()));
  return !diagnostics.hasErrors();
}

bool requireRunnableTypes(ModuleOp module, Diagnostics &diagnostics) {
  auto isRunnable = [](Type type) { return isa<RankedTensorType, NoneType>(type) || listFormOf(type); };
  module.walk([&](Operation *op) {
    for (Value result : op->getResults())
      if (!isRunnable(result.getType())) {
        diagnostics.report(
            diagnosticAt(op->getLoc(), "import.type",
                         "its result is a " + typeText(result.getType()) + ", which no model can be compiled with"));
        return;
      }
    auto loop = dyn_cast<LoopOp>(op);
    if (!loop)
      return;
    for (Value result : loop.getResults().drop_front(loop.getCarried().size()))
      if (!isa<RankedTensorType>(result.getType()))
        diagnostics.report(diagnosticAt(op->getLoc(), "import.rank",
                                        "the rank of scan output " +
                                            std::to_string(cast<OpResult>(result).getResultNumber()) +
                                            " depends on data"));
  });
  for (func::FuncOp func : module.getOps<func::FuncOp>())
    for (BlockArgument argument : func.getArguments())
      if (!isRunnable(argument.getType())) {
        auto name = func.getArgAttrOfType<StringAttr>(argument.getArgNumber(), "firn.name");
        diagnostics.error("import.type", "input '" + (name ? name.str() : "") + "' is a " +
                                             typeText(argument.getType()) + ", which no model can be compiled with");
      }
  return !diagnostics.hasErrors();
}

} // namespace firn

// Generate: code for fused operations, equal ones once; those that no emitter takes fall apart into smaller ones and,
// in the end, into calls of reference kernels.
#include "compiler/codegen/cpu/Contraction.h"
#include "compiler/codegen/cpu/Pipeline.h"
#include "compiler/driver/Stages.h"
#include "passes/group/Groupable.h"

#include <map>

using namespace mlir;

namespace firn {

/// A symbol of the nodes' names: letters, digits and underscores, not too long, unique by its number.
static std::string symbolFor(StringRef prefix, FusedOp fused, size_t number) {
  std::string name = prefix.str() + std::to_string(number) + "_";
  for (char c : nodeName(fused.getLoc()).substr(0, 64))
    name += isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
}

/// The smallest groups: one operation each.
static void regroup(ArrayRef<Operation *> operations, const TargetDescription &target) {
  for (Operation *op : operations) {
    StringRef kind = kernelKind(roleOf(op));
    if (!kind.empty())
      packConstants(makeFused({op}, kind), target);
  }
}

GeneratedKernels generateKernels(ModuleOp module, const TargetDescription &target, const CompileModelOptions &options,
                                 StringRef prefix) {
  GeneratedKernels generated;
  CompileOptions how;
  how.optLevel = options.optLevel;
  how.threads = options.hostThreads;
  how.wantTexts = options.emit == "kernel" || options.emit == "llvm" || options.emit == "asm";
  struct Known {
    std::string symbol;
    CompiledKernel kernel;
  };
  std::map<std::string, Known> known; // by kernelKey
  size_t number = 0;
  while (true) {
    // Round by round: what an emitter refuses comes back in smaller pieces.
    std::vector<KernelJob> jobs;
    std::vector<std::string> keys;
    SmallVector<FusedOp> open;
    std::map<std::string, size_t> fresh;
    module.walk([&](FusedOp fused) {
      if (generated.bindings.count(fused))
        return;
      open.push_back(fused);
      std::string key = kernelKey(fused);
      if (!known.count(key) && fresh.try_emplace(key, jobs.size()).second) {
        jobs.push_back({fused, symbolFor(prefix, fused, number++)});
        keys.push_back(key);
      }
    });
    if (open.empty())
      return generated;
    CompiledKernels compiled = compileKernels(jobs, target, how);
    if (!compiled.error.empty()) {
      generated.error = compiled.error;
      return generated;
    }
    for (auto &object : compiled.objects)
      if (!object.empty())
        generated.objects.push_back(std::move(object));
    for (auto [i, kernel] : llvm::enumerate(compiled.kernels)) {
      if (kernel.isEmitted)
        generated.text += options.emit == "kernel" ? kernel.kernelText
                          : options.emit == "llvm" ? kernel.llvmText
                                                   : kernel.assemblyText;
      known[keys[i]] = {jobs[i].name, kernel};
    }
    for (FusedOp fused : open) {
      const Known &k = known.at(kernelKey(fused));
      if (k.kernel.isEmitted) {
        generated.bindings[fused] = {k.symbol, k.kernel.isParallel, k.kernel.scratchBytes};
        continue;
      }
      generated.refusals.push_back({nodeName(fused.getLoc()), k.kernel.whyNot});
      bool wasSingle = llvm::count_if(fused.getBody().front().without_terminator(),
                                      [](Operation &op) { return !isa<ConstantOp, AbsentOp, DimValuesOp>(op); }) == 1;
      SmallVector<Operation *> operations = dissolve(fused);
      if (!wasSingle)
        regroup(operations, target);
    }
  }
}

DimExpr flopsOf(Operation *op) {
  auto fused = dyn_cast<FusedOp>(op);
  if (!fused)
    return DimExpr(0);
  DimExpr flops(0);
  if (fused.getKind() != "map" && fused.getKind() != "reduce")
    flops = contractionFlops(fused);
  for (Operation &inner : fused.getBody().front().without_terminator()) {
    Role role = roleOf(&inner);
    if (role != Role::Elementwise && role != Role::Reduce)
      continue;
    DimExpr count(1);
    Value counted = role == Role::Reduce ? inner.getOperand(0) : inner.getResult(0);
    for (const DimExpr &dim : dimsOf(cast<RankedTensorType>(counted.getType())))
      count = count * dim;
    flops = flops + count;
  }
  return flops;
}

} // namespace firn

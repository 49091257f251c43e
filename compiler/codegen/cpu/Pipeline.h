// From fused operations to object code, in parallel.
#ifndef FIRN_COMPILER_CODEGEN_CPU_PIPELINE_H
#define FIRN_COMPILER_CODEGEN_CPU_PIPELINE_H

#include "compiler/codegen/cpu/KernelEmitter.h"
#include <string>
#include <vector>

namespace llvm {
class LLVMContext;
class Module;
} // namespace llvm

namespace firn {

/// One kernel to compile. The caller has merged jobs of equal kernelKey.
struct KernelJob {
  FusedOp fused;
  std::string name; // the function's symbol
};

/// What became of one job.
struct CompiledKernel {
  bool isEmitted = false;
  std::string whyNot;       // if not: what the emitter lacks
  int64_t scratchBytes = 0; // per worker
  bool isParallel = false;
  std::string kernelText; // on request: the kernel dialect, LLVM IR after optimisation, assembly
  std::string llvmText;
  std::string assemblyText;
};

struct CompileOptions {
  unsigned optLevel = 3; // 0 to 3
  unsigned threads = 0;  // of the host; 0: all cores
  bool wantTexts = false;
};

struct CompiledKernels {
  std::vector<CompiledKernel> kernels;    // one per job
  std::vector<std::vector<char>> objects; // relocatable ELF objects; empty where no job was emitted
  std::string error;                      // not empty: an internal failure, nothing else is valid
};

/// Compiles all jobs. Their context must have been told which dialects are needed (loadKernelDialects). The result
/// depends on the jobs and options alone, but for `threads`, on nothing.
CompiledKernels compileKernels(llvm::ArrayRef<KernelJob> jobs, const TargetDescription &target,
                               const CompileOptions &options);

/// Loads every dialect that emitters and the lowering create operations of, and registers the translations to LLVM IR.
void loadKernelDialects(mlir::MLIRContext &context);

/// The steps of compileKernels, for tests and tools: kernels in `module` to the LLVM dialect; to an LLVM module;
/// optimised; to object or assembly text.
mlir::LogicalResult lowerKernels(mlir::ModuleOp module, const TargetDescription &target);
std::unique_ptr<llvm::Module> translateKernels(mlir::ModuleOp module, llvm::LLVMContext &context,
                                               const TargetDescription &target, std::string &error);
bool optimizeModule(llvm::Module &module, const TargetDescription &target, unsigned optLevel, std::string &error);
bool emitObject(llvm::Module &module, const TargetDescription &target, unsigned optLevel, std::vector<char> &bytes,
                std::string *assembly, std::string &error);

} // namespace firn
#endif

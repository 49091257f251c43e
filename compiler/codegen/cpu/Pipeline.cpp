// From fused operations to object code.
//
// Jobs are cut into batches of a fixed size; each batch is one LLVM module, made and optimised by one thread, so that
// the costs of a module are shared and the bytes do not depend on the number of threads.
#include "compiler/codegen/cpu/Pipeline.h"

#include "dialects/kernel/Kernel.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "passes/kernel/ConvertKernelToLLVM.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/ThreadPool.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include <mutex>

using namespace mlir;

namespace firn {
namespace {

/// Enough to share a module's costs, few enough to keep all cores busy with a small model.
constexpr size_t kernelsPerBatch = 8;

// What is left to do on functions that emitters wrote with care: no calls to inline, no memory to promote, vectors and
// unrolled loops as they should be. (LLVM 19's own unrolling makes microkernels spill: performance.md §6.) A third of
// the time of LLVM's O3 pipeline with the same instructions in hot loops: 0.7 s against 2.4 s for the 76 kernels of a
// classifier (Zen 4, LLVM 19.1.7, 2026-12-01: opt-19 -time-passes).
constexpr const char *passPipeline =
    "function(early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg,loop-mssa(loop-rotate,licm),gvn,"
    "instcombine<no-verify-fixpoint>,adce,simplifycfg)";

void initializeBackends() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeAllTargetInfos();
    llvm::InitializeAllTargets();
    llvm::InitializeAllTargetMCs();
    llvm::InitializeAllAsmPrinters();
    llvm::InitializeAllAsmParsers();
  });
}

std::unique_ptr<llvm::TargetMachine> targetMachine(const TargetDescription &target, unsigned optLevel,
                                                   std::string &error) {
  initializeBackends();
  const llvm::Target *backend = llvm::TargetRegistry::lookupTarget(target.triple, error);
  if (!backend)
    return nullptr;
  llvm::TargetOptions options;
  options.NoTrapAfterNoreturn = true;
  auto level = optLevel == 0   ? llvm::CodeGenOptLevel::None
               : optLevel == 1 ? llvm::CodeGenOptLevel::Less
               : optLevel == 2 ? llvm::CodeGenOptLevel::Default
                               : llvm::CodeGenOptLevel::Aggressive;
  std::unique_ptr<llvm::TargetMachine> machine(backend->createTargetMachine(
      target.triple, target.cpu, target.features, options, llvm::Reloc::PIC_, std::nullopt, level));
  if (!machine)
    error = "LLVM has no code generator for " + target.triple;
  return machine;
}

std::string printed(Operation *op) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  op->print(stream);
  return text;
}

std::string printed(const llvm::Function &function) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  function.print(stream);
  return text;
}

/// The lines of one function in the assembly of a module.
std::string functionAssembly(StringRef assembly, StringRef name) {
  size_t begin = assembly.find(("\n" + name + ":").str());
  if (begin == StringRef::npos)
    return "";
  StringRef rest = assembly.drop_front(begin + 1);
  return rest.take_front(rest.find(".Lfunc_end")).str();
}

struct Batch {
  ArrayRef<KernelJob> jobs;
  MutableArrayRef<CompiledKernel> kernels;
  std::vector<char> object;
  std::string error;
};

/// What the verifier says of an emitted kernel, "" if it is sound.
std::string invalid(kernel::FuncOp func) {
  std::string text;
  ScopedDiagnosticHandler handler(func.getContext(), [&, thread = llvm::get_threadid()](Diagnostic &diagnostic) {
    if (llvm::get_threadid() != thread)
      return failure();
    if (text.empty())
      text = diagnostic.str();
    return success();
  });
  return failed(verify(func)) ? (text.empty() ? "no reason given" : text) : "";
}

void compileBatch(Batch &batch, MLIRContext *context, const TargetDescription &target, const CompileOptions &options) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(context));
  bool isEmpty = true;
  for (auto [job, result] : llvm::zip(batch.jobs, batch.kernels)) {
    kernel::FuncOp func = createKernel(*module, job.name, job.fused);
    if (failed(emitKernel(job.fused, func, target, result.whyNot))) {
      func.erase();
      continue;
    }
    if (std::string wrong = invalid(func); !wrong.empty()) { // the reference kernel is slow, but right
      result.whyNot = "the emitter's code is invalid, please report it: " + wrong;
      func.erase();
      continue;
    }
    isEmpty = false;
    result.isEmitted = true;
    result.scratchBytes = int64_t(func.getScratchBytes());
    result.isParallel = func.getParallel();
    if (options.wantTexts)
      result.kernelText = printed(func);
  }
  if (isEmpty)
    return;
  // What the lowering reports goes into the batch's error: diagnostics of several threads would interleave.
  ScopedDiagnosticHandler handler(context, [&, thread = llvm::get_threadid()](Diagnostic &diagnostic) {
    if (llvm::get_threadid() != thread)
      return failure();
    if (batch.error.empty())
      batch.error = diagnostic.str();
    return success();
  });
  if (failed(lowerKernels(*module, target))) {
    if (batch.error.empty())
      batch.error = "a kernel does not lower to LLVM";
    return;
  }
  llvm::LLVMContext llvmContext;
  std::unique_ptr<llvm::Module> llvmModule = translateKernels(*module, llvmContext, target, batch.error);
  if (!llvmModule || !optimizeModule(*llvmModule, target, options.optLevel, batch.error))
    return;
  if (options.wantTexts)
    for (auto [job, result] : llvm::zip(batch.jobs, batch.kernels))
      if (llvm::Function *function = llvmModule->getFunction(job.name))
        result.llvmText = printed(*function);
  std::string assembly;
  if (!emitObject(*llvmModule, target, options.optLevel, batch.object, options.wantTexts ? &assembly : nullptr,
                  batch.error))
    return;
  if (options.wantTexts)
    for (auto [job, result] : llvm::zip(batch.jobs, batch.kernels))
      if (result.isEmitted)
        result.assemblyText = functionAssembly(assembly, job.name);
}

} // namespace

void loadKernelDialects(MLIRContext &context) {
  DialectRegistry registry;
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  context.appendDialectRegistry(registry);
  context.loadDialect<FirnDialect, kernel::KernelDialect, arith::ArithDialect, math::MathDialect, scf::SCFDialect,
                      vector::VectorDialect, LLVM::LLVMDialect, func::FuncDialect, cf::ControlFlowDialect>();
}

LogicalResult lowerKernels(ModuleOp module, const TargetDescription &target) {
  MathOptions options;
  options.hasFma = target.hasFma;
  options.hasAvx512 = target.hasAvx512;
  expandMath(module, options);
  return convertKernelsToLLVM(module);
}

std::unique_ptr<llvm::Module> translateKernels(ModuleOp module, llvm::LLVMContext &context,
                                               const TargetDescription &target, std::string &error) {
  std::unique_ptr<llvm::Module> result = translateModuleToLLVMIR(module, context, "kernels");
  if (!result) {
    error = "a kernel does not translate to LLVM IR";
    return nullptr;
  }
  std::unique_ptr<llvm::TargetMachine> machine = targetMachine(target, 2, error);
  if (!machine)
    return nullptr;
  result->setTargetTriple(target.triple);
  result->setDataLayout(machine->createDataLayout());
  std::string width = std::to_string(target.vectorBytes * 8);
  for (llvm::Function &function : *result) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr(llvm::Attribute::NoUnwind);
    function.addFnAttr("target-cpu", target.cpu);
    function.addFnAttr("tune-cpu", target.tuneCpu);
    function.addFnAttr("target-features", target.features);
    // Tunings for some CPUs split 512-bit vectors unless told otherwise; the emitters chose the width.
    function.addFnAttr("prefer-vector-width", width);
    function.addFnAttr("min-legal-vector-width", width);
    function.addFnAttr("no-trapping-math", "true");
  }
  return result;
}

bool optimizeModule(llvm::Module &module, const TargetDescription &target, unsigned optLevel, std::string &error) {
  std::unique_ptr<llvm::TargetMachine> machine = targetMachine(target, optLevel, error);
  if (!machine)
    return false;
  llvm::PassBuilder builder(machine.get());
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  llvm::ModulePassManager passes;
  if (llvm::Error failure = builder.parsePassPipeline(passes, optLevel == 0 ? "annotation-remarks" : passPipeline)) {
    error = llvm::toString(std::move(failure));
    return false;
  }
  passes.run(module, modules);
  return true;
}

bool emitObject(llvm::Module &module, const TargetDescription &target, unsigned optLevel, std::vector<char> &bytes,
                std::string *assembly, std::string &error) {
  std::unique_ptr<llvm::TargetMachine> machine = targetMachine(target, optLevel, error);
  if (!machine)
    return false;
  auto run = [&](llvm::CodeGenFileType kind, llvm::Module &of, SmallVectorImpl<char> &out) {
    llvm::raw_svector_ostream stream(out);
    llvm::legacy::PassManager passes;
    if (machine->addPassesToEmitFile(passes, stream, nullptr, kind)) {
      error = "LLVM cannot write this kind of file for " + target.triple;
      return false;
    }
    passes.run(of);
    return true;
  };
  SmallVector<char, 0> out;
  if (assembly) { // code generation changes the module: the text is made from a copy
    std::unique_ptr<llvm::Module> copy = llvm::CloneModule(module);
    if (!run(llvm::CodeGenFileType::AssemblyFile, *copy, out))
      return false;
    assembly->assign(out.begin(), out.end());
    out.clear();
  }
  if (!run(llvm::CodeGenFileType::ObjectFile, module, out))
    return false;
  bytes.assign(out.begin(), out.end());
  return true;
}

CompiledKernels compileKernels(ArrayRef<KernelJob> jobs, const TargetDescription &target,
                               const CompileOptions &options) {
  CompiledKernels result;
  result.kernels.resize(jobs.size());
  if (jobs.empty())
    return result;
  initializeBackends();
  MLIRContext *context = jobs.front().fused->getContext();
  std::vector<Batch> batches;
  for (size_t first = 0; first < jobs.size(); first += kernelsPerBatch) {
    size_t count = std::min(kernelsPerBatch, jobs.size() - first);
    batches.push_back({jobs.slice(first, count), MutableArrayRef(result.kernels).slice(first, count), {}, {}});
  }
  unsigned threads = options.threads ? options.threads : llvm::hardware_concurrency().compute_thread_count();
  if (threads <= 1 || batches.size() == 1 || !context->isMultithreadingEnabled()) {
    for (Batch &batch : batches)
      compileBatch(batch, context, target, options);
  } else {
    llvm::DefaultThreadPool pool(llvm::hardware_concurrency(threads));
    for (Batch &batch : batches)
      pool.async([&] { compileBatch(batch, context, target, options); });
    pool.wait();
  }
  for (Batch &batch : batches) {
    if (!batch.error.empty() && result.error.empty())
      result.error = batch.error;
    if (!batch.object.empty())
      result.objects.push_back(std::move(batch.object));
  }
  return result;
}

} // namespace firn

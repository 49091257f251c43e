// The passes of this folder for firn-mlir-opt. The compiler calls their functions: it lowers several modules of one
// context at a time, which a pass manager does not allow.
#include "passes/kernel/ConvertKernelToLLVM.h"

#include "dialects/kernel/Kernel.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"

using namespace mlir;

namespace firn {
namespace {

struct ConvertKernelToLLVMPass : PassWrapper<ConvertKernelToLLVMPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ConvertKernelToLLVMPass)
  StringRef getArgument() const override { return "convert-kernel-to-llvm"; }
  StringRef getDescription() const override { return "kernels to functions of the LLVM dialect"; }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<LLVM::LLVMDialect, cf::ControlFlowDialect, scf::SCFDialect, func::FuncDialect>();
  }
  void runOnOperation() override {
    if (failed(convertKernelsToLLVM(getOperation())))
      signalPassFailure();
  }
};

struct ExpandMathPass : PassWrapper<ExpandMathPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ExpandMathPass)
  ExpandMathPass() = default;
  ExpandMathPass(const ExpandMathPass &other) : PassWrapper(other) {}
  StringRef getArgument() const override { return "expand-math"; }
  StringRef getDescription() const override { return "functions of f32 to polynomials"; }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<LLVM::LLVMDialect, arith::ArithDialect, vector::VectorDialect>();
  }
  void runOnOperation() override {
    MathOptions options;
    options.hasFma = fma;
    options.hasAvx512 = avx512;
    expandMath(getOperation(), options);
  }
  Option<bool> fma{*this, "fma", llvm::cl::desc("the target fuses a product and a sum"), llvm::cl::init(true)};
  Option<bool> avx512{*this, "avx512", llvm::cl::desc("the target has vscalefps"), llvm::cl::init(false)};
};

} // namespace

void registerKernelPasses() {
  PassRegistration<ConvertKernelToLLVMPass>();
  PassRegistration<ExpandMathPass>();
}

} // namespace firn

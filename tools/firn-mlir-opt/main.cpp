// firn-mlir-opt: runs passes on MLIR text, for tests and for reproducers.
#include "compiler/operators/OperatorLibrary.h"
#include "dialects/firn/Firn.h"
#include "dialects/kernel/Kernel.h"
#include "dialects/plan/Plan.h"
#include "passes/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#ifdef FIRN_HAS_KERNEL_PASSES
#include "passes/kernel/ConvertKernelToLLVM.h"
#endif

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry
      .insert<firn::FirnDialect, firn::kernel::KernelDialect, firn::plan::PlanDialect, mlir::arith::ArithDialect,
              mlir::cf::ControlFlowDialect, mlir::func::FuncDialect, mlir::index::IndexDialect, mlir::LLVM::LLVMDialect,
              mlir::math::MathDialect, mlir::scf::SCFDialect, mlir::vector::VectorDialect>();
  firn::registerFirnPasses();
  mlir::registerTransformsPasses();
#ifdef FIRN_HAS_KERNEL_PASSES
  firn::registerKernelPasses();
#endif
  // Before LLVM's options are parsed: linking a static library resets them.
  std::vector<char *> rest;
  std::vector<std::string> operatorLibraries;
  for (char *word : llvm::ArrayRef(argv, size_t(argc)))
    if (llvm::StringRef text = word; text.consume_front("--ops="))
      operatorLibraries.push_back(text.str());
    else
      rest.push_back(word);
  firn::Diagnostics diagnostics;
  if (!firn::loadOperatorLibraries(operatorLibraries, diagnostics)) {
    llvm::errs() << diagnostics.text();
    return 2;
  }
  return mlir::asMainReturnCode(mlir::MlirOptMain(
      int(rest.size()), rest.data(), "Firn's passes on MLIR text; --ops=LIBRARY: custom operators\n", registry));
}

// The stages of a compilation between import and artifact, each a function on the module.
#ifndef FIRN_COMPILER_DRIVER_STAGES_H
#define FIRN_COMPILER_DRIVER_STAGES_H

#include "compiler/Diagnostics.h"
#include "compiler/artifact/Artifact.h"
#include "compiler/driver/Options.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/PassReport.h"

namespace firn {

#define FIRN_VERSION "0.1.0"

/// Reads the model; the operator library is what reference kernels there are. `refusesUnknown`: operators that are not
/// in it are errors.
mlir::OwningOpRef<mlir::ModuleOp> importSource(const SourceOptions &options, bool refusesUnknown,
                                               mlir::MLIRContext &context, Diagnostics &diagnostics);

/// The exit status of a model that was not taken.
int rejection(const Diagnostics &diagnostics);

/// The options that change the result, in one line, for the provenance.
std::string optionText(const CompileModelOptions &options);

/// Applies --dim and --shape to the inputs' types; reports names and sizes that do not fit.
bool fixDimensions(mlir::ModuleOp module, const SourceOptions &options, Diagnostics &diagnostics);

/// Infers types and reports all that they tell: what the rules of the operations refuse, what their reference kernels
/// refuse, and, as warnings, what the file declares of its outputs and is not so.
bool findProblems(mlir::ModuleOp module, Diagnostics &diagnostics);

/// Inference, folding, simplification, fusion and layout, as far as options.optLevel says.
mlir::LogicalResult optimise(mlir::ModuleOp module, const CompileModelOptions &options);

/// Reports values whose rank only running would tell.
bool requireRunnableTypes(mlir::ModuleOp module, Diagnostics &diagnostics);

/// Regions of operations that become one kernel each; weights packed for their emitters.
mlir::LogicalResult groupKernels(mlir::ModuleOp module, const TargetDescription &target,
                                 const CompileModelOptions &options);

struct GeneratedKernels {
  llvm::DenseMap<mlir::Operation *, KernelBinding> bindings;
  std::vector<std::vector<char>> objects;
  std::vector<std::pair<std::string, std::string>> refusals; // node, why it runs on a reference kernel
  std::string text;                                          // --emit=kernel|llvm|asm
  std::string error;
};
/// Code for all fused operations; those that no emitter takes are dissolved into their operations again. `prefix`
/// begins the names of the functions.
GeneratedKernels generateKernels(mlir::ModuleOp module, const TargetDescription &target,
                                 const CompileModelOptions &options, llvm::StringRef prefix = "firn_k");

/// The options of each specialised variant: those of the whole with one combination of --dim NAME=A,B fixed.
std::vector<CompileModelOptions> variantOptions(const CompileModelOptions &options);

/// Floating-point operations of a step (a multiply-add is two).
DimExpr flopsOf(mlir::Operation *op);

/// Inputs and outputs of the model as the reference evaluator computes it; false with a reason.
bool makeProof(const CompileModelOptions &options, mlir::MLIRContext &context, ArtifactContents &contents,
               std::string &whyNot);

/// --report: a table on stdout and, with a file, JSON. Returns an exit status.
int report(mlir::ModuleOp module, const Program &program, const GeneratedKernels &generated,
           const std::vector<PassRemark> &remarks, const CompileModelOptions &options);

/// --check: what is dynamic, what would be slow, which memory is needed.
std::string checkText(const Program &program, const GeneratedKernels &generated, const Diagnostics &diagnostics,
                      bool wantJson);
/// The same of a model that is not taken, as JSON.
std::string rejectedCheckText(const Diagnostics &diagnostics);

} // namespace firn
#endif

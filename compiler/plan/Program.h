// Program: the executor's view of a model before it is laid out in an artifact: integer values, buffers, steps.
// Mirrors runtime/abi/model.h, with names and containers instead of pointers.
#ifndef FIRN_COMPILER_PLAN_PROGRAM_H
#define FIRN_COMPILER_PLAN_PROGRAM_H

#include "compiler/plan/DimRange.h"
#include "dialects/firn/Firn.h"
#include "mlir/IR/BuiltinOps.h"
#include "runtime/abi/model.h"
#include <map>

namespace firn {

struct ProgramBuffer {
  int32_t kind = FIRN_BUFFER_ARENA;
  int32_t dtype = 0;
  int32_t form = FIRN_FORM_TENSOR;
  std::vector<int32_t> dims;
  int64_t offset = -1;
  int32_t firstStep = -1, lastStep = -1;
};

struct ProgramStep {
  int32_t kind = FIRN_STEP_KERNEL;
  bool isParallel = false;
  std::string kernel;            // symbol of the generated function
  mlir::Operation *op = nullptr; // REFERENCE: whose operator and attributes
  std::vector<int32_t> buffers, dims;
  int32_t inputCount = 0;
  int32_t begin = 0, middle = 0, end = 0;
  int32_t operation = 0; // LIST: FIRN_LIST_
  int64_t scratchBytes = 0;
  std::string name, kindName;
  int32_t flops = -1, bytes = -1;
};

struct ProgramPort {
  std::string name;
  std::vector<int32_t> dims;
  std::vector<std::string> symbols; // "" for a fixed dimension
  int32_t dtype = 0;
  int32_t buffer = -1;
  bool isOptional = false;
  int64_t defaultOffset = 0;
};

struct ProgramConstraint {
  int32_t value;
  int64_t lower, upper;
  std::string message;
};

/// A frozen tensor in the weights of the artifact.
struct ProgramWeight {
  mlir::ElementsAttr value; // null for strings
  int64_t offset;
  mlir::Type type;
  /// Of strings: for each element its offset in the weights and its length, then their texts.
  std::vector<char> strings;
};

struct Program {
  std::vector<firn_value> values;
  std::vector<ProgramBuffer> buffers;
  std::vector<ProgramStep> steps;
  std::vector<ProgramPort> inputs, outputs;
  std::vector<ProgramConstraint> constraints;
  std::vector<ProgramWeight> weights;
  int64_t weightBytes = 0;
  int64_t arenaBytes = -1; // where it is the same at every run
};

/// The generated function of a fused operation.
struct KernelBinding {
  std::string symbol;
  bool isParallel = false;
  int64_t scratchBytes = 0;
};

/// The step table of `main`: every operation is a kernel (`kernels` has its binding), a view, a reference call or
/// control flow. `inPlace`: pairs of operand and result of a fused op that may share a buffer. `ranges` become
/// constraints of the inputs.
Program planProgram(mlir::ModuleOp module, const llvm::DenseMap<mlir::Operation *, KernelBinding> &kernels,
                    llvm::function_ref<std::vector<std::string>(FusedOp)> symbolsOf,
                    llvm::function_ref<std::vector<std::pair<unsigned, unsigned>>(FusedOp)> inPlace,
                    llvm::function_ref<DimExpr(mlir::Operation *)> flopsOf, const DimRanges &ranges = {});

/// Offsets for the arena buffers of a program whose sizes are all constant, or bounded by the ranges of the inputs'
/// dimensions; sets arenaBytes (PlaceArena.cpp).
void placeArena(Program &program);

/// Lets `part` read the weights of `whole`; those that it alone has are added there.
void shareWeights(Program &whole, Program &part);

} // namespace firn
#endif

// Planning of a module given as text.
#include "test/compiler/plan/PlannerHarness.h"

#include "compiler/plan/Program.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include <stdexcept>

using namespace firn;

Planned plan(const std::string &text) {
  mlir::MLIRContext context;
  context.loadDialect<FirnDialect, mlir::func::FuncDialect>();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  if (!module)
    throw std::runtime_error("the module does not parse");
  llvm::DenseMap<mlir::Operation *, KernelBinding> kernels;
  module->walk([&](FusedOp fused) { kernels[fused] = {"kernel", true, 0}; });
  Program program = planProgram(
      *module, kernels, [](FusedOp) { return std::vector<std::string>(); },
      [](FusedOp) { return std::vector<std::pair<unsigned, unsigned>>{{0, 0}}; },
      [](mlir::Operation *) { return DimExpr(0); });
  placeArena(program);
  Planned planned;
  planned.arenaBytes = program.arenaBytes;
  planned.weightBytes = program.weightBytes;
  for (const ProgramBuffer &b : program.buffers) {
    int64_t count = 1;
    for (int32_t dim : b.dims)
      count = program.values[dim].op == FIRN_VALUE_CONSTANT && count >= 0 ? count * program.values[dim].a : -1;
    planned.buffers.push_back(
        {b.kind, b.offset, count < 0 ? -1 : firn_dtype_bytes(b.dtype, count), b.firstStep, b.lastStep});
  }
  for (const ProgramStep &s : program.steps)
    planned.steps.push_back({s.kind, s.buffers, s.begin, s.middle, s.end, s.operation});
  for (const ProgramPort &port : program.outputs)
    planned.outputs.push_back(port.buffer);
  for (const ProgramConstraint &c : program.constraints)
    planned.constraints.push_back(c.message);
  return planned;
}

// A program as IR of the plan dialect and back is the same program.
#include "compiler/plan/Dialect.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include <catch2/catch.hpp>

using namespace firn;

namespace {

/// One input [n, 4], a loop that doubles it, all kinds of entries that a text test does not make.
Program sample() {
  Program program;
  program.values = {{FIRN_VALUE_INPUT_DIM, 0, 0, 0}, {FIRN_VALUE_CONSTANT, 0, 4, 0}, {FIRN_VALUE_SYMBOL, 1, 0, 0}};
  auto buffer = [&](int32_t kind, int32_t dtype, std::vector<int32_t> dims, int64_t offset, int32_t first,
                    int32_t last) {
    ProgramBuffer b;
    b.kind = kind;
    b.dtype = dtype;
    b.dims = std::move(dims);
    b.offset = offset;
    b.firstStep = first;
    b.lastStep = last;
    program.buffers.push_back(b);
  };
  buffer(FIRN_BUFFER_INPUT, FIRN_F32, {0, 1}, 0, -1, -1);
  buffer(FIRN_BUFFER_OUTPUT, FIRN_F32, {0, 1}, 0, -1, -1);
  buffer(FIRN_BUFFER_ARENA, FIRN_BOOL, {}, -1, 0, 1);
  ProgramPort port;
  port.name = "x";
  port.dims = {0, 1};
  port.symbols = {"n", ""};
  port.dtype = FIRN_F32;
  port.buffer = 0;
  program.inputs = {port};
  port.name = "a name with \"quotes\" and \xc3\xa9";
  port.buffer = 1;
  program.outputs = {port};
  program.constraints = {{0, 1, 8, "n must be 1 to 8"}};
  ProgramStep loop;
  loop.kind = FIRN_STEP_LOOP;
  loop.buffers = {-1, 2, -1};
  loop.inputCount = 2;
  loop.begin = 1;
  loop.end = 2;
  loop.dims = {2};
  loop.name = "repeat";
  loop.kindName = "loop";
  ProgramStep kernel;
  kernel.kernel = "firn_k0";
  kernel.isParallel = true;
  kernel.buffers = {0, 1};
  kernel.inputCount = 1;
  kernel.begin = 2;
  kernel.dims = {0};
  kernel.scratchBytes = 64;
  kernel.name = "double";
  kernel.kindName = "map";
  kernel.flops = 0;
  kernel.bytes = 1;
  program.steps = {loop, kernel};
  return program;
}

std::string textOf(const Program &program, mlir::MLIRContext &context) {
  mlir::OwningOpRef<mlir::ModuleOp> module = planModule(program, "sample", context);
  CHECK(mlir::succeeded(mlir::verify(*module)));
  std::string text;
  llvm::raw_string_ostream stream(text);
  module->print(stream);
  return stream.str();
}

} // namespace

TEST_CASE("a program survives the plan dialect") {
  mlir::MLIRContext context;
  Program before = sample();
  mlir::OwningOpRef<mlir::ModuleOp> module = planModule(before, "sample", context);
  Program after = programOf(*module->getOps<plan::ProgramOp>().begin());
  CHECK(textOf(before, context) == textOf(after, context));
  REQUIRE(after.steps.size() == 2);
  CHECK(after.steps[0].end == 2);
  CHECK(after.steps[0].buffers == before.steps[0].buffers);
  CHECK(after.steps[1].isParallel);
  CHECK(after.steps[1].scratchBytes == 64);
  CHECK(after.steps[1].kernel == "firn_k0");
  CHECK(after.outputs[0].name == before.outputs[0].name);
  CHECK(after.values[2].late == 1);
  CHECK(after.buffers[2].lastStep == 1);
}

// Index arithmetic and loops that fold constants while they are built, so that emitters read like the loops they emit.
#ifndef FIRN_COMPILER_CODEGEN_CPU_LOOPBUILDER_H
#define FIRN_COMPILER_CODEGEN_CPU_LOOPBUILDER_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>

namespace firn {

class LoopBuilder {
public:
  using Values = llvm::SmallVector<mlir::Value>;

  LoopBuilder(mlir::OpBuilder &builder, mlir::Location location) : b(builder), loc(location) {}

  mlir::OpBuilder &b;
  mlir::Location loc;

  // Index arithmetic; all values are >= 0 unless a function says otherwise.
  mlir::Value index(int64_t value);
  std::optional<int64_t> constant(mlir::Value value) const;
  mlir::Value add(mlir::Value x, mlir::Value y);
  mlir::Value add(mlir::Value x, int64_t y) { return add(x, index(y)); }
  mlir::Value sub(mlir::Value x, mlir::Value y); // may be negative
  mlir::Value mul(mlir::Value x, mlir::Value y);
  mlir::Value mul(mlir::Value x, int64_t y) { return mul(x, index(y)); }
  mlir::Value div(mlir::Value x, mlir::Value y);
  mlir::Value div(mlir::Value x, int64_t y) { return div(x, index(y)); }
  mlir::Value rem(mlir::Value x, mlir::Value y);
  mlir::Value rem(mlir::Value x, int64_t y) { return rem(x, index(y)); }
  mlir::Value ceilDiv(mlir::Value x, int64_t y) { return div(add(x, y - 1), y); }
  mlir::Value ceilDiv(mlir::Value x, mlir::Value y) { return div(add(x, sub(y, index(1))), y); }
  mlir::Value min(mlir::Value x, mlir::Value y);  // signed
  mlir::Value max(mlir::Value x, mlir::Value y);  // signed
  mlir::Value less(mlir::Value x, mlir::Value y); // signed
  mlir::Value equal(mlir::Value x, mlir::Value y);
  mlir::Value both(mlir::Value x, mlir::Value y);
  mlir::Value select(mlir::Value condition, mlir::Value x, mlir::Value y);

  // Control flow. A loop or branch whose bounds are constants is not emitted where it would run once or never.
  void loop(mlir::Value from, mlir::Value to, int64_t step, llvm::function_ref<void(mlir::Value)> body);
  Values loop(mlir::Value from, mlir::Value to, int64_t step, Values carried,
              llvm::function_ref<Values(mlir::Value, Values)> body);
  void when(mlir::Value condition, llvm::function_ref<void()> then, llvm::function_ref<void()> otherwise = {});
  /// What `then` or `otherwise` gives.
  Values choose(mlir::Value condition, llvm::function_ref<Values()> then, llvm::function_ref<Values()> otherwise);
  /// While `goesOn(state)` holds, `body(state)` gives the next state; returns the last one.
  Values repeat(mlir::TypeRange types, Values state, llvm::function_ref<mlir::Value(Values)> goesOn,
                llvm::function_ref<Values(Values)> body);
  /// A loop that is never unrolled away, even for one iteration.
  void loopAlways(mlir::Value from, mlir::Value to, int64_t step, llvm::function_ref<void(mlir::Value)> body);
  /// Runs `body(i)` for the one i in [0, count) that `which` equals; for no other value of `which`.
  void oneOf(mlir::Value which, int64_t count, llvm::function_ref<void(int64_t)> body);

  // Memory: kernel.load and kernel.store.
  mlir::Value load(mlir::Type type, mlir::Value buffer, mlir::Value offset, mlir::Value count = {});
  void store(mlir::Value value, mlir::Value buffer, mlir::Value offset, mlir::Value count = {});
  /// The buffer `bytes` bytes further.
  mlir::Value at(mlir::Value buffer, mlir::Value bytes);

  // Vectors and floats.
  mlir::Value splat(mlir::VectorType type, mlir::Value scalar);
  mlir::Value zero(mlir::Type type);
};

} // namespace firn
#endif

#include "compiler/codegen/cpu/LoopBuilder.h"

#include "dialects/kernel/Kernel.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace firn {

Value LoopBuilder::index(int64_t value) { return b.create<arith::ConstantIndexOp>(loc, value); }

std::optional<int64_t> LoopBuilder::constant(Value value) const {
  if (auto op = value.getDefiningOp<arith::ConstantIndexOp>())
    return op.value();
  return std::nullopt;
}

Value LoopBuilder::add(Value x, Value y) {
  auto a = constant(x), c = constant(y);
  if (a && c)
    return index(*a + *c);
  if (a && *a == 0)
    return y;
  if (c && *c == 0)
    return x;
  return b.create<arith::AddIOp>(loc, x, y);
}

Value LoopBuilder::sub(Value x, Value y) {
  auto a = constant(x), c = constant(y);
  if (a && c)
    return index(*a - *c);
  if (c && *c == 0)
    return x;
  return b.create<arith::SubIOp>(loc, x, y);
}

Value LoopBuilder::mul(Value x, Value y) {
  auto a = constant(x), c = constant(y);
  if (a && c)
    return index(*a * *c);
  if ((a && *a == 0) || (c && *c == 1))
    return x;
  if ((c && *c == 0) || (a && *a == 1))
    return y;
  return b.create<arith::MulIOp>(loc, x, y);
}

Value LoopBuilder::div(Value x, Value y) {
  auto a = constant(x), c = constant(y);
  if (a && c && *a >= 0 && *c > 0)
    return index(*a / *c);
  if (c && *c == 1)
    return x;
  return b.create<arith::DivUIOp>(loc, x, y);
}

Value LoopBuilder::rem(Value x, Value y) {
  auto a = constant(x), c = constant(y);
  if (a && c && *a >= 0 && *c > 0)
    return index(*a % *c);
  if (c && *c == 1)
    return index(0);
  return b.create<arith::RemUIOp>(loc, x, y);
}

Value LoopBuilder::min(Value x, Value y) {
  auto a = constant(x), c = constant(y);
  if (a && c)
    return index(std::min(*a, *c));
  return x == y ? x : b.create<arith::MinSIOp>(loc, x, y).getResult();
}

Value LoopBuilder::max(Value x, Value y) {
  auto a = constant(x), c = constant(y);
  if (a && c)
    return index(std::max(*a, *c));
  return x == y ? x : b.create<arith::MaxSIOp>(loc, x, y).getResult();
}

Value LoopBuilder::less(Value x, Value y) {
  auto a = constant(x), c = constant(y);
  if (a && c)
    return b.create<arith::ConstantIntOp>(loc, *a < *c, 1);
  return b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::slt, x, y);
}

Value LoopBuilder::equal(Value x, Value y) {
  auto a = constant(x), c = constant(y);
  if (a && c)
    return b.create<arith::ConstantIntOp>(loc, *a == *c, 1);
  return b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::eq, x, y);
}

Value LoopBuilder::both(Value x, Value y) { return b.createOrFold<arith::AndIOp>(loc, x, y); }

Value LoopBuilder::select(Value condition, Value x, Value y) {
  return b.createOrFold<arith::SelectOp>(loc, condition, x, y);
}

void LoopBuilder::loop(Value from, Value to, int64_t step, llvm::function_ref<void(Value)> body) {
  auto first = constant(from), last = constant(to);
  if (first && last) {
    if (*first >= *last)
      return;
    if (*first + step >= *last)
      return body(from);
  }
  loopAlways(from, to, step, body);
}

void LoopBuilder::loopAlways(Value from, Value to, int64_t step, llvm::function_ref<void(Value)> body) {
  auto op = b.create<scf::ForOp>(loc, from, to, index(step));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(op.getBody());
  body(op.getInductionVar());
}

LoopBuilder::Values LoopBuilder::loop(Value from, Value to, int64_t step, Values carried,
                                      llvm::function_ref<Values(Value, Values)> body) {
  auto first = constant(from), last = constant(to);
  if (first && last) {
    if (*first >= *last)
      return carried;
    if (*first + step >= *last)
      return body(from, carried);
  }
  auto op = b.create<scf::ForOp>(loc, from, to, index(step), carried);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(op.getBody());
  Values next = body(op.getInductionVar(), Values(op.getRegionIterArgs()));
  b.create<scf::YieldOp>(loc, next);
  return Values(op.getResults());
}

void LoopBuilder::when(Value condition, llvm::function_ref<void()> then, llvm::function_ref<void()> otherwise) {
  if (auto known = condition.getDefiningOp<arith::ConstantIntOp>()) {
    if (known.value())
      then();
    else if (otherwise)
      otherwise();
    return;
  }
  auto op = b.create<scf::IfOp>(loc, condition, /*withElseRegion=*/bool(otherwise));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(op.thenBlock());
  then();
  if (otherwise) {
    b.setInsertionPointToStart(op.elseBlock());
    otherwise();
  }
}

LoopBuilder::Values LoopBuilder::choose(Value condition, llvm::function_ref<Values()> then,
                                        llvm::function_ref<Values()> otherwise) {
  auto branch = [&](llvm::function_ref<Values()> values) {
    return [&, values](OpBuilder &, Location) { b.create<scf::YieldOp>(loc, values()); };
  };
  // The builder of the branches is b itself, moved by scf.if's own guards.
  OpBuilder::InsertionGuard guard(b);
  auto op = b.create<scf::IfOp>(loc, condition, branch(then), branch(otherwise));
  return Values(op.getResults());
}

LoopBuilder::Values LoopBuilder::repeat(TypeRange types, Values state, llvm::function_ref<Value(Values)> goesOn,
                                        llvm::function_ref<Values(Values)> body) {
  auto op = b.create<scf::WhileOp>(loc, types, state);
  OpBuilder::InsertionGuard guard(b);
  SmallVector<Location> locations(types.size(), loc);
  Block *before = b.createBlock(&op.getBefore(), {}, types, locations);
  Values present(before->getArguments());
  b.create<scf::ConditionOp>(loc, goesOn(present), present);
  Block *after = b.createBlock(&op.getAfter(), {}, types, locations);
  b.create<scf::YieldOp>(loc, body(Values(after->getArguments())));
  return Values(op.getResults());
}

void LoopBuilder::oneOf(Value which, int64_t count, llvm::function_ref<void(int64_t)> body) {
  if (auto known = constant(which)) {
    if (*known >= 0 && *known < count)
      body(*known);
    return;
  }
  // LLVM makes a switch of these.
  for (int64_t i = 0; i < count; ++i)
    when(equal(which, index(i)), [&] { body(i); });
}

Value LoopBuilder::load(Type type, Value buffer, Value offset, Value count) {
  return b.create<kernel::LoadOp>(loc, type, buffer, offset, count, UnitAttr());
}

void LoopBuilder::store(Value value, Value buffer, Value offset, Value count) {
  b.create<kernel::StoreOp>(loc, value, buffer, offset, count, UnitAttr());
}

Value LoopBuilder::at(Value buffer, Value bytes) {
  auto known = constant(bytes);
  return known && *known == 0 ? buffer : b.create<kernel::OffsetOp>(loc, buffer.getType(), buffer, bytes).getResult();
}

Value LoopBuilder::splat(VectorType type, Value scalar) { return b.create<vector::SplatOp>(loc, type, scalar); }

Value LoopBuilder::zero(Type type) { return b.create<arith::ConstantOp>(loc, b.getZeroAttr(type)); }

} // namespace firn

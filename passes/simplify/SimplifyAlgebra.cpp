// SimplifyAlgebra: drop elementwise operations that change nothing, shorten chains of them.
//
// In:      firn ops on tensors, shapes inferred.     Out: the same, with fewer elementwise ops.
// Keeps:   every result bit for bit in IEEE arithmetic (payloads of NaNs aside): x * 1, x / 1, x - 0 and x + (-0) are x
//          for every x, x + 0 is not (-0 + 0 is +0). x / c becomes x * (1/c) only where 1/c is exact, a power of two.
// Leaves:  an operation whose result has another shape or type than what would replace it, or is rounded differently.
//   %1 = firn.mul %0, %one; %2 = firn.cast %1 {to = f32}      ==>   %0       (%0 is f32)
#include "passes/Passes.h"
#include "passes/Rules.h"

#include "runtime/abi/dtype.h"
#include <cmath>

using namespace mlir;

namespace firn {
#define GEN_PASS_DEF_SIMPLIFYALGEBRA
#include "passes/Passes.h.inc"

namespace {

/// Replaces `op` by `value` if the types agree.
bool forward(Operation *op, Value value, RuleRewriter &rewriter, StringRef what) {
  if (!haveSameType(op->getResult(0), value)) {
    rewriter.refuse(op, "its result has another shape than its operand");
    return false;
  }
  rewriter.replace(op, value, what);
  return true;
}

// --- copies ----------------------------------------------------------------------------------------------------------

bool dropIdentity(IdentityOp op, RuleRewriter &rewriter) {
  if (isReturned(op.getResult()) && isTakenAsOutput(op.getX())) {
    rewriter.refuse(op, "it is an output, and its operand an input, a constant or another output");
    return false;
  }
  rewriter.replace(op, op.getX(), "dropped the identity");
  return true;
}

bool dropDropout(DropoutOp op, RuleRewriter &rewriter) {
  if (Value training = operandOf(op, 2); training && splatOf(training) != 0.0) {
    rewriter.refuse(op, "training_mode is not known to be false");
    return false;
  }
  SmallVector<Value> values{op.getX()};
  if (op.getNumResults() > 1) {
    auto type = rankedType(op.getResult(1));
    if (!op.getResult(1).use_empty() && (!type || !type.hasStaticShape())) {
      rewriter.refuse(op, "its mask is used and has no static shape");
      return false;
    }
    rewriter.setInsertionPoint(op);
    values.push_back(op.getResult(1).use_empty() ? Value() : makeNumbers(rewriter, op.getLoc(), type, {1.0}));
  }
  rewriter.replace(op, values, "dropout is the identity in inference");
  return true;
}

// --- neutral operands ------------------------------------------------------------------------------------------------

bool isInteger(Value value) {
  auto type = rankedType(value);
  return type && isa<IntegerType>(type.getElementType());
}

bool simplifyAdd(AddOp op, RuleRewriter &rewriter) {
  for (auto [x, other] : {std::pair(op.getA(), op.getB()), std::pair(op.getB(), op.getA())})
    if (isUniformlyOf(other, isInteger(x) ? 0.0 : -0.0))
      if (forward(op, x, rewriter, "added zero"))
        return true;
  return false;
}

bool simplifySub(SubOp op, RuleRewriter &rewriter) {
  return isUniformlyOf(op.getB(), 0.0) && forward(op, op.getA(), rewriter, "subtracted zero");
}

bool simplifyMul(MulOp op, RuleRewriter &rewriter) {
  for (auto [x, other] : {std::pair(op.getA(), op.getB()), std::pair(op.getB(), op.getA())}) {
    if (isUniformlyOf(other, 1.0) && forward(op, x, rewriter, "multiplied by one"))
      return true;
    if (isUniformlyOf(other, -1.0) && haveSameType(x, op.getResult())) {
      rewriter.replaceWith<NegOp>(op, {}, "multiplied by minus one", op.getType(), x);
      return true;
    }
  }
  return false;
}

/// Whether 1/c is exact and normal, so that x / c and x * (1/c) round alike.
bool hasExactReciprocal(double c, Type type) {
  int exponent;
  double mantissa = std::frexp(std::fabs(c), &exponent);
  int most = type.isF64() ? 1000 : 100;
  return mantissa == 0.5 && std::abs(exponent) < most;
}

bool simplifyDiv(DivOp op, RuleRewriter &rewriter) {
  if (isUniformlyOf(op.getB(), 1.0))
    return forward(op, op.getA(), rewriter, "divided by one");
  auto divisor = rankedType(op.getB());
  if (!divisor || !(divisor.getElementType().isF32() || divisor.getElementType().isF64()))
    return false;
  auto numbers = numbersOf(op.getB(), 1 << 16);
  if (!numbers || numbers->empty() ||
      !llvm::all_of(*numbers, [&](double c) { return hasExactReciprocal(c, divisor.getElementType()); }))
    return false;
  for (double &c : *numbers)
    c = 1 / c;
  rewriter.setInsertionPoint(op);
  Value inverse = makeNumbers(rewriter, op.getB().getLoc(), divisor, *numbers);
  rewriter.replaceWith<MulOp>(op, {}, "divided by a power of two", op.getType(), op.getA(), inverse);
  return true;
}

bool simplifyPow(PowOp op, RuleRewriter &rewriter) {
  auto base = rankedType(op.getA());
  if (!base || !isFloat(base.getElementType()))
    return false;
  if (isUniformlyOf(op.getB(), 1.0))
    return forward(op, op.getA(), rewriter, "raised to one");
  // Both round the same exact square.
  if (isUniformlyOf(op.getB(), 2.0) && haveSameType(op.getA(), op.getResult())) {
    rewriter.replaceWith<MulOp>(op, {}, "squared", op.getType(), op.getA(), op.getA());
    return true;
  }
  return false;
}

bool simplifyAnd(AndOp op, RuleRewriter &rewriter) {
  if (op.getA() == op.getB())
    return forward(op, op.getA(), rewriter, "equal operands");
  for (auto [x, other] : {std::pair(op.getA(), op.getB()), std::pair(op.getB(), op.getA())})
    if (isUniformlyOf(other, 1.0) && forward(op, x, rewriter, "and with true"))
      return true;
  return false;
}

bool simplifyOr(OrOp op, RuleRewriter &rewriter) {
  if (op.getA() == op.getB())
    return forward(op, op.getA(), rewriter, "equal operands");
  for (auto [x, other] : {std::pair(op.getA(), op.getB()), std::pair(op.getB(), op.getA())})
    if (isUniformlyOf(other, 0.0) && forward(op, x, rewriter, "or with false"))
      return true;
  return false;
}

bool simplifyWhere(WhereOp op, RuleRewriter &rewriter) {
  if (op.getA() == op.getB())
    return forward(op, op.getA(), rewriter, "equal branches");
  for (auto [condition, value] : {std::pair(1.0, op.getA()), std::pair(0.0, op.getB())})
    if (isUniformlyOf(op.getCondition(), condition))
      return forward(op, value, rewriter, "constant condition");
  return false;
}

bool simplifyClip(ClipOp op, RuleRewriter &rewriter) {
  for (unsigned i = 1; i < op->getNumOperands(); ++i)
    if (operandOf(op, i))
      return false;
  return forward(op, op.getX(), rewriter, "clipped by nothing");
}

// --- chains ----------------------------------------------------------------------------------------------------------

/// f(f(x)) is f(x) for op = f, and for operand operations g in the list: f(g(x)) is g(x) or f(x).
template <typename OpT> bool dropRepeated(OpT op, RuleRewriter &rewriter) {
  return op.getX().template getDefiningOp<OpT>() && forward(op, op.getX(), rewriter, "repeated operation");
}
template <typename OpT> bool dropInverse(OpT op, RuleRewriter &rewriter) {
  auto inner = op.getX().template getDefiningOp<OpT>();
  return inner && forward(op, inner.getX(), rewriter, "undone by itself");
}
bool simplifyAbs(AbsOp op, RuleRewriter &rewriter) {
  if (auto inner = op.getX().getDefiningOp<NegOp>()) {
    rewriter.replaceWith<AbsOp>(op, {inner}, "magnitude of a negation", op.getType(), inner.getX());
    return true;
  }
  return dropRepeated(op, rewriter);
}

bool simplifyVariadic(Operation *op, RuleRewriter &rewriter) {
  if (op->getNumOperands() == 1)
    return forward(op, op->getOperand(0), rewriter, "one operand");
  // Greatest and least of equal values; not sums.
  if (isa<MaxOp, MinOp>(op) && llvm::all_equal(op->getOperands()))
    return forward(op, op->getOperand(0), rewriter, "equal operands");
  return false;
}

// --- casts -----------------------------------------------------------------------------------------------------------

/// Digits (bits of the significand) and the exponent range of a float; value bits and sign of an integer.
struct NumberFormat {
  bool isFloat, isSigned;
  int digits, exponent;
};
std::optional<NumberFormat> formatOf(int32_t dtype) {
  switch (dtype) {
  case FIRN_F64:
    return NumberFormat{true, true, 53, 1023};
  case FIRN_F32:
    return NumberFormat{true, true, 24, 127};
  case FIRN_F16:
    return NumberFormat{true, true, 11, 15};
  case FIRN_BF16:
    return NumberFormat{true, true, 8, 127};
  case FIRN_I64:
    return NumberFormat{false, true, 63, 0};
  case FIRN_I32:
    return NumberFormat{false, true, 31, 0};
  case FIRN_I16:
    return NumberFormat{false, true, 15, 0};
  case FIRN_I8:
    return NumberFormat{false, true, 7, 0};
  case FIRN_U64:
    return NumberFormat{false, false, 64, 0};
  case FIRN_U32:
    return NumberFormat{false, false, 32, 0};
  case FIRN_U16:
    return NumberFormat{false, false, 16, 0};
  case FIRN_U8:
    return NumberFormat{false, false, 8, 0};
  case FIRN_BOOL:
    return NumberFormat{false, false, 1, 0};
  }
  return std::nullopt;
}

/// Whether every value of type `from` is a value of type `to`.
bool preservesValues(int32_t from, int32_t to) {
  auto a = formatOf(from), b = formatOf(to);
  if (!a || !b || (a->isFloat && !b->isFloat))
    return false;
  if (from == to)
    return true;
  if (a->isFloat) // subnormals too: more digits come with at least as much range here, but f16 in bf16
    return b->digits >= a->digits && b->exponent >= a->exponent;
  if (b->isFloat)
    return b->digits >= a->digits + (a->isSigned ? 1 : 0);
  return b->digits >= a->digits && (b->isSigned || !a->isSigned);
}

int32_t elementDtype(Value value) {
  auto type = dyn_cast<TensorType>(value.getType());
  return type ? dtypeOf(type.getElementType()) : 0;
}

/// Why cast(cast(x)) must stay two casts, or "".
StringRef castRefusal(int32_t from, int32_t middle, int32_t to) {
  if (!preservesValues(from, middle))
    return "the first cast loses values";
  // Integers wrap into integers but saturate through a float.
  if (!formatOf(from)->isFloat && formatOf(middle)->isFloat && to != FIRN_BOOL && formatOf(to) &&
      !formatOf(to)->isFloat && !preservesValues(from, to))
    return "integers saturate on the way through a float";
  if (!formatOf(to))
    return "the last type is no plain number";
  return "";
}

bool simplifyCast(CastOp op, RuleRewriter &rewriter) {
  int32_t from = elementDtype(op.getX()), to = int32_t(op.getTo());
  if (from == to && from != 0) {
    if (op.getType() != op.getX().getType()) // else it may have any rank
      return forward(op, op.getX(), rewriter, "cast to its own type");
    rewriter.replace(op, op.getX(), "cast to its own type");
    return true;
  }
  auto inner = op.getX().getDefiningOp<CastOp>();
  if (!inner)
    return false;
  int32_t first = elementDtype(inner.getX());
  if (first == 0 || from == 0)
    return false;
  if (StringRef why = castRefusal(first, from, to); !why.empty()) {
    rewriter.refuse(op, why);
    return false;
  }
  if (first == to)
    return forward(op, inner.getX(), rewriter, "cast there and back");
  rewriter.setInsertionPoint(op);
  auto made = rewriter.create<CastOp>(rewriter.fused(op, {inner}), op->getResultTypes(), ValueRange{inner.getX()},
                                      op->getAttrs());
  rewriter.replace(op, made->getResults(), "two casts in one");
  return true;
}

bool simplifyCastLike(CastLikeOp op, RuleRewriter &rewriter) {
  int32_t to = elementDtype(op.getLike());
  if (to == 0)
    return false;
  rewriter.replaceWith<CastOp>(op, {}, "the type is known", op.getType(), op.getX(), uint64_t(to), op.getSaturate(),
                               op.getRoundMode());
  return true;
}

struct SimplifyAlgebra : impl::SimplifyAlgebraBase<SimplifyAlgebra> {
  using SimplifyAlgebraBase::SimplifyAlgebraBase;

  void runOnOperation() override {
    PassReport report("simplify-algebra", limit);
    RuleSet rules;
    rules.add<IdentityOp>(dropIdentity);
    rules.add<DropoutOp>(dropDropout);
    rules.add<AddOp>(simplifyAdd);
    rules.add<SubOp>(simplifySub);
    rules.add<MulOp>(simplifyMul);
    rules.add<DivOp>(simplifyDiv);
    rules.add<PowOp>(simplifyPow);
    rules.add<AndOp>(simplifyAnd);
    rules.add<OrOp>(simplifyOr);
    rules.add<WhereOp>(simplifyWhere);
    rules.add<ClipOp>(simplifyClip);
    rules.add<ReluOp>(dropRepeated<ReluOp>);
    rules.add<FloorOp>(dropRepeated<FloorOp>);
    rules.add<CeilOp>(dropRepeated<CeilOp>);
    rules.add<RoundOp>(dropRepeated<RoundOp>);
    rules.add<SignOp>(dropRepeated<SignOp>);
    rules.add<AbsOp>(simplifyAbs);
    rules.add<NegOp>(dropInverse<NegOp>);
    rules.add<NotOp>(dropInverse<NotOp>);
    rules.add<BitwiseNotOp>(dropInverse<BitwiseNotOp>);
    rules.addFor<SumOp, MeanOp, MaxOp, MinOp>(simplifyVariadic);
    rules.add<CastOp>(simplifyCast);
    rules.add<CastLikeOp>(simplifyCastLike);
    rules.apply(getOperation(), report);
  }
};

} // namespace
} // namespace firn

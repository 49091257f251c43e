// RelaxAlgebra: rewrites that treat numbers as real ones. Only where the user allows it (--fast-math).
//
// In:      firn ops on floats, shapes inferred.     Out: the same, with fewer of them.
// Keeps:   values up to rounding, where nothing is NaN or infinite; the sign of a zero may change.
// Leaves:  constants whose combination is not finite, values that another op reads too.
//   firn.mul(firn.mul %x, %c), %d                   ==>   firn.mul %x, %(c * d)
//   firn.clip(firn.relu %x), 0, 6                   ==>   firn.clip %x, 0, 6
//   firn.not(firn.less %a, %b)                      ==>   firn.greater_or_equal %a, %b
#include "passes/Passes.h"
#include "passes/Rules.h"

#include <cmath>

using namespace mlir;

namespace firn {
#define GEN_PASS_DEF_RELAXALGEBRA
#include "passes/Passes.h.inc"

namespace {

constexpr int64_t mostNumbers = 1 << 20;

/// `value` (op) `by`, where `by` is a constant: a sum or a difference as a sum, a product or a quotient as a product.
struct Step {
  Value value, constant;
  bool isSum, isInverse; // subtracted, divided by
};

std::optional<Step> stepOf(Operation *op) {
  if (!isa_and_nonnull<AddOp, SubOp, MulOp, DivOp>(op) || !rankedType(op->getResult(0)) ||
      !isFloat(getElementTypeOrSelf(op->getResult(0))))
    return std::nullopt;
  bool isSum = isa<AddOp, SubOp>(op), isInverse = isa<SubOp, DivOp>(op);
  Value a = op->getOperand(0), b = op->getOperand(1);
  if (constantOf(b))
    return Step{a, b, isSum, isInverse};
  if (constantOf(a) && !isInverse)
    return Step{b, a, isSum, false};
  return std::nullopt;
}

/// The constant of two steps in one, of the type of the one that has more elements; null if they do not line up.
Value combined(const Step &inner, const Step &outer, RuleRewriter &rewriter, Location loc) {
  auto a = rankedType(inner.constant), b = rankedType(outer.constant);
  if (a != b && !(a.getNumElements() == 1 && a.getRank() <= b.getRank()) &&
      !(b.getNumElements() == 1 && b.getRank() <= a.getRank()))
    return {};
  auto x = numbersOf(inner.constant, mostNumbers), y = numbersOf(outer.constant, mostNumbers);
  if (!x || !y || x->empty() || y->empty())
    return {};
  size_t count = std::max(x->size(), y->size());
  std::vector<double> numbers(count);
  for (size_t i = 0; i < count; ++i) {
    double first = (*x)[x->size() == 1 ? 0 : i], second = (*y)[y->size() == 1 ? 0 : i];
    first = !inner.isInverse ? first : inner.isSum ? -first : 1 / first;
    second = !outer.isInverse ? second : outer.isSum ? -second : 1 / second;
    numbers[i] = inner.isSum ? first + second : first * second;
    if (!std::isfinite(numbers[i]) || std::fabs(numbers[i]) > 6e4) // finite in every type
      return {};
  }
  return makeNumbers(rewriter, loc, x->size() >= y->size() && a.getRank() >= b.getRank() ? a : b, numbers);
}

bool joinSteps(Operation *op, RuleRewriter &rewriter) {
  auto outer = stepOf(op);
  Operation *before = outer ? outer->value.getDefiningOp() : nullptr;
  auto inner = stepOf(before);
  if (!inner || inner->isSum != outer->isSum || !before->hasOneUse() || before->getBlock() != op->getBlock())
    return false;
  rewriter.setInsertionPoint(op);
  Location loc = rewriter.fused(op, {before});
  Value constant = combined(*inner, *outer, rewriter, loc);
  if (!constant) {
    rewriter.refuse(op, "the constants of two steps do not line up, or become too large");
    return false;
  }
  Value joined =
      inner->isSum
          ? rewriter.create<AddOp>(loc, op->getResultTypes(), ValueRange{inner->value, constant})->getResult(0)
          : rewriter.create<MulOp>(loc, op->getResultTypes(), ValueRange{inner->value, constant})->getResult(0);
  rewriter.replace(op, joined, "two constants in one");
  return true;
}

bool dropZero(AddOp op, RuleRewriter &rewriter) {
  for (auto [x, other] : {std::pair(op.getA(), op.getB()), std::pair(op.getB(), op.getA())})
    if (isUniformlyOf(other, 0.0) && haveSameType(x, op.getResult())) {
      rewriter.replace(op, x, "added zero");
      return true;
    }
  return false;
}

bool dropRelu(ClipOp op, RuleRewriter &rewriter) {
  auto relu = op.getX().getDefiningOp<ReluOp>();
  auto least = splatOf(operandOf(op, 1));
  if (!relu || !least || *least < 0)
    return false;
  SmallVector<Value> operands(op->getOperands());
  operands[0] = relu.getX();
  rewriter.setInsertionPoint(op);
  OperationState state(rewriter.fused(op, {relu}), op->getName(), operands, op->getResultTypes(), op->getAttrs());
  rewriter.replace(op, rewriter.create(state)->getResults(), "clipped from above zero");
  return true;
}

template <typename Compare, typename Opposite> bool negate(NotOp op, RuleRewriter &rewriter) {
  auto compare = op.getX().getDefiningOp<Compare>();
  if (!compare || !compare->hasOneUse())
    return false;
  rewriter.replaceWith<Opposite>(op, {compare}, "the opposite comparison", op.getType(), compare.getA(),
                                 compare.getB());
  return true;
}

bool negateComparison(NotOp op, RuleRewriter &rewriter) {
  return negate<LessOp, GreaterOrEqualOp>(op, rewriter) || negate<GreaterOp, LessOrEqualOp>(op, rewriter) ||
         negate<LessOrEqualOp, GreaterOp>(op, rewriter) || negate<GreaterOrEqualOp, LessOp>(op, rewriter);
}

struct RelaxAlgebra : impl::RelaxAlgebraBase<RelaxAlgebra> {
  using RelaxAlgebraBase::RelaxAlgebraBase;

  void runOnOperation() override {
    PassReport report("relax-algebra", limit);
    RuleSet rules;
    rules.add<AddOp>(dropZero);
    rules.addFor<AddOp, SubOp, MulOp, DivOp>(joinSteps);
    rules.add<ClipOp>(dropRelu);
    rules.add<NotOp>(negateComparison);
    rules.apply(getOperation(), report);
  }
};

} // namespace
} // namespace firn

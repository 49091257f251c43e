// Contents of small tensors as expressions: what elementwise arithmetic makes of them.
//
// Exact or unknown. Whole numbers follow integer semantics (division truncates, mod has the divisor's sign); real ones
// are whole numbers times inverses, kept only where no rounding of the model's arithmetic could change a later floor.
#include "dialects/firn/Inference.h"
#include "runtime/abi/dtype.h"

using namespace mlir;

namespace firn {

/// Whether every inverse in it is one of a power of two, so that sums and products of moderate size are exact.
static bool isDyadic(const DimExpr &expr) {
  if (expr.isUnknown())
    return false;
  for (const DimExpr::Term &term : expr.terms())
    for (const DimExpr::AtomRef &atom : term.atoms)
      if (atom->function == DimExpr::Function::Inverse) {
        int64_t q = atom->args[0].constant();
        if (q & (q - 1))
          return false;
      }
  return true;
}

static DimExpr negated(const DimExpr &x) { return DimExpr(0) - x; }

static DimExpr divided(const DimExpr &x, const DimExpr &y, bool isReal) {
  if (isReal) {
    auto by = y.asConstant();
    if (!by || *by == 0 || std::abs(*by) > 1024 || !isDyadic(x))
      return DimExpr::unknown();
    return (*by < 0 ? negated(x) : x) * DimExpr::inverse(std::abs(*by));
  }
  if (x.isConstant() && y.isConstant() && y.constant() != 0 && (y.constant() != -1 || x.constant() != INT64_MIN))
    return DimExpr(x.constant() / y.constant());
  // Division truncates: towards smaller numbers above zero, towards greater ones below.
  if (x.isAtLeast(0) && y.isAtLeast(1))
    return x.floorDiv(y);
  if (negated(x).isAtLeast(0) && y.isAtLeast(1))
    return negated(negated(x).floorDiv(y));
  auto exact = x.exactDiv(y);
  return exact && !y.isConstant() ? *exact : exact && y.constant() != 0 ? *exact : DimExpr::unknown();
}

static DimExpr truth(bool value) { return DimExpr(value ? 1 : 0); }

static DimExpr compared(StringRef name, const DimExpr &x, const DimExpr &y) {
  DimExpr d = x - y;
  bool isPositive = d.isAtLeast(1), isNegative = negated(d).isAtLeast(1);
  bool isNotNegative = d.isAtLeast(0), isNotPositive = negated(d).isAtLeast(0);
  if (!d.isWhole())
    return DimExpr::unknown();
  if (name == "equal")
    return isPositive || isNegative ? truth(false) : d.isConstant() ? truth(true) : DimExpr::unknown();
  if (name == "greater")
    return isPositive ? truth(true) : isNotPositive ? truth(false) : DimExpr::unknown();
  if (name == "less")
    return isNegative ? truth(true) : isNotNegative ? truth(false) : DimExpr::unknown();
  if (name == "greater_or_equal")
    return isNotNegative ? truth(true) : isNegative ? truth(false) : DimExpr::unknown();
  return isNotPositive ? truth(true) : isPositive ? truth(false) : DimExpr::unknown();
}

static DimExpr binary(Inference &inference, StringRef name, const DimExpr &x, const DimExpr &y, bool isReal) {
  if (isReal && (!isDyadic(x) || !isDyadic(y)))
    return DimExpr::unknown();
  if (name == "add" || name == "sum")
    return x + y;
  if (name == "sub")
    return x - y;
  if (name == "mul")
    return x * y;
  if (name == "div")
    return divided(x, y, isReal);
  if (name == "max" || name == "min") {
    if (!x.isWhole() || !y.isWhole())
      return DimExpr::unknown();
    return name == "max" ? DimExpr::max(x, y) : DimExpr::min(x, y);
  }
  if (name == "mod" && !isReal && y.isAtLeast(1) && (x.isAtLeast(0) || inference.intAttribute("fmod", 0) == 0))
    return x.mod(y);
  if (name == "pow" && x.isWhole() && y.isConstant() && y.constant() >= 0 && y.constant() <= 4) {
    DimExpr power(1);
    for (int64_t i = 0; i < y.constant(); ++i)
      power = power * x;
    return power;
  }
  auto a = x.asConstant(), b = y.asConstant();
  if (name == "and" && ((a && !*a) || (b && !*b)))
    return truth(false);
  if (name == "or" && ((a && *a) || (b && *b)))
    return truth(true);
  if (a && b && name == "and")
    return truth(*a && *b);
  if (a && b && name == "or")
    return truth(*a || *b);
  if (a && b && name == "xor")
    return truth(!*a != !*b);
  return DimExpr::unknown();
}

static DimExpr unary(StringRef name, const DimExpr &x) {
  if (name == "identity")
    return x;
  if (name == "neg")
    return negated(x);
  if (name == "floor")
    return x.floor();
  if (name == "ceil")
    return x.ceil();
  if (name == "round" && x.isWhole())
    return x;
  if (name == "abs" && x.isWhole())
    return x.isAtLeast(0) ? x : negated(x).isAtLeast(0) ? negated(x) : DimExpr::unknown();
  if (name == "relu" && x.isWhole())
    return DimExpr::max(x, DimExpr(0));
  if (name == "sign" && x.isWhole())
    return x.isAtLeast(1)            ? DimExpr(1)
           : x == DimExpr(0)         ? x
           : negated(x).isAtLeast(1) ? DimExpr(-1)
                                     : DimExpr::unknown();
  if (name == "not" && x.isConstant())
    return truth(x.constant() == 0);
  return DimExpr::unknown();
}

static DimExpr cast(const DimExpr &x, Type to) {
  if (to.isInteger(1)) {
    bool isSet = x.isWhole() && (x.isAtLeast(1) || negated(x).isAtLeast(1));
    return x.isConstant() ? truth(x.constant() != 0) : isSet ? truth(true) : DimExpr::unknown();
  }
  if (to.isSignlessInteger(64) || to.isSignlessInteger(32)) {
    if (x.isConstant() && to.isSignlessInteger(32))
      return DimExpr(int32_t(uint64_t(x.constant()))); // wraps
    if (x.isWhole())
      return x;
    // Conversion truncates.
    DimExpr down = x.floor();
    return x.isAtLeast(0) ? down : DimExpr::unknown();
  }
  // float16 and bfloat16 hold too few whole numbers.
  return to.isF32() || to.isF64() ? x : DimExpr::unknown();
}

namespace {
/// The contents of one operand, read by an index of the result that it broadcasts to.
struct Operand {
  Inference::Dims numbers;
  SmallVector<int64_t> strides; // 0 where it broadcasts

  static std::optional<Operand> read(Inference &inference, unsigned i, ArrayRef<int64_t> shape) {
    auto numbers = inference.numbers(i);
    auto dims = inference.dims(i);
    if (!dims || dims->size() > shape.size())
      return std::nullopt;
    Operand operand;
    int64_t count = 1;
    operand.strides.assign(shape.size(), 0);
    for (size_t d = dims->size(); d-- > 0;) {
      if (!(*dims)[d].isConstant())
        return std::nullopt;
      size_t at = d + shape.size() - dims->size();
      // Of a wrong model: its message comes from elsewhere.
      if ((*dims)[d].constant() != 1 && (*dims)[d].constant() != shape[at])
        return std::nullopt;
      if ((*dims)[d].constant() != 1)
        operand.strides[at] = count;
      count *= (*dims)[d].constant();
    }
    operand.numbers =
        numbers && int64_t(numbers->size()) == count ? *numbers : Inference::Dims(count, DimExpr::unknown());
    return operand;
  }
  const DimExpr &at(ArrayRef<int64_t> index) const {
    int64_t offset = 0;
    for (auto [i, stride] : llvm::zip(index, strides))
      offset += i * stride;
    return numbers[offset];
  }
};
} // namespace

void inferElements(Inference &inference) {
  const auto &result = inference.inferred()[0];
  auto isNumber = [](Type type) {
    return type && (type.isSignlessInteger(64) || type.isSignlessInteger(32) || type.isInteger(1) || type.isF32() ||
                    type.isF64());
  };
  if (!result.dims || !isNumber(result.elementType))
    return;
  unsigned count = inference.operandCount();
  bool isAnyKnown = false, areNumbers = count > 0;
  for (unsigned i = 0; i < count; ++i) {
    isAnyKnown |= inference.numbers(i).has_value();
    areNumbers &= !inference.has(i) || isNumber(inference.elementType(i));
  }
  if (!isAnyKnown || !areNumbers)
    return;
  SmallVector<int64_t> shape;
  int64_t total = 1;
  for (const DimExpr &dim : *result.dims) {
    if (!dim.isConstant() || dim.constant() > 1024)
      return;
    shape.push_back(dim.constant());
    if ((total *= dim.constant()) > 1024)
      return;
  }
  SmallVector<std::optional<Operand>> operands;
  for (unsigned i = 0; i < count; ++i) {
    operands.emplace_back();
    if (inference.has(i) && !(operands.back() = Operand::read(inference, i, shape)))
      return;
  }
  StringRef name = inference.operation()->getName().stripDialect();
  bool isReal = isa<FloatType>(inference.elementType(0));
  auto element = [&](ArrayRef<int64_t> index) -> DimExpr {
    auto at = [&](unsigned i) -> const DimExpr & { return operands[i]->at(index); };
    if (name == "where") {
      auto condition = at(0).asConstant();
      return condition ? (*condition ? at(1) : at(2)) : at(1) == at(2) ? at(1) : DimExpr::unknown();
    }
    if (name == "cast")
      return cast(at(0), result.elementType);
    if (name == "clip") {
      DimExpr x = at(0);
      if (count > 1 && operands[1])
        x = binary(inference, "max", x, at(1), isReal);
      return count > 2 && operands[2] ? binary(inference, "min", x, at(2), isReal) : x;
    }
    if (name == "equal" || name == "greater" || name == "less" || name == "greater_or_equal" || name == "less_or_equal")
      return compared(name, at(0), at(1));
    if (count == 1)
      return name == "max" || name == "min" || name == "sum" ? at(0) : unary(name, at(0));
    DimExpr value = binary(inference, name, at(0), at(1), isReal);
    for (unsigned i = 2; i < count; ++i) // max, min of several
      value = binary(inference, name, value, at(i), isReal);
    return value;
  };
  Inference::Dims elements;
  SmallVector<int64_t> index(shape.size(), 0);
  for (int64_t n = 0; n < total; ++n) {
    elements.push_back(element(index));
    for (size_t d = shape.size(); d-- > 0 && ++index[d] == shape[d];)
      index[d] = 0;
  }
  inference.resultElements(0, elements);
}

} // namespace firn

// DimExpr: the size of a dimension as an expression over symbols.
//
// Kept in one normal form, a polynomial with integer coefficients over atoms, so that equal texts mean equal sizes. An
// atom is a symbol ("batch") or one of floordiv, ceildiv, mod, min, max of two expressions. Contents of small tensors
// on the way to a size are expressions too: there an atom may be inverse(q), the number 1/q, and a whole expression may
// be unknown ("?"), which makes everything computed from it unknown. Dimensions are neither. Needs no MLIR.
#ifndef FIRN_DIALECTS_FIRN_DIMEXPR_H
#define FIRN_DIALECTS_FIRN_DIMEXPR_H

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace firn {

class DimExpr {
public:
  enum class Function { Symbol, FloorDiv, CeilDiv, Mod, Min, Max, Inverse };
  struct Atom;
  using AtomRef = std::shared_ptr<const Atom>;
  /// coefficient * product of atoms (sorted by text, powers repeated).
  struct Term {
    int64_t coefficient;
    std::vector<AtomRef> atoms;
  };

  DimExpr(int64_t constant = 0);
  static DimExpr symbol(std::string_view name);
  /// Nothing is known of it; equal to nothing, itself included.
  static DimExpr unknown();
  /// 1 / divisor, divisor >= 1.
  static DimExpr inverse(int64_t divisor);
  /// Reads what str() writes (and any expression of its grammar); nothing if the text is malformed.
  static std::optional<DimExpr> parse(std::string_view text);

  bool isUnknown() const;
  /// Whether it is known and no inverse(q) is left in it.
  bool isWhole() const;
  bool isConstant() const;
  /// The value of a constant; only where isConstant().
  int64_t constant() const;
  std::optional<int64_t> asConstant() const;
  /// Whether this is one symbol and nothing else, and which.
  std::optional<std::string> asSymbol() const;
  std::string str() const;
  const std::vector<Term> &terms() const { return polynomial; }
  void collectSymbols(std::set<std::string> &names) const;
  /// The same with expressions in the place of symbols.
  DimExpr with(const std::map<std::string, DimExpr> &sizes) const;
  /// Whether this is known to be >= `bound`, dimensions (symbols) being >= 0.
  bool isAtLeast(int64_t bound) const;

  DimExpr operator+(const DimExpr &other) const;
  DimExpr operator-(const DimExpr &other) const;
  DimExpr operator*(const DimExpr &other) const;
  DimExpr floorDiv(const DimExpr &divisor) const;
  DimExpr ceilDiv(const DimExpr &divisor) const;
  DimExpr mod(const DimExpr &divisor) const;
  static DimExpr min(const DimExpr &a, const DimExpr &b);
  static DimExpr max(const DimExpr &a, const DimExpr &b);
  /// The quotient if the division leaves no remainder for every value of the symbols.
  std::optional<DimExpr> exactDiv(const DimExpr &divisor) const;
  /// The greatest whole number that is not above this, the least not below it; inverses go away.
  DimExpr floor() const;
  DimExpr ceil() const;
  bool operator==(const DimExpr &other) const { return !isUnknown() && str() == other.str(); }
  bool operator!=(const DimExpr &other) const { return !(*this == other); }

private:
  explicit DimExpr(std::vector<Term> terms);
  std::optional<std::pair<DimExpr, int64_t>> overOneDenominator() const;
  static DimExpr atom(Function function, const DimExpr &a, const DimExpr &b);
  std::vector<Term> polynomial; // sorted by atoms' text, no zero coefficients; empty: 0
};

struct DimExpr::Atom {
  Function function;
  std::string name;          // of a symbol
  std::vector<DimExpr> args; // of the others: two, of an inverse one
  std::string text;
};

} // namespace firn
#endif

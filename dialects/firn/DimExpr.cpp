// DimExpr: normal form, arithmetic, text.
#include "dialects/firn/DimExpr.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <numeric>

namespace firn {
using Term = DimExpr::Term;

namespace {
constexpr std::string_view unknownText = "?";

std::string atomsText(const std::vector<DimExpr::AtomRef> &atoms) {
  std::string text;
  for (const DimExpr::AtomRef &atom : atoms)
    text += (text.empty() ? "" : "*") + atom->text;
  return text;
}

/// Wrapping arithmetic: sizes that overflow are refused where they are used, not here.
int64_t wrapMul(int64_t a, int64_t b) { return int64_t(uint64_t(a) * uint64_t(b)); }
int64_t wrapAdd(int64_t a, int64_t b) { return int64_t(uint64_t(a) + uint64_t(b)); }

int64_t floorDivide(int64_t a, int64_t b) {
  if (b == 0)
    return 0;
  int64_t q = a / b;
  return q - ((a % b != 0) && ((a < 0) != (b < 0)));
}
} // namespace

DimExpr::DimExpr(int64_t constant) {
  if (constant != 0)
    polynomial.push_back({constant, {}});
}

DimExpr::DimExpr(std::vector<Term> terms) {
  for (const Term &term : terms)
    for (const AtomRef &atom : term.atoms)
      if (term.coefficient != 0 && atom->text == unknownText) {
        polynomial = {{1, {atom}}};
        return;
      }
  std::map<std::string, Term> sum;
  for (Term &term : terms) {
    std::sort(term.atoms.begin(), term.atoms.end(),
              [](const AtomRef &a, const AtomRef &b) { return a->text < b->text; });
    std::string key = atomsText(term.atoms);
    auto [at, isNew] = sum.try_emplace(key, term);
    if (!isNew)
      at->second.coefficient = wrapAdd(at->second.coefficient, term.coefficient);
  }
  for (auto &[key, term] : sum)
    if (term.coefficient != 0)
      polynomial.push_back(std::move(term));
}

DimExpr DimExpr::symbol(std::string_view name) {
  auto atom = std::make_shared<Atom>();
  atom->function = Function::Symbol;
  atom->name = atom->text = std::string(name);
  return DimExpr(std::vector<Term>{{1, {atom}}});
}

DimExpr DimExpr::unknown() { return symbol(unknownText); }
bool DimExpr::isUnknown() const {
  return polynomial.size() == 1 && polynomial[0].atoms.size() == 1 && polynomial[0].atoms[0]->text == unknownText;
}

DimExpr DimExpr::inverse(int64_t divisor) {
  if (divisor == 1)
    return DimExpr(1);
  auto atom = std::make_shared<Atom>();
  atom->function = Function::Inverse;
  atom->args = {DimExpr(divisor)};
  atom->text = "inverse(" + std::to_string(divisor) + ")";
  return DimExpr(std::vector<Term>{{1, {atom}}});
}
bool DimExpr::isWhole() const {
  for (const Term &term : polynomial)
    for (const AtomRef &atom : term.atoms)
      if (atom->function == Function::Inverse)
        return false;
  return !isUnknown();
}
/// Numerator and denominator; nothing where that would be large.
std::optional<std::pair<DimExpr, int64_t>> DimExpr::overOneDenominator() const {
  auto denominatorOf = [](const Term &term) {
    int64_t product = 1;
    for (const AtomRef &atom : term.atoms)
      if (atom->function == Function::Inverse)
        product = wrapMul(product, atom->args[0].constant());
    return product;
  };
  int64_t common = 1;
  for (const Term &term : polynomial) {
    int64_t own = denominatorOf(term);
    if (own < 1 || own > (int64_t(1) << 24) || common > (int64_t(1) << 24))
      return std::nullopt;
    common = std::lcm(common, own);
  }
  std::vector<Term> numerator;
  for (const Term &term : polynomial) {
    Term scaled{wrapMul(term.coefficient, common / denominatorOf(term)), {}};
    for (const AtomRef &atom : term.atoms)
      if (atom->function != Function::Inverse)
        scaled.atoms.push_back(atom);
    numerator.push_back(std::move(scaled));
  }
  return std::make_pair(DimExpr(std::move(numerator)), common);
}
DimExpr DimExpr::floor() const {
  if (isWhole() || isUnknown())
    return *this;
  auto fraction = overOneDenominator();
  return fraction ? fraction->first.floorDiv(DimExpr(fraction->second)) : unknown();
}
DimExpr DimExpr::ceil() const {
  if (isWhole() || isUnknown())
    return *this;
  auto fraction = overOneDenominator();
  return fraction ? fraction->first.ceilDiv(DimExpr(fraction->second)) : unknown();
}

DimExpr DimExpr::atom(Function function, const DimExpr &a, const DimExpr &b) {
  if (a.isUnknown() || b.isUnknown())
    return unknown();
  static const char *const names[] = {"", "floordiv", "ceildiv", "mod", "min", "max"};
  auto atom = std::make_shared<Atom>();
  atom->function = function;
  atom->args = {a, b};
  atom->text = std::string(names[int(function)]) + "(" + a.str() + ", " + b.str() + ")";
  return DimExpr(std::vector<Term>{{1, {atom}}});
}

bool DimExpr::isConstant() const {
  return polynomial.empty() || (polynomial.size() == 1 && polynomial[0].atoms.empty());
}
int64_t DimExpr::constant() const { return polynomial.empty() ? 0 : polynomial[0].coefficient; }
std::optional<int64_t> DimExpr::asConstant() const {
  return isConstant() ? std::optional<int64_t>(constant()) : std::nullopt;
}
std::optional<std::string> DimExpr::asSymbol() const {
  if (polynomial.size() != 1 || polynomial[0].coefficient != 1 || polynomial[0].atoms.size() != 1 ||
      polynomial[0].atoms[0]->function != Function::Symbol)
    return std::nullopt;
  return polynomial[0].atoms[0]->name;
}

std::string DimExpr::str() const {
  if (polynomial.empty())
    return "0";
  // The constant term (empty key, sorted first) is written last: "2*seq+1".
  std::string text;
  auto append = [&](const Term &term) {
    int64_t c = term.coefficient;
    if (!text.empty() && c >= 0)
      text += "+";
    if (term.atoms.empty())
      text += std::to_string(c);
    else if (c == 1)
      text += atomsText(term.atoms);
    else if (c == -1)
      text += "-" + atomsText(term.atoms);
    else
      text += std::to_string(c) + "*" + atomsText(term.atoms);
  };
  for (const Term &term : polynomial)
    if (!term.atoms.empty())
      append(term);
  if (polynomial[0].atoms.empty())
    append(polynomial[0]);
  return text;
}

void DimExpr::collectSymbols(std::set<std::string> &names) const {
  for (const Term &term : polynomial)
    for (const AtomRef &atom : term.atoms) {
      if (atom->function == Function::Symbol)
        names.insert(atom->name);
      for (const DimExpr &arg : atom->args)
        arg.collectSymbols(names);
    }
}

bool DimExpr::isAtLeast(int64_t bound) const {
  // Enough for sizes: every term but the constant is a product of non-negative atoms with a positive coefficient, so
  // that the least values of the terms add up.
  int64_t least = 0;
  for (const Term &term : polynomial) {
    if (term.atoms.empty()) {
      least = wrapAdd(least, term.coefficient);
      continue;
    }
    if (term.coefficient < 0 || term.atoms[0]->text == unknownText)
      return false;
    for (const AtomRef &atom : term.atoms) {
      if (atom->function == Function::Symbol || atom->function == Function::Inverse)
        continue;
      const DimExpr &a = atom->args[0], &b = atom->args[1];
      bool nonNegative =
          atom->function == Function::Max ? a.isAtLeast(0) || b.isAtLeast(0) : a.isAtLeast(0) && b.isAtLeast(0);
      if (!nonNegative)
        return false;
    }
    // max(x, c) alone is at least c.
    if (term.atoms.size() == 1 && term.atoms[0]->function == Function::Max) {
      int64_t atomLeast = 0;
      for (const DimExpr &arg : term.atoms[0]->args)
        if (auto c = arg.asConstant())
          atomLeast = std::max(atomLeast, *c);
      least = wrapAdd(least, wrapMul(atomLeast, term.coefficient));
    }
  }
  return least >= bound;
}

DimExpr DimExpr::operator+(const DimExpr &other) const {
  std::vector<Term> terms = polynomial;
  terms.insert(terms.end(), other.polynomial.begin(), other.polynomial.end());
  return DimExpr(std::move(terms));
}
DimExpr DimExpr::operator-(const DimExpr &other) const { return *this + other * DimExpr(-1); }
DimExpr DimExpr::operator*(const DimExpr &other) const {
  std::vector<Term> terms;
  for (const Term &a : polynomial)
    for (const Term &b : other.polynomial) {
      Term product{wrapMul(a.coefficient, b.coefficient), a.atoms};
      product.atoms.insert(product.atoms.end(), b.atoms.begin(), b.atoms.end());
      terms.push_back(std::move(product));
    }
  return DimExpr(std::move(terms));
}

std::optional<DimExpr> DimExpr::exactDiv(const DimExpr &divisor) const {
  if (isUnknown() || divisor.isUnknown())
    return std::nullopt;
  if (divisor.polynomial.size() == 1) { // a monomial must divide each term
    const Term &by = divisor.polynomial[0];
    std::vector<Term> quotient;
    for (const Term &term : polynomial) {
      if (term.coefficient % by.coefficient != 0)
        return std::nullopt;
      Term q{term.coefficient / by.coefficient, term.atoms};
      for (const AtomRef &atom : by.atoms) {
        auto at = std::find_if(q.atoms.begin(), q.atoms.end(), [&](const AtomRef &a) { return a->text == atom->text; });
        if (at == q.atoms.end())
          return std::nullopt;
        q.atoms.erase(at);
      }
      quotient.push_back(std::move(q));
    }
    return DimExpr(std::move(quotient));
  }
  // A polynomial divisor: try the quotient of one pair of terms and multiply back.
  if (divisor.polynomial.empty() || polynomial.empty())
    return std::nullopt;
  DimExpr one(std::vector<Term>{divisor.polynomial.back()});
  for (const Term &term : polynomial) {
    auto q = DimExpr(std::vector<Term>{term}).exactDiv(one);
    if (q && *q * divisor == *this)
      return q;
  }
  // A common monomial factor times a sum: divide term by term by the last terms.
  std::vector<Term> guess;
  DimExpr rest = *this, quotient(0);
  for (int step = 0; step < 8 && !rest.polynomial.empty(); ++step) {
    auto q = DimExpr(std::vector<Term>{rest.polynomial.back()}).exactDiv(one);
    if (!q)
      return std::nullopt;
    quotient = quotient + *q;
    rest = rest - *q * divisor;
  }
  return rest.polynomial.empty() ? std::optional<DimExpr>(quotient) : std::nullopt;
}

DimExpr DimExpr::floorDiv(const DimExpr &divisor) const {
  if (isConstant() && divisor.isConstant())
    return DimExpr(floorDivide(constant(), divisor.constant()));
  if (divisor.isConstant() && divisor.constant() == 0)
    return DimExpr(0);
  if (auto exact = exactDiv(divisor))
    return *exact;
  // Whole multiples of the divisor come out: floordiv(2*n + 1, 2) = n + floordiv(1, 2).
  if (auto by = divisor.asConstant(); by && *by > 0) {
    std::vector<Term> whole, rest;
    for (const Term &term : polynomial)
      if (term.coefficient % *by == 0)
        whole.push_back({term.coefficient / *by, term.atoms});
      else
        rest.push_back(term);
    if (!whole.empty())
      return DimExpr(std::move(whole)) + DimExpr(std::move(rest)).floorDiv(divisor);
    // floordiv(floordiv(a, m), n) = floordiv(a, m*n) for positive constants.
    if (polynomial.size() == 1 && polynomial[0].coefficient == 1 && polynomial[0].atoms.size() == 1) {
      const Atom &inner = *polynomial[0].atoms[0];
      if (inner.function == Function::FloorDiv)
        if (auto m = inner.args[1].asConstant(); m && *m > 0)
          return inner.args[0].floorDiv(DimExpr(*m * *by));
    }
    // A constant term in [0, by) stays; one outside is reduced into it.
    if (!polynomial.empty() && polynomial[0].atoms.empty()) {
      int64_t c = polynomial[0].coefficient, q = floorDivide(c, *by);
      if (q != 0)
        return (*this - DimExpr(q * *by)).floorDiv(divisor) + DimExpr(q);
    }
  }
  return atom(Function::FloorDiv, *this, divisor);
}
DimExpr DimExpr::ceilDiv(const DimExpr &divisor) const {
  if (auto exact = exactDiv(divisor))
    return *exact;
  if (divisor.isConstant() && divisor.constant() > 0) // one normal form for both divisions
    return (*this + divisor - DimExpr(1)).floorDiv(divisor);
  return atom(Function::CeilDiv, *this, divisor);
}
DimExpr DimExpr::mod(const DimExpr &divisor) const {
  if (isConstant() && divisor.isConstant()) {
    int64_t b = divisor.constant();
    return DimExpr(b == 0 ? 0 : constant() - floorDivide(constant(), b) * b);
  }
  if (exactDiv(divisor))
    return DimExpr(0);
  return atom(Function::Mod, *this, divisor);
}
/// The two arguments of a single min or max, null for anything else.
static const std::vector<DimExpr> *argumentsOf(const DimExpr &expr, DimExpr::Function function) {
  const auto &terms = expr.terms();
  bool isAtom = terms.size() == 1 && terms[0].coefficient == 1 && terms[0].atoms.size() == 1;
  return isAtom && terms[0].atoms[0]->function == function ? &terms[0].atoms[0]->args : nullptr;
}

/// Whether a <= b is known: also min(b, c) <= b and a <= max(a, c).
static bool isAtMost(const DimExpr &a, const DimExpr &b) {
  if ((b - a).isAtLeast(0))
    return true;
  auto isKnown = [](const DimExpr &x, const DimExpr &y) { return (y - x).isAtLeast(0); };
  if (const auto *args = argumentsOf(a, DimExpr::Function::Min))
    if (isKnown((*args)[0], b) || isKnown((*args)[1], b))
      return true;
  if (const auto *args = argumentsOf(b, DimExpr::Function::Max))
    if (isKnown(a, (*args)[0]) || isKnown(a, (*args)[1]))
      return true;
  return false;
}

/// Whether `expr` >= 1 is known where `size`, which is >= 0, is >= 1: then each factor of a single product is >= 1 too.
static bool isPositiveWhere(const DimExpr &size, const DimExpr &expr) {
  if (expr.isAtLeast(1))
    return true;
  auto isPositive = [&](const DimExpr::AtomRef &atom) {
    const auto &product = size.terms();
    if (product.size() == 1 && std::any_of(product[0].atoms.begin(), product[0].atoms.end(),
                                           [&](const DimExpr::AtomRef &factor) { return factor->text == atom->text; }))
      return true;
    if (atom->function == DimExpr::Function::Min)
      return isPositiveWhere(size, atom->args[0]) && isPositiveWhere(size, atom->args[1]);
    return atom->function == DimExpr::Function::Max &&
           (isPositiveWhere(size, atom->args[0]) || isPositiveWhere(size, atom->args[1]));
  };
  // All terms >= 0, one of them >= 1.
  auto isNonNegative = [](const Term &term) { return term.coefficient >= 0; };
  if (!expr.isAtLeast(0) || !std::all_of(expr.terms().begin(), expr.terms().end(), isNonNegative))
    return false;
  return std::any_of(expr.terms().begin(), expr.terms().end(),
                     [&](const Term &term) { return std::all_of(term.atoms.begin(), term.atoms.end(), isPositive); });
}

/// Whether a is a multiple of b, b >= 0, by a factor that is >= 1 where b is not 0: then b <= a.
static bool isPositiveMultiple(const DimExpr &a, const DimExpr &b) {
  if (!b.isAtLeast(0))
    return false;
  std::optional<DimExpr> factor = a.exactDiv(b);
  return factor && isPositiveWhere(b, *factor);
}

DimExpr DimExpr::min(const DimExpr &a, const DimExpr &b) {
  if (isAtMost(a, b) || isPositiveMultiple(b, a))
    return a;
  if (isAtMost(b, a) || isPositiveMultiple(a, b))
    return b;
  return a.str() < b.str() ? atom(Function::Min, a, b) : atom(Function::Min, b, a);
}
DimExpr DimExpr::max(const DimExpr &a, const DimExpr &b) {
  if (isAtMost(a, b) || isPositiveMultiple(b, a))
    return b;
  if (isAtMost(b, a) || isPositiveMultiple(a, b))
    return a;
  return a.str() < b.str() ? atom(Function::Max, a, b) : atom(Function::Max, b, a);
}

DimExpr DimExpr::with(const std::map<std::string, DimExpr> &sizes) const {
  DimExpr sum(0);
  for (const Term &term : polynomial) {
    DimExpr product(term.coefficient);
    for (const AtomRef &atom : term.atoms) {
      auto at = sizes.find(atom->text);
      DimExpr self(std::vector<Term>{{1, {atom}}});
      if (atom->function == Function::Symbol || atom->function == Function::Inverse) {
        product = product * (at == sizes.end() ? self : at->second);
        continue;
      }
      DimExpr a = atom->args[0].with(sizes), b = atom->args[1].with(sizes);
      product = product * (atom->function == Function::FloorDiv  ? a.floorDiv(b)
                           : atom->function == Function::CeilDiv ? a.ceilDiv(b)
                           : atom->function == Function::Mod     ? a.mod(b)
                           : atom->function == Function::Min     ? min(a, b)
                                                                 : max(a, b));
    }
    sum = sum + product;
  }
  return sum;
}

// --- parsing ---------------------------------------------------------------------------------------------------------
namespace {
class Parser {
public:
  explicit Parser(std::string_view source) : text(source) {}

  std::optional<DimExpr> all() {
    auto e = sum();
    skip();
    return at == text.size() ? e : std::nullopt;
  }

private:
  std::string_view text;
  size_t at = 0;
  int depth = 0;

  void skip() {
    while (at < text.size() && text[at] == ' ')
      ++at;
  }
  bool eat(char c) {
    skip();
    if (at >= text.size() || text[at] != c)
      return false;
    ++at;
    return true;
  }
  std::optional<DimExpr> sum() {
    if (++depth > 64)
      return std::nullopt;
    bool negative = eat('-');
    auto value = product();
    if (value && negative)
      value = *value * DimExpr(-1);
    while (value) {
      bool plus = eat('+');
      if (!plus && !eat('-'))
        break;
      auto next = product();
      value = next ? std::optional<DimExpr>(plus ? *value + *next : *value - *next) : std::nullopt;
    }
    --depth;
    return value;
  }
  std::optional<DimExpr> product() {
    auto value = primary();
    while (value && eat('*')) {
      auto next = primary();
      value = next ? std::optional<DimExpr>(*value * *next) : std::nullopt;
    }
    return value;
  }
  std::optional<DimExpr> primary() {
    skip();
    if (eat('(')) {
      auto value = sum();
      return value && eat(')') ? value : std::nullopt;
    }
    size_t start = at;
    if (at < text.size() && std::isdigit(static_cast<unsigned char>(text[at]))) {
      int64_t value = 0;
      for (; at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])); ++at) {
        if (value > (INT64_MAX - 9) / 10)
          return std::nullopt;
        value = value * 10 + (text[at] - '0');
      }
      return DimExpr(value);
    }
    while (at < text.size() && std::string_view("+-*(), ").find(text[at]) == std::string_view::npos)
      ++at;
    std::string name(text.substr(start, at - start));
    if (name.empty())
      return std::nullopt;
    if (!eat('('))
      return DimExpr::symbol(name);
    auto a = sum();
    if (a && name == "inverse" && a->isConstant() && a->constant() >= 1 && eat(')'))
      return DimExpr::inverse(a->constant());
    if (!a || !eat(','))
      return std::nullopt;
    auto b = sum();
    if (!b || !eat(')'))
      return std::nullopt;
    if (name == "floordiv")
      return a->floorDiv(*b);
    if (name == "ceildiv")
      return a->ceilDiv(*b);
    if (name == "mod")
      return a->mod(*b);
    if (name == "min")
      return DimExpr::min(*a, *b);
    if (name == "max")
      return DimExpr::max(*a, *b);
    return std::nullopt;
  }
};
} // namespace

std::optional<DimExpr> DimExpr::parse(std::string_view source) { return Parser(source).all(); }

} // namespace firn

// Values: the integer program of a plan while it grows.
#ifndef FIRN_COMPILER_PLAN_VALUES_H
#define FIRN_COMPILER_PLAN_VALUES_H

#include "dialects/firn/Firn.h"
#include "runtime/abi/model.h"
#include <map>
#include <optional>

namespace firn {

/// Integer values of a program, each expression once.
class Values {
public:
  explicit Values(std::vector<firn_value> &list) : values(list) {}

  int32_t constant(int64_t number) { return add("#" + std::to_string(number), FIRN_VALUE_CONSTANT, number, 0); }
  int32_t inputDim(int64_t input, int64_t axis) {
    return add("i" + std::to_string(input) + ":" + std::to_string(axis), FIRN_VALUE_INPUT_DIM, input, axis);
  }
  void bind(const std::string &symbol, int32_t value) { symbols[symbol] = value; }
  bool isBound(const std::string &symbol) const { return symbols.count(symbol); }
  /// A symbol that no input binds is found while running.
  int32_t symbol(const std::string &name) {
    auto [at, isNew] = symbols.try_emplace(name, int32_t(values.size()));
    if (isNew)
      values.push_back({FIRN_VALUE_SYMBOL, 1, 0, 0});
    return at->second;
  }
  int32_t get(const DimExpr &expr) {
    std::optional<int32_t> sum;
    for (const DimExpr::Term &term : expr.terms()) {
      std::optional<int32_t> product;
      if (term.coefficient != 1 || term.atoms.empty())
        product = constant(term.coefficient);
      for (const DimExpr::AtomRef &atom : term.atoms) {
        int32_t factor = get(*atom);
        product = product ? binary(FIRN_VALUE_MUL, *product, factor) : factor;
      }
      sum = sum ? binary(FIRN_VALUE_ADD, *sum, *product) : *product;
    }
    return sum ? *sum : constant(0);
  }
  std::vector<int32_t> list(llvm::ArrayRef<DimExpr> dims) {
    std::vector<int32_t> ids;
    for (const DimExpr &dim : dims)
      ids.push_back(get(dim));
    return ids;
  }
  bool isLate(int32_t value) const { return values[value].late; }

private:
  int32_t get(const DimExpr::Atom &atom) {
    if (atom.function == DimExpr::Function::Symbol)
      return symbol(atom.name);
    int32_t a = get(atom.args[0]), b = get(atom.args[1]);
    switch (atom.function) {
    case DimExpr::Function::FloorDiv:
      return binary(FIRN_VALUE_FLOOR_DIV, a, b);
    case DimExpr::Function::CeilDiv:
      return binary(FIRN_VALUE_CEIL_DIV, a, b);
    case DimExpr::Function::Mod:
      return binary(FIRN_VALUE_MOD, a, b);
    case DimExpr::Function::Min:
      return binary(FIRN_VALUE_MIN, a, b);
    default:
      return binary(FIRN_VALUE_MAX, a, b);
    }
  }
  int32_t binary(int32_t op, int32_t a, int32_t b) {
    return add(std::to_string(op) + "," + std::to_string(a) + "," + std::to_string(b), op, a, b,
               values[a].late || values[b].late);
  }
  int32_t add(const std::string &key, int32_t op, int64_t a, int64_t b, bool isLate = false) {
    auto [at, isNew] = known.try_emplace(key, int32_t(values.size()));
    if (isNew)
      values.push_back({op, isLate, a, b});
    return at->second;
  }

  std::vector<firn_value> &values;
  std::map<std::string, int32_t> known, symbols;
};

} // namespace firn
#endif

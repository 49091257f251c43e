#include "tools/firn-inspect/Expressions.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <vector>

namespace firn::tools {

namespace {

// A product of names, sorted; empty for 1.
using Product = std::vector<std::string>;

// Whether `a` is at most `b` where dimensions are at least 1: `b` has the same names, and perhaps more that are
// dimensions (a quotient, which could be 0, is named by its formula).
bool isAtMost(const Product &a, const Product &b) {
  if (!std::includes(b.begin(), b.end(), a.begin(), a.end()))
    return false;
  Product extra;
  std::set_difference(b.begin(), b.end(), a.begin(), a.end(), std::back_inserter(extra));
  return std::none_of(extra.begin(), extra.end(),
                      [](const std::string &name) { return name.find('(') != std::string::npos; });
}

// A sum of products with integer factors. Names stand for dimensions, which are not negative.
class Polynomial {
public:
  Polynomial() = default;
  explicit Polynomial(int64_t number) { add({}, number); }
  explicit Polynomial(std::string name) { add({std::move(name)}, 1); }

  Polynomial &operator+=(const Polynomial &other) {
    for (const auto &[product, factor] : other.terms)
      add(product, factor);
    return *this;
  }
  friend Polynomial operator*(const Polynomial &a, const Polynomial &b) {
    Polynomial result;
    for (const auto &[p, f] : a.terms)
      for (const auto &[q, g] : b.terms) {
        Product product = p;
        product.insert(product.end(), q.begin(), q.end());
        std::sort(product.begin(), product.end());
        result.add(product, f * g);
      }
    return result;
  }
  friend bool operator<(const Polynomial &a, const Polynomial &b) { return a.terms < b.terms; }
  friend bool operator==(const Polynomial &a, const Polynomial &b) { return a.terms == b.terms; }

  bool isNumber() const { return terms.empty() || (terms.size() == 1 && terms.begin()->first.empty()); }
  int64_t number() const { return terms.empty() ? 0 : terms.begin()->second; }
  size_t size() const { return terms.size(); }

  /// Whether it is at most `other` for all dimensions of at least 1: each of its terms is covered by the same or a
  /// longer product of the other.
  bool isCoveredBy(const Polynomial &other) const {
    std::map<Product, int64_t> left = other.terms;
    for (const auto &[product, factor] : left)
      if (factor < 0)
        return false;
    for (const auto &[product, factor] : terms) {
      int64_t needed = factor;
      for (auto &[candidate, available] : left)
        if (isAtMost(product, candidate)) {
          int64_t taken = std::min(needed, available);
          if (taken > 0) {
            needed -= taken;
            available -= taken;
          }
        }
      if (needed > 0)
        return false;
    }
    return true;
  }

  std::string text() const {
    if (terms.empty())
      return "0";
    std::vector<std::pair<Product, int64_t>> ordered(terms.begin(), terms.end());
    std::sort(ordered.begin(), ordered.end(), [](const auto &a, const auto &b) {
      return a.first.size() != b.first.size() ? a.first.size() > b.first.size() : a.first < b.first;
    });
    std::string result;
    for (const auto &[product, factor] : ordered) {
      result += result.empty() ? (factor < 0 ? "-" : "") : factor < 0 ? " - " : " + ";
      std::string names;
      for (const std::string &name : product)
        names += (names.empty() ? "" : "*") + name;
      int64_t size = factor < 0 ? -factor : factor;
      result += names.empty() ? std::to_string(size) : size == 1 ? names : std::to_string(size) + "*" + names;
    }
    return result;
  }

private:
  std::map<Product, int64_t> terms;
  void add(const Product &product, int64_t factor) {
    int64_t &sum = terms[product];
    sum += factor;
    if (sum == 0)
      terms.erase(product);
  }
};

// Larger sums are named as a whole, so that nothing grows without bound.
constexpr size_t mostTerms = 12;

std::string inputName(const firn_model_desc &model, const firn_value &value) {
  const firn_port &port = model.inputs[value.a];
  if (port.symbols && port.symbols[value.b])
    return port.symbols[value.b];
  return std::string(port.name) + "[" + std::to_string(value.b) + "]";
}

// The values of a model as polynomials, simplified where one side of a min or max decides.
class Values {
public:
  explicit Values(const firn_model_desc &described) : model(described) {
    for (int32_t i = 0; i < model.value_count; ++i) {
      same.push_back(i);
      polynomials.push_back(evaluate(i));
    }
  }
  const Polynomial &operator[](int32_t i) const { return polynomials[size_t(i)]; }

private:
  const firn_model_desc &model;
  std::vector<Polynomial> polynomials;
  std::vector<int32_t> same; // per value: an earlier one that it equals, or itself

  // Whether value `a` is at most value `b` by the form of their minima and maxima.
  bool isAtMost(int32_t a, int32_t b, int depth = 0) const {
    a = same[size_t(a)], b = same[size_t(b)];
    const firn_value &left = model.values[a], &right = model.values[b];
    if (a == b || polynomials[size_t(a)] == polynomials[size_t(b)])
      return true;
    if (depth == 6)
      return false;
    auto half = [&](const firn_value &value, bool isSecond) { return int32_t(isSecond ? value.b : value.a); };
    if (left.op == FIRN_VALUE_MIN &&
        (isAtMost(half(left, false), b, depth + 1) || isAtMost(half(left, true), b, depth + 1)))
      return true;
    if (left.op == FIRN_VALUE_MAX && isAtMost(half(left, false), b, depth + 1) &&
        isAtMost(half(left, true), b, depth + 1))
      return true;
    return right.op == FIRN_VALUE_MAX &&
           (isAtMost(a, half(right, false), depth + 1) || isAtMost(a, half(right, true), depth + 1));
  }

  Polynomial evaluate(int32_t index) {
    const firn_value &value = model.values[index];
    switch (value.op) {
    case FIRN_VALUE_CONSTANT:
      return Polynomial(value.a);
    case FIRN_VALUE_INPUT_DIM:
      return Polynomial(inputName(model, value));
    case FIRN_VALUE_SYMBOL:
      return Polynomial("?" + std::to_string(index));
    case FIRN_VALUE_MIN:
    case FIRN_VALUE_MAX:
      return choose(index, int32_t(value.a), int32_t(value.b), value.op == FIRN_VALUE_MAX);
    }
    return combine(value.op, polynomials[size_t(value.a)], polynomials[size_t(value.b)]);
  }

  Polynomial choose(int32_t index, int32_t a, int32_t b, bool isMax) {
    for (auto [least, most] : {std::pair(a, b), std::pair(b, a)})
      if (isAtMost(least, most)) {
        same[size_t(index)] = same[size_t(isMax ? most : least)];
        return polynomials[size_t(isMax ? most : least)];
      }
    return Polynomial((isMax ? "max(" : "min(") + polynomials[size_t(a)].text() + ", " + polynomials[size_t(b)].text() +
                      ")");
  }

  static Polynomial combine(int32_t op, const Polynomial &a, const Polynomial &b) {
    if (a.size() * b.size() <= mostTerms) {
      if (op == FIRN_VALUE_MUL)
        return a * b;
      Polynomial sum = a;
      if (op == FIRN_VALUE_ADD)
        return sum += b;
      if (op == FIRN_VALUE_SUB)
        return sum += Polynomial(int64_t(-1)) * b;
    }
    switch (op) {
    case FIRN_VALUE_FLOOR_DIV:
    case FIRN_VALUE_CEIL_DIV:
      if (b.isNumber() && b.number() == 1)
        return a;
      return Polynomial((op == FIRN_VALUE_CEIL_DIV ? "ceil((" : "floor((") + a.text() + ")/(" + b.text() + "))");
    case FIRN_VALUE_MOD:
      return Polynomial("((" + a.text() + ") mod (" + b.text() + "))");
    }
    static const char *const signs[] = {" + ", " - ", " * "};
    return Polynomial("((" + a.text() + ")" + signs[op - FIRN_VALUE_ADD] + "(" + b.text() + "))");
  }
};

Polynomial bufferBytes(const firn_buffer &buffer, const Values &values) {
  int32_t bits = firn_dtype_bits(buffer.dtype);
  Polynomial bytes(int64_t(bits >= 8 ? bits / 8 : 1)); // packed elements: a byte each, which is more than they need
  for (int32_t d = 0; d < buffer.rank; ++d) {
    const Polynomial &dim = values[buffer.dims[d]];
    bytes = bytes.size() * dim.size() <= 4 * mostTerms ? bytes * dim
                                                       : Polynomial("(" + bytes.text() + ")*(" + dim.text() + ")");
  }
  return bytes;
}

// "max(a, b)" without what another covers for all dimensions.
Polynomial largest(std::vector<Polynomial> candidates) {
  std::sort(candidates.begin(), candidates.end());
  std::vector<Polynomial> peaks;
  for (const Polynomial &candidate : candidates) {
    auto covers = [&](const Polynomial &other) { return candidate.isCoveredBy(other); };
    if (std::any_of(peaks.begin(), peaks.end(), covers))
      continue;
    peaks.erase(std::remove_if(peaks.begin(), peaks.end(),
                               [&](const Polynomial &other) { return other.isCoveredBy(candidate); }),
                peaks.end());
    peaks.push_back(candidate);
  }
  if (peaks.size() < 2)
    return peaks.empty() ? Polynomial() : peaks[0];
  std::string text;
  for (const Polynomial &peak : peaks)
    text += (text.empty() ? "max(" : ", ") + peak.text();
  return Polynomial(text + ")");
}

} // namespace

std::string arenaExpression(const firn_model_desc &model) {
  Values values(model);
  std::vector<Polynomial> alive(static_cast<size_t>(model.step_count));
  for (int32_t i = 0; i < model.buffer_count; ++i) {
    const firn_buffer &buffer = model.buffers[i];
    if (buffer.kind != FIRN_BUFFER_ARENA)
      continue;
    Polynomial bytes = bufferBytes(buffer, values);
    for (int32_t step = buffer.first_step; step <= buffer.last_step; ++step)
      alive[size_t(step)] += bytes;
  }
  return largest(std::move(alive)).text();
}

std::string arenaLimit(const firn_model_desc &model, const std::vector<int32_t> &rowOf) {
  Values values(model);
  std::map<int32_t, std::vector<Polynomial>> rows;
  for (int32_t i = 0; i < model.buffer_count; ++i)
    if (rowOf[size_t(i)] >= 0)
      rows[rowOf[size_t(i)]].push_back(bufferBytes(model.buffers[i], values));
  Polynomial sum(int64_t(rows.size()) * FIRN_BUFFER_ALIGNMENT);
  for (auto &[row, sizes] : rows)
    sum += largest(std::move(sizes));
  return sum.text();
}

} // namespace firn::tools

// Inference of contractions.
#include "dialects/firn/Inference.h"
#include <map>

using namespace mlir;

namespace firn {

static bool mayDiffer(const DimExpr &a, const DimExpr &b) { return a.isConstant() && b.isConstant() && a != b; }

/// Shape of numpy.matmul.
static std::optional<Inference::Dims> matMulDims(Inference &inference, unsigned first, unsigned second) {
  auto a = inference.dims(first), b = inference.dims(second);
  if (!a || !b)
    return std::nullopt;
  if (a->empty() || b->empty()) {
    inference.error("expected inputs of rank >= 1, found shapes " + shapeText(*a) + " and " + shapeText(*b));
    return std::nullopt;
  }
  std::string shapes = shapeText(*a) + " and " + shapeText(*b);
  bool vectorA = a->size() == 1, vectorB = b->size() == 1;
  if (vectorA)
    a->insert(a->begin(), DimExpr(1));
  if (vectorB)
    b->push_back(DimExpr(1));
  if (mayDiffer(a->back(), (*b)[b->size() - 2])) {
    inference.error("expected equal inner dimensions, found " + a->back().str() + " and " + (*b)[b->size() - 2].str() +
                    " in shapes " + shapes);
    return std::nullopt;
  }
  auto dims =
      broadcast(inference, Inference::Dims(a->begin(), a->end() - 2), Inference::Dims(b->begin(), b->end() - 2));
  if (!dims)
    return std::nullopt;
  if (!vectorA)
    dims->push_back((*a)[a->size() - 2]);
  if (!vectorB)
    dims->push_back(b->back());
  return dims;
}

void inferMatMul(Inference &inference) {
  Type a = inference.elementType(0), b = inference.elementType(1);
  if (a && b && a != b)
    inference.error("expected inputs of one element type, found " + elementTypeText(a) + " and " + elementTypeText(b));
  inference.result(0, a, matMulDims(inference, 0, 1));
}

void inferMatMulInteger(Inference &inference) {
  inference.result(0, IntegerType::get(inference.operation()->getContext(), 32), matMulDims(inference, 0, 1));
}

void inferQLinearMatMul(Inference &inference) {
  if (inference.operandCount() < 8)
    return inference.error("expected 8 inputs, found " + Twine(inference.operandCount()));
  inference.result(0, inference.elementType(7), matMulDims(inference, 0, 3));
}

void inferGemm(Inference &inference) {
  auto a = inference.dims(0), b = inference.dims(1);
  if (!a || !b)
    return inference.result(0, inference.elementType(0), std::nullopt);
  if (a->size() != 2 || b->size() != 2)
    return inference.error("expected inputs A and B of rank 2, found shapes " + shapeText(*a) + " and " +
                           shapeText(*b));
  bool transA = inference.intAttribute("transA", 0) != 0, transB = inference.intAttribute("transB", 0) != 0;
  DimExpr m = (*a)[transA], k = (*a)[!transA], k2 = (*b)[transB], n = (*b)[!transB];
  if (mayDiffer(k, k2))
    return inference.error("expected equal inner dimensions, found " + k.str() + " and " + k2.str());
  Inference::Dims dims{m, n};
  if (auto c = inference.dims(2)) {
    auto both = broadcast(inference, dims, *c);
    if (both && (both->size() != 2 || mayDiffer((*both)[0], m) || mayDiffer((*both)[1], n)))
      inference.error("expected C to broadcast to " + shapeText(dims) + ", found " + shapeText(*c));
  }
  inference.result(0, inference.elementType(0), dims);
}

void inferEinsum(Inference &inference) {
  std::string equation;
  for (char c : inference.stringAttribute("equation", ""))
    if (c != ' ')
      equation += c;
  size_t arrow = equation.find("->");
  std::string left = equation.substr(0, arrow);
  std::map<char, DimExpr> letters;
  Inference::Dims ellipsis;
  std::map<char, int> uses;
  SmallVector<StringRef> terms;
  StringRef(left).split(terms, ',');
  if (terms.size() != inference.operandCount())
    return inference.error("expected as many terms in equation '" + equation + "' as inputs (" +
                           Twine(inference.operandCount()) + "), found " + Twine(terms.size()));
  for (auto [i, term] : llvm::enumerate(terms)) {
    auto dims = inference.dims(i);
    if (!dims)
      return inference.result(0, inference.elementType(0), std::nullopt);
    size_t dots = term.find("...");
    size_t named = term.size() - (dots == StringRef::npos ? 0 : 3);
    if (dots == StringRef::npos ? named != dims->size() : named > dims->size())
      return inference.error("expected term '" + term + "' of equation '" + equation + "' to name the " +
                             Twine(dims->size()) + " axes of input " + Twine(i));
    size_t axis = 0;
    for (size_t c = 0; c < term.size(); ++c) {
      if (c == dots) {
        Inference::Dims covered(dims->begin() + axis, dims->begin() + axis + (dims->size() - named));
        auto both = broadcast(inference, ellipsis, covered);
        if (!both)
          return;
        ellipsis = *both;
        axis += dims->size() - named;
        c += 2;
        continue;
      }
      if (!isalpha(static_cast<unsigned char>(term[c])))
        return inference.error("expected letters, ',', '...' and '->' in equation '" + equation + "', found '" +
                               Twine(term[c]) + "'");
      auto [at, isNew] = letters.try_emplace(term[c], (*dims)[axis]);
      if (!isNew && mayDiffer(at->second, (*dims)[axis]) && !(at->second == DimExpr(1)) &&
          !((*dims)[axis] == DimExpr(1)))
        return inference.error("expected equal dimensions for '" + Twine(term[c]) + "' in equation '" + equation +
                               "', found " + at->second.str() + " and " + (*dims)[axis].str());
      if (!isNew && (at->second == DimExpr(1) || (!at->second.isConstant() && (*dims)[axis].isConstant())))
        at->second = (*dims)[axis];
      ++uses[term[c]];
      ++axis;
    }
  }
  std::string right;
  if (arrow == std::string::npos) {
    right = ellipsis.empty() ? "" : "...";
    for (auto [letter, count] : uses)
      if (count == 1)
        right += letter;
  } else {
    right = equation.substr(arrow + 2);
  }
  Inference::Dims dims;
  for (size_t c = 0; c < right.size(); ++c) {
    if (StringRef(right).substr(c).starts_with("...")) {
      dims.append(ellipsis.begin(), ellipsis.end());
      c += 2;
      continue;
    }
    auto at = letters.find(right[c]);
    if (at == letters.end())
      return inference.error("expected letters of the inputs in the result of equation '" + equation + "', found '" +
                             Twine(right[c]) + "'");
    dims.push_back(at->second);
  }
  inference.result(0, inference.elementType(0), dims);
}

} // namespace firn

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
  inference.requireEqual(a->back(), (*b)[b->size() - 2], "the inner sizes of " + shapes);
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
    inference.error("expected inputs of one element type, found " + elementTypeText(a) + " and " + elementTypeText(b),
                    "import.dtype");
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
  inference.requireEqual(k, k2, "the inner sizes of A " + shapeText(*a) + " and B " + shapeText(*b));
  Inference::Dims dims{m, n};
  if (auto c = inference.dims(2)) {
    auto both = broadcast(inference, dims, *c);
    if (both && (both->size() != 2 || mayDiffer((*both)[0], m) || mayDiffer((*both)[1], n)))
      inference.error("expected C to broadcast to " + shapeText(dims) + ", found " + shapeText(*c));
    else if (both)
      for (int axis = 0; axis < 2; ++axis) // C may not make the result larger
        inference.requireEqual((*both)[axis], dims[axis], "axis " + Twine(axis) + " of A * B + C and of A * B");
  }
  inference.result(0, inference.elementType(0), dims);
}

namespace {
/// Sizes of Q, K or V.
struct HeadDims {
  DimExpr batch, heads, length, size;
};
} // namespace

/// The heads of operand i; nothing where its shape is not known, or wrong (reported).
static std::optional<HeadDims> headDims(Inference &inference, unsigned i, StringRef headsName) {
  static const char *const names[] = {"Q", "K", "V"};
  auto dims = inference.dims(i);
  if (!dims)
    return std::nullopt;
  int64_t heads = inference.intAttribute(headsName, 0);
  if (dims->size() == 4) // attention_c1
    return HeadDims{(*dims)[0], (*dims)[1], (*dims)[2], (*dims)[3]};
  if (dims->size() != 3) {
    inference.error("expected " + Twine(names[i]) + " of rank 3 or 4, found shape " + shapeText(*dims));
    return std::nullopt;
  }
  if (heads <= 0) { // attention_c5
    inference.error("expected a positive " + headsName + " where " + names[i] + " has 3 axes, found " + Twine(heads));
    return std::nullopt;
  }
  auto size = (*dims)[2].exactDiv(DimExpr(heads));
  if (!size && (*dims)[2].isConstant()) {
    inference.error("expected the last dimension of " + Twine(names[i]) + " " + shapeText(*dims) +
                    " to be a multiple of " + headsName + "=" + Twine(heads));
    return std::nullopt;
  }
  return HeadDims{(*dims)[0], DimExpr(heads), (*dims)[1], size ? *size : (*dims)[2].floorDiv(DimExpr(heads))};
}

void inferAttention(Inference &inference) {
  unsigned results = inference.operation()->getNumResults();
  Type element = inference.elementType(0), valueElement = inference.elementType(2);
  auto unknown = [&] {
    for (unsigned i = 0; i < results; ++i)
      inference.result(i, i == 2 ? valueElement : element, std::nullopt);
  };
  auto qDims = inference.dims(0);
  auto q = headDims(inference, 0, "q_num_heads"), k = headDims(inference, 1, "kv_num_heads"),
       v = headDims(inference, 2, "kv_num_heads");
  if (!q || !k || !v)
    return unknown();
  auto require = [&](const DimExpr &a, const DimExpr &b, StringRef what) {
    if (mayDiffer(a, b))
      inference.error("expected " + what + ", found " + a.str() + " and " + b.str());
  };
  require(q->batch, k->batch, "Q and K of one batch size"); // attention_c1
  require(q->batch, v->batch, "Q and V of one batch size");
  require(q->size, k->size, "heads of Q and K of one size"); // attention_c2
  require(k->length, v->length, "K and V of one length");    // attention_c3
  require(k->heads, v->heads, "as many heads of K as of V");
  if (q->heads.isConstant() && k->heads.isConstant() && q->heads.constant() != 0 && // attention_c4
      (k->heads.constant() <= 0 || q->heads.constant() % k->heads.constant() != 0))
    inference.error("expected the heads of Q to be a multiple of those of K, found " + q->heads.str() + " and " +
                    k->heads.str());
  DimExpr total = k->length;
  bool isJoined = inference.intAttribute("joined", 0) != 0;
  if (inference.has(4) && !isJoined) {
    auto past = inference.dims(4);
    if (!past)
      return unknown();
    if (past->size() != 4)
      return inference.error("expected past_key of rank 4, found shape " + shapeText(*past));
    total = total + (*past)[2];
  }
  if (auto mask = inference.dims(3)) { // attention_c6
    Inference::Dims scores{q->batch, q->heads, q->length, total};
    bool fits = !mask->empty() && mask->size() <= 4;
    for (size_t i = 1; fits && i <= mask->size(); ++i) {
      const DimExpr &given = (*mask)[mask->size() - i], &wanted = scores[4 - i];
      bool isShorter = i == 1 && given.isConstant() && wanted.isConstant() && given.constant() <= wanted.constant();
      fits = isShorter || given == DimExpr(1) || !mayDiffer(given, wanted);
    }
    if (!fits)
      inference.error("expected attn_mask to broadcast to " + shapeText(scores) + ", found " + shapeText(*mask));
  }
  Inference::Dims y{q->batch, q->length, q->heads * v->size};
  if (qDims->size() == 4 && inference.intAttribute("rows", 0) == 0)
    y = {q->batch, q->heads, q->length, v->size};
  inference.result(0, element, y);
  if (results > 1)
    inference.result(1, element, Inference::Dims{q->batch, k->heads, total, k->size});
  if (results > 2)
    inference.result(2, valueElement, Inference::Dims{q->batch, v->heads, total, v->size});
  if (results > 3)
    inference.result(3, element, Inference::Dims{q->batch, q->heads, q->length, total});
}

void inferRotaryEmbedding(Inference &inference) {
  auto x = inference.dims(0);
  if (x && x->size() != 3 && x->size() != 4) // rotary_embedding_c1
    return inference.error("expected X of rank 3 or 4, found shape " + shapeText(*x));
  int64_t heads = inference.intAttribute("num_heads", 0);
  if (x && x->size() == 3 && heads <= 0) // rotary_embedding_c2
    return inference.error("expected a positive num_heads where X has 3 axes, found " + Twine(heads));
  inference.result(0, inference.elementType(0), x);
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
      if (!isNew)
        inference.requireBroadcast(at->second, (*dims)[axis],
                                   "the sizes of '" + Twine(term[c]) + "' in equation '" + equation + "'");
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

// DecomposeEinsum: an einsum is transposes, sums, products and a matrix product.
//
// In:      firn.einsum, shapes inferred.     Out: reduce_sum, transpose, reshape, mul and matmul.
// Keeps:   the value up to the order of its sums, which the operator leaves open.
// Leaves:  an equation where refusal() gives a reason; in a graph that stays one, all that is not one matmul.
//   %2 = firn.einsum %0, %1 {equation = "bij,bjk->bik"}     ==>   %2 = firn.matmul %0, %1
// Three and more operands are contracted from the left: a letter that a later operand or the result names is kept.
#include "passes/GraphForm.h"
#include "passes/Passes.h"
#include "passes/Rules.h"

#include "llvm/ADT/StringExtras.h"
#include <map>

using namespace mlir;

namespace firn {
#define GEN_PASS_DEF_DECOMPOSEEINSUM
#include "passes/Passes.h.inc"

namespace {

/// An equation with one character per axis; axes that "..." covers are numbered from the right as digits.
struct Equation {
  SmallVector<std::string> terms;
  std::string result;
  std::map<char, DimExpr> sizes;
};

std::string withoutEllipsis(StringRef term, size_t rank) {
  size_t dots = term.find("...");
  if (dots == StringRef::npos)
    return term.str();
  std::string covered;
  for (size_t n = rank - (term.size() - 3); n-- > 0;)
    covered += char('0' + n);
  return (term.take_front(dots) + covered + term.drop_front(dots + 3)).str();
}

/// Reads the equation; the reason why it is left, or "".
StringRef readEquation(EinsumOp op, Equation &equation) {
  std::string text;
  for (char c : op.getEquation())
    if (c != ' ')
      text += c;
  size_t arrow = text.find("->");
  SmallVector<StringRef> terms;
  StringRef(text).take_front(arrow).split(terms, ',');
  if (terms.size() != op.getInputs().size() || terms.empty())
    return "the equation does not fit";
  size_t covered = 0;
  for (auto [term, input] : llvm::zip(terms, op.getInputs())) {
    auto type = rankedType(input);
    if (!type)
      return "a rank is not known";
    Type element = type.getElementType();
    if (!isFloat(element) && !element.isInteger(32) && !element.isInteger(64))
      return "sums of this element type have no other operation";
    bool hasDots = term.contains("...");
    if (type.getRank() < int64_t(term.size()) - (hasDots ? 3 : 0) || type.getRank() > 9)
      return "the equation does not fit";
    equation.terms.push_back(withoutEllipsis(term, type.getRank()));
    if (hasDots)
      covered = std::max<size_t>(covered, type.getRank() - (term.size() - 3));
    std::string &letters = equation.terms.back();
    if (int64_t(letters.size()) != type.getRank())
      return "the equation does not fit";
    for (auto [letter, dim] : llvm::zip(letters, dimsOf(type))) {
      if (llvm::count(letters, letter) > 1)
        return "a diagonal has no other operation";
      auto [at, isNew] = equation.sizes.try_emplace(letter, dim);
      if (!isNew && at->second != dim)
        return "dimensions of one letter are not known to be equal";
    }
  }
  if (arrow != std::string::npos) {
    StringRef right = StringRef(text).drop_front(arrow + 2);
    bool hasDots = right.contains("...");
    equation.result = withoutEllipsis(right, right.size() - (hasDots ? 3 - covered : 0));
  } else {
    for (size_t n = covered; n-- > 0;)
      equation.result += char('0' + n);
    for (auto &[letter, size] : equation.sizes) {
      size_t count = 0;
      for (StringRef term : equation.terms)
        count += term.count(letter);
      if (count == 1 && !llvm::isDigit(letter))
        equation.result += letter;
    }
  }
  for (char letter : equation.result)
    if (!equation.sizes.count(letter) || llvm::count(equation.result, letter) > 1)
      return "the equation does not fit";
  return "";
}

/// A value and the letters of its axes.
struct Labelled {
  Value value;
  std::string letters;
};

class Builder {
public:
  Builder(RuleRewriter &with, Location where, const Equation &of) : rewriter(with), loc(where), equation(of) {}

  Labelled sumOver(Labelled x, StringRef letters) {
    SmallVector<int64_t> axes;
    std::string kept;
    SmallVector<DimExpr> dims;
    for (auto [axis, letter] : llvm::enumerate(x.letters)) {
      if (letters.contains(letter)) {
        axes.push_back(axis);
        continue;
      }
      kept += letter;
      dims.push_back(equation.sizes.at(letter));
    }
    if (axes.empty())
      return x;
    Type type = tensorType(getElementTypeOrSelf(x.value), dims);
    return {rewriter.create<ReduceSumOp>(loc, type, x.value, makeIntegers(rewriter, loc, axes), 0, 0), kept};
  }

  Labelled inOrder(Labelled x, StringRef letters) {
    if (x.letters == letters)
      return x;
    SmallVector<int64_t> perm;
    for (char letter : letters)
      perm.push_back(x.letters.find(letter));
    return {makeTranspose(rewriter, loc, x.value, perm), letters.str()};
  }

  /// `x` with the axes of each part merged into one. One part that has no axis becomes length 1.
  Value merged(const Labelled &x, ArrayRef<std::string> parts) {
    std::string all;
    SmallVector<DimExpr> dims;
    bool isSame = true;
    for (const std::string &part : parts) {
      DimExpr size(1);
      for (char letter : part)
        size = size * equation.sizes.at(letter);
      dims.push_back(size);
      all += part;
      isSame &= part.size() == 1;
    }
    Labelled ordered = inOrder(x, all);
    return isSame ? ordered.value : makeReshape(rewriter, loc, ordered.value, dims);
  }

  Labelled contract(Labelled a, Labelled b, StringRef keep) {
    std::string batch, inner, left, right, onlyA, onlyB;
    for (char letter : a.letters) {
      bool inB = b.letters.find(letter) != std::string::npos, isKept = keep.contains(letter);
      (inB ? (isKept ? batch : inner) : (isKept ? left : onlyA)) += letter;
    }
    for (char letter : b.letters)
      if (a.letters.find(letter) == std::string::npos)
        (keep.contains(letter) ? right : onlyB) += letter;
    a = sumOver(a, onlyA);
    b = sumOver(b, onlyB);
    SmallVector<std::string> batches;
    for (char letter : batch)
      batches.push_back(std::string(1, letter));
    auto parts = [&](const std::string &first, const std::string &second) {
      SmallVector<std::string> list = batches;
      list.push_back(first);
      list.push_back(second);
      return list;
    };
    SmallVector<DimExpr> dims, whole;
    for (char letter : batch)
      dims.push_back(equation.sizes.at(letter));
    whole = dims;
    for (const std::string *part : {&left, &right}) {
      DimExpr size(1);
      for (char letter : *part) {
        size = size * equation.sizes.at(letter);
        whole.push_back(equation.sizes.at(letter));
      }
      dims.push_back(size);
    }
    Type element = getElementTypeOrSelf(a.value);
    Value product;
    if (inner.empty()) // an outer product: no sum, so no matrix product
      product = rewriter.create<MulOp>(loc, tensorType(element, dims), merged(a, parts(left, "")),
                                       merged(b, parts("", right)));
    else
      product = rewriter.create<MatMulOp>(loc, tensorType(element, dims), merged(a, parts(left, inner)),
                                          merged(b, parts(inner, right)));
    if (!haveSameDims(dims, whole))
      product = makeReshape(rewriter, loc, product, whole);
    return {product, batch + left + right};
  }

private:
  RuleRewriter &rewriter;
  Location loc;
  const Equation &equation;
};

StringRef refusal(EinsumOp op, Equation &equation) {
  if (StringRef why = readEquation(op, equation); !why.empty())
    return why;
  Type element = getElementTypeOrSelf(op.getInputs()[0]);
  if (op.getInputs().size() > 2 && isFloat(element) && !element.isF32() && !element.isF64())
    return "products of three would be rounded to 16 bits in between";
  return "";
}

/// Whether the equation says what a matmul does: B..ij, B..jk -> B..ik, the second operand perhaps without B.
bool isMatMul(const Equation &equation) {
  if (equation.terms.size() != 2 || equation.result.size() < 2)
    return false;
  StringRef a = equation.terms[0], b = equation.terms[1], result = equation.result;
  if (a.size() != result.size() || b.size() < 2)
    return false;
  StringRef batch = result.drop_back(2);
  char row = result[result.size() - 2], column = result.back(), inner = a.back();
  return a.drop_back(2) == batch && a[a.size() - 2] == row && (b.size() == 2 || b.drop_back(2) == batch) &&
         b[b.size() - 2] == inner && b.back() == column && inner != row && inner != column && !batch.contains(inner);
}

bool decompose(EinsumOp op, RuleRewriter &rewriter) {
  Equation equation;
  if (StringRef why = refusal(op, equation); !why.empty()) {
    rewriter.refuse(op, why);
    return false;
  }
  if (isMatMul(equation)) {
    rewriter.replaceWith<MatMulOp>(op, {}, "a matrix product", op.getType(), op.getInputs()[0], op.getInputs()[1]);
    return true;
  }
  if (staysGraph(op->getParentOfType<ModuleOp>())) {
    rewriter.refuse(op, "it takes more than one other operation");
    return false;
  }
  rewriter.setInsertionPoint(op);
  Builder builder(rewriter, op.getLoc(), equation);
  Labelled value{op.getInputs()[0], equation.terms[0]};
  for (size_t i = 1; i < equation.terms.size(); ++i) {
    std::string keep = equation.result;
    for (size_t later = i + 1; later < equation.terms.size(); ++later)
      keep += equation.terms[later];
    value = builder.contract(value, {op.getInputs()[i], equation.terms[i]}, keep);
  }
  std::string dropped;
  for (char letter : value.letters)
    if (equation.result.find(letter) == std::string::npos)
      dropped += letter;
  value = builder.inOrder(builder.sumOver(value, dropped), equation.result);
  rewriter.replace(op, value.value, "spelt out");
  return true;
}

struct DecomposeEinsum : impl::DecomposeEinsumBase<DecomposeEinsum> {
  using DecomposeEinsumBase::DecomposeEinsumBase;

  void runOnOperation() override {
    PassReport report("decompose-einsum", limit);
    RuleSet rules;
    rules.add<EinsumOp>(decompose);
    rules.apply(getOperation(), report);
  }
};

} // namespace
} // namespace firn

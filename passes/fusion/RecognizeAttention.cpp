// RecognizeAttention: attention that a model spells out becomes one operation.
//
// In:      firn ops, shapes inferred.     Out: firn.attention; what it replaces is left for firn-eliminate-dead.
// Keeps:   values up to rounding, also of queries that see no key: where a softmax would give NaN, so does the
//          operation (`nan_rows`), and a mask that replaces scores by a number keeps that number (`masked_score`). A
//          graph that stays one gets ONNX's operator alone, where its opset has it and no row of the mask can be all
//          -inf.
// Leaves:  attention whose scores or probabilities are read elsewhere, and what the refusals name.
//   softmax(Q * scale @ K^T [where / + mask]) @ V                     ==>   firn.attention Q, K, V, mask
//   ... with heads split before and merged behind it, transposes       ==>   the same on [batch, length, heads * size],
//                                                                            or with a result like that (`rows`)
#include "passes/GraphForm.h"
#include "passes/Passes.h"
#include "passes/Rules.h"

#include <cmath>

using namespace mlir;

namespace firn {
#define GEN_PASS_DEF_RECOGNIZEATTENTION
#include "passes/Passes.h.inc"

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
/// Numbers that swallow any score that is added to them.
constexpr double hugeNumber = 1e30;

/// softmax(scale * q k^T, masked) v, as far as it is read.
struct Attention {
  Value q, k, v; // k: [..., keys, size]
  Value scores;  // as multiplied
  double scale = 1;
  Value added;                    // mask that is added, or null
  Value kept;                     // mask that keeps scores where it is true, or null
  double maskedScore = -infinity; // what stands for the others
  bool isKeptOutside = false;     // scores are replaced behind the sum with `added`
  bool hasZeroNan = false;        // rows of NaN become zeros
  SmallVector<Operation *> operations;
};

/// The greatest magnitude that elements can have; infinity where it is not known.
double boundOf(Value value, unsigned depth = 0) {
  if (auto numbers = constantOf(value) ? numbersOf(value, 1 << 22) : std::nullopt) {
    double most = 0;
    for (double number : *numbers)
      most = std::isnan(number) ? infinity : std::max(most, std::fabs(number));
    return most;
  }
  auto type = rankedType(value);
  if (!type || depth > 12)
    return infinity;
  if (auto integer = dyn_cast<IntegerType>(type.getElementType()))
    return integer.getWidth() == 1 ? 1 : std::ldexp(1.0, int(integer.getWidth()));
  Operation *op = value.getDefiningOp();
  auto of = [&](unsigned i) { return boundOf(op->getOperand(i), depth + 1); };
  if (!op)
    return infinity;
  if (isa<ReshapeOp, UnsqueezeOp, SqueezeOp, TransposeOp, ExpandOp, SliceOp, IdentityOp, CastOp, FlattenOp, GatherOp>(
          op))
    return of(0);
  if (isa<AddOp, SubOp>(op))
    return of(0) + of(1);
  if (isa<MulOp>(op))
    return of(0) * of(1);
  if (isa<WhereOp>(op))
    return std::max(of(1), of(2));
  return infinity;
}

/// Whether an element of a mask of floats can be -inf.
bool mayBeInfinite(Value mask) {
  Type element = getElementTypeOrSelf(mask);
  return !(boundOf(mask) < (element.isF16() ? 65000 : 3.3e38));
}

class Recognizer {
public:
  Recognizer(MatMulOp product, RuleRewriter &rules) : root(product), rewriter(rules) {}

  bool run();

private:
  bool refuse(const Twine &why) {
    rewriter.refuse(root, why.str());
    return false;
  }
  bool isInner(Value value, StringRef what);
  bool readScores(Value value);
  bool readProduct(MatMulOp product);
  bool addMask(Value mask, bool isNegative);
  Value unexpanded(Value mask);
  SoftmaxOp readProbabilities(Value value);
  Value unscaled(Value value);
  Value ungrouped(Value value);
  Value swapped(Value value);
  bool checkShapes();
  bool checkGraph();
  Value maskOperand();
  Value withFourAxes(Value value);
  Value rowsOf(Value value);
  Operation *mergedResult();
  void rewrite();

  MatMulOp root;
  RuleRewriter &rewriter;
  Attention found;
  bool isGraph = false;
  int64_t rank = 0;
};

/// Whether nobody but the operation behind it reads `value`; else says who does.
bool Recognizer::isInner(Value value, StringRef what) {
  if (value.hasOneUse())
    return true;
  for (Operation *user : value.getUsers()) {
    std::string name = nodeName(user->getLoc());
    bool isOutput = isReturned(value);
    if (isOutput || user != *value.getUsers().begin())
      return refuse(what + " are also " +
                    (isOutput ? Twine("an output of the model") : "read by '" + Twine(name) + "'"));
  }
  return refuse(what + " are read twice");
}

/// Takes a factor off that is one number.
Value Recognizer::unscaled(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    auto number = isa<MulOp, DivOp>(op) ? splatOf(op->getOperand(1)) : std::nullopt;
    Value other = isa<MulOp, DivOp>(op) ? op->getOperand(0) : Value();
    if (!number && isa<MulOp>(op)) {
      number = splatOf(op->getOperand(0));
      other = op->getOperand(1);
    }
    if (!number || !std::isfinite(*number) || *number == 0 || !haveSameType(other, value))
      break;
    found.scale = isa<DivOp>(op) ? found.scale / *number : found.scale * *number;
    found.operations.push_back(op);
    value = other;
  }
  return value;
}

/// Heads before each was repeated for a group of queries: [b, h, s, d] expanded to [b, h, n, s, d] and merged.
Value Recognizer::ungrouped(Value value) {
  Operation *merge = value.getDefiningOp();
  auto type = rankedType(value);
  if (!isa_and_nonnull<ReshapeOp>(merge) || !type || type.getRank() != 4)
    return value;
  auto expand = merge->getOperand(0).getDefiningOp<ExpandOp>();
  Operation *view = expand ? expand->getOperand(0).getDefiningOp() : nullptr;
  if (!isa_and_nonnull<ReshapeOp, UnsqueezeOp>(view))
    return value;
  auto from = rankedType(view->getOperand(0)), one = rankedType(expand->getOperand(0)),
       many = rankedType(expand.getResult());
  if (!from || !one || !many || from.getRank() != 4 || one.getRank() != 5 || many.getRank() != 5)
    return value;
  SmallVector<DimExpr> d = dimsOf(from), o = dimsOf(one), m = dimsOf(many), r = dimsOf(type);
  if (o != SmallVector<DimExpr>{d[0], d[1], DimExpr(1), d[2], d[3]} ||
      m != SmallVector<DimExpr>{d[0], d[1], m[2], d[2], d[3]} ||
      r != SmallVector<DimExpr>{d[0], d[1] * m[2], d[2], d[3]})
    return value;
  found.operations.append({view, expand, merge});
  return view->getOperand(0);
}

/// The value with its last two axes swapped, by one transpose at most.
Value Recognizer::swapped(Value value) {
  SmallVector<int64_t> perm;
  Value from = value;
  if (auto transpose = value.getDefiningOp<TransposeOp>()) {
    perm = permutationOf(transpose);
    from = transpose.getX();
    found.operations.push_back(transpose);
  } else {
    for (int64_t i = 0; i < rankedType(value).getRank(); ++i)
      perm.push_back(i);
  }
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  bool isIdentity = true;
  for (auto [i, axis] : llvm::enumerate(perm))
    isIdentity &= int64_t(i) == axis;
  return isIdentity ? from : makeTranspose(rewriter, root.getLoc(), from, perm);
}

bool Recognizer::readProduct(MatMulOp product) {
  found.scores = product.getResult();
  found.operations.push_back(product);
  rank = rankedType(found.scores).getRank();
  found.q = unscaled(product.getA());
  found.k = unscaled(product.getB());
  auto k = rankedType(found.k), q = rankedType(found.q);
  return q && k && q.getRank() == rank && k.getRank() == rank;
}

/// Whether float elements of `from` are exact in `to`.
bool widens(Type from, Type to) { return (from.isF16() || from.isBF16()) && to.isF32(); }

/// Whether a product is behind the value, through what masks and scales are made of.
bool leadsToProduct(Value value) {
  for (unsigned i = 0; i < 6; ++i) {
    Operation *op = value.getDefiningOp();
    if (isa_and_nonnull<MatMulOp>(op))
      return true;
    if (!isa_and_nonnull<MulOp, DivOp, AddOp, SubOp, WhereOp, CastOp>(op))
      return false;
    bool isSecond = isa<WhereOp>(op)        ? splatOf(op->getOperand(1)).has_value()
                    : isa<AddOp, MulOp>(op) ? bool(constantOf(op->getOperand(0)))
                                            : false;
    value = op->getOperand(isa<WhereOp>(op) ? (isSecond ? 2 : 1) : isSecond);
  }
  return false;
}

/// One more mask that is added, or taken off.
bool Recognizer::addMask(Value mask, bool isNegative) {
  auto type = rankedType(mask);
  if (!type)
    return refuse("the rank of the mask is not known");
  rewriter.setInsertionPoint(root);
  if (isNegative)
    mask = rewriter.create<NegOp>(root.getLoc(), type, mask);
  if (found.kept && !found.isKeptOutside)
    return refuse("masks are added before and behind one that replaces scores");
  if (found.added) {
    auto before = rankedType(found.added);
    auto dims = broadcastDims(dimsOf(before), dimsOf(type));
    if (!dims || before.getElementType() != type.getElementType())
      return refuse("its masks are not known to broadcast");
    mask = rewriter.create<AddOp>(root.getLoc(), tensorType(type.getElementType(), *dims), mask, found.added);
  }
  found.added = mask;
  return true;
}

/// From what the softmax reads to the product: masks first, scales behind them.
bool Recognizer::readScores(Value value) {
  bool isScaled = false;
  for (unsigned depth = 0; depth < 8; ++depth) {
    Operation *op = value.getDefiningOp();
    if (auto product = dyn_cast_or_null<MatMulOp>(op))
      return isInner(value, "its scores") && readProduct(product);
    if (Value inner = unscaled(value); inner != value) {
      if (!isInner(value, "its scores"))
        return false;
      isScaled = true;
      value = inner;
      continue;
    }
    if (auto cast = dyn_cast_or_null<CastOp>(op)) { // 16-bit scores, a softmax in 32 bits
      auto from = rankedType(cast.getOperand());
      if (!from || !widens(from.getElementType(), getElementTypeOrSelf(value)) || !isInner(value, "its scores"))
        return false;
      found.operations.push_back(op);
      value = cast.getOperand();
      continue;
    }
    if (isScaled && isa_and_nonnull<AddOp, SubOp, WhereOp>(op))
      return leadsToProduct(value) && refuse("the scale is applied behind the mask");
    if (isa_and_nonnull<AddOp, SubOp>(op)) {
      // The side of the product is the one that a product is behind.
      bool isFirst = leadsToProduct(op->getOperand(0));
      if (!isFirst && (isa<SubOp>(op) || !leadsToProduct(op->getOperand(1))))
        return false;
      if (!isInner(value, "its scores") || !addMask(op->getOperand(isFirst ? 1 : 0), isa<SubOp>(op)))
        return false;
      value = op->getOperand(isFirst ? 0 : 1);
    } else if (auto choice = dyn_cast_or_null<WhereOp>(op)) {
      auto first = splatOf(choice->getOperand(1)), second = splatOf(choice->getOperand(2));
      if (first.has_value() == second.has_value() || found.kept || !isInner(value, "its scores"))
        return false;
      found.isKeptOutside = !found.added;
      rewriter.setInsertionPoint(root);
      Value condition = choice->getOperand(0);
      found.kept =
          second ? condition : rewriter.create<NotOp>(choice.getLoc(), condition.getType(), condition).getResult();
      found.maskedScore = second ? *second : *first;
      value = choice->getOperand(second ? 1 : 2);
    } else {
      return false;
    }
    found.operations.push_back(op);
    if (!haveSameType(value, op->getResult(0)))
      return refuse("the mask enlarges the scores");
  }
  return false;
}

/// The mask before it was repeated along the scores' axes, as far as that is not needed.
Value Recognizer::unexpanded(Value mask) {
  SmallVector<DimExpr> scores = dimsOf(rankedType(found.scores));
  while (auto expand = mask.getDefiningOp<ExpandOp>()) {
    auto type = rankedType(expand->getOperand(0));
    if (!type || type.getRank() < 1 || dimsOf(type).back() != scores.back())
      break;
    mask = expand->getOperand(0);
  }
  return mask;
}

bool Recognizer::checkShapes() {
  if (found.added)
    found.added = unexpanded(found.added);
  if (found.kept)
    found.kept = unexpanded(found.kept);

  auto q = rankedType(found.q), k = rankedType(found.k), v = rankedType(found.v), s = rankedType(found.scores);
  Type element = s.getElementType();
  if (!element.isF32() && !element.isF16() && !element.isBF16())
    return refuse("its elements are no floats of 16 or 32 bits");
  if (rank < 2 || rank > 4 || v.getRank() != rank)
    return refuse("its scores have " + Twine(rank) + " axes");
  if (isGraph && rank != 4)
    return refuse("its scores have " + Twine(rank) + " axes, not 4");
  SmallVector<DimExpr> qd = dimsOf(q), kd = dimsOf(k), vd = dimsOf(v), sd = dimsOf(s);
  if (!qd[rank - 1].isConstant() || !vd[rank - 1].isConstant())
    return refuse("the size of its heads is not known");
  bool isShared = rank == 4 && kd[1] == vd[1] && qd[1].exactDiv(kd[1]);
  for (int64_t axis = 0; axis < rank - 2; ++axis) {
    bool fits = qd[axis] == sd[axis] && ((kd[axis] == qd[axis] && vd[axis] == qd[axis]) || (axis == 1 && isShared));
    if (!fits)
      return refuse("batches or heads of its operands are broadcast");
  }
  if (kd[rank - 2] != sd[rank - 1] || vd[rank - 2] != sd[rank - 1])
    return refuse("the number of keys is not known to be that of values");
  for (Value mask : {found.added, found.kept}) {
    if (!mask)
      continue;
    auto type = rankedType(mask);
    if (!type || type.getRank() < 1 || type.getRank() > rank)
      return refuse("the rank of the mask is not known");
    SmallVector<DimExpr> d = dimsOf(type);
    if (d.back() != sd.back())
      return refuse("the mask has not one number per key");
    for (size_t i = 1; i <= d.size(); ++i)
      if (!isOne(d[d.size() - i]) && d[d.size() - i] != sd[sd.size() - i])
        return refuse("the mask is not known to fit the scores");
  }
  if (found.kept && std::isnan(found.maskedScore))
    return refuse("masked scores are no numbers");
  // Numbers to add and to keep at once: only where a sum with the second is the second.
  if (found.kept && found.added && !(found.maskedScore <= -hugeNumber))
    return refuse("a mask that is added follows one that replaces scores by a number of common size");
  return true;
}

/// Whether the opset of the file has the operator, its own or the one that other operators raise it to.
static bool hasAttention(ModuleOp module) {
  auto opset = module->getAttrOfType<IntegerAttr>("firn.opset");
  if (!opset)
    return false;
  auto raises = [](Operation *op) {
    return isa<SwishOp, RMSNormalizationOp>(op) ? WalkResult::interrupt() : WalkResult::advance();
  };
  return opset.getInt() >= 23 || module.walk(raises).wasInterrupted();
}

/// What a file of the graph's opset can say.
bool Recognizer::checkGraph() {
  if (!isGraph)
    return true;
  if (!hasAttention(root->getParentOfType<ModuleOp>()))
    return refuse("the opset of the model has no Attention");
  if (found.hasZeroNan)
    return refuse("probabilities that are no numbers become zeros");
  if (found.kept)
    return refuse("a query that sees no key would give zeros");
  // Allowed by the operator, but refused by runtimes that do not repeat a mask along queries.
  if (found.added) {
    SmallVector<DimExpr> mask = dimsOf(rankedType(found.added)), scores = dimsOf(rankedType(found.scores));
    if (mask.size() < 2 || mask[mask.size() - 2] != scores[scores.size() - 2])
      return refuse("the mask has not one row per query");
  }
  if (found.added && mayBeInfinite(found.added))
    return refuse("the mask may be -inf for all keys, where Attention gives zeros and a softmax NaN");
  return true;
}

/// [..., length, size] as [batch, heads, length, size].
Value Recognizer::withFourAxes(Value value) {
  SmallVector<DimExpr> d = dimsOf(rankedType(value));
  if (d.size() >= 4 || rank == 4)
    return value;
  int64_t missing = 4 - rank;
  // Batches stay in front, one head; masks of lower rank broadcast as they are.
  SmallVector<DimExpr> dims(d);
  if (int64_t(d.size()) == rank)
    dims.insert(dims.end() - 2, size_t(missing), DimExpr(1));
  return dims == d ? value : makeReshape(rewriter, root.getLoc(), value, dims);
}

/// x if `value` is [batch, length, heads * size] with its heads split and moved forward; else null.
Value Recognizer::rowsOf(Value value) {
  auto transpose = value.getDefiningOp<TransposeOp>();
  if (!transpose || permutationOf(transpose) != SmallVector<int64_t>{0, 2, 1, 3})
    return {};
  auto reshape = transpose.getX().getDefiningOp<ReshapeOp>();
  auto from = reshape ? rankedType(reshape.getX()) : RankedTensorType();
  auto to = reshape ? rankedType(reshape.getResult()) : RankedTensorType();
  if (!from || !to || from.getRank() != 3 || to.getRank() != 4)
    return {};
  SmallVector<DimExpr> f = dimsOf(from), t = dimsOf(to);
  if (f[0] != t[0] || f[1] != t[1] || f[2] != t[2] * t[3] || !t[2].isConstant())
    return {};
  return reshape.getX();
}

/// The reshape that merges the heads of the result, if nobody reads it in between.
Operation *Recognizer::mergedResult() {
  auto onlyUser = [](Operation *op) { return op->hasOneUse() ? *op->user_begin() : nullptr; };
  auto transpose = dyn_cast_or_null<TransposeOp>(onlyUser(root));
  if (!transpose || rank != 4 || transpose->getBlock() != root->getBlock() ||
      permutationOf(transpose) != SmallVector<int64_t>{0, 2, 1, 3})
    return nullptr;
  auto reshape = dyn_cast_or_null<ReshapeOp>(onlyUser(transpose));
  auto type = reshape ? rankedType(reshape.getResult()) : RankedTensorType();
  if (!type || reshape->getBlock() != root->getBlock())
    return nullptr;
  SmallVector<DimExpr> d = dimsOf(rankedType(root.getResult()));
  return dimsOf(type) == SmallVector<DimExpr>{d[0], d[2], d[1] * d[3]} ? reshape.getOperation() : nullptr;
}

/// One mask of both.
Value Recognizer::maskOperand() {
  Location loc = root.getLoc();
  if (!found.added || !found.kept)
    return found.added ? found.added : found.kept;
  auto type = rankedType(found.added), kept = rankedType(found.kept);
  Type element = type.getElementType();
  auto number = [&](double value) { return makeNumbers(rewriter, loc, RankedTensorType::get({}, element), {value}); };
  auto dims = broadcastDims(dimsOf(type), dimsOf(kept));
  if (!dims)
    return {};
  if (found.isKeptOutside)
    return rewriter.create<WhereOp>(loc, tensorType(element, *dims), found.kept, found.added,
                                    number(found.maskedScore));
  Value replaced = rewriter.create<WhereOp>(loc, tensorType(element, dimsOf(kept)), found.kept, number(0),
                                            number(found.maskedScore));
  return rewriter.create<AddOp>(loc, tensorType(element, *dims), found.added, replaced);
}

void Recognizer::rewrite() {
  Location loc = root.getLoc();
  auto integer = [&](int64_t value) { return rewriter.getI64IntegerAttr(value); };
  Operation *last = root;
  Value rows[3] = {rowsOf(found.q), rowsOf(found.k), rowsOf(found.v)};
  Operation *merged = mergedResult();
  SmallVector<NamedAttribute> attributes;
  auto attribute = [&](StringRef name, Attribute value) { attributes.push_back(rewriter.getNamedAttr(name, value)); };
  SmallVector<Value> operands{withFourAxes(found.q), withFourAxes(found.k), withFourAxes(found.v)};
  bool hasRows = merged && rows[0] && rows[1] && rows[2];
  if (hasRows) {
    attribute("q_num_heads", integer(dimOf(rankedType(found.q), 1).constant()));
    attribute("kv_num_heads", integer(dimOf(rankedType(found.k), 1).constant()));
    operands.assign(rows, rows + 3);
  } else if (merged && !isGraph) {
    attribute("rows", integer(1));
    hasRows = true;
  }
  if (Value mask = maskOperand())
    operands.push_back(withFourAxes(mask));
  attribute("scale", rewriter.getF32FloatAttr(float(found.scale)));
  if (found.kept && !found.added && found.maskedScore != -infinity)
    attribute("masked_score", rewriter.getF32FloatAttr(float(found.maskedScore)));
  if (!isGraph)
    attribute(found.hasZeroNan ? "zero_nan" : "nan_rows", integer(1));
  if (hasRows) {
    found.operations.append({root, merged->getOperand(0).getDefiningOp()});
    last = merged;
  }
  auto type = rankedType(last->getResult(0));
  Type resultType = type;
  if (rank < 4) {
    SmallVector<DimExpr> d = dimsOf(type);
    d.insert(d.end() - 2, size_t(4 - rank), DimExpr(1));
    resultType = tensorType(type.getElementType(), d);
  }
  OperationState state(rewriter.fused(last, found.operations), AttentionOp::getOperationName(), operands, resultType,
                       attributes);
  Value result = rewriter.create(state)->getResult(0);
  if (rank < 4)
    result = makeReshape(rewriter, loc, result, dimsOf(type));
  rewriter.replace(last, result, "attention");
}

/// The softmax behind probabilities: as they are, narrowed to 16 bits, or with zeros for what is no number.
SoftmaxOp Recognizer::readProbabilities(Value value) {
  for (unsigned depth = 0; depth < 3; ++depth) {
    Operation *op = value.getDefiningOp();
    if (auto softmax = dyn_cast_or_null<SoftmaxOp>(op))
      return softmax;
    if (auto cast = dyn_cast_or_null<CastOp>(op)) {
      auto from = rankedType(cast.getOperand()), to = rankedType(value);
      if (!from || !to || !widens(to.getElementType(), from.getElementType()))
        return {};
      value = cast.getOperand();
    } else if (auto choice = dyn_cast_or_null<WhereOp>(op)) {
      auto test = choice->getOperand(0).getDefiningOp<IsNaNOp>();
      if (!test || test->getOperand(0) != choice->getOperand(2) || splatOf(choice->getOperand(1)) != 0.0 ||
          !haveSameType(choice->getOperand(2), value) || !test->hasOneUse())
        return {};
      value = choice->getOperand(2);
      found.hasZeroNan = true;
      found.operations.push_back(test);
    } else {
      return {};
    }
    found.operations.push_back(op);
  }
  return {};
}

bool Recognizer::run() {
  auto softmax = readProbabilities(root.getA());
  auto type = softmax ? rankedType(softmax.getResult()) : RankedTensorType();
  if (!type || !rankedType(root.getB()) || !rankedType(root.getResult()))
    return false;
  isGraph = staysGraph(root->getParentOfType<ModuleOp>());
  rewriter.setInsertionPoint(root);
  int64_t axis = int64_t(softmax.getAxis());
  if (!readScores(softmax.getX()))
    return false;
  if (axis != -1 && axis != type.getRank() - 1)
    return refuse("the softmax is not over the last axis");
  // Each is read by the next alone, the softmax by the test for NaN too.
  for (Value value = root.getA(); value != softmax.getResult();) {
    if (!isInner(value, "its probabilities"))
      return false;
    Operation *op = value.getDefiningOp();
    value = op->getOperand(isa<WhereOp>(op) ? 2 : 0);
  }
  if (found.hasZeroNan ? !llvm::hasNItems(softmax.getResult().getUses(), 2)
                       : !isInner(softmax.getResult(), "its probabilities"))
    return false;
  found.operations.push_back(softmax);
  // K as it was before it was turned, and both before their heads were repeated.
  found.k = ungrouped(unscaled(swapped(found.k)));
  found.v = ungrouped(root.getB());
  if (!checkShapes() || !checkGraph())
    return false;
  if (found.added && found.kept && !broadcastDims(dimsOf(rankedType(found.added)), dimsOf(rankedType(found.kept))))
    return refuse("its masks are not known to broadcast");
  if (!rewriter.mayWrite(root, "attention", 23))
    return false;
  rewrite();
  return true;
}

bool recognize(MatMulOp op, RuleRewriter &rewriter) { return Recognizer(op, rewriter).run(); }

struct RecognizeAttention : impl::RecognizeAttentionBase<RecognizeAttention> {
  using RecognizeAttentionBase::RecognizeAttentionBase;

  void runOnOperation() override {
    PassReport report("recognize-attention", limit);
    RuleSet rules;
    rules.add<MatMulOp>(recognize);
    rules.apply(getOperation(), report);
  }
};

} // namespace
} // namespace firn

// MergeQKV: products of one input with the constant weights of queries, keys and values become one product.
//
// In:      firn.attention whose operands are matmul or matmul and add of constants, seen through views.
// Out:     one firn.matmul with the weights beside each other (and one firn.add), a firn.slice for each operand.
// Keeps:   every result bit for bit: a column of a product does not depend on its neighbours.
// Leaves:  products that others read too: slices of rows are free for attention alone. Graphs that stay graphs.
//   Q = x Wq + bq; K = x Wk + bk; V = x Wv + bv     ==>   y = x [Wq Wk Wv] + [bq bk bv]; Q = y[0:n], K = y[n:2n], ...
#include "passes/GraphForm.h"
#include "passes/Passes.h"
#include "passes/Rules.h"

using namespace mlir;

namespace firn {
#define GEN_PASS_DEF_MERGEQKV
#include "passes/Passes.h.inc"

namespace {

/// x * weight (+ bias), read by the views of one operand alone.
struct Projection {
  Value result; // [..., n]
  Value x;
  MatMulOp product;
  AddOp sum; // null where there is no bias
  Value weight, bias;
  int64_t columns = 0;
};

std::optional<Projection> projectionOf(Value operand, StringRef &why) {
  Value value = operand;
  while (true) {
    if (!value.hasOneUse()) {
      why = "a projection is also read elsewhere";
      return std::nullopt;
    }
    Operation *op = value.getDefiningOp();
    if (!isa_and_nonnull<ReshapeOp, TransposeOp>(op))
      break;
    value = op->getOperand(0);
  }
  Projection found;
  found.result = value;
  found.sum = value.getDefiningOp<AddOp>();
  if (found.sum) {
    bool isFirst = bool(constantOf(found.sum.getA()));
    found.bias = isFirst ? found.sum.getA() : found.sum.getB();
    value = isFirst ? found.sum.getB() : found.sum.getA();
    if (!constantOf(found.bias) || !value.hasOneUse())
      return std::nullopt;
  }
  found.product = value.getDefiningOp<MatMulOp>();
  if (!found.product || !constantOf(found.product.getB()))
    return std::nullopt;
  found.x = found.product.getA();
  found.weight = found.product.getB();
  auto weight = rankedType(found.weight), x = rankedType(found.x), result = rankedType(found.result);
  if (!weight || !x || !result || weight.getRank() != 2 || x.getRank() < 2 || !weight.hasStaticShape())
    return std::nullopt;
  Type element = weight.getElementType();
  if (!element.isF32() && !element.isF16() && !element.isBF16())
    return std::nullopt;
  found.columns = weight.getDimSize(1);
  if (found.bias) {
    auto bias = rankedType(found.bias);
    if (!bias || bias.getRank() != 1 || bias.getDimSize(0) != found.columns)
      return std::nullopt;
  }
  return found;
}

/// Constants of [rows, n] beside each other.
Value beside(RuleRewriter &rewriter, Location loc, ArrayRef<Value> parts) {
  auto first = rankedType(parts[0]);
  bool isMatrix = first.getRank() == 2;
  int64_t rows = isMatrix ? first.getDimSize(0) : 1, columns = 0;
  int64_t size = first.getElementType().getIntOrFloatBitWidth() / 8;
  for (Value part : parts)
    columns += rankedType(part).getShape().back();
  std::vector<char> bytes(size_t(rows * columns * size));
  int64_t at = 0;
  for (Value part : parts) {
    auto from = constantBytes(constantOf(part));
    if (!from)
      return {};
    int64_t width = rankedType(part).getShape().back() * size;
    for (int64_t row = 0; row < rows; ++row) {
      char *to = bytes.data() + row * columns * size + at;
      for (int64_t i = 0; i < width; i += from->isSplat ? size : width)
        std::memcpy(to + i, from->bytes.data() + (from->isSplat ? 0 : row * width),
                    size_t(from->isSplat ? size : width));
    }
    at += width;
  }
  SmallVector<int64_t> shape{columns};
  if (isMatrix)
    shape.insert(shape.begin(), rows);
  return rewriter.create<ConstantOp>(loc,
                                     constantFromBytes(RankedTensorType::get(shape, first.getElementType()), bytes));
}

bool merge(ArrayRef<Projection> parts, AttentionOp op, RuleRewriter &rewriter) {
  // In front of the first that needs it: the products' input is there, and all else are constants.
  Operation *first = parts[0].product;
  for (const Projection &part : parts)
    if (part.product->isBeforeInBlock(first))
      first = part.product;
  rewriter.setInsertionPoint(first);
  SmallVector<Operation *> others;
  SmallVector<Value> weights, biases;
  int64_t columns = 0;
  for (const Projection &part : parts) {
    others.push_back(part.product);
    if (part.sum)
      others.push_back(part.sum);
    weights.push_back(part.weight);
    if (part.bias)
      biases.push_back(part.bias);
    columns += part.columns;
  }
  Location loc = rewriter.fused(others.pop_back_val(), others);
  Value weight = beside(rewriter, loc, weights), bias = biases.empty() ? Value() : beside(rewriter, loc, biases);
  if (!weight || (!bias && !biases.empty()))
    return false;
  auto type = rankedType(parts[0].result);
  auto withColumns = [&](int64_t number) {
    SmallVector<DimExpr> dims = dimsOf(type);
    dims.back() = DimExpr(number);
    return tensorType(type.getElementType(), dims);
  };
  Value all = rewriter.create<MatMulOp>(loc, withColumns(columns), parts[0].x, weight);
  if (bias)
    all = rewriter.create<AddOp>(loc, withColumns(columns), all, bias);
  int64_t begin = 0, axis = type.getRank() - 1;
  for (const Projection &part : parts) {
    SmallVector<Value> bounds{makeIntegers(rewriter, loc, {begin}), makeIntegers(rewriter, loc, {begin + part.columns}),
                              makeIntegers(rewriter, loc, {axis})};
    Value slice = rewriter.create<SliceOp>(part.result.getLoc(), withColumns(part.columns), all, bounds);
    begin += part.columns;
    rewriter.replaceAllUsesWith(part.result, slice);
  }
  rewriter.changed(op, parts.size() == 3 ? "one product for queries, keys and values" : "one product for two operands");
  return true;
}

bool mergeProjections(AttentionOp op, RuleRewriter &rewriter) {
  if (staysGraph(op->getParentOfType<ModuleOp>()) || op->getNumOperands() < 3)
    return false;
  SmallVector<Projection> found;
  for (unsigned i = 0; i < 3; ++i) {
    StringRef why;
    auto projection = projectionOf(op->getOperand(i), why);
    if (projection && projection->product->getBlock() == op->getBlock())
      found.push_back(*projection);
    else if (!why.empty())
      rewriter.refuse(op, why);
  }
  // All that share the input of one of them, and have a bias or not as it has.
  for (const Projection &one : found) {
    SmallVector<Projection> alike;
    for (const Projection &other : found)
      if (other.x == one.x && bool(other.bias) == bool(one.bias) &&
          getElementTypeOrSelf(other.weight) == getElementTypeOrSelf(one.weight))
        alike.push_back(other);
    if (alike.size() > 1)
      return merge(alike, op, rewriter);
  }
  return false;
}

struct MergeQKV : impl::MergeQKVBase<MergeQKV> {
  using MergeQKVBase::MergeQKVBase;

  void runOnOperation() override {
    PassReport report("merge-qkv", limit);
    RuleSet rules;
    rules.add<AttentionOp>(mergeProjections);
    rules.apply(getOperation(), report);
  }
};

} // namespace
} // namespace firn

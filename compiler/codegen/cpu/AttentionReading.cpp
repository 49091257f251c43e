// What attention reads: heads as views, masks, positions.
#include "compiler/codegen/cpu/Attention.h"

using namespace mlir;

namespace firn {

static std::optional<HeadsView> readHeads(View view, DimExpr heads) {
  if (view.rank() == 3) {
    auto size = view.dims[2].exactDiv(heads);
    if (!size)
      return std::nullopt;
    SmallVector<DimExpr> dims{view.dims[0], view.dims[1], heads, *size};
    auto strides = reshapeStrides(view.dims, view.strides, dims);
    if (!strides)
      return std::nullopt;
    auto &s = *strides;
    return HeadsView{view.argument, view.elementType, heads, dims[1], *size, view.offset, s[0], s[2], s[1], s[3]};
  }
  if (view.rank() != 4)
    return std::nullopt;
  auto &s = view.strides;
  return HeadsView{
      view.argument, view.elementType, view.dims[1], view.dims[2], view.dims[3], view.offset, s[0], s[1], s[2], s[3]};
}

std::optional<AttentionShape> readAttention(AttentionOp op, std::string &whyNot) {
  auto refuse = [&](const char *why) {
    whyNot = why;
    return std::nullopt;
  };
  auto number = [&](StringRef name, int64_t fallback) {
    auto value = op->getAttrOfType<IntegerAttr>(name);
    return value ? value.getInt() : fallback;
  };
  auto real = [&](StringRef name, double fallback) {
    auto value = op->getAttrOfType<FloatAttr>(name);
    return value ? value.getValueAsDouble() : fallback;
  };
  AttentionShape a;
  std::optional<HeadsView> heads[3];
  for (unsigned i = 0; i < 3; ++i) {
    auto view = viewOf(op->getOperand(i));
    if (view)
      heads[i] = readHeads(*view, DimExpr(number(i == 0 ? "q_num_heads" : "kv_num_heads", 0)));
    if (!heads[i])
      return refuse("operands of attention that are no views of inputs");
    if (!heads[i]->elementType.isF32() && !heads[i]->elementType.isF16() && !heads[i]->elementType.isBF16())
      return refuse("attention of other elements than floats of 16 and 32 bits");
    if (!heads[i]->size.isConstant() || heads[i]->size.constant() < 1 || heads[i]->size.constant() > 1024)
      return refuse("heads whose size is not known, or very large");
  }
  a.q = *heads[0];
  a.k = *heads[1];
  a.v = *heads[2];
  a.batch = dimOf(cast<RankedTensorType>(op->getOperand(0).getType()), 0);
  auto group = a.q.heads.exactDiv(a.k.heads);
  if (!group)
    return refuse("heads that are not known to be a multiple of the keys' heads");
  a.group = *group;
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  View dense{{}, type.getElementType(), dimsOf(type), denseStrides(dimsOf(type)), DimExpr(0)};
  auto result = readHeads(dense, a.q.heads);
  if (!result)
    return refuse("a result of unknown heads");
  a.result = *result;
  if (Value mask = operandOf(op, 3)) {
    auto view = viewOf(mask);
    if (!view || view->rank() == 0)
      return refuse("a mask that is no view of an input");
    Type element = view->elementType;
    if (!element.isF32() && !element.isF16() && !element.isBF16() && !element.isInteger(1))
      return refuse("a mask of integers");
    a.maskedKeys = view->dims.back();
    a.mask = broadcastView(*view, {a.batch, a.q.heads, a.q.length, a.maskedKeys});
    if (!a.mask)
      return refuse("a mask that may not broadcast");
  }
  a.past = DimExpr(0);
  if (Value past = operandOf(op, 4)) {
    auto pastType = dyn_cast<RankedTensorType>(past.getType());
    if (!number("joined", 0) || !pastType || pastType.getRank() != 4)
      return refuse("keys in two places");
    a.past = dimOf(pastType, 2);
  }
  if (Value counts = operandOf(op, 6)) {
    a.keyCounts = viewOf(counts);
    if (!a.keyCounts || a.keyCounts->rank() != 1)
      return refuse("lengths that are no view of an input");
  }
  a.isCausal = number("is_causal", 0) != 0;
  a.hasNanRows = number("nan_rows", 0) != 0;
  a.hasZeroNan = number("zero_nan", 0) != 0;
  a.leftWindow = number("left_window_size", -1);
  a.rightWindow = number("right_window_size", -1);
  a.scale = real("scale", 1 / std::sqrt(double(a.q.size.constant())));
  a.softcap = real("softcap", 0);
  a.maskedScore = real("masked_score", -INFINITY);
  return a;
}

DimExpr attentionFlops(AttentionOp op) {
  std::string whyNot;
  auto a = readAttention(op, whyNot);
  return a ? a->batch * a->q.heads * a->q.length * a->k.length * (a->q.size + a->v.size) * DimExpr(2) : DimExpr(0);
}

} // namespace firn

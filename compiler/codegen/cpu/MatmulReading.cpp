// Matrix products as the body of a fused operation spells them, and the packing of their constants.
#include "compiler/codegen/cpu/ByteProduct.h"
#include "compiler/codegen/cpu/Panels.h"

using namespace mlir;

namespace firn {

bool isConstantDim(const DimExpr &dim, int64_t value) { return dim.isConstant() && dim.constant() == value; }

/// One scale or zero point for all of b, or one per column: a number, or a view over the columns. False if it is
/// neither.
static bool readAlongColumns(Value value, int64_t axis, const View &b, std::optional<View> &along, double &number) {
  if (!value || isAbsent(value))
    return true;
  if (auto single = singleValue(value)) {
    number = *single;
    return true;
  }
  std::optional<View> view = viewOf(value);
  if (!view)
    return false;
  if (view->rank() == 0 || (view->rank() == 1 && isConstantDim(view->dims[0], 1))) {
    along = View{view->argument, view->elementType, {b.dims.back()}, {DimExpr(0)}, view->offset};
    return true;
  }
  while (view->rank() > 1 && isConstantDim(view->dims[0], 1)) { // [1, n]: a row
    view->dims.erase(view->dims.begin());
    view->strides.erase(view->strides.begin());
    axis = -1;
  }
  int64_t rank = b.rank();
  if (view->rank() != 1 || view->dims[0] != b.dims.back() || (axis < 0 ? axis + rank : axis) != rank - 1)
    return false;
  along = view;
  return true;
}

/// The same with one for each block of `size` steps along k: a number, or a view over blocks and columns.
static bool readBlocks(Value value, int64_t size, const View &b, std::optional<View> &blocks, double &number) {
  if (!value || isAbsent(value))
    return true;
  if (auto single = singleValue(value)) {
    number = *single;
    return true;
  }
  std::optional<View> view = viewOf(value);
  if (!view || view->rank() != 2 || view->dims[0] != b.dims[0].ceilDiv(DimExpr(size)) || view->dims[1] != b.dims[1] ||
      !isConstantDim(view->strides[1], 1))
    return false;
  blocks = view;
  return true;
}

std::optional<MatrixProduct> readProduct(Operation *op, std::string &whyNot) {
  MatrixProduct p;
  p.op = op;
  Value left = op->getOperand(0), right = op->getOperand(1);
  auto dequantize = right.getDefiningOp<DequantizeLinearOp>();
  auto cast = right.getDefiningOp<CastOp>();
  if (auto from = cast ? dyn_cast<RankedTensorType>(cast.getX().getType()) : RankedTensorType();
      !from || !isFloatElement(from.getElementType()))
    cast = {};
  if (dequantize)
    right = dequantize.getX();
  if (cast) // of 16-bit floats
    right = cast.getX();
  auto a = viewOf(left), b = viewOf(right);
  auto swapLast = [](View &view) {
    std::swap(view.dims[view.rank() - 1], view.dims[view.rank() - 2]);
    std::swap(view.strides[view.rank() - 1], view.strides[view.rank() - 2]);
  };
  auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  if (!a || !b || !type) {
    whyNot = "an operand of the product that is no view of an input";
    return std::nullopt;
  }
  p.isDequantized = cast != nullptr;
  auto gemm = dyn_cast<GemmOp>(op);
  if (gemm && gemm.getTransA())
    swapLast(*a);
  if (gemm && gemm.getTransB())
    swapLast(*b);
  if (dequantize) {
    p.isDequantized = true;
    int64_t axis = dequantize.getAxis();
    if (axis < 0)
      axis += b->rank();
    if (gemm && gemm.getTransB())
      axis = 1 - axis;
    p.blockSize = dequantize.getBlockSize();
    if (p.blockSize != 0) {
      if (b->rank() != 2 || axis != 0 || (gemm && gemm.getTransB()) ||
          !readBlocks(dequantize.getScale(), p.blockSize, *b, p.scale, p.scaleNumber) ||
          !readBlocks(dequantize.getZeroPoint(), p.blockSize, *b, p.zeroPoint, p.zeroPointNumber)) {
        whyNot = "weights quantised in blocks that do not lie along the product's depth";
        return std::nullopt;
      }
    } else if (!readAlongColumns(dequantize.getScale(), axis, *b, p.scale, p.scaleNumber) ||
               !readAlongColumns(dequantize.getZeroPoint(), axis, *b, p.zeroPoint, p.zeroPointNumber)) {
      whyNot = "weights quantised otherwise than as a whole or by column";
      return std::nullopt;
    }
  }
  if (isa<MatMulIntegerOp>(op)) {
    if (!readZeroPoint(operandOf(op, 2), DimExpr(1), p.leftZeroPoint, p.leftZeroPointNumber) ||
        !readZeroPoint(operandOf(op, 3), b->dims.back(), p.zeroPoint, p.zeroPointNumber)) {
      whyNot = "zero points by row";
      return std::nullopt;
    }
  }
  if (a->rank() == 0 || b->rank() == 0) {
    whyNot = "a product of scalars";
    return std::nullopt;
  }
  p.isVectorA = a->rank() == 1;
  p.isVectorB = b->rank() == 1;
  if (p.isVectorA) {
    a->dims.insert(a->dims.begin(), DimExpr(1));
    a->strides.insert(a->strides.begin(), DimExpr(0));
  }
  if (p.isVectorB) {
    b->dims.push_back(DimExpr(1));
    b->strides.push_back(DimExpr(0));
  }
  SmallVector<DimExpr> dims = dimsOf(type);
  p.batch.assign(dims.begin(), dims.end() - (p.isVectorA ? 0 : 1) - (p.isVectorB ? 0 : 1));
  p.m = a->dims[a->rank() - 2];
  p.k = a->dims[a->rank() - 1];
  p.n = b->dims[b->rank() - 1];
  if (p.k != b->dims[b->rank() - 2]) {
    whyNot = "inner dimensions " + p.k.str() + " and " + b->dims[b->rank() - 2].str() + " that may differ";
    return std::nullopt;
  }
  auto batchStrides = [&](const View &view) -> std::optional<SmallVector<DimExpr>> {
    View lead = view;
    lead.dims.truncate(view.rank() - 2);
    lead.strides.truncate(view.rank() - 2);
    auto wide = broadcastView(lead, p.batch);
    return wide ? std::optional(wide->strides) : std::nullopt;
  };
  auto aBatch = batchStrides(*a), bBatch = batchStrides(*b);
  if (!aBatch || !bBatch) {
    whyNot = "batch axes that may not broadcast";
    return std::nullopt;
  }
  p.aBatch = *aBatch;
  p.bBatch = *bBatch;
  p.am = a->strides[a->rank() - 2];
  p.ak = a->strides[a->rank() - 1];
  p.bk = b->strides[b->rank() - 2];
  p.bn = b->strides[b->rank() - 1];
  p.a = *a;
  p.b = *b;
  return p;
}

TileShape tileShape(const MatrixProduct &p, Type type) {
  TileShape shape{p.m.asConstant(), p.n.asConstant(), type.getIntOrFloatBitWidth() / 8};
  if (p.am.isConstant())
    shape.rowStride = p.am.constant() * int64_t(Elements::bytes(p.a.elementType));
  return shape;
}

Type accumulatorType(const MatrixProduct &p) {
  return p.isInteger() ? Type(IntegerType::get(p.op->getContext(), 32)) : sumType(p.elementType());
}

std::optional<PackedWeight> planProductPacking(FusedOp fused, Operation *op, const TargetDescription &target) {
  std::string whyNot;
  auto p = readProduct(op, whyNot);
  if (!p || !(isFloatElement(p->elementType()) || (isByte(p->elementType()) && isByte(p->b.elementType))))
    return std::nullopt;
  unsigned operand = p->b.argument.getArgNumber();
  if (packingOf(fused, operand) || !constantOf(fused.getInputs()[operand]) || !p->b.argument.hasOneUse())
    return std::nullopt;
  for (const DimExpr &dim : p->b.dims)
    if (!dim.isConstant() || dim.constant() < 1)
      return std::nullopt;
  if (p->n.constant() == 1 && !p->isInteger())
    return std::nullopt; // a vector lies as it should already
  PackedWeight w;
  w.operand = operand;
  w.n = p->n.constant();
  w.k = p->k.constant();
  w.nr = chooseTile(target, panelShape(fused, tileShape(*p, accumulatorType(*p)))).columns();
  w.elementType = p->b.elementType;
  if (p->isInteger())
    packBytes(w, target);
  w.groupStarts = {p->b.offset.constant()};
  for (unsigned i = 0; i + 2 < p->b.rank(); ++i) {
    std::vector<int64_t> starts;
    for (int64_t start : w.groupStarts)
      for (int64_t index = 0; index < p->b.dims[i].constant(); ++index)
        starts.push_back(start + index * p->b.strides[i].constant());
    w.groupStarts = starts;
  }
  w.groups = w.groupStarts.size();
  w.rows.emplace_back();
  for (int64_t r = 0; r < w.k; ++r)
    w.rows[0].push_back(r * p->bk.constant());
  for (int64_t c = 0; c < w.n; ++c)
    w.columns.push_back(c * p->bn.constant());
  return w;
}

} // namespace firn

// Which emitter serves a contraction, and the packing of its constants.
#include "compiler/codegen/cpu/Contraction.h"

#include "compiler/codegen/cpu/Attention.h"
#include "compiler/codegen/cpu/ByteProduct.h"
#include "compiler/codegen/cpu/Sequence.h"
#include "mlir/IR/Builders.h"

using namespace mlir;

namespace firn {

/// The one operation that the fused body is about.
static Operation *mainOperation(FusedOp fused) {
  for (Operation &op : fused.getBody().front())
    if (isa<MatMulOp, GemmOp, MatMulIntegerOp, ConvOp, ConvTransposeOp, ConvIntegerOp, LSTMOp, GRUOp, RNNOp, MaxPoolOp,
            AveragePoolOp, LpPoolOp, GlobalAveragePoolOp, GlobalMaxPoolOp, AttentionOp>(op))
      return &op;
  return nullptr;
}

LogicalResult emitContraction(FusedOp fused, kernel::FuncOp func, const TargetDescription &target,
                              std::string &whyNot) {
  Operation *op = mainOperation(fused);
  if (!op) {
    whyNot = "a contraction without a product";
    return failure();
  }
  if (isa<MatMulOp, GemmOp, MatMulIntegerOp>(op))
    return emitProduct(fused, op, func, target, whyNot);
  if (isa<ConvOp>(op))
    return emitConvolution(fused, op, func, target, whyNot);
  if (isa<ConvIntegerOp>(op))
    return emitIntegerConvolution(fused, op, func, target, whyNot);
  if (isa<ConvTransposeOp>(op))
    return emitTransposedConvolution(fused, op, func, target, whyNot);
  whyNot = "'" + op->getName().getStringRef().str() + "' has no generated code";
  return failure();
}

// --- packing ---------------------------------------------------------------------------------------------------------

std::vector<PackedWeight> planPacking(FusedOp fused, const TargetDescription &target) {
  std::vector<PackedWeight> plans;
  Operation *op = mainOperation(fused);
  if (!op)
    return plans;
  if (isa<MatMulOp, GemmOp, MatMulIntegerOp>(op))
    if (auto plan = planProductPacking(fused, op, target))
      plans.push_back(*plan);
  if (isa<ConvOp, ConvIntegerOp>(op))
    if (auto plan = planConvolutionPacking(fused, op, target))
      plans.push_back(*plan);
  if (isa<ConvTransposeOp>(op))
    if (auto plan = planTransposedPacking(fused, op, target))
      plans.push_back(*plan);
  if (isa<LSTMOp, GRUOp, RNNOp>(op))
    plans = planSequencePacking(fused, op, target);
  return plans;
}

std::vector<char> packWeights(const PackedWeight &w, const ConstantBytes &bytes) {
  int64_t size = Elements::bytes(w.elementType);
  std::vector<char> packed(w.elements() * size, 0);
  char *panel = packed.data();
  for (int64_t g = 0; g < w.groups; ++g) {
    const std::vector<int64_t> &rows = w.rows[w.rows.size() == 1 ? 0 : g];
    for (int64_t first = 0; first < w.n; first += w.nr, panel += w.paddedK() * w.nr * size) {
      std::vector<int32_t> sums(w.hasSums ? w.nr : 0, 0);
      for (int64_t r = 0; r < w.k; ++r) {
        if (rows[r] < 0)
          continue;
        char *to = panel + (r / w.kStep * w.nr * w.kStep + r % w.kStep) * size;
        for (int64_t c = 0; c < std::min(w.nr, w.n - first); ++c) {
          if (w.columns[first + c] < 0)
            continue;
          int64_t from = bytes.isSplat ? 0 : w.groupStarts[g] + rows[r] + w.columns[first + c];
          std::memcpy(to + c * w.kStep * size, bytes.bytes.data() + from * size, size);
          if (w.shift)
            to[c * w.kStep] = char(to[c * w.kStep] + w.shift);
          if (w.hasSums)
            sums[c] += w.elementType.isUnsignedInteger() && !w.shift ? int32_t(uint8_t(to[c * w.kStep]))
                                                                     : int32_t(int8_t(to[c * w.kStep]));
        }
      }
      if (w.hasSums)
        std::memcpy(panel + (w.paddedK() - 4) * w.nr, sums.data(), sums.size() * sizeof(int32_t));
    }
  }
  return packed;
}

void packConstants(FusedOp fused, const TargetDescription &target) {
  OpBuilder builder(fused);
  SmallVector<Attribute> list;
  if (auto known = fused->getAttrOfType<ArrayAttr>("packed"))
    list.assign(known.begin(), known.end());
  size_t before = list.size();
  for (const PackedWeight &w : planPacking(fused, target)) {
    auto bytes = constantBytes(constantOf(fused.getInputs()[w.operand]));
    if (!bytes)
      continue;
    std::vector<char> packed = packWeights(w, *bytes);
    auto type = RankedTensorType::get({w.groups, w.panels(), w.paddedK(), w.nr}, w.elementType);
    auto constant = builder.create<ConstantOp>(fused.getInputs()[w.operand].getLoc(), constantFromBytes(type, packed));
    // What it was, should the emitter refuse: passes/group puts it back.
    constant->setAttr("firn.unpacked", constantOf(fused.getInputs()[w.operand]));
    fused->setOperand(w.operand, constant.getResult());
    auto number = [&](StringRef name, int64_t value) {
      return builder.getNamedAttr(name, builder.getI64IntegerAttr(value));
    };
    list.push_back(builder.getDictionaryAttr(
        {number("operand", w.operand), number("groups", w.groups), number("n", w.n), number("k", w.k),
         number("nr", w.nr), number("k_step", w.kStep), number("sums", w.hasSums), number("shift", w.shift)}));
  }
  if (list.size() != before)
    fused->setAttr("packed", builder.getArrayAttr(list));
}

std::optional<PackedWeight> packingOf(FusedOp fused, unsigned operand) {
  auto list = fused->getAttrOfType<ArrayAttr>("packed");
  if (!list)
    return std::nullopt;
  for (Attribute entry : list) {
    auto dictionary = dyn_cast<DictionaryAttr>(entry);
    if (!dictionary)
      continue;
    auto number = [&](StringRef name) {
      auto value = dictionary.getAs<IntegerAttr>(name);
      return value ? value.getInt() : int64_t(0);
    };
    if (!dictionary.get("operand") || number("operand") != int64_t(operand))
      continue;
    PackedWeight w;
    w.operand = operand;
    w.groups = number("groups");
    w.n = number("n");
    w.k = number("k");
    w.nr = number("nr");
    w.kStep = std::max<int64_t>(1, number("k_step"));
    w.hasSums = number("sums") != 0;
    w.shift = number("shift");
    w.elementType = cast<RankedTensorType>(fused.getInputs()[operand].getType()).getElementType();
    return w.nr > 0 ? std::optional(w) : std::nullopt;
  }
  return std::nullopt;
}

// --- reports ---------------------------------------------------------------------------------------------------------

static DimExpr product(ArrayRef<DimExpr> dims) {
  DimExpr all(1);
  for (const DimExpr &dim : dims)
    all = all * dim;
  return all;
}

static SmallVector<DimExpr> dimsOfValue(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type ? dimsOf(type) : SmallVector<DimExpr>();
}

DimExpr contractionFlops(FusedOp fused) {
  Operation *op = mainOperation(fused);
  if (!op || op->getNumResults() == 0)
    return DimExpr(0);
  SmallVector<DimExpr> result = dimsOfValue(op->getResult(0));
  SmallVector<DimExpr> first = dimsOfValue(op->getOperand(0));
  SmallVector<DimExpr> second = op->getNumOperands() > 1 ? dimsOfValue(op->getOperand(1)) : SmallVector<DimExpr>();
  if (isa<MatMulOp, MatMulIntegerOp>(op) && !first.empty())
    return product(result) * first.back() * DimExpr(2);
  if (auto gemm = dyn_cast<GemmOp>(op); gemm && first.size() == 2)
    return product(result) * first[gemm.getTransA() ? 0 : 1] * DimExpr(2);
  if (isa<ConvOp, ConvIntegerOp>(op) && second.size() > 2) // a result takes C / group * kernel
    return product(result) * product(ArrayRef(second).drop_front()) * DimExpr(2);
  if (isa<ConvTransposeOp>(op) && second.size() > 2) // an input element meets O / group * kernel
    return product(first) * product(ArrayRef(second).drop_front()) * DimExpr(2);
  if (auto attention = dyn_cast<AttentionOp>(op))
    return attentionFlops(attention);
  if (auto kernel = op->getAttrOfType<DenseI64ArrayAttr>("kernel_shape")) { // pools
    DimExpr window(1);
    for (int64_t size : kernel.asArrayRef())
      window = window * DimExpr(size);
    return product(result) * window;
  }
  if (isa<GlobalAveragePoolOp, GlobalMaxPoolOp>(op))
    return product(first);
  if (isa<LSTMOp, GRUOp, RNNOp>(op) && op->getNumOperands() > 2 && first.size() == 3) {
    // Every step multiplies the input by W and the state by R.
    SmallVector<DimExpr> recurrent = dimsOfValue(op->getOperand(2));
    return first[0] * first[1] * (product(second) + product(recurrent)) * DimExpr(2);
  }
  return DimExpr(0);
}

} // namespace firn

// Groupable: roles of operations; making and dissolving regions.
#include "passes/group/Groupable.h"

#include "mlir/IR/IRMapping.h"
#include "passes/Rules.h"
#include "runtime/abi/dtype.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace firn {

static bool hasCode(Type type) {
  if (isa<NoneType>(type))
    return true;
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return false;
  Type element = tensor.getElementType();
  if (auto integer = dyn_cast<IntegerType>(element))
    return integer.getWidth() == 1 || integer.getWidth() >= 8;
  return element.isF16() || element.isBF16() || element.isF32() || element.isF64();
}

/// Whether a result dimension is a symbol that running this operation brings forth.
static bool bindsSymbols(Operation *op) {
  return llvm::any_of(op->getResultTypes(), [&](Type type) { return mentionsSymbolsOf(type, op); });
}

/// Results behind the first that nobody reads do not count.
static bool onlyFirstResult(Operation *op) {
  for (Value result : op->getResults().drop_front())
    if (!result.use_empty())
      return false;
  return true;
}

Role roleOf(Operation *op) {
  if (op->getNumRegions() || op->getNumResults() == 0 || !llvm::all_of(op->getResultTypes(), hasCode) ||
      !llvm::all_of(op->getOperandTypes(), hasCode) || bindsSymbols(op))
    return Role::None;
  if (isa<ReshapeOp, FlattenOp, SqueezeOp, UnsqueezeOp, IdentityOp>(op))
    return Role::View;
  StringRef name = op->getName().stripDialect();
  static const llvm::StringSet<> elementwise = {"abs",
                                                "neg",
                                                "ceil",
                                                "floor",
                                                "round",
                                                "sqrt",
                                                "reciprocal",
                                                "exp",
                                                "log",
                                                "sin",
                                                "cos",
                                                "tan",
                                                "asin",
                                                "acos",
                                                "atan",
                                                "sinh",
                                                "cosh",
                                                "tanh",
                                                "asinh",
                                                "acosh",
                                                "atanh",
                                                "erf",
                                                "sign",
                                                "sigmoid",
                                                "relu",
                                                "hard_swish",
                                                "mish",
                                                "softplus",
                                                "softsign",
                                                "not",
                                                "bitwise_not",
                                                "leaky_relu",
                                                "elu",
                                                "celu",
                                                "thresholded_relu",
                                                "swish",
                                                "selu",
                                                "hard_sigmoid",
                                                "gelu",
                                                "is_nan",
                                                "is_inf",
                                                "add",
                                                "sub",
                                                "mul",
                                                "div",
                                                "mod",
                                                "pow",
                                                "bit_shift",
                                                "and",
                                                "or",
                                                "xor",
                                                "bitwise_and",
                                                "bitwise_or",
                                                "bitwise_xor",
                                                "prelu",
                                                "equal",
                                                "greater",
                                                "less",
                                                "greater_or_equal",
                                                "less_or_equal",
                                                "max",
                                                "min",
                                                "sum",
                                                "mean",
                                                "where",
                                                "clip",
                                                "cast",
                                                "cast_like",
                                                "quantize_linear",
                                                "dequantize_linear"};
  static const llvm::StringSet<> remap = {
      "transpose",       "slice",     "concat",           "pad",   "expand",         "tile",           "gather",
      "gather_elements", "gather_nd", "one_hot",          "split", "depth_to_space", "space_to_depth", "range",
      "trilu",           "resize",    "constant_of_shape"};
  static const llvm::StringSet<> reduce = {"reduce_sum",
                                           "reduce_mean",
                                           "reduce_max",
                                           "reduce_min",
                                           "reduce_prod",
                                           "reduce_l1",
                                           "reduce_l2",
                                           "reduce_log_sum",
                                           "reduce_log_sum_exp",
                                           "reduce_sum_square",
                                           "softmax",
                                           "log_softmax",
                                           "layer_normalization",
                                           "rms_normalization",
                                           "instance_normalization",
                                           "group_normalization",
                                           "lp_normalization",
                                           "arg_max",
                                           "arg_min"};
  if (isa<ResizeOp>(op) && op->hasAttr("firn.sampled"))
    return Role::Sample;
  if (elementwise.contains(name))
    return Role::Elementwise;
  if (remap.contains(name))
    return Role::Remap;
  if (reduce.contains(name))
    return Role::Reduce;
  if (isa<MatMulOp, GemmOp, MatMulIntegerOp, ConvOp, ConvIntegerOp, ConvTransposeOp>(op)) {
    if (isa<ConvOp, ConvIntegerOp, ConvTransposeOp>(op) && !op->hasAttr("layout"))
      return Role::None;
    return Role::Contraction;
  }
  if (isa<MaxPoolOp, AveragePoolOp, LpPoolOp, GlobalAveragePoolOp, GlobalMaxPoolOp>(op))
    return onlyFirstResult(op) ? Role::Pool : Role::None;
  if (isa<LSTMOp, GRUOp, RNNOp>(op))
    return Role::Sequence;
  if (isa<ScatterElementsOp, ScatterNDOp>(op))
    return Role::Scatter;
  if (isa<CumSumOp>(op))
    return Role::Scan;
  if (isa<TopKOp, NonZeroOp>(op))
    return Role::Search;
  if (auto call = dyn_cast<CallOp>(op))
    return llvm::StringSwitch<Role>(call.getCallee())
        .Case("ai.onnx::TensorScatter", Role::Scatter)
        .Case("ai.onnx::CumProd", Role::Scan)
        .Case("ai.onnx::GridSample", Role::Sample)
        .Case("ai.onnx::Compress", Role::Search)
        .Case("firn::Forest", Role::Forest)
        .Default(Role::None);
  if (isa<AttentionOp>(op))
    return onlyFirstResult(op) ? Role::Attention : Role::None;
  return Role::None;
}

StringRef kernelKind(Role role) {
  switch (role) {
  case Role::None:
  case Role::View:
    return "";
  case Role::Contraction:
    return "contraction";
  case Role::Attention:
    return "attention";
  case Role::Reduce:
    return "reduce";
  case Role::Pool:
    return "pool";
  case Role::Sequence:
    return "sequence";
  case Role::Scatter:
    return "scatter";
  case Role::Scan:
    return "scan";
  case Role::Sample:
    return "sample";
  case Role::Search:
    return "search";
  case Role::Forest:
    return "forest";
  case Role::Elementwise:
  case Role::Remap:
    return "map";
  }
  return "";
}

bool isInlineOperand(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  if (isa<AbsentOp, DimValuesOp>(op))
    return true;
  ElementsAttr constant = constantOf(value);
  if (!constant)
    return false;
  auto type = cast<RankedTensorType>(constant.getType());
  if (isa<SplatElementsAttr>(constant) || type.getNumElements() == 1)
    return true;
  if (type.getNumElements() <= 16 && llvm::all_of(value.getUsers(), llvm::IsaPred<ResizeOp>))
    return true; // scales, and regions that are empty
  return type.getRank() <= 1 && type.getNumElements() <= 64 && type.getElementType().isSignlessInteger() &&
         type.getElementType().getIntOrFloatBitWidth() >= 32;
}

/// Whether the operand is written into the kernel. Weights and biases of contractions and recurrent layers are read by
/// it, also where all their elements are equal; so is what attention reads and what scatters, scans, samples and
/// searches work on, but for axes and counts.
static bool isInline(OpOperand &operand) {
  Operation *owner = operand.getOwner();
  Role role = roleOf(owner);
  if (isAbsent(operand.get()))
    return true;
  if (role == Role::Forest)
    return false;
  if (role == Role::Scatter || role == Role::Scan || role == Role::Sample || role == Role::Search) {
    bool isParameter = role == Role::Scan || isa<TopKOp, ResizeOp>(owner);
    return isParameter && operand.getOperandNumber() > 0 && isInlineOperand(operand.get());
  }
  bool isWeight =
      (role == Role::Contraction || role == Role::Attention || role == Role::Sequence) && constantOf(operand.get());
  return !isWeight && isInlineOperand(operand.get());
}

FusedOp makeFused(ArrayRef<Operation *> members, StringRef kind) {
  Operation *root = members.back();
  llvm::SetVector<Value> inputs;
  llvm::SmallSetVector<Operation *, 8> inside(members.begin(), members.end());
  SmallVector<Value> outputs;
  SmallVector<Location> locations;
  for (Operation *op : members) {
    locations.push_back(op->getLoc());
    for (OpOperand &operand : op->getOpOperands())
      if (!inside.contains(operand.get().getDefiningOp()) && !isInline(operand))
        inputs.insert(operand.get());
    for (Value result : op->getResults())
      if (llvm::any_of(result.getUsers(), [&](Operation *user) { return !inside.contains(user); }))
        outputs.push_back(result);
  }
  OpBuilder builder(root);
  SmallVector<Type> types;
  for (Value output : outputs)
    types.push_back(output.getType());
  auto fused =
      builder.create<FusedOp>(builder.getFusedLoc(locations), types, builder.getStringAttr(kind), inputs.getArrayRef());
  Block *body = builder.createBlock(&fused.getBody());
  IRMapping map;
  for (Value input : inputs)
    map.map(input, body->addArgument(input.getType(), input.getLoc()));
  builder.setInsertionPointToEnd(body);
  for (Operation *op : members) {
    for (Value operand : op->getOperands())
      if (!map.contains(operand))
        builder.clone(*operand.getDefiningOp(), map);
    builder.clone(*op, map);
  }
  SmallVector<Value> yielded;
  for (Value output : outputs)
    yielded.push_back(map.lookup(output));
  builder.create<YieldOp>(fused.getLoc(), yielded);
  for (auto [output, result] : llvm::zip(outputs, fused.getResults()))
    output.replaceAllUsesWith(result);
  for (Operation *op : llvm::reverse(members))
    op->erase();
  return fused;
}

/// An operation in layout nhwc between transposes, in ONNX's layout.
static Operation *toOnnxLayout(Operation *op) {
  OpBuilder builder(op);
  auto transposed = [&](Value value, bool toChannelsFirst) {
    auto type = cast<RankedTensorType>(value.getType());
    SmallVector<int64_t> perm;
    int64_t rank = type.getRank();
    perm.push_back(0);
    if (toChannelsFirst)
      perm.push_back(rank - 1);
    for (int64_t i = toChannelsFirst ? 1 : 2; i < (toChannelsFirst ? rank - 1 : rank); ++i)
      perm.push_back(i);
    if (!toChannelsFirst)
      perm.push_back(1);
    SmallVector<DimExpr> dims;
    for (int64_t p : perm)
      dims.push_back(dimOf(type, p));
    return builder.create<TransposeOp>(op->getLoc(), tensorType(type.getElementType(), dims), value,
                                       builder.getDenseI64ArrayAttr(perm));
  };
  auto input = transposed(op->getOperand(0), true);
  Operation *copy = builder.clone(*op);
  copy->removeAttr("layout");
  copy->setOperand(0, input);
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  SmallVector<DimExpr> dims{dimOf(type, 0), dimOf(type, type.getRank() - 1)};
  for (int64_t i = 1; i + 1 < type.getRank(); ++i)
    dims.push_back(dimOf(type, i));
  copy->getResult(0).setType(tensorType(type.getElementType(), dims));
  builder.setInsertionPointAfter(copy);
  op->getResult(0).replaceAllUsesWith(transposed(copy->getResult(0), false));
  op->erase();
  return copy;
}

SmallVector<Operation *> dissolve(FusedOp fused) {
  IRMapping map;
  Block &body = fused.getBody().front();
  OpBuilder builder(fused);
  for (auto [argument, input] : llvm::zip(body.getArguments(), fused.getInputs())) {
    Operation *constant = input.getDefiningOp();
    auto unpacked = constant ? constant->getAttrOfType<ElementsAttr>("firn.unpacked") : ElementsAttr();
    map.map(argument, unpacked ? builder.create<ConstantOp>(constant->getLoc(), unpacked).getResult() : input);
  }
  SmallVector<Operation *> operations;
  for (Operation &op : body.without_terminator()) {
    Operation *copy = builder.clone(op, map);
    if (!isa<ConstantOp, AbsentOp, DimValuesOp>(copy))
      operations.push_back(copy);
  }
  for (auto [result, value] : llvm::zip(fused.getResults(), body.getTerminator()->getOperands()))
    result.replaceAllUsesWith(map.lookupOrDefault(value));
  fused.erase();
  for (Operation *&op : operations)
    if (auto layout = op->getAttrOfType<StringAttr>("layout"); layout && layout.getValue() == "nhwc")
      op = toOnnxLayout(op);
  return operations;
}

} // namespace firn

// Transposed convolutions, gathered: output o takes input (o + pad - t * dilation) / stride from every tap t for which
// this is whole. Outputs that are `stride` apart see the same taps, one input further each: a convolution.
#include "compiler/codegen/cpu/Convolution.h"
#include "compiler/codegen/cpu/Panels.h"
#include <numeric>

using namespace mlir;

namespace firn {
namespace {

/// The taps of one axis that outputs of one phase see, nearest input first.
struct AxisPhase {
  WindowAxis axis;
  int64_t step = 1, start = 0; // window i is output i * step + start
  std::vector<int64_t> taps;   // of the kernel; -1: none, one of zeros stands in
};

struct TransposedShape {
  ConvolutionShape common; // input, weight, groups; its window is that of no phase
  std::array<std::vector<AxisPhase>, 3> phases;

  int64_t count() const {
    int64_t all = 1;
    for (const auto &axis : phases)
      all *= int64_t(axis.size());
    return all;
  }
  /// The convolution of phase `index`, and its taps in the order of its window as positions in the kernel. Restricts
  /// the epilogue to its outputs.
  ConvolutionShape phase(int64_t index, std::vector<int64_t> &taps, Epilogue *epilogue = nullptr) const {
    ConvolutionShape shape = common;
    std::array<const AxisPhase *, 3> chosen;
    for (unsigned i = 3; i-- > 0;) {
      chosen[i] = &phases[i][index % phases[i].size()];
      index /= phases[i].size();
      shape.window.axes[i] = chosen[i]->axis;
      if (epilogue && i + common.window.spatial >= 3)
        epilogue->restrict(1 + i - (3 - common.window.spatial), chosen[i]->step, chosen[i]->start);
    }
    std::array<int64_t, 3> kernel{1, 1, 1};
    std::copy(common.kernel.begin(), common.kernel.end(), kernel.end() - common.kernel.size());
    taps.clear();
    for (int64_t d : chosen[0]->taps)
      for (int64_t h : chosen[1]->taps)
        for (int64_t w : chosen[2]->taps)
          taps.push_back(d < 0 || h < 0 || w < 0 ? -1 : (d * kernel[1] + h) * kernel[2] + w);
    return shape;
  }
};

/// How many of `size` outputs are in a phase: ceil(size / stride), simplified where the rest is known.
DimExpr phaseSize(const DimExpr &size, int64_t stride) {
  for (int64_t more = 0; more < stride; ++more)
    if (auto whole = (size + DimExpr(more)).exactDiv(DimExpr(stride)))
      return *whole;
  return size.ceilDiv(DimExpr(stride));
}

std::vector<AxisPhase> phasesOf(const DimExpr &in, const DimExpr &out, int64_t kernel, int64_t stride, int64_t dilation,
                                int64_t padBefore) {
  std::vector<AxisPhase> phases;
  for (int64_t start = 0; start < stride; ++start) {
    AxisPhase phase;
    phase.axis.in = in;
    phase.axis.out = phaseSize(out - DimExpr(start), stride);
    phase.step = stride;
    phase.start = start;
    for (int64_t t = kernel; t-- > 0;) // the last tap takes the first input
      if ((start + padBefore - t * dilation) % stride == 0)
        phase.taps.push_back(t);
    auto inputOf = [&](int64_t t) { return (start + padBefore - t * dilation) / stride; };
    if (phase.taps.empty()) {
      phase.taps.push_back(-1);
    } else {
      phase.axis.first = inputOf(phase.taps[0]);
      if (phase.taps.size() > 1)
        phase.axis.step = inputOf(phase.taps[1]) - phase.axis.first;
    }
    phase.axis.taps = phase.taps.size();
    phases.push_back(phase);
  }
  return phases;
}

std::optional<TransposedShape> readTransposed(Operation *op, std::string &whyNot) {
  TransposedShape shape;
  ConvolutionShape &c = shape.common;
  c.op = op;
  auto resultType = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  auto weightType = dyn_cast<RankedTensorType>(op->getOperand(1).getType());
  auto input = viewOf(op->getOperand(0));
  auto weight = dyn_cast<BlockArgument>(op->getOperand(1));
  if (!isChannelsLast(op) || !resultType || !weightType || !weightType.hasStaticShape() || !input || !weight ||
      input->strides != denseStrides(input->dims) || input->rank() < 3 || input->rank() > 5 ||
      int64_t(input->rank()) != resultType.getRank() || weightType.getNumElements() == 0) {
    whyNot = "a transposed convolution whose channels do not lie last or whose weight is no constant";
    return std::nullopt;
  }
  c.input = *input;
  c.weight = weight.getArgNumber();
  c.kernel.assign(weightType.getShape().begin() + 2, weightType.getShape().end());
  auto group = op->getAttrOfType<IntegerAttr>("group");
  c.group = group ? group.getInt() : 1;
  c.groupInputs = weightType.getDimSize(0) / std::max<int64_t>(1, c.group);
  c.groupOutputs = weightType.getDimSize(1);
  SmallVector<DimExpr> out = dimsOf(resultType);
  unsigned spatial = c.kernel.size();
  c.window.spatial = spatial;
  c.window.batch = input->dims[0];
  c.window.channels = input->dims.back();
  if (!c.window.channels.isConstant() || c.window.channels.constant() != c.group * c.groupInputs) {
    whyNot = "channels that are not known";
    return std::nullopt;
  }
  auto list = [&](StringRef name, size_t count, int64_t fallback) {
    auto given = op->getAttrOfType<DenseI64ArrayAttr>(name);
    return given && given.size() == int64_t(count) ? SmallVector<int64_t>(given.asArrayRef())
                                                   : SmallVector<int64_t>(count, fallback);
  };
  auto strides = list("strides", spatial, 1), dilations = list("dilations", spatial, 1);
  auto pads = list("pads", 2 * spatial, 0), extra = list("output_padding", spatial, 0);
  auto autoPad = op->getAttrOfType<StringAttr>("auto_pad");
  StringRef rule = autoPad ? autoPad.getValue() : "NOTSET";
  auto wanted = op->getAttrOfType<DenseI64ArrayAttr>("output_shape");
  for (unsigned i = 0; i < 3; ++i) {
    if (i < 3 - spatial) {
      shape.phases[i] = phasesOf(DimExpr(1), DimExpr(1), 1, 1, 1, 0);
      continue;
    }
    unsigned axis = i - (3 - spatial);
    int64_t before = rule == "VALID" ? 0 : pads[axis];
    if (rule.starts_with("SAME") || (wanted && !wanted.empty())) {
      DimExpr full = (input->dims[axis + 1] - DimExpr(1)) * DimExpr(strides[axis]) +
                     DimExpr(extra[axis] + (c.kernel[axis] - 1) * dilations[axis] + 1);
      DimExpr total = full - out[axis + 1];
      if (!total.isConstant()) {
        whyNot = "padding that depends on a dynamic size";
        return std::nullopt;
      }
      int64_t cut = std::max<int64_t>(0, total.constant()); // a result that is wider ends in elements without taps
      before = rule == "SAME_UPPER" ? cut / 2 : cut - cut / 2;
    }
    shape.phases[i] =
        phasesOf(input->dims[axis + 1], out[axis + 1], c.kernel[axis], strides[axis], dilations[axis], before);
  }
  if (shape.count() > 16) {
    whyNot = "a transposed convolution of " + std::to_string(shape.count()) + " phases";
    return std::nullopt;
  }
  return shape;
}

} // namespace

std::optional<PackedWeight> planTransposedPacking(FusedOp fused, Operation *op, const TargetDescription &target) {
  std::string whyNot;
  auto shape = readTransposed(op, whyNot);
  if (!shape || !isFloatElement(shape->common.input.elementType))
    return std::nullopt;
  const ConvolutionShape &c = shape->common;
  if (packingOf(fused, c.weight) || !constantOf(fused.getInputs()[c.weight]) ||
      !fused.getBody().getArgument(c.weight).hasOneUse())
    return std::nullopt;
  PackedWeight w;
  w.operand = c.weight;
  w.elementType = cast<RankedTensorType>(op->getOperand(1).getType()).getElementType();
  w.n = c.groupOutputs;
  w.groups = shape->count() * c.group;
  int64_t kernelSize = 1;
  for (int64_t size : c.kernel)
    kernelSize *= size;
  std::vector<int64_t> taps;
  w.nr = chooseTile(target, panelShape(fused, convolutionTile(shape->phase(0, taps)))).columns();
  // One layout for all phases: narrow where all of them would be.
  bool isNarrow = true;
  for (int64_t phase = 0; phase < shape->count(); ++phase)
    isNarrow &= shape->phase(phase, taps).isNarrow(target);
  if (isNarrow)
    w.nr = 1;
  w.groupStarts.clear();
  for (int64_t phase = 0; phase < shape->count(); ++phase) {
    ConvolutionShape convolution = shape->phase(phase, taps);
    std::vector<int64_t> rows;
    for (int64_t tap : taps)
      for (int64_t channel = 0; channel < c.groupInputs; ++channel)
        rows.push_back(tap < 0 ? -1 : channel * c.groupOutputs * kernelSize + tap);
    if (isNarrow)
      rows = narrowRows(convolution, target, rows);
    w.k = std::max<int64_t>(w.k, rows.size());
    for (int64_t g = 0; g < c.group; ++g) {
      w.groupStarts.push_back(g * c.groupInputs * c.groupOutputs * kernelSize);
      w.rows.push_back(rows);
    }
  }
  for (std::vector<int64_t> &rows : w.rows)
    rows.resize(w.k, -1);
  for (int64_t o = 0; o < w.n; ++o)
    w.columns.push_back(o * kernelSize);
  return w;
}

LogicalResult emitTransposedConvolution(FusedOp fused, Operation *op, kernel::FuncOp func,
                                        const TargetDescription &target, std::string &whyNot) {
  auto shape = readTransposed(op, whyNot);
  if (!shape)
    return failure();
  auto packed = packingOf(fused, shape->common.weight);
  if (!packed || !isFloatElement(shape->common.input.elementType)) {
    whyNot = packed ? "a transposed convolution of this type" : "a weight that is not packed";
    return failure();
  }
  auto epilogue = Epilogue::analyse(fused, op->getResult(0), whyNot);
  if (!epilogue || !addBias(op, *epilogue, whyNot))
    return failure();
  OpBuilder builder(func.getContext());
  builder.setInsertionPointToEnd(&func.getBody().front());
  KernelContext context(fused, func, target, builder);
  DimExpr work = contractionFlops(fused);
  func.setParallel(!(work.isConstant() && work.constant() < (128 << 10)));
  int64_t groupSize = packed->panels() * packed->paddedK() * packed->nr;
  for (int64_t i = 0; i < shape->count(); ++i) {
    std::vector<int64_t> taps;
    Epilogue ofPhase = *epilogue;
    ConvolutionShape phase = shape->phase(i, taps, &ofPhase);
    phase.packedDepth = packed->paddedK();
    emitWindowProduct(context, phase, ofPhase, packed->nr, i * phase.group * groupSize, groupSize);
  }
  builder.create<kernel::ReturnOp>(fused.getLoc());
  return success();
}

} // namespace firn

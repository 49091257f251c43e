#include "compiler/codegen/cpu/Window.h"

using namespace mlir;

namespace firn {

bool WindowAxis::hasBorder() const {
  if (isInside)
    return false;
  if (first < 0 || first + reach() < 0)
    return true;
  // Last window's last tap against the input's end.
  DimExpr last = (out - DimExpr(1)) * DimExpr(stride) + DimExpr(first + std::max<int64_t>(reach(), 0));
  return !(in - DimExpr(1) - last).isAtLeast(0);
}

LoopBuilder::Values WindowGeometry::position(Value batchIndex, ArrayRef<Value> window, Value channel) const {
  LoopBuilder::Values position{batchIndex};
  for (unsigned i = 3 - spatial; i < 3; ++i)
    position.push_back(window[i]);
  position.push_back(channel);
  return position;
}

bool isChannelsLast(Operation *op) {
  auto layout = op->getAttrOfType<StringAttr>("layout");
  return layout && layout.getValue() == "nhwc";
}

std::optional<WindowGeometry> readWindow(Operation *op, ArrayRef<DimExpr> in, ArrayRef<DimExpr> out,
                                         ArrayRef<int64_t> kernel, std::string &whyNot) {
  WindowGeometry g;
  g.spatial = kernel.size();
  if (g.spatial < 1 || g.spatial > 3 || in.size() != g.spatial + 2 || out.size() != in.size()) {
    whyNot = std::to_string(g.spatial) + " spatial axes";
    return std::nullopt;
  }
  bool isLast = isChannelsLast(op);
  g.batch = in[0];
  g.channels = isLast ? in.back() : in[1];
  auto list = [&](StringRef name, size_t count, int64_t fallback) {
    auto given = op->getAttrOfType<DenseI64ArrayAttr>(name);
    return given && given.size() == int64_t(count) ? SmallVector<int64_t>(given.asArrayRef())
                                                   : SmallVector<int64_t>(count, fallback);
  };
  auto strides = list("strides", g.spatial, 1), dilations = list("dilations", g.spatial, 1);
  auto pads = list("pads", 2 * g.spatial, 0);
  auto autoPad = op->getAttrOfType<StringAttr>("auto_pad");
  StringRef rule = autoPad ? autoPad.getValue() : "NOTSET";
  for (unsigned i = 0; i < g.spatial; ++i) {
    WindowAxis &axis = g.axes[3 - g.spatial + i];
    axis.in = in[isLast ? i + 1 : i + 2];
    axis.out = out[isLast ? i + 1 : i + 2];
    axis.stride = strides[i];
    axis.taps = kernel[i];
    axis.step = dilations[i];
    int64_t before = pads[i], after = pads[i + g.spatial];
    if (rule == "VALID")
      before = after = 0;
    if (rule.starts_with("SAME")) {
      DimExpr total =
          (axis.out - DimExpr(1)) * DimExpr(axis.stride) + DimExpr((axis.taps - 1) * axis.step + 1) - axis.in;
      if (!total.isConstant()) {
        whyNot = "padding that depends on a dynamic size";
        return std::nullopt;
      }
      int64_t both = std::max<int64_t>(0, total.constant());
      before = rule == "SAME_UPPER" ? both / 2 : both - both / 2;
      after = both - before;
    }
    axis.first = -before;
    axis.padAfter = after;
    auto ceil = op->getAttrOfType<IntegerAttr>("ceil_mode");
    axis.isInside =
        (rule == "VALID" || (rule == "NOTSET" && before == 0 && after == 0)) && (!ceil || ceil.getInt() == 0);
  }
  return g;
}

Range insideTaps(KernelContext &context, const WindowAxis &axis, Value index) {
  LoopBuilder &l = context.l;
  if (!axis.hasBorder())
    return {l.index(0), l.index(axis.taps)};
  // start = index * stride + first may be negative.
  Value start = l.add(l.mul(index, axis.stride), axis.first);
  Value begin = l.div(l.add(l.max(l.index(0), l.sub(l.index(0), start)), axis.step - 1), axis.step);
  Value rest = l.max(l.index(0), l.sub(context.value(axis.in), start));
  Value end = l.min(l.index(axis.taps), l.div(l.add(rest, axis.step - 1), axis.step));
  return {l.min(begin, end), end};
}

} // namespace firn

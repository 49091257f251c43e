// Inference of convolution and pooling.
#include "dialects/firn/Inference.h"

using namespace mlir;

namespace firn {

namespace {
/// Attributes of a window over `spatial` axes, defaults filled in.
struct Window {
  SmallVector<int64_t> kernel, strides, dilations, pads;
  StringRef autoPad;
};
} // namespace

/// Products of two such are numbers still.
static constexpr int64_t mostOfWindow = INT32_MAX;

/// Whether the attribute has `count` values that are at least `least`.
static bool requireValues(Inference &inference, const char *name, ArrayRef<int64_t> list, size_t count, int64_t least) {
  if (list.size() != count) {
    inference.error(Twine("expected ") + Twine(count) + " values in '" + name + "', found " + Twine(list.size()),
                    "import.attribute");
    return false;
  }
  for (int64_t v : list)
    if (v < least || v > mostOfWindow) {
      inference.error(Twine("expected values ") + (v < least ? ">= " : "<= ") +
                          Twine(v < least ? least : mostOfWindow) + " in '" + name + "', found " + Twine(v),
                      "import.attribute");
      return false;
    }
  return true;
}

static std::optional<Window> readWindow(Inference &inference, size_t spatial,
                                        std::optional<SmallVector<int64_t>> kernel) {
  Window w;
  w.autoPad = inference.stringAttribute("auto_pad", "NOTSET");
  if (auto given = inference.intsAttribute("kernel_shape"))
    kernel = given;
  w.kernel = kernel ? *kernel : SmallVector<int64_t>();
  w.strides = inference.intsAttribute("strides").value_or(SmallVector<int64_t>(spatial, 1));
  w.dilations = inference.intsAttribute("dilations").value_or(SmallVector<int64_t>(spatial, 1));
  w.pads = inference.intsAttribute("pads").value_or(SmallVector<int64_t>(2 * spatial, 0));
  bool ok = requireValues(inference, "kernel_shape", w.kernel, spatial, 1);
  ok &= requireValues(inference, "strides", w.strides, spatial, 1); // C4
  ok &= requireValues(inference, "dilations", w.dilations, spatial, 1);
  ok &= requireValues(inference, "pads", w.pads, 2 * spatial, 0);
  return ok ? std::optional<Window>(w) : std::nullopt;
}

/// Output size of one axis; `ceil`: the last window may start inside the input and end outside.
static std::optional<DimExpr> windowed(Inference &inference, const Window &w, size_t i, const DimExpr &in, bool ceil) {
  size_t spatial = w.kernel.size();
  DimExpr stride(w.strides[i]);
  int64_t reach = (w.kernel[i] - 1) * w.dilations[i] + 1;
  if (w.autoPad == "SAME_UPPER" || w.autoPad == "SAME_LOWER")
    return in.ceilDiv(stride);
  int64_t before = w.autoPad == "VALID" ? 0 : w.pads[i], after = w.autoPad == "VALID" ? 0 : w.pads[i + spatial];
  DimExpr padded = in + DimExpr(before + after), free = padded - DimExpr(reach);
  if (free.isConstant() && free.constant() < 0) { // C5
    inference.error("expected a kernel that fits the padded input, found a reach of " + Twine(reach) +
                    " over a padded size of " + padded.str() + " on spatial axis " + Twine(i));
    return std::nullopt;
  }
  inference.requireAtLeast(free, DimExpr(0), "a kernel that fits the padded input on spatial axis " + Twine(i));
  if (!ceil)
    return free.floorDiv(stride) + DimExpr(1);
  DimExpr out = free.ceilDiv(stride) + DimExpr(1);
  // A window that would start in the padding after the input is dropped.
  DimExpr limit = (in + DimExpr(before) - DimExpr(1)).floorDiv(stride) + DimExpr(1);
  return DimExpr::min(out, limit);
}

void inferConv(Inference &inference) {
  StringRef name = inference.operation()->getName().stripDialect();
  bool isQuantized = name == "q_linear_conv";
  Type type = inference.elementType(0);
  if (name == "conv_integer")
    type = IntegerType::get(inference.operation()->getContext(), 32);
  if (isQuantized)
    type = inference.elementType(7);
  // A weight already packed for code generation keeps its logical shape in kernel_shape and the result's type.
  auto x = inference.dims(0), w = inference.dims(isQuantized ? 3 : 1);
  bool isNhwc = inference.stringAttribute("layout", "") == "nhwc";
  if (!x || !w || isNhwc) {
    if (isNhwc)
      return;
    return inference.result(0, type, std::nullopt);
  }
  if (x->size() < 3 || w->size() != x->size())
    return inference.error("expected input and weight of one rank >= 3, found shapes " + shapeText(*x) + " and " +
                           shapeText(*w));
  int64_t group = inference.intAttribute("group", 1);
  if (group < 1)
    return inference.error("expected group >= 1, found " + Twine(group));
  DimExpr channels = (*w)[1] * DimExpr(group);
  if (channels.isConstant() && (*x)[1].isConstant() && channels != (*x)[1]) // C2
    return inference.error("expected " + channels.str() + " input channels (weight's " + (*w)[1].str() + " x group " +
                           Twine(group) + "), found " + (*x)[1].str());
  inference.requireEqual(channels, (*x)[1], "the weight's and the input's channels");
  if ((*w)[0].isConstant() && (*w)[0].constant() % group != 0) // C3
    return inference.error("expected a multiple of group " + Twine(group) + " output channels, found " + (*w)[0].str());
  SmallVector<int64_t> kernel;
  for (size_t i = 2; i < w->size(); ++i)
    kernel.push_back((*w)[i].isConstant() ? (*w)[i].constant() : -1);
  auto given = inference.intsAttribute("kernel_shape");
  if (given && !llvm::is_contained(kernel, -1) && *given != kernel)
    return inference.error("expected kernel_shape to be the weight's " + shapeText(ArrayRef(*w).drop_front(2)));
  if (llvm::is_contained(kernel, -1) && !given) {
    Inference::Dims dims{(*x)[0], (*w)[0]};
    for (size_t i = 2; i < x->size(); ++i)
      dims.push_back(inference.unknownDim(0, i));
    return inference.result(0, type, dims);
  }
  auto window = readWindow(inference, x->size() - 2, kernel);
  if (!window)
    return;
  Inference::Dims dims{(*x)[0], (*w)[0]};
  for (size_t i = 2; i < x->size(); ++i) {
    auto out = windowed(inference, *window, i - 2, (*x)[i], false);
    if (!out)
      return;
    dims.push_back(*out);
  }
  inference.result(0, type, dims);
}

void inferConvTranspose(Inference &inference) {
  if (inference.stringAttribute("layout", "") == "nhwc") // an operation with its channels last keeps its result's type
    return;
  auto x = inference.dims(0), w = inference.dims(1);
  if (!x || !w)
    return inference.result(0, inference.elementType(0), std::nullopt);
  if (x->size() < 3 || w->size() != x->size())
    return inference.error("expected input and weight of one rank >= 3, found shapes " + shapeText(*x) + " and " +
                           shapeText(*w));
  if ((*x)[1].isConstant() && (*w)[0].isConstant() && (*x)[1] != (*w)[0])
    return inference.error("expected " + (*w)[0].str() + " input channels, found " + (*x)[1].str());
  inference.requireEqual((*w)[0], (*x)[1], "the weight's and the input's channels");
  SmallVector<int64_t> kernel;
  for (size_t i = 2; i < w->size(); ++i)
    kernel.push_back((*w)[i].isConstant() ? (*w)[i].constant() : -1);
  size_t spatial = x->size() - 2;
  if (llvm::is_contained(kernel, -1) && !inference.intsAttribute("kernel_shape")) {
    Inference::Dims open{(*x)[0], (*w)[1] * DimExpr(inference.intAttribute("group", 1))};
    open.append(spatial, DimExpr::unknown());
    return inference.result(0, inference.elementType(0), open);
  }
  auto window = readWindow(inference, spatial, kernel);
  if (!window)
    return;
  auto extra = inference.intsAttribute("output_padding").value_or(SmallVector<int64_t>(spatial, 0));
  auto shape = inference.intsAttribute("output_shape");
  if (extra.empty())
    extra.assign(spatial, 0);
  if (!requireValues(inference, "output_padding", extra, spatial, 0))
    return;
  if (shape && !shape->empty()) {
    if (shape->size() == spatial + 2) // an older form says batch and channels too
      shape->erase(shape->begin(), shape->begin() + 2);
    if (!requireValues(inference, "output_shape", *shape, spatial, 0))
      return;
  }
  Inference::Dims dims{(*x)[0], (*w)[1] * DimExpr(inference.intAttribute("group", 1))};
  for (size_t i = 0; i < spatial; ++i) {
    DimExpr in = (*x)[i + 2];
    if (shape && !shape->empty()) {
      dims.push_back(DimExpr((*shape)[i]));
    } else if (window->autoPad == "SAME_UPPER" || window->autoPad == "SAME_LOWER") {
      dims.push_back(in * DimExpr(window->strides[i])); // output_padding only shifts the padding then
    } else {
      int64_t pads = window->autoPad == "VALID" ? 0 : window->pads[i] + window->pads[i + spatial];
      dims.push_back((in - DimExpr(1)) * DimExpr(window->strides[i]) +
                     DimExpr(extra[i] + (window->kernel[i] - 1) * window->dilations[i] + 1 - pads));
    }
  }
  inference.result(0, inference.elementType(0), dims);
}

void inferPool(Inference &inference) {
  auto x = inference.dims(0);
  Type type = inference.elementType(0), index = IntegerType::get(inference.operation()->getContext(), 64);
  if (inference.stringAttribute("layout", "") == "nhwc")
    return;
  if (!x) {
    inference.result(0, type, std::nullopt);
    return inference.result(1, index, std::nullopt);
  }
  if (x->size() < 3)
    return inference.error("expected an input of rank >= 3, found shape " + shapeText(*x));
  auto window = readWindow(inference, x->size() - 2, std::nullopt);
  if (!window)
    return;
  Inference::Dims dims{(*x)[0], (*x)[1]};
  for (size_t i = 2; i < x->size(); ++i) {
    auto out = windowed(inference, *window, i - 2, (*x)[i], inference.intAttribute("ceil_mode", 0) != 0);
    if (!out)
      return;
    dims.push_back(*out);
  }
  inference.result(0, type, dims);
  inference.result(1, index, dims);
}

void inferGlobalPool(Inference &inference) {
  if (inference.stringAttribute("layout", "") == "nhwc")
    return;
  auto x = inference.dims(0);
  if (x)
    for (size_t i = 2; i < x->size(); ++i)
      (*x)[i] = DimExpr(1);
  inference.result(0, inference.elementType(0), x);
}

} // namespace firn

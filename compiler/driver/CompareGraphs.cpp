#include "compiler/driver/CompareGraphs.h"
#include "compiler/SourceLocation.h"
#include "compiler/driver/Evaluate.h"
#include "compiler/driver/GraphCounts.h"
#include "dialects/firn/Firn.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace mlir;

namespace firn {

namespace {

int64_t elementCount(const firn_view &view) {
  int64_t count = 1;
  for (int32_t i = 0; i < view.rank; ++i)
    count *= view.dims[i];
  return count;
}

const llvm::fltSemantics *smallFloat(int32_t dtype) {
  switch (dtype) {
  case FIRN_F16:
    return &llvm::APFloat::IEEEhalf();
  case FIRN_BF16:
    return &llvm::APFloat::BFloat();
  default:
    return nullptr;
  }
}

bool isFloat(int32_t dtype) { return dtype == FIRN_F32 || dtype == FIRN_F64 || smallFloat(dtype); }

double floatAt(const firn_view &view, int64_t i) {
  if (view.dtype == FIRN_F32)
    return static_cast<const float *>(view.data)[i];
  if (view.dtype == FIRN_F64)
    return static_cast<const double *>(view.data)[i];
  llvm::APFloat value(*smallFloat(view.dtype), llvm::APInt(16, static_cast<const uint16_t *>(view.data)[i]));
  bool isInexact = false;
  value.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &isInexact);
  return value.convertToDouble();
}

void setFloat(const firn_view &view, int64_t i, double number) {
  if (view.dtype == FIRN_F32) {
    static_cast<float *>(view.data)[i] = float(number);
  } else if (view.dtype == FIRN_F64) {
    static_cast<double *>(view.data)[i] = number;
  } else {
    llvm::APFloat value(number);
    bool isInexact = false;
    value.convert(*smallFloat(view.dtype), llvm::APFloat::rmNearestTiesToEven, &isInexact);
    static_cast<uint16_t *>(view.data)[i] = uint16_t(value.bitcastToAPInt().getZExtValue());
  }
}

std::string describe(const firn_view &view) {
  std::string text = "[";
  for (int32_t i = 0; i < view.rank; ++i)
    text += (i ? "," : "") + std::to_string(view.dims[i]);
  return dtypeText(view.dtype) + text + "]";
}

bool haveSameShape(const firn_view &a, const firn_view &b) {
  return a.rank == b.rank && std::equal(a.dims, a.dims + std::max(a.rank, 0), b.dims);
}

/// Two tensors element by element; the result's name stays empty. Floats of different widths compare as numbers.
OutputDifference differenceOf(const firn_view &before, const firn_view &after, const Tolerance &tolerance) {
  OutputDifference difference;
  if (!haveSameShape(before, after) ||
      (before.dtype != after.dtype && !(isFloat(before.dtype) && isFloat(after.dtype)))) {
    difference.what = "is " + describe(after) + ", was " + describe(before);
    return difference;
  }
  int64_t count = elementCount(before);
  if (!isFloat(before.dtype)) {
    if (std::memcmp(before.data, after.data, firn_dtype_bytes(before.dtype, count)) != 0)
      difference.what = "elements that are no floats differ";
    return difference;
  }
  double largest = 0;
  for (int64_t i = 0; i < count; ++i) {
    double was = floatAt(before, i), is = floatAt(after, i);
    if (std::isfinite(was))
      largest = std::max(largest, std::fabs(was));
    if (was == is || (std::isnan(was) && std::isnan(is)))
      continue;
    double distance = std::fabs(is - was);
    if (!(distance <= tolerance.absolute + tolerance.relative * std::fabs(was)) && difference.what.empty())
      difference.what = llvm::formatv("element {0} is {1:e6}, was {2:e6}", i, is, was);
    if (std::isnan(distance))
      distance = INFINITY;
    difference.maxAbsolute = std::max(difference.maxAbsolute, distance);
  }
  difference.maxRelative = difference.maxAbsolute / (largest > 0 ? largest : 1);
  return difference;
}

std::string argumentName(func::FuncOp main, unsigned i) {
  auto name = main.getArgAttrOfType<StringAttr>(i, "firn.name");
  return name ? name.str() : "";
}

/// The tensor with floats of another width.
ReferenceTensor withType(const ReferenceTensor &tensor, int32_t dtype) {
  if (tensor.view.dtype == dtype || !isFloat(tensor.view.dtype) || !isFloat(dtype))
    return tensor;
  int64_t count = elementCount(tensor.view);
  ReferenceTensor result{tensor.view, std::make_shared<std::vector<char>>(firn_dtype_bytes(dtype, count))};
  result.view.dtype = dtype;
  result.view.data = result.bytes->data();
  for (int64_t i = 0; i < count; ++i)
    setFloat(result.view, i, floatAt(tensor.view, i));
  return result;
}

/// Inputs of the original in the order and types of the rewritten graph's.
std::vector<ReferenceTensor> inputsFor(ModuleOp rewritten, ModuleOp original, const ModelRun &run,
                                       std::string &whyNot) {
  auto from = *original.getOps<func::FuncOp>().begin(), to = *rewritten.getOps<func::FuncOp>().begin();
  std::map<std::string, unsigned> places;
  for (unsigned i = 0; i < from.getNumArguments(); ++i)
    places[argumentName(from, i)] = i;
  std::vector<ReferenceTensor> inputs;
  for (unsigned i = 0; i < to.getNumArguments(); ++i) {
    auto place = places.find(argumentName(to, i));
    auto type = dyn_cast<TensorType>(to.getArgument(i).getType());
    if (place == places.end() || !type) {
      whyNot = "input '" + argumentName(to, i) + "' is none of the original graph's";
      return {};
    }
    inputs.push_back(withType(run.inputs[place->second], dtypeOf(type.getElementType())));
  }
  return inputs;
}

} // namespace

GraphComparer::GraphComparer(ModuleOp of, unsigned count, Tolerance within, const DimRanges &ranges)
    : original(of), tolerance(within) {
  for (unsigned i = 0; i < count; ++i) {
    // Another seed and other sizes each time; where the model does not take those, the first it takes.
    RunChoice choice{20 + i, int64_t(i % 3) + 1, i % std::size(sizesToTry)};
    std::string reason;
    std::optional<ModelRun> run = runOnRandomInputs(original, choice, ranges, reason);
    if (!run)
      run = runOnRandomInputs(original, {20 + i, 1, 0}, ranges, reason);
    if (!run) {
      whyNot = reason;
      return;
    }
    runs.push_back(std::move(*run));
  }
}

GraphComparison GraphComparer::compare(ModuleOp rewritten) const {
  GraphComparison result;
  result.whyNot = whyNot;
  if (!result.isCompared())
    return result;
  auto main = *mlir::ModuleOp(original).getOps<func::FuncOp>().begin();
  for (unsigned i = 0; i < main.getNumResults(); ++i) {
    auto name = main.getResultAttrOfType<StringAttr>(i, "firn.name");
    result.outputs.push_back({name ? name.str() : "", 0, 0, ""});
  }
  for (const ModelRun &run : runs) {
    std::vector<ReferenceTensor> inputs = inputsFor(rewritten, original, run, result.whyNot);
    if (!result.isCompared())
      return result;
    std::string reason;
    auto outputs = evaluateModule(rewritten, inputs, mostTensorBytes, reason);
    ++result.runs;
    if (!outputs || outputs->size() != result.outputs.size()) {
      for (OutputDifference &output : result.outputs)
        output.what = outputs ? "the numbers of outputs differ" : "the rewritten graph cannot be run: " + reason;
      return result;
    }
    bool wasEqual = result.isEqual();
    for (auto [i, output] : llvm::enumerate(result.outputs)) {
      OutputDifference found = differenceOf(run.outputs[i].view, (*outputs)[i].view, tolerance);
      output.maxAbsolute = std::max(output.maxAbsolute, found.maxAbsolute);
      output.maxRelative = std::max(output.maxRelative, found.maxRelative);
      if (output.what.empty())
        output.what = found.what;
    }
    if (wasEqual && !result.isEqual())
      result.firstNode = firstDifference(rewritten, run, inputs);
  }
  return result;
}

std::string GraphComparer::firstDifference(ModuleOp rewritten, const ModelRun &run,
                                           const std::vector<ReferenceTensor> &inputs) const {
  auto namesOf = [](Operation *op) {
    DictionaryAttr details = sourceOf(op->getLoc()).details;
    return details ? details.getAs<ArrayAttr>(outputsKey) : ArrayAttr();
  };
  std::map<std::string, ReferenceTensor> values;
  std::string reason;
  (void)evaluateModule(original, run.inputs, mostTensorBytes, reason,
                       [&](Operation *op, ArrayRef<ReferenceTensor> results) {
                         if (ArrayAttr names = namesOf(op))
                           for (auto [name, tensor] : llvm::zip(names, results))
                             values[cast<StringAttr>(name).str()] = tensor;
                       });
  std::string first;
  (void)evaluateModule(rewritten, inputs, mostTensorBytes, reason,
                       [&](Operation *op, ArrayRef<ReferenceTensor> results) {
                         ArrayAttr names = namesOf(op);
                         if (!first.empty() || !names)
                           return;
                         for (auto [name, tensor] : llvm::zip(names, results)) {
                           auto was = values.find(cast<StringAttr>(name).str());
                           if (was == values.end() || !haveSameShape(was->second.view, tensor.view))
                             continue; // another layout is no difference
                           std::string what = differenceOf(was->second.view, tensor.view, tolerance).what;
                           if (!what.empty())
                             first = "'" + nodeName(op->getLoc()) + "', value '" + was->first + "': " + what;
                         }
                       });
  return first;
}

} // namespace firn

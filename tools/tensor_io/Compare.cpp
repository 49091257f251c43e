#include "tools/tensor_io/Compare.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace firn::tools {

namespace {

std::string indexText(int64_t i, const std::vector<int64_t> &dims) {
  std::string text;
  for (size_t d = dims.size(); d-- > 0; i /= dims[d])
    text = std::to_string(i % dims[d]) + (text.empty() ? "" : ",") + text;
  return "[" + text + "]";
}

bool isClose(double got, double wanted, double rtol, double atol) {
  if (got == wanted || (std::isnan(got) && std::isnan(wanted)))
    return true;
  return std::isfinite(got) && std::isfinite(wanted) && std::fabs(got - wanted) <= atol + rtol * std::fabs(wanted);
}

// A complex tensor as a real one of twice as many elements.
Tensor asReal(const Tensor &tensor) {
  std::vector<int64_t> dims = {2 * tensor.count()};
  Tensor real(tensor.dtype == FIRN_C64 ? FIRN_F32 : FIRN_F64, dims);
  std::memcpy(real.data(), tensor.data(), size_t(tensor.bytes()));
  return real;
}

bool areEqual(const Tensor &a, const Tensor &b, int64_t i) {
  if (a.dtype == FIRN_STRING)
    return a.strings[size_t(i)] == b.strings[size_t(i)];
  if (a.dtype == FIRN_BOOL)
    return (elementAsInt(a, i) != 0) == (elementAsInt(b, i) != 0);
  return elementAsInt(a, i) == elementAsInt(b, i);
}

} // namespace

std::string difference(const Tensor &got, const Tensor &wanted, double rtol, double atol) {
  if (got.isList() && wanted.isList() && got.items.size() == wanted.items.size()) {
    for (size_t i = 0; i < got.items.size(); ++i)
      if (std::string why = difference(got.items[i], wanted.items[i], rtol, atol); !why.empty())
        return "item " + std::to_string(i) + " " + why;
    return "";
  }
  if (got.dtype != wanted.dtype || got.dims != wanted.dims)
    return "is " + got.type() + ", expected " + wanted.type();
  if (isComplex(got.dtype))
    return difference(asReal(got), asReal(wanted), rtol, atol);
  int64_t different = 0, first = -1, worst = -1, count = got.count();
  double worstDistance = -1;
  bool isReal = isFloat(got.dtype);
  for (int64_t i = 0; i < count; ++i) {
    double a = isReal ? elementAsDouble(got, i) : 0, b = isReal ? elementAsDouble(wanted, i) : 0;
    if (isReal ? isClose(a, b, rtol, atol) : areEqual(got, wanted, i))
      continue;
    if (++different == 1)
      first = i;
    double distance = std::isfinite(a - b) ? std::fabs(a - b) : INFINITY;
    if (isReal && distance > worstDistance) {
      worst = i;
      worstDistance = distance;
    }
  }
  if (different == 0)
    return "";
  std::string text = std::to_string(different) + " of " + std::to_string(count) + " elements differ; first at " +
                     indexText(first, got.dims) + ": expected " + elementText(wanted, first) + ", got " +
                     elementText(got, first);
  if (worst >= 0 && worst != first)
    text += "; worst at " + indexText(worst, got.dims) + ": expected " + elementText(wanted, worst) + ", got " +
            elementText(got, worst);
  return text;
}

std::string summary(const Tensor &tensor) {
  std::string text = tensor.type();
  if (tensor.dtype == FIRN_DTYPE_NONE)
    return text;
  if (tensor.isList()) {
    for (size_t i = 0; i < std::min<size_t>(tensor.items.size(), 5); ++i)
      text += "\n  " + summary(tensor.items[i]);
    return text + (tensor.items.size() > 5 ? "\n  ..." : "");
  }
  int64_t count = tensor.count();
  if (tensor.dtype != FIRN_STRING && !isComplex(tensor.dtype) && count > 0) {
    double least = INFINITY, most = -INFINITY, sum = 0;
    int64_t nans = 0;
    double values[512];
    for (int64_t begin = 0; begin < count; begin += 512) {
      int64_t block = std::min<int64_t>(512, count - begin);
      elementsAsDouble(tensor, begin, block, values);
      for (int64_t i = 0; i < block; ++i) {
        bool isNan = std::isnan(values[i]);
        nans += isNan;
        least = values[i] < least ? values[i] : least;
        most = values[i] > most ? values[i] : most;
        sum += isNan ? 0 : values[i];
      }
    }
    char numbers[128] = "";
    if (nans < count)
      std::snprintf(numbers, sizeof numbers, "  min %.6g  max %.6g  mean %.6g", least, most,
                    sum / double(count - nans));
    text += numbers;
    if (nans)
      text += "  NaN " + std::to_string(nans);
  }
  text += "  [";
  for (int64_t i = 0; i < std::min<int64_t>(count, 5); ++i)
    text += (i ? ", " : "") + elementText(tensor, i);
  return text + (count > 5 ? ", ...]" : "]");
}

} // namespace firn::tools

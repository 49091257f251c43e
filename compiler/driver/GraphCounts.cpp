#include "compiler/driver/GraphCounts.h"

#include <iterator>

namespace firn {

const char *dtypeText(int32_t dtype) {
  static const char *const names[] = {
      "unknown",   "float32",    "uint8",      "int8",         "uint16",         "int16",      "int32",
      "int64",     "string",     "bool",       "float16",      "float64",        "uint32",     "uint64",
      "complex64", "complex128", "bfloat16",   "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz",
      "uint4",     "int4",       "float4e2m1", "float8e8m0",   "uint2",          "int2"};
  return dtype >= 0 && size_t(dtype) < std::size(names) ? names[dtype] : "unknown";
}

void GraphCounts::add(const model::Tensor &tensor) {
  int64_t elements = 1;
  for (int64_t dim : tensor.dims)
    if (__builtin_mul_overflow(elements, dim, &elements))
      elements = 0; // a tensor that cannot be was reported by the reader
  int64_t bytes = int64_t(tensor.bytes.size());
  for (const std::string &text : tensor.strings)
    bytes += int64_t(text.size());
  auto &[count, sum] = weights[dtypeText(tensor.dtype)];
  ++count;
  sum += bytes;
  ++tensors;
  parameters += elements;
  weightBytes += bytes;
}

void GraphCounts::add(const std::vector<model::Node> &list) {
  for (const model::Node &node : list) {
    ++nodes;
    ++operators[(node.domain.empty() ? "" : node.domain + "::") + node.type];
    for (const model::Attribute &attribute : node.attributes) {
      if (attribute.kind == model::Attribute::Kind::Tensor)
        add(attribute.tensor);
      if (attribute.graph) {
        ++nestedGraphs;
        add(*attribute.graph);
      }
    }
  }
}

void GraphCounts::add(const model::Graph &graph) {
  for (const model::Tensor &tensor : graph.constants)
    add(tensor);
  add(graph.nodes);
}

} // namespace firn

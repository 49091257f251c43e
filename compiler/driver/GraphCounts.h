// GraphCounts: operators, weights and nested graphs of a model, added up.
#ifndef FIRN_COMPILER_DRIVER_GRAPHCOUNTS_H
#define FIRN_COMPILER_DRIVER_GRAPHCOUNTS_H

#include "compiler/import/Model.h"

namespace firn {

/// The names that ONNX users know, by TensorProto.DataType (runtime/abi/dtype.h has the same numbers).
const char *dtypeText(int32_t dtype);

/// What a walk over a graph and those nested in it adds up.
struct GraphCounts {
  std::map<std::string, int64_t> operators;                   // "Conv", "com.microsoft::FastGelu"
  std::map<std::string, std::pair<int64_t, int64_t>> weights; // by dtype: tensors, bytes
  int64_t nodes = 0, parameters = 0, weightBytes = 0, tensors = 0, nestedGraphs = 0;

  void add(const model::Tensor &tensor);
  void add(const std::vector<model::Node> &list);
  void add(const model::Graph &graph);
};

} // namespace firn
#endif

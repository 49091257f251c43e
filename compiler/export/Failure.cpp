#include "compiler/export/Failure.h"
#include "compiler/SourceLocation.h"
#include "compiler/import/Blob.h"
#include "compiler/import/onnx/Upgrade.h"
#include "runtime/abi/dtype.h"
#include <cstring>

using namespace mlir;

namespace firn {

namespace {
struct Emitter {
  UniqueNames &names;
  model::Graph &graph;
  std::string prefix;

  std::string node(const char *type, std::vector<std::string> inputs, std::vector<model::Attribute> attributes = {}) {
    model::Node &made = graph.nodes.emplace_back();
    made.type = type;
    made.name = names.fresh(prefix + "/" + type);
    made.inputs = std::move(inputs);
    made.outputs = {made.name};
    made.attributes = std::move(attributes);
    return made.name;
  }
  std::string constant(int32_t dtype, std::vector<int64_t> dims, int64_t value) {
    model::Tensor &tensor = graph.constants.emplace_back();
    tensor.name = names.fresh(prefix + "/constant");
    tensor.dtype = dtype;
    tensor.dims = std::move(dims);
    if (dtype == FIRN_STRING) {
      tensor.strings.resize(1);
      return tensor.name;
    }
    size_t size = size_t(firn_dtype_bytes(dtype, 1));
    std::memcpy(allocateBytes(tensor, size), &value, std::min<size_t>(size, sizeof(value)));
    return tensor.name;
  }
};
} // namespace

// One element is reshaped to 2 or 3 along each axis: as the condition says, so that no reader can tell ahead of the run
// and refuse the whole model.
void emitFailure(FailOp op, IfOp branch, const std::string &node, llvm::ArrayRef<std::string> outputs,
                 const std::string &condition, UniqueNames &names, model::Graph &graph) {
  for (auto [i, result] : llvm::enumerate(op.getResults())) {
    // Each result by itself and by names that follow from its own, so that reading and writing again changes nothing.
    Emitter emitter{names, graph, i ? node + "_" + std::to_string(i) : node};
    std::string number = emitter.node("Cast", {condition}, {intAttribute("to", FIRN_I64)});
    std::string flat = emitter.node("Reshape", {number, emitter.constant(FIRN_I64, {1}, -1)});
    std::string size = emitter.node("Add", {flat, emitter.constant(FIRN_I64, {1}, 2)});
    // The type is that of the branch's result it ends up in.
    Type whole = result.getType();
    for (OpOperand &use : result.getUses())
      if (isa<YieldOp>(use.getOwner()) && use.getOperandNumber() < branch->getNumResults())
        whole = branch->getResult(use.getOperandNumber()).getType();
    auto optional = dyn_cast<OptionalType>(whole);
    auto sequence = dyn_cast<SequenceType>(optional ? optional.getElement() : whole);
    Type held = sequence ? sequence.getElement() : optional ? optional.getElement() : whole;
    auto type = dyn_cast<TensorType>(held);
    if (!type)
      type = UnrankedTensorType::get(dtypeOf(held) ? held : UnknownType::get(op.getContext()));
    int32_t dtype = isa<UnknownType>(type.getElementType()) ? FIRN_F32 : dtypeOf(type.getElementType());
    size_t rank = type.hasRank() ? std::max<size_t>(1, size_t(type.getRank())) : 1;
    std::string shape = emitter.node("Concat", std::vector<std::string>(rank, size), {intAttribute("axis", 0)});
    std::string tensor = emitter.node("Reshape", {emitter.constant(dtype, {1}, 0), shape});
    if (sequence)
      tensor = emitter.node("SequenceConstruct", {tensor});
    if (optional)
      emitter.node("Optional", {tensor});
    model::Node &last = graph.nodes.back();
    last.name = emitter.prefix;
    last.outputs = {outputs[i]};
    // The importer knows the failure by this note.
    last.metadata.emplace_back(failKey.str(), op.getMessage().str());
  }
}

} // namespace firn

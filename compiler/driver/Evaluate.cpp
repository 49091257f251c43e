// Evaluate: blocks, control flow and calls of reference kernels.
#include "compiler/driver/Evaluate.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "runtime/abi/dtype.h"

using namespace mlir;

namespace firn {

namespace {

class Evaluator {
public:
  Evaluator(int64_t mostBytes, std::string &reason, const Observer &observer)
      : maxBytes(mostBytes), whyNot(reason), observe(observer) {}

  void set(Value value, ReferenceTensor tensor) { values[value] = std::move(tensor); }
  std::vector<ReferenceTensor> get(OperandRange range) {
    std::vector<ReferenceTensor> tensors;
    for (Value value : range)
      tensors.push_back(get(value));
    return tensors;
  }

  bool run(Block &block) {
    for (Operation &op : block.without_terminator())
      if (!operation(&op)) {
        whyNot = "node '" + nodeName(op.getLoc()) + "': " + whyNot;
        return false;
      } else if (observe && isa<func::FuncOp>(op.getParentOp()) && !isa<AbsentOp>(op)) {
        std::vector<ReferenceTensor> results;
        for (Value result : op.getResults())
          results.push_back(get(result));
        observe(&op, results);
      }
    return true;
  }

private:
  ReferenceTensor get(Value value) {
    if (isAbsent(value)) {
      ReferenceTensor none{};
      none.view.rank = -1;
      return none;
    }
    return values.lookup(value);
  }

  bool operation(Operation *op) {
    if (isa<AbsentOp>(op))
      return true;
    if (auto constant = dyn_cast<ConstantOp>(op)) {
      auto tensor = referenceTensor(dyn_cast<ElementsAttr>(constant.getValue()));
      if (!tensor)
        return fail("it is no numeric constant");
      set(constant.getResult(), *tensor);
      return true;
    }
    if (auto branch = dyn_cast<IfOp>(op))
      return conditional(branch);
    if (auto loop = dyn_cast<LoopOp>(op))
      return iteration(loop);
    std::vector<ReferenceTensor> inputs = get(op->getOperands());
    std::vector<firn_view> views;
    for (const ReferenceTensor &input : inputs)
      views.push_back(input.view);
    auto results = runReference(op, views, maxBytes, whyNot);
    if (!results)
      return false;
    for (auto [value, tensor] : llvm::zip(op->getResults(), *results))
      set(value, tensor);
    return true;
  }

  bool isTrue(Value value) { return *static_cast<const char *>(get(value).view.data) != 0; }

  bool conditional(IfOp op) {
    Block &block = (isTrue(op.getCondition()) ? op.getThenBranch() : op.getElseBranch()).front();
    if (!run(block))
      return false;
    for (auto [result, value] : llvm::zip(op.getOutputs(), block.getTerminator()->getOperands()))
      set(result, get(value));
    return true;
  }

  bool iteration(LoopOp op) {
    Block &body = op.getBody().front();
    Operation *yield = body.getTerminator();
    unsigned carried = op.getCarried().size();
    int64_t trips =
        isAbsent(op.getTripCount()) ? INT64_MAX : *static_cast<const int64_t *>(get(op.getTripCount()).view.data);
    bool goesOn = isAbsent(op.getCondition()) || isTrue(op.getCondition());
    std::vector<ReferenceTensor> state = get(op.getCarried());
    std::vector<std::vector<ReferenceTensor>> scans(op.getNumResults() - carried);
    for (int64_t i = 0; i < trips && goesOn; ++i) {
      if (i > 1000000)
        return fail("the loop runs over a million times");
      set(body.getArgument(0), scalar(FIRN_I64, &i, sizeof i));
      char condition = 1;
      set(body.getArgument(1), scalar(FIRN_BOOL, &condition, 1));
      for (unsigned c = 0; c < carried; ++c)
        set(body.getArgument(c + 2), state[c]);
      if (!run(body))
        return false;
      goesOn = isTrue(yield->getOperand(0));
      for (unsigned c = 0; c < carried; ++c)
        state[c] = get(yield->getOperand(c + 1));
      for (size_t s = 0; s < scans.size(); ++s)
        scans[s].push_back(get(yield->getOperand(carried + 1 + s)));
    }
    for (unsigned c = 0; c < carried; ++c)
      set(op.getResult(c), state[c]);
    for (size_t s = 0; s < scans.size(); ++s)
      if (!stack(op.getResult(carried + s), scans[s], yield->getOperand(carried + 1 + s).getType()))
        return false;
    return true;
  }

  /// Scan outputs along a new leading axis; of a loop without trips as far as the body's type tells.
  bool stack(Value result, const std::vector<ReferenceTensor> &parts, Type elementType) {
    ReferenceTensor whole{};
    whole.bytes = std::make_shared<std::vector<char>>();
    if (parts.empty()) {
      auto type = dyn_cast<RankedTensorType>(elementType);
      if (!type || type.getRank() + 1 > FIRN_MAX_RANK)
        return fail("the shape of a scan output is not known without a trip");
      whole.view.dtype = dtypeOf(type.getElementType());
      whole.view.rank = type.getRank() + 1;
      for (int64_t i = 0; i < type.getRank(); ++i)
        whole.view.dims[i + 1] = std::max<int64_t>(type.getDimSize(i), 0);
    } else {
      whole.view = parts[0].view;
      ++whole.view.rank;
      if (whole.view.rank > FIRN_MAX_RANK)
        return fail("a scan output has too many axes");
      for (int32_t i = whole.view.rank - 1; i > 0; --i)
        whole.view.dims[i] = parts[0].view.dims[i - 1];
      for (const ReferenceTensor &part : parts) {
        int64_t count = 1;
        for (int32_t i = 0; i < part.view.rank; ++i)
          count *= part.view.dims[i];
        const char *bytes = static_cast<const char *>(part.view.data);
        whole.bytes->insert(whole.bytes->end(), bytes, bytes + firn_dtype_bytes(part.view.dtype, count));
      }
    }
    whole.view.dims[0] = parts.size();
    whole.view.data = whole.bytes->data();
    set(result, whole);
    return true;
  }

  static ReferenceTensor scalar(int32_t dtype, const void *value, size_t size) {
    const char *bytes = static_cast<const char *>(value);
    ReferenceTensor tensor{};
    tensor.bytes = std::make_shared<std::vector<char>>(bytes, bytes + size);
    tensor.view.dtype = dtype;
    tensor.view.data = tensor.bytes->data();
    return tensor;
  }

  bool fail(StringRef why) {
    whyNot = why.str();
    return false;
  }

  int64_t maxBytes;
  std::string &whyNot;
  const Observer &observe;
  llvm::DenseMap<Value, ReferenceTensor> values;
};

} // namespace

std::optional<std::vector<ReferenceTensor>> evaluateModule(ModuleOp module, const std::vector<ReferenceTensor> &inputs,
                                                           int64_t maxBytes, std::string &whyNot,
                                                           const Observer &observe) {
  auto main = *module.getOps<func::FuncOp>().begin();
  Evaluator evaluator(maxBytes, whyNot, observe);
  for (auto [argument, tensor] : llvm::zip(main.getArguments(), inputs))
    evaluator.set(argument, tensor);
  Block &body = main.getBody().front();
  if (!evaluator.run(body))
    return std::nullopt;
  return evaluator.get(body.getTerminator()->getOperands());
}

} // namespace firn

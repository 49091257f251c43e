// ExpandComposites: library operators that are compositions of others are spelt out, so that code is generated for
// them.
//
// In:      inferred or not, in a module that will be compiled (never exported).    Out: inferred, fewer firn.call.
// Keeps:   values as the operator's reference kernel has them: it is the same composition (runtime/kernels/Compose.h).
// Leaves:  a call whose composition refuses, which happens where a size that it needs is not known, or where another
//          operation mentions a dimension that only this call finds.
//   %0 = firn.call "com.microsoft::BiasGelu"(%x, %b)     ==>     %1 = firn.add %x, %b;  %0 = firn.gelu %1
#include "passes/PassReport.h"
#include "passes/Passes.h"
#include "passes/Rules.h"
#include "passes/fold/ReferenceCall.h"
#include "runtime/kernels/Table.h"

#include "mlir/Pass/PassManager.h"
#include <cstdlib>

using namespace mlir;

namespace firn {
#define GEN_PASS_DEF_EXPANDCOMPOSITES
#include "passes/Passes.h.inc"

namespace {

Attribute attributeOf(MLIRContext *context, const firn_attribute &from) {
  Builder builder(context);
  switch (from.kind) {
  case FIRN_ATTR_INT:
    return builder.getI64IntegerAttr(*static_cast<const int64_t *>(from.data));
  case FIRN_ATTR_FLOAT:
    return builder.getF32FloatAttr(*static_cast<const float *>(from.data));
  case FIRN_ATTR_STRING:
    return builder.getStringAttr(StringRef(static_cast<const char *>(from.data), from.count));
  case FIRN_ATTR_INTS:
    return builder.getDenseI64ArrayAttr({static_cast<const int64_t *>(from.data), size_t(from.count)});
  case FIRN_ATTR_FLOATS:
    return builder.getDenseF32ArrayAttr({static_cast<const float *>(from.data), size_t(from.count)});
  case FIRN_ATTR_STRINGS: {
    SmallVector<Attribute> texts;
    for (const firn_string &text : ArrayRef(static_cast<const firn_string *>(from.data), size_t(from.count)))
      texts.push_back(builder.getStringAttr(StringRef(text.data, text.length)));
    return builder.getArrayAttr(texts);
  }
  default:
    return {};
  }
}

/// The firn_call that a composition looks at while the compiler composes: types, attributes, memory.
class ComposedCall {
public:
  explicit ComposedCall(Operation *op) : attributes(op), inputs(op->getNumOperands()), outputs(op->getNumResults()) {
    for (auto [view, operand] : llvm::zip(inputs, op->getOperands()))
      areKnown &= describe(operand, view);
    for (auto [view, result] : llvm::zip(outputs, op->getResults())) {
      view = {};
      view.rank = result.use_empty() ? -1 : 0; // wanted
    }
    call.inputs = inputs.data();
    call.outputs = outputs.data();
    call.attributes = attributes.list().data();
    call.input_count = inputs.size();
    call.output_count = outputs.size();
    call.attribute_count = attributes.list().size();
    call.message = message;
    call.message_capacity = sizeof message;
    call.context = this;
    call.scratch = [](firn_call *self, int64_t size) -> void * {
      if (size < 0 || size > (int64_t(1) << 30))
        return nullptr;
      auto *owner = static_cast<ComposedCall *>(self->context);
      owner->memory.emplace_back(std::aligned_alloc(64, (size_t(size) + 64) / 64 * 64), &std::free);
      return owner->memory.back().get();
    };
  }
  ComposedCall(const ComposedCall &) = delete;
  ComposedCall &operator=(const ComposedCall &) = delete;

  ReferenceAttributes attributes;
  std::vector<firn_view> inputs, outputs;
  firn_call call{};
  char message[512] = "";
  bool areKnown = true; // dtypes and ranks

private:
  static bool describe(Value operand, firn_view &view) {
    view = {};
    view.rank = -1;
    if (isAbsent(operand))
      return true;
    auto type = dyn_cast<RankedTensorType>(operand.getType());
    int32_t dtype = type ? dtypeOf(type.getElementType()) : 0;
    if (!dtype || type.getRank() > FIRN_MAX_RANK)
      return false;
    view.dtype = dtype;
    view.rank = type.getRank();
    for (int32_t i = 0; i < view.rank; ++i)
      view.dims[i] = type.isDynamicDim(i) ? -1 : type.getDimSize(i);
    return true;
  }

  std::vector<std::unique_ptr<void, void (*)(void *)>> memory;
};

/// A composer that builds operations.
class Expander : public kernels::Composer {
public:
  Expander(firn_call *composed, Operation *expanded) : Composer(composed), op(expanded), builder(expanded) {
    made.assign(expanded->operand_begin(), expanded->operand_end());
    makeConstant = [](Composer &self, const firn_view &view) {
      return static_cast<Expander &>(self).addConstant(view);
    };
    makeOperation = [](Composer &self, const firn_operator &called, const Value *from, int32_t fromCount,
                       const kernels::AttributeList &list, Value *to, int32_t count) {
      static_cast<Expander &>(self).addOperation(called, {from, size_t(fromCount)}, list, {to, size_t(count)});
    };
    makeReinterpreted = [](Composer &self, Value value, const firn_view &view) {
      return static_cast<Expander &>(self).addReinterpreted(value, view);
    };
  }

  /// The operation's results, or nothing where a wanted one was not composed.
  std::optional<SmallVector<mlir::Value>> finished() const {
    SmallVector<mlir::Value> values;
    for (OpResult result : op->getResults()) {
      unsigned i = result.getResultNumber();
      Value value = i < std::size(results) ? results[i] : absent;
      if (value == absent && !result.use_empty())
        return std::nullopt;
      values.push_back(value == absent ? mlir::Value() : made[value]);
    }
    return values;
  }
  void undo() {
    for (Operation *added : llvm::reverse(operations))
      added->erase();
  }

private:
  Value add(mlir::Value value) {
    firn_view unknown{};
    unknown.rank = -1;
    if (auto type = dyn_cast<RankedTensorType>(value.getType())) {
      unknown.dtype = dtypeOf(type.getElementType());
      unknown.rank = type.getRank();
      llvm::copy(type.getShape(), unknown.dims);
    }
    made.push_back(value);
    return define(unknown);
  }
  Operation *create(OperationState &state) {
    operations.push_back(builder.create(state));
    return operations.back();
  }

  Value addConstant(const firn_view &view) {
    auto type = RankedTensorType::get({view.dims, size_t(view.rank)}, elementTypeOf(op->getContext(), view.dtype));
    auto *bytes = static_cast<const char *>(view.data);
    return addElements(constantFromBytes(type, {bytes, size_t(firn_dtype_bytes(view.dtype, type.getNumElements()))}));
  }
  Value addElements(ElementsAttr elements) {
    OperationState state(op->getLoc(), ConstantOp::getOperationName());
    state.addAttribute("value", elements);
    state.addTypes(elements.getType());
    return add(create(state)->getResult(0));
  }

  Value addReinterpreted(Value value, const firn_view &view) {
    auto bytes = constantOf(made[value]) ? expandedBytes(constantOf(made[value])) : std::nullopt;
    if (!bytes) {
      refuse(FIRN_CALL_UNSUPPORTED, "packed values are no constant");
      return absent;
    }
    auto type = RankedTensorType::get({view.dims, size_t(view.rank)}, elementTypeOf(op->getContext(), view.dtype));
    return addElements(constantFromBytes(type, *bytes));
  }

  void addOperation(const firn_operator &called, ArrayRef<Value> from, const kernels::AttributeList &list,
                    MutableArrayRef<Value> to) {
    StringRef qualified = called.name, name = qualified;
    StringRef operation = name.consume_front("ai.onnx::") ? operationFor(name) : StringRef();
    OperationState state(op->getLoc(), operation.empty() ? CallOp::getOperationName() : operation);
    if (operation.empty())
      state.addAttribute("callee", builder.getStringAttr(qualified));
    for (Value value : from) {
      if (value != absent) {
        state.operands.push_back(made[value]);
        continue;
      }
      OperationState missing(op->getLoc(), AbsentOp::getOperationName());
      missing.addTypes(builder.getNoneType());
      state.operands.push_back(create(missing)->getResult(0));
    }
    for (int32_t i = 0; i < list.count; ++i)
      if (Attribute attribute = attributeOf(op->getContext(), list.list[i]))
        state.addAttribute(list.list[i].name, attribute);
    Type unknown = UnrankedTensorType::get(UnknownType::get(op->getContext()));
    state.addTypes(SmallVector<Type>(to.size(), unknown));
    Operation *added = create(state);
    for (auto [value, result] : llvm::zip(to, added->getResults()))
      value = add(result);
  }

  Operation *op;
  OpBuilder builder;
  SmallVector<mlir::Value> made; // by value of the composition
  SmallVector<Operation *> operations;
};

struct ExpandComposites : impl::ExpandCompositesBase<ExpandComposites> {
  using ExpandCompositesBase::ExpandCompositesBase;

  void runOnOperation() override {
    SmallVector<CallOp> calls;
    getOperation().walk([&](CallOp call) {
      if (kernels::findComposite(call.operatorName()))
        calls.push_back(call);
    });
    if (calls.empty() || !infer())
      return;
    PassReport report("expand-composites", limit);
    for (CallOp call : calls)
      if (!report.done())
        expand(call, report);
    if (report.rewrites() > 0)
      infer();
  }

  bool infer() {
    OpPassManager manager(ModuleOp::getOperationName());
    manager.addPass(createInferShapes());
    if (succeeded(runPipeline(manager, getOperation())))
      return true;
    signalPassFailure();
    return false;
  }

  void expand(CallOp call, PassReport &report) {
    if (findsSymbolsForOthers(call))
      return report.refuse(call, "a dimension that it finds is used elsewhere");
    ComposedCall composed(call);
    if (!composed.areKnown)
      return report.refuse(call, "the rank of an input is not known");
    Expander expander(&composed.call, call);
    kernels::findComposite(call.operatorName())->compose(expander);
    auto values = expander.isFailed() ? std::nullopt : expander.finished();
    if (!values) {
      expander.undo();
      return report.refuse(call, expander.isFailed() ? composed.message : "an output that is used is not composed");
    }
    report.rewrite(call, "spelt out");
    OpBuilder builder(call);
    for (auto [result, value] : llvm::zip(call->getResults(), *values)) {
      if (value && isReturned(result) && isTakenAsOutput(value)) // outputs stay distinct
        value = builder.create<IdentityOp>(call.getLoc(), value.getType(), value);
      if (value)
        result.replaceAllUsesWith(value);
    }
    call->erase();
  }
};

} // namespace
} // namespace firn

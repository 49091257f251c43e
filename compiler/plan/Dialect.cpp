#include "compiler/plan/Dialect.h"

using namespace mlir;

namespace firn {

namespace {

class Writer {
public:
  Writer(const Program &written, OpBuilder &made) : program(written), builder(made), at(builder.getUnknownLoc()) {}

  void write(bool withWeights) {
    for (auto [i, v] : llvm::enumerate(program.values))
      value(i, v);
    for (auto [i, b] : llvm::enumerate(program.buffers)) {
      bool isInArena = b.kind == FIRN_BUFFER_ARENA && b.firstStep >= 0;
      builder.create<plan::BufferOp>(at, number(i), word(plan::bufferKind(b.kind)), word(plan::dtypeWord(b.dtype)),
                                     list(b.dims), builder.getI64IntegerAttr(b.offset),
                                     isInArena ? list({b.firstStep, b.lastStep}) : DenseI32ArrayAttr(),
                                     b.form == FIRN_FORM_TENSOR ? StringAttr() : word(plan::formWord(b.form)));
    }
    for (auto [i, p] : llvm::enumerate(program.inputs))
      port<plan::InputOp>(i, p);
    for (auto [i, p] : llvm::enumerate(program.outputs))
      port<plan::OutputOp>(i, p);
    for (const ProgramConstraint &c : program.constraints)
      builder.create<plan::ConstraintOp>(at, number(c.value), builder.getI64IntegerAttr(c.lower),
                                         builder.getI64IntegerAttr(c.upper), word(c.message));
    for (const ProgramWeight &w : program.weights)
      builder.create<plan::WeightOp>(at, builder.getI64IntegerAttr(w.offset), TypeAttr::get(w.type),
                                     withWeights ? w.value : ElementsAttr());
    for (auto [i, s] : llvm::enumerate(program.steps))
      step(i, s);
  }

private:
  IntegerAttr number(int64_t value) { return builder.getI32IntegerAttr(int32_t(value)); }
  StringAttr word(StringRef text) { return builder.getStringAttr(text); }
  DenseI32ArrayAttr list(ArrayRef<int32_t> values) { return builder.getDenseI32ArrayAttr(values); }

  void value(int64_t id, const firn_value &v) {
    SmallVector<int64_t> operands;
    if (v.op == FIRN_VALUE_CONSTANT)
      operands = {v.a};
    else if (v.op != FIRN_VALUE_SYMBOL)
      operands = {v.a, v.b};
    builder.create<plan::ValueOp>(at, number(id), word(plan::valueKind(v.op)), builder.getDenseI64ArrayAttr(operands),
                                  v.late ? builder.getUnitAttr() : UnitAttr());
  }

  template <typename Op> void port(int64_t id, const ProgramPort &p) {
    SmallVector<StringRef> symbols(p.symbols.begin(), p.symbols.end());
    builder.create<Op>(at, number(id), word(p.name), word(plan::dtypeWord(p.dtype)), list(p.dims),
                       builder.getStrArrayAttr(symbols), number(p.buffer),
                       p.isOptional ? builder.getI64IntegerAttr(p.defaultOffset) : IntegerAttr());
  }

  void step(int64_t id, const ProgramStep &s) {
    static const char *const names[] = {"plan.kernel", "plan.reference", "plan.copy",   "plan.values", "plan.bind",
                                        "plan.if",     "plan.loop",      "plan.append", "plan.fail",   "plan.list"};
    OperationState state(s.op ? s.op->getLoc() : at, names[s.kind]);
    state.addAttribute("id", number(id));
    ArrayRef<int32_t> buffers(s.buffers);
    state.addAttribute("reads", list(buffers.take_front(s.inputCount)));
    state.addAttribute("writes", list(buffers.drop_front(s.inputCount)));
    state.addAttribute("dims", list(s.dims));
    state.addAttribute("name", word(s.name));
    state.addAttribute("kind_name", word(s.kindName));
    state.addAttribute("costs", list({s.flops, s.bytes}));
    switch (s.kind) {
    case FIRN_STEP_KERNEL:
      state.addAttribute("symbol", FlatSymbolRefAttr::get(builder.getContext(), s.kernel));
      state.addAttribute("scratch_bytes", builder.getI64IntegerAttr(s.scratchBytes));
      if (s.isParallel)
        state.addAttribute("parallel", builder.getUnitAttr());
      break;
    case FIRN_STEP_REFERENCE:
      state.addAttribute("callee", word(s.op ? cast<Operator>(s.op).operatorName() : ""));
      state.addAttribute("settings", settingsOf(s.op));
      break;
    case FIRN_STEP_IF:
      state.addAttribute("middle", number(s.middle));
      state.addAttribute("end", number(s.end));
      break;
    case FIRN_STEP_LOOP:
      state.addAttribute("end", number(s.end));
      break;
    case FIRN_STEP_LIST:
      state.addAttribute("action", number(s.operation));
      break;
    default:
      break;
    }
    builder.create(state);
  }

  /// The operator's attributes, without our own notes.
  DictionaryAttr settingsOf(Operation *op) {
    NamedAttrList settings;
    if (op)
      for (NamedAttribute entry : op->getAttrs())
        if (!entry.getName().getValue().contains('.') && entry.getName() != "callee")
          settings.append(entry);
    return settings.getDictionary(builder.getContext());
  }

  const Program &program;
  OpBuilder &builder;
  Location at;
};

std::vector<int32_t> copied(ArrayRef<int32_t> list) { return {list.begin(), list.end()}; }

template <typename Op> ProgramPort portOf(Op op) {
  ProgramPort port;
  port.name = op.getName().str();
  port.dims = copied(op.getDims());
  for (Attribute symbol : op.getSymbols())
    port.symbols.push_back(cast<StringAttr>(symbol).str());
  port.dtype = plan::dtypeOfWord(op.getDtype());
  port.buffer = int32_t(op.getBuffer());
  port.isOptional = op.getDefaultAt().has_value();
  port.defaultOffset = op.getDefaultAt().value_or(0);
  return port;
}

ProgramStep stepOf(Operation *op, size_t id) {
  ProgramStep step;
  step.name = op->getAttrOfType<StringAttr>("name").str();
  step.kindName = op->getAttrOfType<StringAttr>("kind_name").str();
  step.buffers = copied(plan::numbers(op, "reads"));
  step.inputCount = int32_t(step.buffers.size());
  llvm::append_range(step.buffers, plan::numbers(op, "writes"));
  step.dims = copied(plan::numbers(op, "dims"));
  step.flops = plan::numbers(op, "costs")[0];
  step.bytes = plan::numbers(op, "costs")[1];
  step.begin = int32_t(id + 1);
  if (auto kernel = dyn_cast<plan::KernelOp>(op)) {
    step.kind = FIRN_STEP_KERNEL;
    step.kernel = kernel.getSymbol().str();
    step.scratchBytes = kernel.getScratchBytes();
    step.isParallel = kernel.getParallel();
  } else if (auto branch = dyn_cast<plan::IfOp>(op)) {
    step.kind = FIRN_STEP_IF;
    step.middle = int32_t(branch.getMiddle());
    step.end = int32_t(branch.getEnd());
  } else if (auto loop = dyn_cast<plan::LoopOp>(op)) {
    step.kind = FIRN_STEP_LOOP;
    step.end = int32_t(loop.getEnd());
  } else if (auto onLists = dyn_cast<plan::ListOp>(op)) {
    step.kind = FIRN_STEP_LIST;
    step.operation = int32_t(onLists.getAction());
  } else {
    step.kind = isa<plan::ReferenceOp>(op) ? FIRN_STEP_REFERENCE
                : isa<plan::CopyOp>(op)    ? FIRN_STEP_COPY
                : isa<plan::ValuesOp>(op)  ? FIRN_STEP_VALUES
                : isa<plan::BindOp>(op)    ? FIRN_STEP_BIND
                : isa<plan::AppendOp>(op)  ? FIRN_STEP_APPEND
                                           : FIRN_STEP_FAIL;
  }
  return step;
}

} // namespace

OwningOpRef<ModuleOp> planModule(const Program &program, StringRef name, MLIRContext &context, bool withWeights) {
  context.loadDialect<plan::PlanDialect>();
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
  OpBuilder builder(module->getBodyRegion());
  auto op = builder.create<plan::ProgramOp>(module->getLoc(), name.empty() ? "model" : name, program.arenaBytes,
                                            program.weightBytes);
  builder.setInsertionPointToEnd(&op.getBody().emplaceBlock());
  Writer(program, builder).write(withWeights);
  return module;
}

Program programOf(plan::ProgramOp op, ArrayRef<Operation *> operations) {
  Program program;
  program.arenaBytes = op.getArenaBytes();
  program.weightBytes = op.getWeightBytes();
  for (Operation &entry : op.getBody().front()) {
    if (auto instruction = dyn_cast<plan::ValueOp>(entry)) {
      ArrayRef<int64_t> operands = instruction.getArguments();
      program.values.push_back({plan::valueKind(instruction.getKind()), instruction.getLate() ? 1 : 0,
                                operands.empty() ? 0 : operands[0], operands.size() < 2 ? 0 : operands[1]});
    } else if (auto from = dyn_cast<plan::BufferOp>(entry)) {
      ProgramBuffer buffer;
      buffer.kind = plan::bufferKind(from.getKind());
      buffer.dtype = plan::dtypeOfWord(from.getDtype());
      buffer.dims = copied(from.getDims());
      buffer.offset = from.getAt();
      if (auto form = from.getForm())
        buffer.form = plan::formOfWord(*form);
      if (auto lives = from.getLives()) {
        buffer.firstStep = (*lives)[0];
        buffer.lastStep = (*lives)[1];
      }
      program.buffers.push_back(std::move(buffer));
    } else if (auto input = dyn_cast<plan::InputOp>(entry)) {
      program.inputs.push_back(portOf(input));
    } else if (auto output = dyn_cast<plan::OutputOp>(entry)) {
      program.outputs.push_back(portOf(output));
    } else if (auto c = dyn_cast<plan::ConstraintOp>(entry)) {
      program.constraints.push_back(
          {int32_t(c.getValue()), int64_t(c.getLower()), int64_t(c.getUpper()), c.getMessage().str()});
    } else if (auto weight = dyn_cast<plan::WeightOp>(entry)) {
      if (ElementsAttr value = weight.getValueAttr())
        program.weights.push_back({value, int64_t(weight.getAt()), value.getType(), {}});
    } else if (plan::isStep(&entry)) {
      program.steps.push_back(stepOf(&entry, program.steps.size()));
      if (isa<plan::ReferenceOp>(entry) && !operations.empty()) {
        program.steps.back().op = operations.front();
        operations = operations.drop_front();
      }
    }
  }
  return program;
}

} // namespace firn

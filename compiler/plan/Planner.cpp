// Planner: operations in order become steps; values become buffers with lifetimes; sizes become integer values.
#include "compiler/plan/Lists.h"
#include "compiler/plan/Program.h"
#include "compiler/plan/Values.h"
#include "dialects/firn/Inference.h"
#include "dialects/firn/Lists.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include <set>

using namespace mlir;

namespace firn {

namespace {

bool isView(Operation *op) {
  if (isa<IdentityOp>(op) || (isa<OptionalGetElementOp>(op) && !isa<OptionalType>(op->getOperand(0).getType())))
    return true;
  if (op->getNumOperands() == 0 || !isa<RankedTensorType>(op->getOperand(0).getType()))
    return false; // where ranks are found while running, so are shapes
  if (auto reshape = dyn_cast<ReshapeOp>(op))
    return !reshape.getShape() || !isa_and_nonnull<UnrankedTensorType>(reshape.getType());
  return isa<FlattenOp, SqueezeOp, UnsqueezeOp>(op) && isa<RankedTensorType>(op->getResult(0).getType());
}

class Planner {
public:
  Planner(const llvm::DenseMap<Operation *, KernelBinding> &bindings,
          llvm::function_ref<std::vector<std::string>(FusedOp)> symbols,
          llvm::function_ref<std::vector<std::pair<unsigned, unsigned>>(FusedOp)> pairs,
          llvm::function_ref<DimExpr(Operation *)> flops, const DimRanges &allowed)
      : kernels(bindings), symbolsOf(symbols), inPlace(pairs), flopsOf(flops), ranges(allowed), values(program.values) {
  }

  Program run(func::FuncOp func) {
    Block &body = func.getBody().front();
    inputs(func);
    requirements(func->getParentOfType<ModuleOp>());
    block(body);
    outputs(func);
    lifetimes();
    return std::move(program);
  }

private:
  // --- buffers -------------------------------------------------------------------------------------------------------

  int32_t newBuffer(Type type, int32_t kind = FIRN_BUFFER_ARENA, int64_t offset = -1) {
    ProgramBuffer buffer;
    buffer.offset = offset;
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor) {
      ListForm form = *listFormOf(type); // the driver refuses what has none
      buffer.kind = kind == FIRN_BUFFER_ARENA ? FIRN_BUFFER_LATE : kind;
      buffer.form = form.form;
      buffer.dtype = form.dtype;
      program.buffers.push_back(std::move(buffer));
      return program.buffers.size() - 1;
    }
    buffer.dtype = dtypeOf(tensor.getElementType());
    buffer.dims = values.list(dimsOf(tensor));
    buffer.kind = kind;
    if (kind == FIRN_BUFFER_ARENA)
      for (int32_t dim : buffer.dims)
        if (values.isLate(dim))
          buffer.kind = FIRN_BUFFER_LATE;
    program.buffers.push_back(std::move(buffer));
    return program.buffers.size() - 1;
  }
  int32_t weight(ElementsAttr value) {
    auto [at, isNew] = weightBuffers.try_emplace(value, -1);
    if (!isNew)
      return at->second;
    auto type = cast<RankedTensorType>(value.getType());
    // Tensors of equal bytes and different shapes share the bytes.
    int64_t bytes = firn_dtype_bytes(dtypeOf(type.getElementType()), type.getNumElements());
    auto raw = constantBytes(value);
    auto key = std::make_pair(
        static_cast<const void *>(raw && !raw->isSplat ? raw->bytes.data() : value.getAsOpaquePointer()), bytes);
    auto [place, isNewPlace] = weightOffsets.try_emplace(key, program.weightBytes);
    if (isNewPlace) {
      program.weights.push_back({value, program.weightBytes, type, {}});
      program.weightBytes += (bytes + FIRN_BUFFER_ALIGNMENT - 1) / FIRN_BUFFER_ALIGNMENT * FIRN_BUFFER_ALIGNMENT;
    }
    return at->second = newBuffer(type, FIRN_BUFFER_WEIGHT, place->second);
  }
  int32_t stringWeight(RankedTensorType type, ArrayAttr texts) {
    ProgramWeight made{{}, program.weightBytes, type, std::vector<char>(texts.size() * sizeof(firn_string))};
    for (auto [i, text] : llvm::enumerate(texts.getAsRange<StringAttr>())) {
      int64_t place[2] = {program.weightBytes + int64_t(made.strings.size()), int64_t(text.size())};
      std::memcpy(made.strings.data() + i * sizeof place, place, sizeof place);
      llvm::append_range(made.strings, text.getValue());
    }
    int32_t buffer = newBuffer(type, FIRN_BUFFER_WEIGHT, program.weightBytes);
    program.weightBytes += llvm::alignTo(made.strings.size(), FIRN_BUFFER_ALIGNMENT);
    program.weights.push_back(std::move(made));
    return buffer;
  }
  /// The buffer of a value; -1 for an absent operand.
  int32_t bufferOf(Value value) {
    if (isAbsent(value))
      return -1;
    auto at = buffers.find(value);
    if (at != buffers.end())
      return at->second;
    if (ElementsAttr constant = constantOf(value))
      return buffers[value] = weight(constant);
    if (auto strings = value.getDefiningOp<ConstantOp>())
      return buffers[value] =
                 stringWeight(cast<RankedTensorType>(value.getType()), cast<ArrayAttr>(strings.getValue()));
    return buffers[value] = newBuffer(value.getType());
  }
  int32_t root(int32_t buffer) const {
    while (program.buffers[buffer].kind == FIRN_BUFFER_ALIAS)
      buffer = program.buffers[buffer].offset;
    return buffer;
  }

  // --- steps ---------------------------------------------------------------------------------------------------------

  ProgramStep &step(int32_t kind, StringRef name) {
    program.steps.emplace_back();
    program.steps.back().kind = kind;
    program.steps.back().name = name.str();
    program.steps.back().begin = program.steps.size();
    return program.steps.back();
  }
  void copy(int32_t from, int32_t to, StringRef name) {
    ProgramStep &s = step(FIRN_STEP_COPY, name);
    s.buffers = {from, to};
    s.inputCount = 1;
    s.kindName = "copy";
  }
  bool isList(int32_t buffer) const { return program.buffers[buffer].form != FIRN_FORM_TENSOR; }
  void listStep(int32_t operation, std::vector<int32_t> list, StringRef name) {
    ProgramStep &s = step(FIRN_STEP_LIST, name);
    s.operation = operation;
    s.inputCount = list.size() - 1;
    s.buffers = std::move(list);
    s.kindName = listOperationName(operation);
  }
  /// Buffer `to` gets what `from` holds, behind `op`. A list that nobody reads any more is moved.
  void assign(int32_t from, int32_t to, Operation *op, StringRef name) {
    if (!isList(to))
      return copy(from, to, name);
    if (!isList(from))
      return listStep(FIRN_LIST_MAKE, {from, to}, name);
    listStep(mayChange(from, op) ? FIRN_LIST_MOVE : FIRN_LIST_COPY, {from, to}, name);
  }
  /// Whether `op`, which reads it, may leave the list in `buffer` changed: nobody reads it afterwards.
  bool mayChange(int32_t buffer, Operation *op) const {
    int32_t origin = root(buffer);
    if (program.buffers[origin].kind != FIRN_BUFFER_LATE)
      return false;
    unsigned reads = 0;
    for (Value operand : op->getOperands())
      if (auto at = buffers.find(operand); at != buffers.end() && root(at->second) == origin)
        ++reads;
    if (reads != 1)
      return false;
    for (auto &[value, id] : buffers)
      if (root(id) == origin && isReadAfter(value, op))
        return false;
    return true;
  }
  void bindDims(ArrayRef<std::pair<int32_t, int32_t>> pairs, StringRef name) {
    if (pairs.empty())
      return;
    ProgramStep &s = step(FIRN_STEP_BIND, name);
    s.kindName = "bind";
    for (auto [symbol, value] : pairs) {
      s.dims.push_back(symbol);
      s.dims.push_back(value);
    }
  }
  /// Pairs (symbol of `to`, value of `from`) for dimensions of `to` that are symbols found while running.
  void bindingsFor(Type to, Type from, std::vector<std::pair<int32_t, int32_t>> &pairs) {
    auto target = dyn_cast<RankedTensorType>(to), source = dyn_cast<RankedTensorType>(from);
    if (!target || !source)
      return;
    for (int64_t axis = 0; axis < target.getRank(); ++axis) {
      auto symbol = dimOf(target, axis).asSymbol();
      if (!symbol || dimOf(source, axis) == dimOf(target, axis))
        continue;
      int32_t value = values.symbol(*symbol);
      if (values.isLate(value))
        pairs.push_back({value, values.get(dimOf(source, axis))});
    }
  }

  void block(Block &body) {
    for (Operation &op : body)
      operation(&op);
  }

  /// Whether a dimension of `type` is a symbol that no step before has found: a shape that arrives as data, for one. A
  /// view cannot find it, the operation's shape function can.
  bool definesSymbols(Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && llvm::any_of(dimsOf(tensor), [&](const DimExpr &dim) {
             auto symbol = dim.asSymbol();
             return symbol && !values.isBound(*symbol);
           });
  }

  void operation(Operation *op) {
    if (isa<ConstantOp, AbsentOp, YieldOp, func::ReturnOp>(op))
      return;
    std::string name = nodeName(op->getLoc());
    if (isView(op) && !definesSymbols(op->getResult(0).getType())) {
      int32_t source = bufferOf(op->getOperand(0));
      // An expression of the view may be unknown where the source's is not: it is the source's element count then.
      buffers[op->getResult(0)] = newBuffer(op->getResult(0).getType(), FIRN_BUFFER_ALIAS, source);
      return;
    }
    if (auto dims = dyn_cast<DimValuesOp>(op)) {
      SmallVector<DimExpr> elements = *integerElements(dims.getResult());
      std::vector<int32_t> list = values.list(elements);
      int32_t buffer = bufferOf(dims.getResult());
      ProgramStep &s = step(FIRN_STEP_VALUES, name);
      s.dims = list;
      s.buffers = {buffer};
      s.kindName = "shape";
      return;
    }
    if (auto fail = dyn_cast<FailOp>(op)) {
      step(FIRN_STEP_FAIL, fail.getMessage()).kindName = "fail";
      for (Value output : fail.getOutputs())
        bufferOf(output);
      return;
    }
    if (auto listed = listOperation(op))
      return list(op, *listed, name);
    if (auto branch = dyn_cast<IfOp>(op))
      return conditional(branch, name);
    if (auto loop = dyn_cast<LoopOp>(op))
      return iteration(loop, name);
    std::vector<int32_t> all;
    for (Value operand : op->getOperands())
      all.push_back(bufferOf(operand));
    int32_t inputCount = all.size();
    if (auto fused = dyn_cast<FusedOp>(op))
      takePlaces(fused);
    for (Value result : op->getResults())
      all.push_back(bufferOf(result));
    int32_t flops = values.get(flopsOf(op)), bytes = byteCount(op);
    std::vector<int32_t> dims;
    if (auto fused = dyn_cast<FusedOp>(op))
      for (const std::string &symbol : symbolsOf(fused))
        dims.push_back(values.symbol(symbol));
    auto binding = kernels.find(op);
    bool isKernel = binding != kernels.end();
    ProgramStep &s = step(isKernel ? FIRN_STEP_KERNEL : FIRN_STEP_REFERENCE, name);
    s.buffers = std::move(all);
    s.inputCount = inputCount;
    s.flops = flops;
    s.bytes = bytes;
    s.dims = std::move(dims);
    if (isKernel) {
      s.kernel = binding->second.symbol;
      s.isParallel = binding->second.isParallel;
      s.scratchBytes = binding->second.scratchBytes;
      s.kindName = cast<FusedOp>(op).getKind().str();
    } else {
      s.op = op;
      s.kindName = "reference";
    }
  }

  /// An operation on lists that the executor does itself.
  void list(Operation *op, int32_t operation, StringRef name) {
    Value result = op->getResult(0);
    if (operation == FIRN_LIST_HAS && !isa<OptionalType>(op->getOperand(0).getType())) {
      bool has = !isAbsent(op->getOperand(0));
      buffers[result] = weight(DenseElementsAttr::get(cast<RankedTensorType>(result.getType()), has));
      return;
    }
    std::vector<int32_t> all;
    for (Value operand : op->getOperands())
      all.push_back(bufferOf(operand));
    size_t inputs = listInputs(operation);
    if (operation != FIRN_LIST_MAKE)
      all.resize(inputs, -1);
    bool changes = operation == FIRN_LIST_INSERT || operation == FIRN_LIST_ERASE || operation == FIRN_LIST_COPY;
    if (changes && mayChange(all[0], op)) {
      if (operation == FIRN_LIST_COPY)
        operation = FIRN_LIST_MOVE;
      else
        buffers[result] = newBuffer(result.getType(), FIRN_BUFFER_ALIAS, all[0]);
    }
    all.push_back(bufferOf(result));
    listStep(operation, std::move(all), name);
  }

  /// Bytes of operands and results, each once.
  int32_t byteCount(Operation *op) {
    DimExpr total(0);
    llvm::DenseSet<Value> seen;
    auto add = [&](Value value) {
      auto type = dyn_cast<RankedTensorType>(value.getType());
      if (!type || !seen.insert(value).second)
        return;
      DimExpr count(1);
      for (const DimExpr &dim : dimsOf(type))
        count = count * dim;
      total = total + count * DimExpr(std::max<int64_t>(1, firn_dtype_bits(dtypeOf(type.getElementType())) / 8));
    };
    llvm::for_each(op->getOperands(), add);
    llvm::for_each(op->getResults(), add);
    return values.get(total);
  }

  /// Whether nothing behind `op` in its block reads the bytes of `buffer` (through any value).
  bool diesAt(int32_t buffer, Operation *op) {
    for (auto &[value, id] : buffers) {
      if (root(id) != buffer)
        continue;
      for (Operation *user : value.getUsers()) {
        Operation *ancestor = op->getBlock()->findAncestorOpInBlock(*user);
        if (!ancestor || op->isBeforeInBlock(ancestor))
          return false;
      }
      // A value of an outer block may be read in the next iteration or after the branch.
      Block *home = isa<BlockArgument>(value) ? nullptr : value.getDefiningOp()->getBlock();
      if (home != op->getBlock())
        return false;
    }
    return true;
  }

  /// Results of a kernel take the buffers of operands that die there.
  void takePlaces(FusedOp op) {
    llvm::DenseSet<int32_t> taken;
    for (auto [operand, result] : inPlace(op)) {
      Value from = op.getOperand(operand), to = op.getResult(result);
      if (buffers.count(to))
        continue;
      int32_t source = root(bufferOf(from));
      if (program.buffers[source].kind != FIRN_BUFFER_ARENA || taken.count(source))
        continue;
      auto a = cast<RankedTensorType>(from.getType()), b = cast<RankedTensorType>(to.getType());
      if (dimsOf(a) != dimsOf(b) ||
          firn_dtype_bits(dtypeOf(a.getElementType())) != firn_dtype_bits(dtypeOf(b.getElementType())))
        continue;
      bool readTwice = false; // a second operand may read the same bytes elsewhere
      for (auto [i, other] : llvm::enumerate(op.getOperands()))
        if (i != operand && !constantOf(other) && root(bufferOf(other)) == source)
          readTwice = true;
      if (readTwice || !diesAt(source, op))
        continue;
      taken.insert(source);
      buffers[to] = newBuffer(to.getType(), FIRN_BUFFER_ALIAS, source);
    }
  }

  void conditional(IfOp op, StringRef name) {
    int32_t condition = bufferOf(op.getCondition());
    for (Value result : op.getOutputs())
      bufferOf(result);
    size_t at = program.steps.size();
    ProgramStep &s = step(FIRN_STEP_IF, name);
    s.kindName = "if";
    s.buffers = {condition};
    s.inputCount = 1;
    auto branch = [&](Region &region) {
      block(region.front());
      Operation *yield = region.front().getTerminator();
      std::vector<std::pair<int32_t, int32_t>> pairs;
      for (auto [result, value] : llvm::zip(op.getOutputs(), yield->getOperands()))
        if (!isa_and_nonnull<FailOp>(value.getDefiningOp()))
          bindingsFor(result.getType(), value.getType(), pairs);
      bindDims(pairs, name);
      for (auto [result, value] : llvm::zip(op.getOutputs(), yield->getOperands()))
        if (!isa_and_nonnull<FailOp>(value.getDefiningOp()))
          assign(bufferOf(value), bufferOf(result), yield, name);
    };
    branch(op.getThenBranch());
    program.steps[at].middle = program.steps.size();
    branch(op.getElseBranch());
    program.steps[at].end = program.steps.size();
    nested.push_back({int32_t(at), int32_t(program.steps.size()), false});
  }

  void iteration(LoopOp op, StringRef name) {
    Block &body = op.getBody().front();
    Operation *yield = body.getTerminator();
    unsigned carried = op.getCarried().size();
    int32_t trip = bufferOf(op.getTripCount());
    int32_t iterationBuffer = bufferOf(body.getArgument(0)), condition = bufferOf(body.getArgument(1));
    int32_t initialCondition = bufferOf(op.getCondition());
    if (initialCondition < 0) // it starts true; the body's own is still read after each iteration
      initialCondition = weight(DenseElementsAttr::get(cast<RankedTensorType>(body.getArgument(1).getType()), true));
    copy(initialCondition, condition, name);
    std::vector<std::pair<int32_t, int32_t>> pairs;
    for (unsigned i = 0; i < carried; ++i)
      bindingsFor(body.getArgument(i + 2).getType(), op.getCarried()[i].getType(), pairs);
    bindDims(pairs, name);
    for (unsigned i = 0; i < carried; ++i)
      assign(bufferOf(op.getCarried()[i]), bufferOf(body.getArgument(i + 2)), op, name);

    size_t at = program.steps.size();
    ProgramStep &s = step(FIRN_STEP_LOOP, name);
    s.kindName = "loop";
    s.buffers = {trip, condition, iterationBuffer};
    s.inputCount = 2;
    block(body);
    pairs.clear();
    for (unsigned i = carried; i < op.getNumResults(); ++i) { // inner dimensions of scan outputs
      auto result = cast<RankedTensorType>(op.getResult(i).getType());
      auto element = cast<RankedTensorType>(yield->getOperand(i + 1).getType());
      for (int64_t axis = 0; axis < element.getRank(); ++axis)
        if (auto symbol = dimOf(result, axis + 1).asSymbol(); symbol && dimOf(element, axis) != dimOf(result, axis + 1))
          pairs.push_back({values.symbol(*symbol), values.get(dimOf(element, axis))});
    }
    bindDims(pairs, name);
    for (unsigned i = carried; i < op.getNumResults(); ++i) {
      int32_t from = bufferOf(yield->getOperand(i + 1)), to = bufferOf(op.getResult(i));
      int32_t count = values.get(dimOf(cast<RankedTensorType>(op.getResult(i).getType()), 0));
      ProgramStep &append = step(FIRN_STEP_APPEND, name);
      append.buffers = {from, to};
      append.inputCount = 1;
      append.dims = {count};
      append.kindName = "append";
    }
    // All new carried values are read before any is written: those that are carried values themselves go through
    // copies.
    llvm::DenseSet<int32_t> arguments{condition};
    for (unsigned i = 0; i < carried; ++i)
      arguments.insert(bufferOf(body.getArgument(i + 2)));
    std::vector<int32_t> sources;
    for (unsigned i = 0; i < carried; ++i) {
      int32_t from = bufferOf(yield->getOperand(i + 1)), own = bufferOf(body.getArgument(i + 2));
      if (root(from) != own && arguments.count(root(from))) {
        int32_t spare = newBuffer(yield->getOperand(i + 1).getType());
        assign(from, spare, yield, name);
        from = spare;
      }
      sources.push_back(from);
    }
    copy(bufferOf(yield->getOperand(0)), condition, name);
    rebind(op, sources, name);
    for (unsigned i = 0; i < carried; ++i)
      if (int32_t own = bufferOf(body.getArgument(i + 2)); root(sources[i]) != own)
        assign(sources[i], own, yield, name);
    program.steps[at].end = program.steps.size();
    nested.push_back({int32_t(at), int32_t(program.steps.size()), true});
    pairs.clear();
    for (unsigned i = 0; i < carried; ++i)
      bindingsFor(op.getResult(i).getType(), body.getArgument(i + 2).getType(), pairs);
    bindDims(pairs, name);
    for (unsigned i = 0; i < carried; ++i)
      buffers[op.getResult(i)] =
          newBuffer(op.getResult(i).getType(), FIRN_BUFFER_ALIAS, bufferOf(body.getArgument(i + 2)));
  }

  /// The symbols of a loop's arguments take the sizes of the values that follow. Those sizes may be expressions of the
  /// same symbols (one row more), so that they are kept aside first, and `sources` are read by what is kept.
  void rebind(LoopOp op, std::vector<int32_t> &sources, StringRef name) {
    Block &body = op.getBody().front();
    std::vector<std::pair<int32_t, int32_t>> kept, taken;
    for (auto [i, source] : llvm::enumerate(sources)) {
      auto target = dyn_cast<RankedTensorType>(body.getArgument(i + 2).getType());
      auto next = dyn_cast<RankedTensorType>(body.getTerminator()->getOperand(i + 1).getType());
      if (!target || !next)
        continue;
      std::vector<int32_t> dims = program.buffers[source].dims;
      bool isRebound = false;
      for (int64_t axis = 0; axis < target.getRank(); ++axis) {
        auto symbol = dimOf(target, axis).asSymbol();
        if (!symbol || dimOf(next, axis) == dimOf(target, axis) || !values.isLate(values.symbol(*symbol)))
          continue;
        int32_t fresh = values.symbol("loop " + std::to_string(program.steps.size()) + "." + std::to_string(i) + "." +
                                      std::to_string(axis));
        kept.push_back({fresh, values.get(dimOf(next, axis))});
        taken.push_back({values.symbol(*symbol), fresh});
        dims[axis] = fresh;
        isRebound = true;
      }
      if (!isRebound)
        continue;
      source = newBuffer(next, FIRN_BUFFER_ALIAS, source);
      program.buffers[source].dims = dims;
    }
    bindDims(kept, name);
    bindDims(taken, name);
  }

  // --- interface -----------------------------------------------------------------------------------------------------

  void inputs(func::FuncOp func) {
    // Symbols first, so that later inputs are constrained by earlier ones.
    for (BlockArgument argument : func.getArguments()) {
      unsigned i = argument.getArgNumber();
      ProgramPort port;
      if (auto name = func.getArgAttrOfType<StringAttr>(i, "firn.name"))
        port.name = name.getValue().str();
      auto type = dyn_cast<RankedTensorType>(argument.getType());
      if (!type) {
        port.buffer = newBuffer(argument.getType(), FIRN_BUFFER_INPUT, i);
        port.dtype = program.buffers[port.buffer].dtype;
        buffers[argument] = port.buffer;
        program.inputs.push_back(std::move(port));
        continue;
      }
      port.dtype = dtypeOf(type.getElementType());
      for (int64_t axis = 0; axis < type.getRank(); ++axis) {
        DimExpr dim = dimOf(type, axis);
        std::string where = "dimension " + std::to_string(axis) + " of input '" + port.name + "'";
        if (auto symbol = dim.asSymbol()) {
          int32_t here = values.inputDim(i, axis);
          port.symbols.push_back(*symbol);
          if (!values.isBound(*symbol)) {
            values.bind(*symbol, here);
            firstUse[*symbol] = where;
            if (auto range = ranges.find(*symbol); range != ranges.end())
              program.constraints.push_back({here, range->second.lower, range->second.upper,
                                             where + " (" + *symbol + ") lies outside of the range that was compiled"});
          } else {
            int32_t difference = values.get(DimExpr(0));
            program.values.push_back({FIRN_VALUE_SUB, 0, here, values.symbol(*symbol)});
            difference = program.values.size() - 1;
            program.constraints.push_back(
                {difference, 0, 0, where + " must equal " + firstUse[*symbol] + " (" + *symbol + ")"});
          }
          port.dims.push_back(here);
        } else {
          port.symbols.push_back("");
          port.dims.push_back(values.get(dim));
        }
      }
      if (Attribute value = func.getArgAttr(i, "firn.default"); value && type.hasStaticShape()) {
        auto strings = dyn_cast<ArrayAttr>(value);
        port.isOptional = true;
        port.defaultOffset =
            program.buffers[strings ? stringWeight(type, strings) : weight(cast<ElementsAttr>(value))].offset;
      }
      port.buffer = newBuffer(type, FIRN_BUFFER_INPUT, i);
      program.buffers[port.buffer].dims = port.dims;
      buffers[argument] = port.buffer;
      program.inputs.push_back(std::move(port));
    }
    if (auto assumptions = func->getAttrOfType<ArrayAttr>(assumptionsAttribute))
      for (auto assumption : assumptions.getAsRange<ArrayAttr>())
        assume(cast<StringAttr>(assumption[0]).getValue(), cast<StringAttr>(assumption[1]).getValue());
  }

  /// The dimension `text` must be at least 2, where the inputs tell it.
  void assume(StringRef text, StringRef message) {
    std::optional<DimExpr> dim = DimExpr::parse(std::string_view(text.data(), text.size()));
    std::set<std::string> symbols;
    if (dim)
      dim->collectSymbols(symbols);
    if (dim && llvm::all_of(symbols, [&](const std::string &symbol) { return values.isBound(symbol); }))
      program.constraints.push_back({values.get(*dim), 2, std::numeric_limits<int64_t>::max(), message.str()});
  }

  /// What inference could not know of the inputs' sizes (passes/fold/InferShapes.cpp).
  void requirements(ModuleOp module) {
    auto list = module ? module->getAttrOfType<ArrayAttr>("firn.requires") : ArrayAttr();
    if (!list)
      return;
    auto read = [&](StringRef text) -> std::optional<DimExpr> {
      auto expr = DimExpr::parse(std::string_view(text.data(), text.size()));
      std::set<std::string> symbols;
      if (expr)
        expr->collectSymbols(symbols);
      bool isBound = llvm::all_of(symbols, [&](const std::string &s) { return values.isBound(s); });
      return isBound ? expr : std::nullopt;
    };
    for (auto entry : list.getAsRange<ArrayAttr>()) {
      auto text = [&](unsigned i) { return cast<StringAttr>(entry[i]).getValue(); };
      auto a = read(text(0)), b = text(1).empty() ? DimExpr(0) : read(text(1));
      if (!a || !b)
        continue;
      int32_t value = values.get(*a);
      if (!text(1).empty()) {
        int32_t other = values.get(*b);
        program.values.push_back({FIRN_VALUE_SUB, 0, value, other});
        value = program.values.size() - 1;
      }
      program.constraints.push_back({value, 0, text(1).empty() ? INT64_MAX : 0, text(2).str()});
    }
  }

  void outputs(func::FuncOp func) {
    Operation *end = func.getBody().front().getTerminator();
    llvm::DenseSet<int32_t> taken;
    for (auto [i, value] : llvm::enumerate(end->getOperands())) {
      ProgramPort port;
      if (auto name = func.getResultAttrOfType<StringAttr>(i, "firn.name"))
        port.name = name.getValue().str();
      // An optional that the file declares a sequence must have a value.
      Type declared = value.getType();
      if (auto given = func.getResultAttrOfType<TypeAttr>(i, "firn.declared"))
        if (auto optional = dyn_cast<OptionalType>(declared);
            optional && isa<SequenceType>(given.getValue()) && isa<SequenceType>(optional.getElement()))
          declared = optional.getElement();
      if (auto type = dyn_cast<RankedTensorType>(declared)) {
        port.dtype = dtypeOf(type.getElementType());
        port.dims = values.list(dimsOf(type));
        for (const DimExpr &dim : dimsOf(type))
          port.symbols.push_back(dim.isConstant() ? "" : dim.str());
      } else {
        port.dtype = listFormOf(declared)->dtype;
      }
      int32_t buffer = bufferOf(value), origin = root(buffer);
      int32_t kind = program.buffers[origin].kind;
      bool isOwn =
          (kind == FIRN_BUFFER_ARENA || kind == FIRN_BUFFER_LATE) && !isCarried(origin) && declared == value.getType();
      if (isOwn && taken.insert(origin).second) {
        program.buffers[origin].kind = FIRN_BUFFER_OUTPUT;
        program.buffers[origin].offset = i;
        port.buffer = origin;
      } else {
        port.buffer = newBuffer(declared, FIRN_BUFFER_OUTPUT, i);
        assign(buffer, port.buffer, end, port.name);
      }
      program.outputs.push_back(std::move(port));
    }
  }
  /// Whether a buffer is rewritten by a loop (its dims while the loop runs are not the output's) or appended to.
  bool isCarried(int32_t buffer) const {
    for (const auto &[value, id] : buffers)
      if (id == buffer && isa<BlockArgument>(value))
        return true;
    for (const ProgramStep &s : program.steps)
      if (s.kind == FIRN_STEP_APPEND && s.buffers[1] == buffer)
        return true;
    return false;
  }

  void lifetimes() {
    auto touch = [&](int32_t buffer, int32_t at) {
      ProgramBuffer &b = program.buffers[root(buffer)];
      b.firstStep = b.firstStep < 0 ? at : std::min(b.firstStep, at);
      b.lastStep = std::max(b.lastStep, at);
    };
    for (auto [at, s] : llvm::enumerate(program.steps))
      for (int32_t buffer : s.buffers)
        if (buffer >= 0)
          touch(buffer, at);
    // What lives across the border of a loop lives for all of it; carried values are written before it, so they do.
    for (bool changed = true; changed;) {
      changed = false;
      for (const Nested &n : nested)
        for (ProgramBuffer &b : program.buffers) {
          if (b.firstStep < 0)
            continue;
          bool before = b.firstStep <= n.begin, after = b.lastStep >= n.end;
          if (n.isLoop && before && b.lastStep > n.begin && b.lastStep < n.end) {
            b.lastStep = n.end;
            changed = true;
          }
          // Written inside (a branch's or loop's result), read behind: both branches count.
          if (!before && after && b.firstStep < n.end && b.firstStep > n.begin) {
            b.firstStep = n.begin;
            changed = true;
          }
        }
    }
  }

  struct Nested {
    int32_t begin, end;
    bool isLoop;
  };

  const llvm::DenseMap<Operation *, KernelBinding> &kernels;
  llvm::function_ref<std::vector<std::string>(FusedOp)> symbolsOf;
  llvm::function_ref<std::vector<std::pair<unsigned, unsigned>>(FusedOp)> inPlace;
  llvm::function_ref<DimExpr(Operation *)> flopsOf;
  const DimRanges &ranges;
  Program program;
  Values values;
  llvm::DenseMap<Value, int32_t> buffers;
  llvm::DenseMap<Attribute, int32_t> weightBuffers;
  std::map<std::pair<const void *, int64_t>, int64_t> weightOffsets;
  std::map<std::string, std::string> firstUse;
  std::vector<Nested> nested;
};

} // namespace

Program planProgram(ModuleOp module, const llvm::DenseMap<Operation *, KernelBinding> &kernels,
                    llvm::function_ref<std::vector<std::string>(FusedOp)> symbolsOf,
                    llvm::function_ref<std::vector<std::pair<unsigned, unsigned>>(FusedOp)> inPlace,
                    llvm::function_ref<DimExpr(Operation *)> flopsOf, const DimRanges &ranges) {
  auto main = *module.getOps<func::FuncOp>().begin();
  return Planner(kernels, symbolsOf, inPlace, flopsOf, ranges).run(main);
}

} // namespace firn

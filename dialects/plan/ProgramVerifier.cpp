// ProgramVerifier: the rules C1 to C9 of plan.program.
#include "dialects/plan/Plan.h"
#include "runtime/abi/model.h"

using namespace mlir;

namespace firn::plan {

namespace {

class Verifier {
public:
  explicit Verifier(ProgramOp verified) : program(verified) {}

  LogicalResult run() {
    for (Operation &op : program.getBody().front()) {
      if (auto value = dyn_cast<ValueOp>(op))
        values.push_back(value);
      else if (auto buffer = dyn_cast<BufferOp>(op))
        buffers.push_back(buffer);
      else if (auto input = dyn_cast<InputOp>(op))
        inputs.push_back(input);
      else if (auto output = dyn_cast<OutputOp>(op))
        outputs.push_back(output);
      else if (isStep(&op))
        steps.push_back(&op);
      else if (!isa<ConstraintOp, WeightOp>(op))
        problem(&op, "is no entry of a plan");
    }
    count(values);
    count(buffers);
    count(inputs);
    count(outputs);
    count(steps);
    if (isBroken) // numbers mean nothing then
      return failure();
    for (ValueOp value : values)
      checkValue(value);
    for (BufferOp buffer : buffers)
      checkBuffer(buffer);
    if (isBroken)
      return failure();
    for (InputOp input : inputs)
      checkPort(input, FIRN_BUFFER_INPUT);
    for (OutputOp output : outputs)
      checkPort(output, FIRN_BUFFER_OUTPUT);
    for (ConstraintOp constraint : program.getBody().front().getOps<ConstraintOp>())
      checkValues(constraint, {int32_t(constraint.getValue())});
    for (WeightOp weight : program.getBody().front().getOps<WeightOp>())
      if (int64_t at = weight.getAt();
          at < 0 || at % FIRN_BUFFER_ALIGNMENT || at > int64_t(program.getWeightBytes())) // C6
        problem(weight, "expected a 64-byte aligned offset up to ")
            << int64_t(program.getWeightBytes()) << ", found " << at;
    for (Operation *step : steps)
      checkStep(step);
    checkArena();
    return failure(isBroken);
  }

private:
  InFlightDiagnostic problem(Operation *op, const Twine &text) {
    isBroken = true;
    return op->emitOpError(text);
  }

  static int64_t idOf(Operation *op) { return op->getAttrOfType<IntegerAttr>("id").getInt(); }

  template <typename List> void count(const List &list) { // C1
    for (auto [i, op] : llvm::enumerate(list))
      if (Operation *entry = op; idOf(entry) != int64_t(i))
        problem(entry, "expected number ") << int64_t(i) << ", found " << idOf(entry);
  }

  bool checkValues(Operation *op, ArrayRef<int32_t> list) { // C2
    bool isFine = true;
    for (int32_t value : list)
      if (value < 0 || size_t(value) >= values.size()) {
        problem(op, "names value ") << value << ", but there are " << int64_t(values.size());
        isFine = false;
      }
    return isFine;
  }
  bool checkBuffers(Operation *op, ArrayRef<int32_t> list, bool mayBeAbsent) { // C2
    bool isFine = true;
    for (int32_t buffer : list)
      if ((buffer < 0 || size_t(buffer) >= buffers.size()) && !(mayBeAbsent && buffer == -1)) {
        problem(op, "names buffer ") << buffer << ", but there are " << int64_t(buffers.size());
        isFine = false;
      }
    return isFine;
  }

  void checkValue(ValueOp op) {
    int32_t kind = valueKind(op.getKind());
    ArrayRef<int64_t> operands = op.getArguments();
    if (kind < 0) {
      problem(op, "unknown kind '") << op.getKind() << "'";
      return;
    }
    size_t expected = kind == FIRN_VALUE_CONSTANT ? 1 : kind == FIRN_VALUE_SYMBOL ? 0 : 2;
    if (operands.size() != expected) {
      problem(op, "expected ") << int64_t(expected) << " operands of '" << op.getKind() << "', found "
                               << int64_t(operands.size());
      return;
    }
    bool isLate = kind == FIRN_VALUE_SYMBOL;
    if (kind == FIRN_VALUE_INPUT_DIM) { // C2
      if (operands[0] < 0 || size_t(operands[0]) >= inputs.size())
        problem(op, "names input ") << operands[0] << ", but there are " << int64_t(inputs.size());
      else if (int64_t rank = inputs[operands[0]].getDims().size(); operands[1] < 0 || operands[1] >= rank)
        problem(op, "names dimension ") << operands[1] << " of an input of rank " << rank;
    } else if (kind > FIRN_VALUE_SYMBOL) {
      for (int64_t operand : operands) {
        if (operand < 0 || operand >= idOf(op)) {
          problem(op, "names value ") << operand << ", which is not below it";
          return;
        }
        isLate |= values[operand].getLate();
      }
    }
    if (isLate != bool(op.getLate())) // C3
      problem(op, isLate ? "is made of a symbol, so it is late" : "is late, but made of no symbol");
  }

  void checkBuffer(BufferOp op) {
    int32_t kind = bufferKind(op.getKind());
    int64_t at = op.getAt();
    if (kind < 0)
      problem(op, "unknown kind '") << op.getKind() << "'";
    bool isList = op.getForm() && formOfWord(*op.getForm()) > 0;
    if (op.getForm() && (!isList || kind == FIRN_BUFFER_WEIGHT || kind == FIRN_BUFFER_ARENA || !op.getDims().empty()))
      problem(op, "expected a list without dims that is input, output, late or alias, found form '")
          << *op.getForm() << "'"; // C9
    if (dtypeOfWord(op.getDtype()) < (isList ? 0 : 1))
      problem(op, "unknown dtype '") << op.getDtype() << "'";
    checkValues(op, op.getDims());
    auto within = [&](size_t bound, StringRef what) {
      if (at < 0 || size_t(at) >= bound)
        problem(op, "names ") << what << " " << at << ", but there are " << int64_t(bound);
    };
    switch (kind) {
    case FIRN_BUFFER_INPUT:
      return within(inputs.size(), "input");
    case FIRN_BUFFER_OUTPUT:
      return within(outputs.size(), "output");
    case FIRN_BUFFER_WEIGHT:
      if (at < 0 || at % FIRN_BUFFER_ALIGNMENT || at > int64_t(program.getWeightBytes())) // C6
        problem(op, "expected a 64-byte aligned offset up to ")
            << int64_t(program.getWeightBytes()) << ", found " << at;
      return;
    case FIRN_BUFFER_ARENA: {
      auto lives = numbers(op, "lives");
      if (op.getLives() && (lives.size() != 2 || lives[0] < 0 || lives[0] > lives[1] ||
                            size_t(lives[1]) >= std::max<size_t>(steps.size(), 1)))
        problem(op, "lives in steps that are not there");
      bool isPlaced = int64_t(program.getArenaBytes()) >= 0;
      if (isPlaced != (at >= 0)) // C5
        problem(op, isPlaced ? "has no offset in a placed arena" : "has an offset in an arena that is placed later");
      else if (at >= 0 && at % FIRN_BUFFER_ALIGNMENT)
        problem(op, "expected a 64-byte aligned offset, found ") << at;
      return;
    }
    case FIRN_BUFFER_ALIAS:
      within(buffers.size(), "buffer");
      // C4: a chain that is longer than the table turns in a circle.
      for (size_t length = 0, next = size_t(at); next < buffers.size(); ++length) {
        if (bufferKind(buffers[next].getKind()) != FIRN_BUFFER_ALIAS)
          return;
        if (length > buffers.size()) {
          problem(op, "is an alias of itself");
          return;
        }
        int64_t following = buffers[next].getAt();
        next = following < 0 ? buffers.size() : size_t(following);
      }
      return;
    default:
      return;
    }
  }

  template <typename Port> void checkPort(Port op, int32_t kind) {
    checkValues(op, op.getDims());
    if (op.getSymbols().size() != op.getDims().size())
      problem(op, "expected a symbol for each of ")
          << int64_t(op.getDims().size()) << " dimensions, found " << int64_t(op.getSymbols().size());
    if (!checkBuffers(op, {int32_t(op.getBuffer())}, false))
      return;
    BufferOp buffer = buffers[op.getBuffer()]; // C4
    if (bufferKind(buffer.getKind()) != kind || int64_t(buffer.getAt()) != idOf(op))
      problem(op, "its buffer belongs to another");
    if (buffer.getDtype() != op.getDtype())
      problem(op, "expected a buffer of dtype ") << op.getDtype() << ", found " << buffer.getDtype();
  }

  bool isSymbol(int32_t value) { return valueKind(values[value].getKind()) == FIRN_VALUE_SYMBOL; }

  void checkStep(Operation *op) {
    while (!around.empty() && idOf(op) >= around.back().end)
      around.pop_back();
    ArrayRef<int32_t> reads = numbers(op, "reads"), writes = numbers(op, "writes"), dims = numbers(op, "dims");
    bool mayBeAbsent = isa<ReferenceOp, LoopOp, ListOp>(op);
    bool isFine = checkBuffers(op, reads, mayBeAbsent);
    isFine &= checkBuffers(op, writes, mayBeAbsent);
    isFine &= checkValues(op, dims);
    ArrayRef<int32_t> costs = numbers(op, "costs");
    if (costs.size() != 2)
      problem(op, "expected two costs, found ") << int64_t(costs.size());
    for (int32_t cost : costs)
      if (cost != -1)
        checkValues(op, {cost});
    if (!isFine)
      return;
    for (ArrayRef<int32_t> list : {reads, writes})
      for (int32_t buffer : list)
        if (buffer >= 0 && buffers[buffer].getForm() && !isa<ReferenceOp, ListOp>(op)) // C9
          problem(op, "uses buffer ") << buffer << ", which is a list";
    auto require = [&](bool holds, const Twine &text) {
      if (!holds)
        problem(op, text);
    };
    if (isa<CopyOp>(op)) {
      require(reads.size() == 1 && writes.size() == 1, "expected one buffer read and one written");
    } else if (isa<ListOp>(op)) {
      require(writes.size() == 1, "expected one buffer written");
    } else if (isa<BindOp>(op)) { // C8
      require(dims.size() % 2 == 0, "expected pairs of values");
      for (size_t i = 0; i + 1 < dims.size(); i += 2)
        require(isSymbol(dims[i]), "binds value " + Twine(dims[i]) + ", which is no symbol");
    } else if (auto branch = dyn_cast<IfOp>(op)) { // C7
      require(reads.size() == 1, "expected one buffer read");
      nest(op, branch.getMiddle(), branch.getEnd(), false);
    } else if (auto loop = dyn_cast<LoopOp>(op)) {
      require(reads.size() == 2 && writes.size() == 1, "expected two buffers read and one written");
      nest(op, loop.getEnd(), loop.getEnd(), true);
    } else if (isa<AppendOp>(op)) { // C8
      require(llvm::any_of(around, [](const Nest &n) { return n.isLoop; }), "is in no loop");
      require(reads.size() == 1 && writes.size() == 1 && dims.size() == 1,
              "expected one buffer read, one written and one value");
      if (dims.size() == 1)
        require(isSymbol(dims[0]), "appends along value " + Twine(dims[0]) + ", which is no symbol");
    }
  }

  void nest(Operation *op, int64_t middle, int64_t end, bool isLoop) {
    int64_t begin = idOf(op) + 1, limit = around.empty() ? int64_t(steps.size()) : around.back().end;
    if (middle < begin || end < middle || end > limit) {
      problem(op, "expected steps between ") << begin << " and " << limit << ", found " << middle << " and " << end;
      return;
    }
    // The first branch must not reach into the second: what is nested in it ends where it ends.
    around.push_back({end, isLoop});
    if (!isLoop && middle < end)
      around.push_back({middle, isLoop});
  }

  /// -1 where it is not the same at every run.
  int64_t bytesOf(BufferOp op) const {
    int64_t elements = 1;
    for (int32_t dim : op.getDims()) {
      ValueOp value = values[dim];
      if (valueKind(value.getKind()) != FIRN_VALUE_CONSTANT || value.getArguments()[0] < 0 ||
          __builtin_mul_overflow(elements, value.getArguments()[0], &elements))
        return -1;
    }
    return elements > INT64_MAX / 16 ? -1 : firn_dtype_bytes(dtypeOfWord(op.getDtype()), elements);
  }

  void checkArena() { // C5
    int64_t arenaBytes = program.getArenaBytes();
    if (arenaBytes < 0)
      return;
    struct Placed {
      BufferOp op;
      int64_t begin, end;
      int32_t first, last;
    };
    std::vector<Placed> placed;
    for (BufferOp op : buffers) {
      if (bufferKind(op.getKind()) != FIRN_BUFFER_ARENA)
        continue;
      int64_t bytes = bytesOf(op), at = op.getAt();
      if (bytes < 0) {
        problem(op, "lies in a placed arena, but its size is not constant");
        continue;
      }
      if (at > arenaBytes || bytes > arenaBytes - at) {
        problem(op, "expected bytes below ") << arenaBytes << ", found [" << at << ", " << at + bytes << ")";
        continue;
      }
      ArrayRef<int32_t> lives = numbers(op, "lives");
      if (lives.size() == 2 && bytes > 0)
        placed.push_back({op, at, at + bytes, lives[0], lives[1]});
    }
    llvm::sort(placed, [](const Placed &a, const Placed &b) {
      return a.begin != b.begin ? a.begin < b.begin : idOf(a.op) < idOf(b.op);
    });
    for (size_t i = 0; i < placed.size(); ++i)
      for (size_t j = i + 1; j < placed.size() && placed[j].begin < placed[i].end; ++j)
        if (placed[i].first <= placed[j].last && placed[j].first <= placed[i].last)
          problem(placed[j].op, "shares bytes with buffer ") << idOf(placed[i].op) << " while both live";
  }

  struct Nest {
    int64_t end;
    bool isLoop;
  };

  ProgramOp program;
  std::vector<ValueOp> values;
  std::vector<BufferOp> buffers;
  std::vector<InputOp> inputs;
  std::vector<OutputOp> outputs;
  std::vector<Operation *> steps;
  std::vector<Nest> around;
  bool isBroken = false;
};

} // namespace

LogicalResult verifyProgram(ProgramOp program) { return Verifier(program).run(); }

} // namespace firn::plan

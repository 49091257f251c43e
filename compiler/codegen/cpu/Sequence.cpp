// Recurrent layers: LSTM, GRU and RNN, whole sequences in one kernel.
//
// A panel of weights holds all gates of as many units as a vector has lanes, so one tile yields what these units need
// and the rest of a step stays in registers. The products with the inputs of some steps are made together, ahead of the
// steps. Either workers take whole sequences (directions, groups of batch rows), or all of them share each step's units
// and meet after it; then the new state travels through the result Y.
#include "compiler/codegen/cpu/Sequence.h"

#include "compiler/codegen/cpu/SequenceActivation.h"
#include "compiler/codegen/cpu/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "runtime/abi/model.h"

using namespace mlir;

namespace firn {
namespace {

enum class Cell { Lstm, Gru, Rnn };

struct SequenceShape {
  Operation *op = nullptr;
  Cell cell = Cell::Lstm;
  int64_t gates = 4;
  int64_t directions = 1, hidden = 0, inputs = 0;
  bool startsReversed = false, isBatchFirst = false, isLinearBeforeReset = false;
  bool isCoupled = false;                  // the forget gate is 1 - the input gate
  SmallVector<GateActivation> activations; // f, g, h as the operator has them
  DimExpr steps, batch;
  View x;
  unsigned w = 0, r = 0;                                             // operands of the fused op
  std::optional<unsigned> b, lengths, initialH, initialC, peepholes; // the same
  std::optional<unsigned> resultY, resultH, resultC;                 // results of the fused op
};

/// The argument behind an operand; nothing where the operand is absent. Sets whyNot if it is neither.
std::optional<unsigned> argumentOf(Operation *op, unsigned i, std::string &whyNot) {
  Value value = operandOf(op, i);
  if (!value || singleValue(value) == 0.0) // zeros change nothing
    return std::nullopt;
  auto view = viewOf(value);
  if (!view || view->strides != denseStrides(view->dims) || !view->offset.isConstant() ||
      view->offset.constant() != 0) {
    whyNot = "operand " + std::to_string(i) + " that is no input of the kernel";
    return std::nullopt;
  }
  return view->argument.getArgNumber();
}

std::optional<SequenceShape> readSequence(FusedOp fused, Operation *op, std::string &whyNot) {
  SequenceShape s;
  s.op = op;
  s.cell = isa<LSTMOp>(op) ? Cell::Lstm : isa<GRUOp>(op) ? Cell::Gru : Cell::Rnn;
  s.gates = s.cell == Cell::Lstm ? 4 : s.cell == Cell::Gru ? 3 : 1;
  auto refuse = [&](const std::string &why) {
    whyNot = why;
    return std::nullopt;
  };
  Value x = operandOf(op, 0), w = operandOf(op, 1), r = operandOf(op, 2);
  auto view = x ? viewOf(x) : std::nullopt;
  auto wType = w ? dyn_cast<RankedTensorType>(w.getType()) : RankedTensorType();
  auto rType = r ? dyn_cast<RankedTensorType>(r.getType()) : RankedTensorType();
  if (!view || view->rank() != 3 || !view->elementType.isF32() || !wType || !rType || !wType.hasStaticShape() ||
      !rType.hasStaticShape() || !isa<BlockArgument>(w) || !isa<BlockArgument>(r))
    return refuse("a recurrent layer that is not of float32 with constant weights");
  if (!view->strides[2].isConstant() || view->strides[2].constant() != 1)
    return refuse("inputs of a step that are not adjacent");
  s.x = *view;
  s.w = cast<BlockArgument>(w).getArgNumber();
  s.r = cast<BlockArgument>(r).getArgNumber();
  auto flag = [&](StringRef name) {
    auto value = op->getAttrOfType<IntegerAttr>(name);
    return value && value.getInt() != 0;
  };
  s.isBatchFirst = flag("layout");
  s.isLinearBeforeReset = flag("linear_before_reset");
  auto direction = op->getAttrOfType<StringAttr>("direction");
  s.startsReversed = direction && direction.getValue() == "reverse";
  s.directions = wType.getDimSize(0);
  s.inputs = wType.getDimSize(2);
  s.hidden = rType.getDimSize(2);
  if (s.hidden < 1 || s.inputs < 1 || wType.getDimSize(1) != s.gates * s.hidden)
    return refuse("weights of an unexpected shape");
  SmallVector<StringRef> usual{"tanh"};
  if (s.cell != Cell::Rnn)
    usual.insert(usual.begin(), "sigmoid");
  if (s.cell == Cell::Lstm)
    usual.push_back("tanh");
  auto activations = readActivations(op, usual, s.directions, whyNot);
  if (!activations)
    return std::nullopt;
  s.activations = *activations;
  if (s.cell == Cell::Lstm)
    s.activations[2].clip.reset(); // the cell state is no gate
  s.isCoupled = flag("input_forget");
  s.batch = s.x.dims[s.isBatchFirst ? 0 : 1];
  s.steps = s.x.dims[s.isBatchFirst ? 1 : 0];
  s.b = argumentOf(op, 3, whyNot);
  s.lengths = argumentOf(op, 4, whyNot);
  s.initialH = argumentOf(op, 5, whyNot);
  if (s.cell == Cell::Lstm)
    for (auto [operand, argument] : {std::pair(6u, &s.initialC), std::pair(7u, &s.peepholes)})
      *argument = argumentOf(op, operand, whyNot);
  if (!whyNot.empty())
    return std::nullopt;
  Operation *yield = fused.getBody().front().getTerminator();
  for (auto [i, value] : llvm::enumerate(yield->getOperands())) {
    // Reshapes of a result are the same bytes.
    while (value.getDefiningOp() != op) {
      Operation *by = value.getDefiningOp();
      if (!by || !isView(by) || isa<TransposeOp>(by))
        return refuse("something behind the layer");
      value = by->getOperand(0);
    }
    unsigned number = cast<OpResult>(value).getResultNumber();
    std::optional<unsigned> &result = number == 0 ? s.resultY : number == 1 ? s.resultH : s.resultC;
    if (result)
      return refuse("one output twice");
    result = i;
  }
  return s;
}

class SequenceEmitter {
public:
  SequenceEmitter(KernelContext &kernelContext, SequenceShape sequence, const PackedWeight &w, const PackedWeight &r)
      : context(kernelContext), l(kernelContext.l), s(std::move(sequence)), packedW(w), packedR(r) {
    type = l.b.getF32Type();
    lanes = packedW.nr / s.gates;
    vector = VectorType::get({lanes}, type);
    panels = packedW.panels();
    width = panels * lanes;
  }

  void emit();

private:
  void sequences(Value direction, Value firstRow, int64_t rows);
  void inputProducts(Value direction, Value firstRow, int64_t rows, Value step0, Value steps);
  void step(Value direction, Value firstRow, int64_t rows, Value number, Value chunkStep, Value parity);
  void unitsOf(Value panel, int64_t rows, Value chunkStep, Value now, Value next, Value direction, Value firstRow,
               Value number);
  Value timeOf(Value direction, Value number, Value row);
  Value lengthOf(Value row);
  Value isActive(Value number, Value row);
  void finishUnits(Value h, Value now, Value next, Value at, Value unit, Value count, Value direction, Value row,
                   Value number);
  Value activated(unsigned function, Value x) { return applyActivation(context, s.activations[function], x); }
  Value peephole(Value direction, int64_t gate, Value panel, Value count);
  Value xRow(Value time, Value row);
  Value yRow(Value time, Value direction, Value row);
  Value stateRow(Value direction, Value row);
  Value bias(Value direction, int64_t half, int64_t gate, Value panel, Value count);
  void overPanels(llvm::function_ref<void(Value)> body) { l.loop(panelBegin, panelEnd, 1, body); }
  /// Lanes of a panel that are units: null for all.
  Value countOf(Value panel);
  Value add(Value a, Value b) { return context.elements.add(a, b); }
  Value mul(Value a, Value b) { return context.elements.mul(a, b); }
  LoopBuilder::Values product(Value from, int64_t rows, Value panel, Value direction, int64_t firstGate, int64_t gates,
                              LoopBuilder::Values sums);

  KernelContext &context;
  LoopBuilder &l;
  SequenceShape s;
  PackedWeight packedW, packedR;
  Type type;
  VectorType vector;
  int64_t lanes, panels, width; // width: units with padding
  int64_t mostRows = 1, chunkRows = 1;
  bool isShared = false; // all workers on one sequence
  Value panelBegin, panelEnd;
  Value products, states, cells, resets; // scratch: x * W of a chunk, [2][rows][width], [rows][width] of c, of r and z
};

Value SequenceEmitter::countOf(Value panel) {
  if (s.hidden % lanes == 0)
    return {};
  return l.min(l.index(lanes), l.sub(l.index(s.hidden), l.mul(panel, lanes)));
}

/// How many steps a row of the batch has; one that is out of range is a fault and none.
Value SequenceEmitter::lengthOf(Value row) {
  if (!s.lengths)
    return context.value(s.steps);
  Value length = l.b.create<arith::IndexCastOp>(l.loc, l.b.getIndexType(),
                                                l.load(l.b.getI32Type(), context.operand(*s.lengths), row));
  Value isInside = l.b.create<arith::CmpIOp>(l.loc, arith::CmpIPredicate::ule, length, context.value(s.steps));
  Value isBad = l.b.create<arith::XOrIOp>(l.loc, isInside, l.b.create<arith::ConstantIntOp>(l.loc, 1, 1));
  l.b.create<kernel::FaultOp>(l.loc, isBad, l.b.getI32IntegerAttr(FIRN_FAULT_INDEX));
  return l.select(isInside, length, l.index(0));
}

/// Whether step `number` is one of the row's own.
Value SequenceEmitter::isActive(Value number, Value row) { return l.less(number, lengthOf(row)); }

/// The step that comes as number `number` in a direction. What is behind a row's own steps stays where it is.
Value SequenceEmitter::timeOf(Value direction, Value number, Value row) {
  Value length = lengthOf(row), backwards = l.sub(l.sub(length, l.index(1)), number);
  if (s.lengths)
    backwards = l.select(l.less(number, length), backwards, number);
  if (s.directions == 1)
    return s.startsReversed ? backwards : number;
  return l.select(l.equal(direction, l.index(0)), number, backwards);
}

Value SequenceEmitter::xRow(Value time, Value row) {
  unsigned timeAxis = s.isBatchFirst ? 1 : 0;
  return context.offset({time, row}, {s.x.strides[timeAxis], s.x.strides[1 - timeAxis]}, s.x.offset);
}

Value SequenceEmitter::yRow(Value time, Value direction, Value row) {
  Value batch = context.value(s.batch), steps = context.value(s.steps);
  Value index = s.isBatchFirst ? l.add(l.mul(l.add(l.mul(row, steps), time), s.directions), direction)
                               : l.add(l.mul(l.add(l.mul(time, s.directions), direction), batch), row);
  return l.mul(index, s.hidden);
}

Value SequenceEmitter::stateRow(Value direction, Value row) {
  Value index = s.isBatchFirst ? l.add(l.mul(row, s.directions), direction)
                               : l.add(l.mul(direction, context.value(s.batch)), row);
  return l.mul(index, s.hidden);
}

/// Wb (half 0) or Rb (half 1) of a gate of a panel's units.
Value SequenceEmitter::bias(Value direction, int64_t half, int64_t gate, Value panel, Value count) {
  if (!s.b)
    return l.zero(vector);
  Value at = l.add(l.mul(direction, 2 * s.gates * s.hidden), (half * s.gates + gate) * s.hidden);
  return l.load(vector, context.operand(*s.b), l.add(at, l.mul(panel, lanes)), count);
}

/// The weights of the cell state in a gate of an LSTM (0: input, 1: output, 2: forget).
Value SequenceEmitter::peephole(Value direction, int64_t gate, Value panel, Value count) {
  Value at = l.add(l.mul(direction, 3 * s.hidden), gate * s.hidden);
  return l.load(vector, context.operand(*s.peepholes), l.add(at, l.mul(panel, lanes)), count);
}

/// Stores the new state of some units of a row, and its place in the result. Rows whose steps are over keep theirs.
void SequenceEmitter::finishUnits(Value h, Value now, Value next, Value at, Value unit, Value count, Value direction,
                                  Value row, Value number) {
  Value shown = h;
  if (s.lengths) {
    Value active = isActive(number, row);
    h = l.b.create<arith::SelectOp>(l.loc, active, h, l.load(vector, now, at));
    shown = l.b.create<arith::SelectOp>(l.loc, active, h, l.zero(vector));
  }
  l.store(h, next, at);
  if (s.resultY)
    l.store(shown, context.result(*s.resultY), l.add(yRow(timeOf(direction, number, row), direction, row), unit),
            count);
}

/// sums + rows of `from` (scratch, `width` apart) times gates [firstGate, firstGate + gates) of R.
LoopBuilder::Values SequenceEmitter::product(Value from, int64_t rows, Value panel, Value direction, int64_t firstGate,
                                             int64_t gates, LoopBuilder::Values sums) {
  LeftSide left{from, {}, l.index(1), type};
  for (int64_t i = 0; i < rows; ++i)
    left.rows.push_back(l.index(i * width));
  Value start = l.mul(l.add(l.mul(direction, panels), panel), packedR.k * packedR.nr);
  RightSide right{context.operand(s.r), l.add(start, firstGate * lanes), l.index(packedR.nr), type};
  return multiplyTile(context, {rows, gates, lanes}, type, left, right, l.index(s.hidden), std::move(sums));
}

/// x * W + Wb (+ Rb where it is just added) of steps [step0, step0 + steps), into `products`: [step][row][panel][gate].
void SequenceEmitter::inputProducts(Value direction, Value firstRow, int64_t rows, Value step0, Value steps) {
  int64_t together = std::max<int64_t>(1, (context.target.vectorRegisters >= 32 ? 24 : 12) / s.gates);
  together = std::min<int64_t>(together, 6);
  Value total = l.mul(steps, rows);
  overPanels([&](Value panel) {
    Value count = countOf(panel);
    LoopBuilder::Values start;
    for (int64_t g = 0; g < s.gates; ++g) {
      // The reset gate of a GRU scales Rb with the recurrent product.
      bool isApart = s.cell == Cell::Gru && g == 2;
      Value sum = bias(direction, 0, g, panel, count);
      start.push_back(isApart || !s.b ? sum : add(sum, bias(direction, 1, g, panel, count)));
    }
    auto tile = [&](Value first, int64_t tileRows) {
      LeftSide left{context.operand(s.x.argument.getArgNumber()), {}, l.index(1), type};
      LoopBuilder::Values sums;
      for (int64_t i = 0; i < tileRows; ++i) {
        Value index = l.add(first, i);
        Value row = l.add(firstRow, l.rem(index, rows));
        left.rows.push_back(xRow(timeOf(direction, l.add(step0, l.div(index, rows)), row), row));
        sums.append(start);
      }
      Value weights = l.mul(l.add(l.mul(direction, panels), panel), packedW.k * packedW.nr);
      RightSide right{context.operand(s.w), weights, l.index(packedW.nr), type};
      sums = multiplyTile(context, {tileRows, s.gates, lanes}, type, left, right, l.index(s.inputs), sums);
      for (int64_t i = 0; i < tileRows; ++i)
        for (int64_t g = 0; g < s.gates; ++g) {
          Value at = l.add(l.mul(l.add(l.mul(l.add(first, i), panels), panel), s.gates * lanes), g * lanes);
          l.store(sums[i * s.gates + g], products, at);
        }
    };
    Value whole = l.mul(l.div(total, together), together);
    l.loop(l.index(0), whole, together, [&](Value first) { tile(first, together); });
    l.loop(whole, total, 1, [&](Value first) { tile(first, 1); });
  });
}

/// One step for the units of a panel.
void SequenceEmitter::unitsOf(Value panel, int64_t rows, Value chunkStep, Value now, Value next, Value direction,
                              Value firstRow, Value number) {
  Value count = countOf(panel), unit = l.mul(panel, lanes);
  auto inputProduct = [&](int64_t row, int64_t gate) {
    Value index = l.add(l.mul(chunkStep, rows), row);
    return l.load(vector, products, l.add(l.mul(l.add(l.mul(index, panels), panel), s.gates * lanes), gate * lanes));
  };
  LoopBuilder::Values sums;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t g = 0; g < s.gates; ++g)
      sums.push_back(s.cell == Cell::Gru && g == 2 ? bias(direction, 1, g, panel, count) : inputProduct(i, g));
  bool hasSecondProduct = s.cell == Cell::Gru && !s.isLinearBeforeReset;
  if (hasSecondProduct) {
    // z and r first; the candidate needs r * h of all units.
    LoopBuilder::Values two;
    for (int64_t i = 0; i < rows; ++i)
      two.append({sums[i * 3], sums[i * 3 + 1]});
    two = product(now, rows, panel, direction, 0, 2, two);
    for (int64_t i = 0; i < rows; ++i) {
      Value at = l.add(unit, i * width);
      l.store(activated(0, two[i * 2]), resets, at);
      l.store(mul(activated(0, two[i * 2 + 1]), l.load(vector, now, at)), resets, l.add(at, rows * width));
    }
    return;
  }
  sums = product(now, rows, panel, direction, 0, s.gates, sums);
  for (int64_t i = 0; i < rows; ++i) {
    ArrayRef<Value> gate = ArrayRef(sums).slice(i * s.gates, s.gates);
    Value at = l.add(unit, i * width), row = l.add(firstRow, i), h;
    if (s.cell == Cell::Lstm) {
      Value before = l.load(vector, cells, at);
      auto seen = [&](Value sum, int64_t which, Value state) {
        return s.peepholes ? context.elements.fma(peephole(direction, which, panel, count), state, sum) : sum;
      };
      Value in = activated(0, seen(gate[0], 0, before));
      Value forget = s.isCoupled ? context.elements.sub(context.elements.number(1, vector), in)
                                 : activated(0, seen(gate[2], 2, before));
      Value c = add(mul(forget, before), mul(in, activated(1, gate[3])));
      h = mul(activated(0, seen(gate[1], 1, c)), activated(2, c));
      if (s.lengths)
        c = l.b.create<arith::SelectOp>(l.loc, isActive(number, row), c, before);
      l.store(c, cells, at);
    } else if (s.cell == Cell::Gru) {
      Value z = activated(0, gate[0]), r = activated(0, gate[1]);
      Value candidate = activated(1, add(inputProduct(i, 2), mul(r, gate[2])));
      h = add(candidate, mul(z, context.elements.sub(l.load(vector, now, at), candidate)));
    } else {
      h = activated(0, gate[0]);
    }
    finishUnits(h, now, next, at, unit, count, direction, row, number);
  }
}

void SequenceEmitter::step(Value direction, Value firstRow, int64_t rows, Value number, Value chunkStep, Value parity) {
  int64_t stateBytes = mostRows * width * 4;
  Value now = l.at(states, l.mul(parity, stateBytes));
  Value next = l.at(states, l.mul(l.sub(l.index(1), parity), stateBytes));
  overPanels([&](Value panel) { unitsOf(panel, rows, chunkStep, now, next, direction, firstRow, number); });
  if (s.cell == Cell::Gru && !s.isLinearBeforeReset) {
    Value scaled = l.at(resets, l.index(rows * width * 4));
    overPanels([&](Value panel) {
      Value count = countOf(panel), unit = l.mul(panel, lanes);
      LoopBuilder::Values sums;
      for (int64_t i = 0; i < rows; ++i) {
        Value index = l.add(l.mul(chunkStep, rows), i);
        Value fromInput =
            l.load(vector, products, l.add(l.mul(l.add(l.mul(index, panels), panel), 3 * lanes), 2 * lanes));
        sums.push_back(add(fromInput, bias(direction, 1, 2, panel, count)));
      }
      sums = product(scaled, rows, panel, direction, 2, 1, sums);
      for (int64_t i = 0; i < rows; ++i) {
        Value at = l.add(unit, i * width), z = l.load(vector, resets, at), candidate = activated(1, sums[i]);
        Value h = add(candidate, mul(z, context.elements.sub(l.load(vector, now, at), candidate)));
        finishUnits(h, now, next, at, unit, count, direction, l.add(firstRow, i), number);
      }
    });
  }
  if (isShared) {
    // The other workers' units come back from the result.
    l.b.create<kernel::BarrierOp>(l.loc);
    for (int64_t i = 0; i < rows; ++i) {
      Value row = l.add(firstRow, i), from = yRow(timeOf(direction, number, row), direction, row);
      int64_t whole = s.hidden / lanes * lanes;
      l.loop(l.index(0), l.index(whole), lanes, [&](Value unit) {
        l.store(l.load(vector, context.result(*s.resultY), l.add(from, unit)), next, l.add(unit, i * width));
      });
      if (int64_t rest = s.hidden - whole)
        l.store(l.load(vector, context.result(*s.resultY), l.add(from, whole), l.index(rest)), next,
                l.index(i * width + whole));
    }
  }
}

/// The whole sequences of `rows` rows of the batch, in one direction.
void SequenceEmitter::sequences(Value direction, Value firstRow, int64_t rows) {
  auto initial = [&](std::optional<unsigned> operand, Value to) {
    for (int64_t i = 0; i < rows; ++i)
      l.loop(l.index(0), l.index(panels), 1, [&](Value panel) {
        Value unit = l.mul(panel, lanes), value = l.zero(vector);
        if (operand)
          value = l.load(vector, context.operand(*operand), l.add(stateRow(direction, l.add(firstRow, i)), unit),
                         countOf(panel));
        l.store(value, to, l.add(unit, i * width));
      });
  };
  initial(s.initialH, states);
  if (s.cell == Cell::Lstm)
    initial(s.initialC, cells);
  Value steps = context.value(s.steps);
  int64_t chunk = std::max<int64_t>(1, chunkRows / rows);
  l.loop(l.index(0), steps, chunk, [&](Value step0) {
    Value count = l.min(l.index(chunk), l.sub(steps, step0));
    inputProducts(direction, firstRow, rows, step0, count);
    l.loop(l.index(0), count, 1, [&](Value i) {
      Value number = l.add(step0, i);
      step(direction, firstRow, rows, number, i, l.rem(number, 2));
    });
  });
  auto final = [&](std::optional<unsigned> result, Value from) {
    if (!result)
      return;
    for (int64_t i = 0; i < rows; ++i)
      overPanels([&](Value panel) {
        Value unit = l.mul(panel, lanes);
        l.store(l.load(vector, from, l.add(unit, i * width)), context.result(*result),
                l.add(stateRow(direction, l.add(firstRow, i)), unit), countOf(panel));
      });
  };
  final(s.resultH, l.at(states, l.mul(l.rem(steps, 2), mostRows * width * 4)));
  if (s.cell == Cell::Lstm)
    final(s.resultC, cells);
}

void SequenceEmitter::emit() {
  auto batch = s.batch.asConstant();
  const int64_t limit = context.target.vectorRegisters >= 32 ? 4 : 2;
  mostRows = batch ? std::clamp<int64_t>(*batch, 1, limit) : limit;
  // Sharing a step pays from about 64K multiply-adds on, and where there are not enough sequences for all.
  int64_t perStep = s.gates * s.hidden * s.hidden;
  bool hasFewSequences = s.directions == 1 && (!batch || *batch <= limit);
  isShared = s.resultY && !s.lengths && perStep >= (64 << 10) && hasFewSequences &&
             !(s.cell == Cell::Gru && !s.isLinearBeforeReset);
  DimExpr work = s.steps * s.batch * DimExpr(s.directions * s.gates * s.hidden * (s.hidden + s.inputs));
  bool isSmall = work.isConstant() && work.constant() < (64 << 10);
  context.func.setParallel(!isSmall && (isShared || s.directions > 1 || !batch || *batch > limit));
  isShared &= bool(context.func.getParallel());

  chunkRows = 12;
  while (chunkRows > mostRows && chunkRows * panels * s.gates * lanes * 4 > context.target.l2Bytes / 2)
    chunkRows /= 2;
  chunkRows = std::max(chunkRows, mostRows);
  int64_t at = 0;
  auto take = [&](int64_t elements) {
    Value buffer = l.at(context.func.scratch(), l.index(at));
    at += (elements * 4 + 63) / 64 * 64;
    return buffer;
  };
  products = take(chunkRows * panels * s.gates * lanes);
  states = take(2 * mostRows * width);
  cells = s.cell == Cell::Lstm ? take(mostRows * width) : Value();
  resets = s.cell == Cell::Gru ? take(2 * mostRows * width) : Value();
  context.func.setScratchBytes(at);

  Value rows = context.value(s.batch);
  Value groups = l.div(rows, mostRows), singles = l.sub(rows, l.mul(groups, mostRows));
  // Units of work: per direction, groups of rows, then single rows.
  Value perDirection = l.add(groups, singles);
  Value total = l.mul(perDirection, s.directions);
  Range range{l.index(0), total};
  panelBegin = l.index(0);
  panelEnd = l.index(panels);
  if (isShared) {
    Range mine = workerRange(l.b, l.loc, context.func, l.index(panels));
    panelBegin = mine.begin;
    panelEnd = mine.end;
  } else {
    range = workerRange(l.b, l.loc, context.func, total);
  }
  l.loop(range.begin, range.end, 1, [&](Value number) {
    Value direction = s.directions == 1 ? l.index(0) : l.div(number, perDirection);
    Value index = s.directions == 1 ? number : l.rem(number, perDirection);
    if (batch && *batch <= limit)
      return sequences(direction, l.index(0), mostRows);
    if (batch && *batch % mostRows == 0)
      return sequences(direction, l.mul(index, mostRows), mostRows);
    l.when(
        l.less(index, groups), [&] { sequences(direction, l.mul(index, mostRows), mostRows); },
        [&] { sequences(direction, l.add(l.mul(groups, mostRows), l.sub(index, groups)), 1); });
  });
}

Operation *recurrentOperation(FusedOp fused) {
  for (Operation &op : fused.getBody().front())
    if (isa<LSTMOp, GRUOp, RNNOp>(op))
      return &op;
  return nullptr;
}

} // namespace

std::vector<PackedWeight> planSequencePacking(FusedOp fused, Operation *op, const TargetDescription &target) {
  std::string whyNot;
  auto s = readSequence(fused, op, whyNot);
  if (!s)
    return {};
  int64_t lanes = target.lanes(4), panels = (s->hidden + lanes - 1) / lanes;
  std::vector<PackedWeight> plans;
  for (auto [operand, k] : {std::pair(s->w, s->inputs), std::pair(s->r, s->hidden)}) {
    if (!constantOf(fused.getInputs()[operand]) || !fused.getBody().getArgument(operand).hasOneUse())
      return {};
    if (packingOf(fused, operand))
      continue;
    PackedWeight w;
    w.operand = operand;
    w.elementType = Float32Type::get(op->getContext());
    w.groups = s->directions;
    w.k = k;
    w.nr = s->gates * lanes;
    w.n = panels * w.nr;
    w.groupStarts.clear();
    for (int64_t d = 0; d < s->directions; ++d)
      w.groupStarts.push_back(d * s->gates * s->hidden * k);
    w.rows.emplace_back();
    for (int64_t i = 0; i < k; ++i)
      w.rows[0].push_back(i);
    for (int64_t c = 0; c < w.n; ++c) {
      int64_t unit = c / w.nr * lanes + c % lanes, gate = c % w.nr / lanes;
      w.columns.push_back(unit < s->hidden ? (gate * s->hidden + unit) * k : -1);
    }
    plans.push_back(w);
  }
  return plans;
}

LogicalResult emitSequence(FusedOp fused, kernel::FuncOp func, const TargetDescription &target, std::string &whyNot) {
  Operation *op = recurrentOperation(fused);
  auto s = op ? readSequence(fused, op, whyNot) : std::nullopt;
  if (!s) {
    if (whyNot.empty())
      whyNot = "a sequence without a recurrent layer";
    return failure();
  }
  auto w = packingOf(fused, s->w), r = packingOf(fused, s->r);
  if (!w || !r) {
    whyNot = "weights that are not packed";
    return failure();
  }
  OpBuilder builder(func.getContext());
  builder.setInsertionPointToEnd(&func.getBody().front());
  KernelContext context(fused, func, target, builder);
  SequenceEmitter(context, *s, *w, *r).emit();
  builder.create<kernel::ReturnOp>(fused.getLoc());
  return success();
}

} // namespace firn

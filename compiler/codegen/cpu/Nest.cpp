// Values of a nest: index arithmetic, loads, computations, each in the outermost frame that knows all it depends on.
#include "compiler/codegen/cpu/Nest.h"

#include "dialects/kernel/Kernel.h"
#include "runtime/abi/model.h"

using namespace mlir;

namespace firn {

bool Nest::fail(const Twine &why) {
  if (whyNot.empty())
    whyNot = why.str();
  return false;
}

Value Nest::add(Value a, Value b) { return builder.create<arith::AddIOp>(loc, a, b); }

// --- frames ----------------------------------------------------------------------------------------------------------

unsigned Nest::frameOf(uint64_t loops) const {
  for (unsigned i = unsigned(frames.size()); i-- > 1;)
    if (frames[i].loops & loops)
      return i;
  return 0;
}

void Nest::insertAt(unsigned number) {
  Frame &frame = frames[number];
  if (frame.anchor)
    builder.setInsertionPoint(frame.anchor);
  else if (!frame.block->empty() && frame.block->back().hasTrait<OpTrait::IsTerminator>())
    builder.setInsertionPoint(&frame.block->back());
  else
    builder.setInsertionPointToEnd(frame.block);
}

void Nest::bind(unsigned loop, Value value) {
  Frame frame(frames.back().block, frames.back().anchor);
  frame.loops = uint64_t(1) << loop;
  frame.counters.push_back({loop, value});
  frames.push_back(std::move(frame));
}

Value Nest::counter(unsigned loop) const {
  for (const Frame &frame : llvm::reverse(frames))
    for (const auto &[number, value] : frame.counters)
      if (number == loop)
        return value;
  return {};
}

// --- indices ---------------------------------------------------------------------------------------------------------

Value Nest::atom(unsigned number) {
  const Atom &a = trace.atoms[number];
  if (a.kind == Atom::Counter)
    return counter(number);
  unsigned at = frameOf(a.loops);
  if (auto found = frames[at].atoms.find(number); found != frames[at].atoms.end())
    return found->second;
  Value argument = a.kind == Atom::Element ? Value() : index(a.argument);
  unsigned savedLanes = lanes;
  Value element;
  if (a.kind == Atom::Element) {
    lanes = 0; // an index is a scalar; lanes have one each (laneByLane)
    element = node(a.node);
    lanes = savedLanes;
    if (!element)
      return {};
  }
  OpBuilder::InsertionGuard guard(builder);
  Value size = dims.get(a.size), one = dims.constant(1), zero = dims.constant(0);
  Value divisor = a.kind == Atom::FloorDiv || a.kind == Atom::Mod ? dims.get(a.divisor) : Value();
  insertAt(at);
  auto clamp = [&](Value v) -> Value {
    Value last = builder.create<arith::SubIOp>(loc, size, one);
    return builder.create<arith::MaxSIOp>(loc, builder.create<arith::MinSIOp>(loc, v, last), zero);
  };
  Value result;
  switch (a.kind) {
  case Atom::FloorDiv:
    result = builder.create<arith::DivUIOp>(loc, argument, divisor);
    break;
  case Atom::Mod:
    result = builder.create<arith::RemUIOp>(loc, argument, divisor);
    break;
  case Atom::Clamp:
    result = clamp(argument);
    break;
  case Atom::Element: {
    bool isUnsigned = trace.nodes[a.node].elementType.isUnsignedInteger();
    Value raw = isUnsigned ? builder.create<arith::IndexCastUIOp>(loc, builder.getIndexType(), element).getResult()
                           : builder.create<arith::IndexCastOp>(loc, builder.getIndexType(), element).getResult();
    Value isNegative = builder.create<arith::CmpIOp>(loc, arith::CmpIPredicate::slt, raw, zero);
    Value wrapped = builder.create<arith::SelectOp>(loc, isNegative, add(raw, size), raw);
    Value isBad = builder.create<arith::CmpIOp>(loc, arith::CmpIPredicate::uge, wrapped, size);
    builder.create<kernel::FaultOp>(loc, isBad, builder.getI32IntegerAttr(FIRN_FAULT_INDEX));
    result = clamp(wrapped);
    break;
  }
  case Atom::Nearest: {
    Value whole = builder.create<arith::IndexCastOp>(loc, builder.getI64Type(), argument);
    Value position = builder.create<arith::SIToFPOp>(loc, builder.getF64Type(), whole);
    Value scaled = elements.mul(position, elements.number(a.scale, position.getType()));
    scaled = elements.add(scaled, elements.number(a.shift, position.getType()));
    Value nothing = elements.number(0, position.getType());
    Value isBelow = builder.create<arith::CmpFOp>(loc, arith::CmpFPredicate::OLT, scaled, nothing);
    scaled = builder.create<arith::SelectOp>(loc, isBelow, nothing, scaled);
    Value floor = builder.create<arith::FPToSIOp>(loc, builder.getI64Type(), scaled);
    result = clamp(builder.create<arith::IndexCastOp>(loc, builder.getIndexType(), floor));
    break;
  }
  case Atom::Counter:
    break;
  }
  return frames[at].atoms[number] = result;
}

Value Nest::index(const Linear &linear) {
  if (linear.isConstant())
    return dims.get(linear.constant);
  std::string key = linear.key();
  unsigned at = frameOf(trace.loopsOf(linear));
  if (auto found = frames[at].linears.find(key); found != frames[at].linears.end())
    return found->second;
  // What depends on outer loops alone is added up there.
  Linear outer(linear.constant), inner;
  for (const auto &[number, coefficient] : linear.terms)
    (frameOf(trace.atoms[number].loops) < at ? outer : inner).terms.emplace(number, coefficient);
  Value sum = outer.isConstant() && outer.constant == DimExpr(0) ? Value() : index(outer);
  SmallVector<std::pair<Value, Value>> products;
  for (const auto &[number, coefficient] : inner.terms) {
    Value factor = atom(number);
    if (!factor)
      return dims.constant(0); // only after a failure
    products.push_back({factor, coefficient == DimExpr(1) ? Value() : dims.get(coefficient)});
  }
  OpBuilder::InsertionGuard guard(builder);
  insertAt(at);
  for (auto [factor, coefficient] : products) {
    Value product = coefficient ? builder.create<arith::MulIOp>(loc, factor, coefficient).getResult() : factor;
    sum = sum ? add(sum, product) : product;
  }
  return frames[at].linears[key] = sum;
}

bool Nest::isLinearInVector(const Linear &linear) const {
  for (const auto &[number, coefficient] : linear.terms)
    if (number != vectorLoop && (trace.atoms[number].loops >> vectorLoop & 1))
      return false;
  return true;
}

// --- nodes -----------------------------------------------------------------------------------------------------------

Value Nest::atLanes(int number, unsigned wanted) {
  Value value = node(number);
  if (!value || wanted == 0 || isa<VectorType>(value.getType()))
    return value;
  unsigned at = frameOf(trace.nodes[number].loops);
  auto key = std::make_pair(number, wanted);
  if (auto found = frames[at].nodes.find(key); found != frames[at].nodes.end())
    return found->second;
  OpBuilder::InsertionGuard guard(builder);
  insertAt(at);
  return frames[at].nodes[key] = elements.splat(value, wanted);
}

Value Nest::node(int number) {
  const Node &n = trace.nodes[number];
  bool isVector = dependsOnVector(n.loops);
  unsigned at = frameOf(n.loops);
  auto key = std::make_pair(number, isVector ? lanes : 0);
  if (auto found = frames[at].nodes.find(key); found != frames[at].nodes.end())
    return found->second;
  // A scalar has no use for the state of vectors.
  unsigned savedLanes = lanes;
  if (!isVector)
    lanes = 0;
  Value value = make(number, isVector);
  lanes = savedLanes;
  if (!value) {
    fail("no vector code for a part of the body");
    return {};
  }
  return frames[frameOf(n.loops)].nodes[key] = value;
}

Value Nest::make(int number, bool isVector) {
  const Node n = trace.nodes[number];
  unsigned wanted = isVector ? lanes : 0;
  if (isVector && tileLoop != ~0u)
    if (auto found = tiles.find(number); found != tiles.end())
      return found->second[tileRow];
  if (auto spill = spills.find(number); spill != spills.end() && spill->second.isStored) {
    Value offset, from = spillPlace(number, wanted, offset);
    OpBuilder::InsertionGuard guard(builder);
    insertAt(unsigned(frames.size()) - 1);
    // Scratch holds whole vectors; a result only what exists.
    Value exists = spill->second.outputStore >= 0 && isVector ? count : Value();
    Type type = Elements::registerType(n.elementType, wanted);
    return builder.create<kernel::LoadOp>(loc, type, from, offset, exists, UnitAttr());
  }
  Value value;
  switch (n.kind) {
  case Node::Load:
  case Node::Table:
    value = loadNode(n, isVector);
    break;
  case Node::Splat: {
    OpBuilder::InsertionGuard guard(builder);
    insertAt(0);
    value = n.value ? elements.constant(*constantBytes(n.value), n.element, n.elementType, 0)
                    : elements.constant(n.number, n.elementType, 0);
    break;
  }
  case Node::Index:
  case Node::IsAtLeast:
    value = indexNode(n, isVector);
    break;
  case Node::Fraction: {
    if (isVector) {
      value = laneByLane(n.elementType, [&] { return make(number, false); });
      break;
    }
    const Atom a = trace.atoms[size_t(n.element)];
    Value floor = atom(unsigned(n.element)), argument = index(a.argument);
    OpBuilder::InsertionGuard guard(builder);
    insertAt(frameOf(n.loops));
    auto toFloat = [&](Value v) -> Value {
      Value whole = builder.create<arith::IndexCastOp>(loc, builder.getI64Type(), v);
      return builder.create<arith::SIToFPOp>(loc, builder.getF64Type(), whole);
    };
    Value position = toFloat(argument);
    position = elements.mul(position, elements.number(a.scale, position.getType()));
    position = elements.add(position, elements.number(a.shift, position.getType()));
    Value fraction = elements.sub(position, toFloat(floor));
    fraction = elements.maximum(fraction, elements.number(0, fraction.getType()), fraction.getType());
    fraction = elements.minimum(fraction, elements.number(1, fraction.getType()), fraction.getType());
    value = builder.create<arith::TruncFOp>(loc, builder.getF32Type(), fraction);
    break;
  }
  case Node::Compute:
  case Node::Arith: {
    SmallVector<Value> operands;
    for (int operand : n.operands) {
      operands.push_back(operand < 0 ? Value() : atLanes(operand, wanted));
      if (operand >= 0 && !operands.back())
        return {};
    }
    OpBuilder::InsertionGuard guard(builder);
    insertAt(frameOf(n.loops));
    value = n.kind == Node::Arith ? arith(n, operands) : elements.compute(n.op, operands, whyNot);
    break;
  }
  case Node::Reduce:
    value = reduce(number);
    break;
  }
  if (auto spill = spills.find(number); value && spill != spills.end()) {
    // The first loop that makes it leaves it for the others.
    Value offset, to = spillPlace(number, wanted, offset);
    OpBuilder::InsertionGuard guard(builder);
    insertAt(unsigned(frames.size()) - 1);
    Value exists = spill->second.outputStore >= 0 && isVector ? count : Value();
    builder.create<kernel::StoreOp>(loc, value, to, offset, exists, UnitAttr());
    if (!llvm::is_contained(storedNow, number))
      storedNow.push_back(number);
  }
  return value;
}

Value Nest::laneByLane(Type elementType, llvm::function_ref<Value()> scalar) {
  unsigned width = lanes;
  Value base = counter(vectorLoop);
  Type type = Elements::registerType(elementType, width);
  OpBuilder::InsertionGuard guard(builder);
  SmallVector<Value> values;
  Value savedCount = count;
  for (unsigned lane = 0; lane < width; ++lane) {
    Value distance = dims.constant(lane), one = dims.constant(1);
    insertAt(unsigned(frames.size()) - 1);
    Value at = lane == 0 ? base : add(base, distance);
    if (savedCount) { // lanes that do not exist repeat the last one
      Value last = builder.create<arith::SubIOp>(loc, laneEnd, one);
      at = builder.create<arith::MinSIOp>(loc, at, last);
    }
    bind(vectorLoop, at);
    lanes = 0;
    count = {};
    Value value = scalar();
    unbind();
    lanes = width;
    count = savedCount;
    if (!value)
      return {};
    values.push_back(value);
  }
  insertAt(unsigned(frames.size()) - 1);
  Value zero = elements.number(0, type), vector = zero;
  for (auto [lane, value] : llvm::enumerate(values))
    vector = builder.create<vector::InsertOp>(loc, value, vector, ArrayRef<int64_t>{int64_t(lane)});
  return vector;
}

Value Nest::tableBuffer(Attribute value) {
  auto bytes = constantBytes(value);
  std::vector<uint8_t> raw(bytes->bytes.begin(), bytes->bytes.end());
  auto module = func->getParentOfType<ModuleOp>();
  auto type = RankedTensorType::get({int64_t(raw.size())}, builder.getI8Type());
  auto data = DenseElementsAttr::get(type, ArrayRef<uint8_t>(raw));
  // One global per kernel and constant, named by the kernel.
  unsigned number = 0;
  LLVM::GlobalOp global;
  for (auto existing : module.getOps<LLVM::GlobalOp>()) {
    if (!existing.getSymName().starts_with(func.getSymName().str() + "."))
      continue;
    ++number;
    if (existing.getValueAttr() == data)
      global = existing;
  }
  OpBuilder::InsertionGuard guard(builder);
  auto array = LLVM::LLVMArrayType::get(builder.getI8Type(), unsigned(raw.size()));
  if (!global) {
    builder.setInsertionPointToStart(module.getBody());
    global = builder.create<LLVM::GlobalOp>(loc, array, /*isConstant=*/true, LLVM::Linkage::Internal,
                                            func.getSymName().str() + ".table" + std::to_string(number), data, 64);
  }
  insertAt(0);
  Value address = builder.create<LLVM::AddressOfOp>(loc, global);
  return builder.create<UnrealizedConversionCastOp>(loc, kernel::BufferType::get(builder.getContext()), address)
      .getResult(0);
}

Value Nest::loadNode(const Node &n, bool isVector) {
  Value buffer = n.kind == Node::Table ? tableBuffer(n.value) : func.buffer(n.buffer);
  if (isVector && !(isLinearInVector(n.index) && n.index.coefficient(vectorLoop) == DimExpr(1)))
    return laneByLane(n.elementType, [&] { return loadNode(n, false); });
  Value offset = index(n.index);
  OpBuilder::InsertionGuard guard(builder);
  insertAt(frameOf(n.loops));
  return elements.load(buffer, offset, n.elementType, isVector ? lanes : 0, isVector ? count : Value());
}

Value Nest::indexNode(const Node &n, bool isVector) {
  Type i64 = builder.getI64Type();
  auto finish = [&](Value whole) -> Value {
    if (n.kind == Node::Index)
      return elements.cast(whole, i64, n.elementType);
    return builder.create<arith::CmpIOp>(loc, arith::CmpIPredicate::sge, whole, elements.number(0, whole.getType()));
  };
  if (isVector && !isLinearInVector(n.index))
    return laneByLane(n.elementType, [&] { return indexNode(n, false); });
  Value base = index(n.index);
  Value coefficient = isVector ? dims.get(n.index.coefficient(vectorLoop)) : Value();
  OpBuilder::InsertionGuard guard(builder);
  insertAt(frameOf(n.loops));
  Value whole = builder.create<arith::IndexCastOp>(loc, i64, base);
  if (!isVector)
    return finish(whole);
  auto type = VectorType::get(int64_t(lanes), i64);
  SmallVector<int64_t> iota;
  for (unsigned lane = 0; lane < lanes; ++lane)
    iota.push_back(lane);
  Value steps = builder.create<arith::ConstantOp>(loc, DenseElementsAttr::get(type, ArrayRef(iota)));
  Value factor = elements.splat(builder.create<arith::IndexCastOp>(loc, i64, coefficient), lanes);
  return finish(elements.add(elements.splat(whole, lanes), elements.mul(steps, factor)));
}

Value Nest::arith(const Node &n, ArrayRef<Value> x) {
  Type type = n.elementType;
  switch (n.code) {
  case Node::Select:
    return builder.create<arith::SelectOp>(loc, x[0], x[1], x[2]);
  case Node::Add:
    return elements.round(elements.add(x[0], x[1]), type);
  case Node::Sub:
    return elements.round(elements.sub(x[0], x[1]), type);
  case Node::Mul:
    return elements.round(elements.mul(x[0], x[1]), type);
  case Node::Div:
    return elements.round(elements.div(x[0], x[1], type), type);
  case Node::Exp:
    return builder.create<math::ExpOp>(loc, x[0]);
  case Node::Log:
    return builder.create<math::LogOp>(loc, x[0]);
  case Node::Sqrt:
    return builder.create<math::SqrtOp>(loc, x[0]);
  case Node::Abs: {
    if (isa<FloatType>(type))
      return builder.create<math::AbsFOp>(loc, x[0]);
    if (type.isUnsignedInteger())
      return x[0];
    Value zero = elements.number(0, x[0].getType());
    Value isNegative = builder.create<arith::CmpIOp>(loc, arith::CmpIPredicate::slt, x[0], zero);
    return builder.create<arith::SelectOp>(loc, isNegative, elements.sub(zero, x[0]), x[0]);
  }
  case Node::Square:
    return elements.mul(x[0], x[0]);
  case Node::IsEqual:
    if (isa<IntegerType>(getElementTypeOrSelf(x[0])))
      return builder.create<arith::CmpIOp>(loc, arith::CmpIPredicate::eq, x[0], x[1]);
    return builder.create<arith::CmpFOp>(loc, arith::CmpFPredicate::OEQ, x[0], x[1]);
  case Node::Cast:
    return elements.cast(x[0], trace.nodes[n.operands[0]].elementType, type);
  default:
    return {};
  }
}

void Nest::store(const NestStore &to, const Linear &at) {
  bool isVector = dependsOnVector(trace.loopsOf(at));
  unsigned innermost = unsigned(frames.size()) - 1;
  if (!isVector && dependsOnVector(trace.nodes[to.node].loops)) {
    fail("a store that gathers lanes");
    return;
  }
  Value buffer = func.buffer(to.buffer);
  Value value = atLanes(to.node, isVector ? lanes : 0);
  if (!value)
    return;
  OpBuilder::InsertionGuard guard(builder);
  if (isVector && !(isLinearInVector(at) && at.coefficient(vectorLoop) == DimExpr(1))) {
    // Lane by lane; where lanes are missing, the last one is stored again.
    Value base = counter(vectorLoop);
    unsigned width = lanes;
    Value savedCount = count;
    for (unsigned lane = 0; lane < width; ++lane) {
      Value distance = dims.constant(lane);
      insertAt(innermost);
      Value element = builder.create<vector::ExtractOp>(loc, value, ArrayRef<int64_t>{int64_t(lane)});
      Value position = lane == 0 ? base : add(base, distance);
      bind(vectorLoop, position);
      lanes = 0;
      Value offset = index(at); // outside of the guard: parts of it serve the other lanes too
      insertAt(innermost);
      OpBuilder::InsertionGuard inside(builder);
      if (savedCount) {
        Value exists = builder.create<arith::CmpIOp>(loc, arith::CmpIPredicate::slt, position, laneEnd);
        auto guarded = builder.create<scf::IfOp>(loc, exists, false);
        builder.setInsertionPointToStart(guarded.thenBlock());
      }
      elements.store(element, buffer, offset, to.elementType);
      unbind();
      lanes = width;
    }
    return;
  }
  Value offset = index(at);
  insertAt(innermost);
  elements.store(value, buffer, offset, to.elementType, isVector ? count : Value());
}

// --- loops -----------------------------------------------------------------------------------------------------------

Nest::Values Nest::forLoop(unsigned loop, Value begin, Value end, int64_t step, ValueRange carried,
                           llvm::function_ref<Values(Values)> body) {
  Value stride = dims.constant(step);
  unsigned outside = unsigned(frames.size()) - 1;
  OpBuilder::InsertionGuard guard(builder);
  insertAt(outside);
  auto op = builder.create<scf::ForOp>(loc, begin, end, stride, carried);
  Operation *savedAnchor = frames[outside].anchor;
  frames[outside].anchor = op;
  Frame frame(op.getBody());
  frame.loops = uint64_t(1) << loop;
  frame.counters.push_back({loop, op.getInductionVar()});
  frames.push_back(std::move(frame));
  Values results = body(Values(op.getRegionIterArgs().begin(), op.getRegionIterArgs().end()));
  if (!carried.empty()) {
    insertAt(unsigned(frames.size()) - 1);
    builder.create<scf::YieldOp>(loc, results);
  }
  frames.pop_back();
  frames[outside].anchor = savedAnchor;
  return Values(op.getResults().begin(), op.getResults().end());
}

void Nest::nestedLoops(ArrayRef<unsigned> loops, llvm::function_ref<void()> body) {
  if (loops.empty())
    return body();
  const Loop &loop = trace.loops[loops.front()];
  forLoop(loops.front(), dims.get(loop.begin), dims.get(loop.end), 1, {}, [&](Values) {
    nestedLoops(loops.drop_front(), body);
    return Values();
  });
}

void Nest::vectorLoops(unsigned loop, Value begin, Value end, const DimExpr &extent, bool isMultiple,
                       llvm::function_ref<void()> body) {
  unsigned width = fullLanes, savedLoop = vectorLoop;
  vectorLoop = loop;
  auto known = extent.asConstant();
  unsigned outside = unsigned(frames.size()) - 1;
  Value mainEnd = end;
  bool hasMain = width > 0 && (!known || *known >= int64_t(width));
  bool hasTail = width == 0 || !isMultiple;
  if (!hasMain)
    mainEnd = begin;
  else if (hasTail) {
    Value granule = dims.constant(width);
    OpBuilder::InsertionGuard guard(builder);
    insertAt(outside);
    Value length = builder.create<arith::SubIOp>(loc, end, begin);
    Value rest = builder.create<arith::RemUIOp>(loc, length, granule);
    mainEnd = builder.create<arith::SubIOp>(loc, end, rest);
  }
  if (hasMain) {
    lanes = width;
    forLoop(loop, begin, mainEnd, width, {}, [&](Values) {
      body();
      return Values();
    });
  }
  if (hasTail && width > 0 && target.hasAvx512) {
    OpBuilder::InsertionGuard guard(builder);
    insertAt(outside);
    Value left = builder.create<arith::SubIOp>(loc, end, mainEnd);
    Value zero = dims.constant(0);
    Value isLeft = builder.create<arith::CmpIOp>(loc, arith::CmpIPredicate::sgt, left, zero);
    auto op = builder.create<scf::IfOp>(loc, isLeft, false);
    Operation *savedAnchor = frames[outside].anchor;
    frames[outside].anchor = op;
    Frame frame(op.thenBlock());
    frame.loops = uint64_t(1) << loop;
    frame.counters.push_back({loop, mainEnd});
    frames.push_back(std::move(frame));
    lanes = width;
    count = left;
    laneEnd = end;
    body();
    count = laneEnd = {};
    frames.pop_back();
    frames[outside].anchor = savedAnchor;
  } else if (hasTail) {
    lanes = 0;
    forLoop(loop, mainEnd, end, 1, {}, [&](Values) {
      body();
      return Values();
    });
  }
  lanes = 0;
  vectorLoop = savedLoop;
}

} // namespace firn

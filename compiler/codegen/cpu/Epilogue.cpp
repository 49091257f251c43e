#include "compiler/codegen/cpu/Epilogue.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace firn {

Value KernelContext::offset(ArrayRef<Value> position, ArrayRef<DimExpr> strides, const DimExpr &start) {
  Value sum = value(start);
  for (auto [index, stride] : llvm::zip(position, strides))
    sum = l.add(sum, l.mul(index, value(stride)));
  return sum;
}

Value KernelContext::multiplyAdd(Value a, Value b, Value acc) {
  OpBuilder &builder = l.b;
  if (target.hasFma && isa<VectorType>(a.getType()))
    return builder.create<vector::FMAOp>(l.loc, a, b, acc);
  Value product = builder.create<arith::MulFOp>(l.loc, a, b);
  return builder.create<arith::AddFOp>(l.loc, product, acc);
}

// --- analysis --------------------------------------------------------------------------------------------------------

static RankedTensorType rankedType(Value value) { return dyn_cast<RankedTensorType>(value.getType()); }

/// The one element of a constant inside of the body.
static std::optional<ConstantBytes> singleElement(Value value) {
  ElementsAttr constant = constantOf(value);
  if (!constant || cast<RankedTensorType>(value.getType()).getNumElements() < 1)
    return std::nullopt;
  auto bytes = constantBytes(constant);
  if (!bytes || (!bytes->isSplat && cast<RankedTensorType>(value.getType()).getNumElements() != 1))
    return std::nullopt;
  return bytes;
}

std::optional<View> Epilogue::beforeViews(View view, ArrayRef<Operation *> path) {
  for (Operation *op : llvm::reverse(path)) {
    auto before = viewBefore(op, view);
    if (!before)
      return std::nullopt;
    view = *before;
  }
  return view;
}

/// Cost of an operation in vector instructions, roughly.
static unsigned costOf(Operation *op) {
  if (isa<AddOp, SubOp, MulOp, ReluOp, MaxOp, MinOp, ClipOp, NegOp, AbsOp, CastOp, LeakyReluOp, WhereOp, IdentityOp>(
          op))
    return 1;
  if (isa<QuantizeLinearOp, DequantizeLinearOp>(op))
    return 5;
  if (isa<HardSigmoidOp, HardSwishOp, DivOp, SqrtOp, PReluOp, ReciprocalOp>(op))
    return 3;
  return 13;
}

bool Epilogue::visit(Value value, Operation *user, std::string &whyNot) {
  if (value == rootValue || llvm::is_contained(llvm::make_first_range(leaves), value) || isAbsent(value))
    return true;
  Operation *op = value.getDefiningOp();
  bool isDependent = paths.count(value);
  if (isDependent && isView(op))
    return visit(op->getOperand(0), op, whyNot);
  if (op && llvm::is_contained(operations, op))
    return true;
  if (singleElement(value))
    return true;
  if (std::optional<View> view = isDependent ? std::nullopt : viewOf(value)) {
    // Positions of the user, which broadcasts this operand; then those of the root.
    SmallVector<DimExpr> userDims = dimsOf(rankedType(user->getResult(0)));
    if (isa<QuantizeLinearOp, DequantizeLinearOp>(user) && view->rank() == 1 && userDims.size() > 1) {
      int64_t axis = user->getAttrOfType<IntegerAttr>("axis") ? user->getAttrOfType<IntegerAttr>("axis").getInt() : 1;
      axis = axis < 0 ? axis + int64_t(userDims.size()) : axis;
      for (int64_t i = axis + 1; i < int64_t(userDims.size()); ++i) {
        view->dims.push_back(DimExpr(1));
        view->strides.push_back(DimExpr(0));
      }
    }
    auto wide = broadcastView(*view, userDims);
    auto path = paths.find(user->getResult(0));
    if (wide && path != paths.end())
      wide = beforeViews(*wide, path->second);
    else if (wide)
      wide = broadcastView(*view, rootDims);
    if (!wide) {
      whyNot =
          "an operand of shape " + shapeText(view->dims) + " does not broadcast to the result " + shapeText(rootDims);
      return false;
    }
    leaves.insert({value, *wide});
    return true;
  }
  if (!op || !Elements::computes(op) || op->getNumResults() != 1) {
    whyNot = op ? "'" + op->getName().getStringRef().str() + "' in the epilogue" : "an operand that is no tensor";
    return false;
  }
  for (Value operand : op->getOperands())
    if (!visit(operand, op, whyNot))
      return false;
  operations.push_back(op);
  weight += costOf(op);
  return true;
}

std::optional<Epilogue> Epilogue::analyse(FusedOp fused, Value root, std::string &whyNot) {
  Epilogue e;
  e.rootValue = root;
  auto rootType = rankedType(root);
  if (!rootType) {
    whyNot = "the rank of the result is not known";
    return std::nullopt;
  }
  e.rootDims = dimsOf(rootType);
  Block &body = fused.getBody().front();
  Operation *yield = body.getTerminator();
  if (yield->getNumOperands() != 1) {
    whyNot = "more than one result";
    return std::nullopt;
  }
  e.paths[root] = {};
  for (Operation &op : body) {
    if (&op == yield || op.getNumResults() != 1 || op.getResult(0) == root)
      continue;
    for (Value operand : op.getOperands()) {
      auto from = e.paths.find(operand);
      if (from == e.paths.end())
        continue;
      SmallVector<Operation *> path = from->second;
      if (isView(&op))
        path.push_back(&op);
      auto known = e.paths.find(op.getResult(0));
      if (known != e.paths.end() && known->second != path) {
        whyNot = "operands that see the result in different shapes";
        return std::nullopt;
      }
      e.paths[op.getResult(0)] = path;
    }
  }
  Value yielded = yield->getOperand(0);
  auto path = e.paths.find(yielded);
  auto type = rankedType(yielded);
  if (path == e.paths.end() || !type) {
    whyNot = "a result that does not depend on the contraction";
    return std::nullopt;
  }
  SmallVector<DimExpr> dims = dimsOf(type);
  auto output = e.beforeViews(View{{}, type.getElementType(), dims, denseStrides(dims), DimExpr(0)}, path->second);
  if (!output || output->dims.size() != e.rootDims.size() || !llvm::equal(output->dims, e.rootDims)) {
    whyNot = "a result of shape " + shapeText(dims) + " that is no view of the contraction's " + shapeText(e.rootDims);
    return std::nullopt;
  }
  e.output = *output;
  e.last = yielded;
  if (!e.visit(yielded, nullptr, whyNot))
    return std::nullopt;
  return e;
}

bool Epilogue::addTerm(const View &view, double scale) {
  auto wide = broadcastView(view, rootDims);
  if (wide)
    terms.push_back({*wide, scale});
  return wide.has_value();
}

bool Epilogue::multiplyRoot(const View &view) {
  auto wide = broadcastView(view, rootDims);
  if (wide)
    terms.insert(terms.begin(), {*wide, 1, true});
  return wide.has_value();
}

SmallVector<View> Epilogue::views() const {
  SmallVector<View> all{output};
  for (auto &[value, view] : leaves)
    all.push_back(view);
  for (const Term &term : terms)
    all.push_back(term.view);
  return all;
}

bool Epilogue::isContiguousAlong(unsigned axis) const {
  return llvm::all_of(views(), [&](const View &view) {
    return view.strides[axis].isConstant() &&
           (view.strides[axis].constant() == 0 || view.strides[axis].constant() == 1);
  });
}

bool Epilogue::canMerge(unsigned axis) const {
  return llvm::all_of(
      views(), [&](const View &view) { return view.strides[axis] == view.strides[axis + 1] * view.dims[axis + 1]; });
}

void Epilogue::merge(unsigned axis) {
  auto mergeView = [&](View &view) {
    view.dims[axis] = view.dims[axis] * view.dims[axis + 1];
    view.dims.erase(view.dims.begin() + axis + 1);
    view.strides.erase(view.strides.begin() + axis);
  };
  mergeView(output);
  for (auto &entry : leaves)
    mergeView(entry.second);
  for (Term &term : terms)
    mergeView(term.view);
  rootDims[axis] = rootDims[axis] * rootDims[axis + 1];
  rootDims.erase(rootDims.begin() + axis + 1);
}

void Epilogue::restrict(unsigned axis, int64_t step, int64_t start) {
  auto change = [&](View &view) {
    view.offset = view.offset + view.strides[axis] * DimExpr(start);
    view.strides[axis] = view.strides[axis] * DimExpr(step);
  };
  change(output);
  for (auto &entry : leaves)
    change(entry.second);
  for (Term &term : terms)
    change(term.view);
}

void Epilogue::insertAxis(unsigned axis) {
  auto insert = [&](View &view) {
    view.dims.insert(view.dims.begin() + axis, DimExpr(1));
    view.strides.insert(view.strides.begin() + axis, DimExpr(0));
  };
  insert(output);
  for (auto &entry : leaves)
    insert(entry.second);
  for (Term &term : terms)
    insert(term.view);
  rootDims.insert(rootDims.begin() + axis, DimExpr(1));
}

// --- emission --------------------------------------------------------------------------------------------------------

Value Epilogue::leaf(KernelContext &context, const View &view, ArrayRef<Value> position, unsigned axis, unsigned lanes,
                     Value count) {
  LoopBuilder &l = context.l;
  Value buffer = context.operand(view.argument.getArgNumber());
  Value offset = context.offset(position, view.strides, view.offset);
  const DimExpr &stride = view.strides[axis];
  if (lanes == 0)
    return context.elements.load(buffer, offset, view.elementType, 0);
  if (stride.isConstant() && stride.constant() == 0)
    return context.elements.splat(context.elements.load(buffer, offset, view.elementType, 0), lanes);
  if (stride.isConstant() && stride.constant() == 1)
    return context.elements.load(buffer, offset, view.elementType, lanes, count);
  Value vector = l.zero(Elements::registerType(view.elementType, lanes));
  for (unsigned i = 0; i < lanes; ++i) {
    // Lanes that do not exist repeat the last one.
    Value lane = count ? l.min(l.index(i), l.max(l.sub(count, l.index(1)), l.index(0))) : l.index(i);
    Value element =
        context.elements.load(buffer, l.add(offset, l.mul(lane, context.value(stride))), view.elementType, 0);
    vector = l.b.create<vector::InsertOp>(l.loc, element, vector, int64_t(i));
  }
  return vector;
}

void Epilogue::preload(KernelContext &context, ArrayRef<Value> position, unsigned axis, unsigned lanes, Value count,
                       ArrayRef<unsigned> varying, unsigned key) {
  unsigned number = 0;
  auto consider = [&](const View &view) {
    bool isInvariant = llvm::all_of(
        varying, [&](unsigned a) { return view.strides[a].isConstant() && view.strides[a].constant() == 0; });
    if (isInvariant)
      loaded[{key, number}] = leaf(context, view, position, axis, lanes, count);
    ++number;
  };
  for (auto &[value, view] : leaves)
    consider(view);
  for (const Term &term : terms)
    consider(term.view);
}

void Epilogue::store(KernelContext &context, Value root, ArrayRef<Value> position, unsigned axis, unsigned lanes,
                     Value count, unsigned key) {
  LoopBuilder &l = context.l;
  Elements &elements = context.elements;
  Type rootType = rankedType(rootValue).getElementType();
  unsigned number = 0;
  auto load = [&](const View &view) {
    auto found = loaded.find({key, number++});
    return found != loaded.end() ? found->second : leaf(context, view, position, axis, lanes, count);
  };
  llvm::DenseMap<Value, Value> registers;
  for (auto &[value, view] : leaves)
    registers[value] = load(view);
  if (rootScale != 1)
    root = elements.mul(root, elements.number(rootScale, root.getType()));
  if (rootOffset != 0)
    root = elements.add(root, elements.number(rootOffset, root.getType()));
  for (const Term &term : terms) {
    Value addend = load(term.view);
    if (term.isFactor) {
      root = elements.mul(root, addend);
      continue;
    }
    if (term.scale != 1)
      addend = elements.mul(addend, elements.number(term.scale, addend.getType()));
    root = elements.add(root, addend);
  }
  registers[rootValue] = elements.round(root, rootType);
  auto registerOf = [&](Value value) -> Value {
    while (paths.count(value) && value != rootValue && isView(value.getDefiningOp()))
      value = value.getDefiningOp()->getOperand(0);
    if (Value known = registers.lookup(value))
      return known;
    if (isAbsent(value))
      return {};
    Value made = elements.constant(*singleElement(value), 0, rankedType(value).getElementType(), lanes);
    return registers[value] = made;
  };
  std::string whyNot;
  for (Operation *op : operations) {
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(registerOf(operand));
    registers[op->getResult(0)] = elements.compute(op, operands, whyNot);
  }
  Value result = registerOf(last);
  Value buffer = context.result();
  Value offset = context.offset(position, output.strides, output.offset);
  const DimExpr &stride = output.strides[axis];
  if (lanes == 0 || (stride.isConstant() && stride.constant() == 1))
    return elements.store(result, buffer, offset, output.elementType, count);
  for (unsigned i = 0; i < lanes; ++i) {
    auto put = [&] {
      Value element = l.b.create<vector::ExtractOp>(l.loc, result, int64_t(i));
      elements.store(element, buffer, l.add(offset, l.mul(l.index(i), context.value(stride))), output.elementType);
    };
    if (count)
      l.when(l.less(l.index(i), count), put);
    else
      put();
  }
}

} // namespace firn

// Positions and nodes; elementwise operations and the movement operations that only rename positions.
#include "compiler/codegen/cpu/Trace.h"

#include "compiler/codegen/cpu/Elements.h"

using namespace mlir;

namespace firn {

// --- linear forms ----------------------------------------------------------------------------------------------------

Linear Linear::operator+(const Linear &other) const {
  Linear sum = *this;
  sum.constant = sum.constant + other.constant;
  for (const auto &[number, coefficient] : other.terms) {
    auto [at, isNew] = sum.terms.try_emplace(number, coefficient);
    if (isNew)
      continue;
    at->second = at->second + coefficient;
    if (at->second == DimExpr(0))
      sum.terms.erase(at);
  }
  return sum;
}

Linear Linear::operator*(const DimExpr &factor) const {
  Linear product(constant * factor);
  if (factor != DimExpr(0))
    for (const auto &[number, coefficient] : terms)
      product.terms.emplace(number, coefficient * factor);
  return product;
}

DimExpr Linear::coefficient(unsigned number) const {
  auto found = terms.find(number);
  return found == terms.end() ? DimExpr(0) : found->second;
}

std::string Linear::key() const {
  std::string text = constant.str();
  for (const auto &[number, coefficient] : terms)
    text += "+" + coefficient.str() + "*#" + std::to_string(number);
  return text;
}

llvm::SmallVector<DimExpr> dimsOfValue(Value value) { return dimsOf(cast<RankedTensorType>(value.getType())); }

// --- the graph -------------------------------------------------------------------------------------------------------

Trace::Trace(FusedOp op, std::vector<Loop> nest, Decisions decided)
    : loops(std::move(nest)), fused(op), decisions(std::move(decided)) {
  for (auto [i, loop] : llvm::enumerate(loops)) {
    Atom counter{Atom::Counter, loop.size, Linear(), DimExpr(1)};
    counter.loops = uint64_t(1) << i;
    atoms.push_back(counter);
    if (loop.isRow)
      rowLoops.push_back(unsigned(i));
  }
}

int Trace::fail(const Twine &why) {
  if (request == None) {
    request = Failure;
    whyNot = why.str();
  }
  return -1;
}

uint64_t Trace::loopsOf(const Linear &index) const {
  uint64_t result = 0;
  for (const auto &term : index.terms)
    result |= atoms[term.first].loops;
  return result;
}

unsigned Trace::addAtom(Atom atom) {
  std::string key = std::to_string(atom.kind) + ":" + atom.argument.key() + ":" + atom.divisor.str() + ":" +
                    atom.size.str() + ":" + std::to_string(atom.node) + ":" + std::to_string(atom.scale) + ":" +
                    std::to_string(atom.shift);
  auto [found, isNew] = atomCache.try_emplace(key, atoms.size());
  if (isNew) {
    atom.loops = loopsOf(atom.argument) | (atom.node >= 0 ? nodes[atom.node].loops : 0);
    atoms.push_back(std::move(atom));
  }
  return found->second;
}

int Trace::add(Node node) {
  std::string key = std::to_string(node.kind) + ":" + std::to_string(node.code) + ":" + std::to_string(node.buffer) +
                    ":" + node.index.key() + ":" + std::to_string(node.element) + ":" + std::to_string(node.number) +
                    ":" + std::to_string(uintptr_t(node.op)) + ":" +
                    std::to_string(uintptr_t(node.elementType.getAsOpaquePointer())) + ":" +
                    std::to_string(uintptr_t(node.value.getAsOpaquePointer())) + ":" + std::to_string(node.selectLast) +
                    std::to_string(node.skipsNaN);
  for (int operand : node.operands)
    key += ":" + std::to_string(operand);
  auto [found, isNew] = nodeCache.try_emplace(key, int(nodes.size()));
  if (isNew) {
    node.loops = loopsOf(node.index);
    for (int operand : node.operands)
      if (operand >= 0)
        node.loops |= nodes[operand].loops;
    if (node.kind == Node::Reduce)
      for (unsigned row : rowLoops)
        node.loops &= ~(uint64_t(1) << row);
    nodes.push_back(std::move(node));
  }
  return found->second;
}

int Trace::splat(double number, Type elementType) {
  Node node{Node::Splat};
  node.number = number;
  node.elementType = elementType;
  return add(node);
}

int Trace::arith(Node::Code code, Type type, ArrayRef<int> operands) {
  for (int operand : operands)
    if (operand < 0)
      return -1;
  Node node{Node::Arith};
  node.code = code;
  node.elementType = type;
  node.operands.assign(operands.begin(), operands.end());
  return add(node);
}

int Trace::reduction(Node::Code code, Type type, int operand) {
  if (operand < 0)
    return -1;
  Node node{Node::Reduce};
  node.code = code;
  node.elementType = type;
  node.operands.push_back(operand);
  return add(node);
}

int Trace::castTo(int node, Type type) {
  if (node < 0 || nodes[node].elementType == type)
    return node;
  return arith(Node::Cast, type, {node});
}

std::pair<DimExpr, DimExpr> Trace::boundsOf(const Linear &index) const {
  DimExpr least = index.constant, most = index.constant;
  for (const auto &[number, coefficient] : index.terms) {
    const Atom &atom = atoms[number];
    DimExpr low(0), high = atom.size - DimExpr(1);
    if (atom.kind == Atom::Counter) {
      low = loops[number].begin;
      high = loops[number].end - DimExpr(1);
    }
    DimExpr a = coefficient * low, b = coefficient * high;
    if (!coefficient.isAtLeast(0))
      std::swap(a, b); // right for negative constants; of unknown sign are only those of runtime broadcasts, 0 or 1
    least = least + a;
    most = most + b;
  }
  return {least, most};
}

Linear Trace::linearize(ArrayRef<Coordinate> position, ArrayRef<DimExpr> dims) const {
  Linear index;
  DimExpr stride(1);
  for (size_t i = dims.size(); i-- > 0;) {
    index = index + indexOf(position[i]) * stride;
    stride = stride * dims[i];
  }
  return index;
}

std::optional<llvm::SmallVector<Linear>> Trace::delinearize(const Linear &index, ArrayRef<DimExpr> dims) {
  SmallVector<Linear> result(dims.size());
  Linear rest = index;
  for (size_t k = dims.size(); k-- > 1;) {
    const DimExpr &size = dims[k];
    if (size == DimExpr(1))
      continue;
    Linear inner, outer;
    for (const auto &[number, coefficient] : rest.terms) {
      if (auto quotient = coefficient.exactDiv(size))
        outer.terms.emplace(number, *quotient);
      else
        inner.terms.emplace(number, coefficient);
    }
    auto constant = rest.constant.asConstant(), divisor = size.asConstant();
    if (auto quotient = rest.constant.exactDiv(size)) {
      outer.constant = *quotient;
    } else if (constant && divisor) {
      outer.constant = rest.constant.floorDiv(size);
      inner.constant = rest.constant.mod(size);
    } else {
      inner.constant = rest.constant;
    }
    auto [least, most] = boundsOf(inner);
    if (least.isAtLeast(0) && (size - DimExpr(1) - most).isAtLeast(0)) {
      result[k] = inner;
      rest = outer;
      continue;
    }
    if (maySplit)
      for (const auto &[number, coefficient] : inner.terms) {
        if (atoms[number].kind != Atom::Counter)
          continue;
        const Loop &loop = loops[number];
        auto part = coefficient.isAtLeast(1) ? size.exactDiv(coefficient) : std::nullopt;
        if (!part || *part == DimExpr(1) || *part == loop.size || !loop.size.exactDiv(*part) ||
            !loop.begin.exactDiv(*part) || !loop.end.exactDiv(*part))
          continue;
        request = Split;
        requestLoop = number;
        splitInner = *part;
        return std::nullopt;
      }
    Atom remainder{Atom::Mod, size, rest, size}, quotient{Atom::FloorDiv, DimExpr(1), rest, size};
    DimExpr outerSize(1);
    for (size_t j = 0; j < k; ++j)
      outerSize = outerSize * dims[j];
    quotient.size = outerSize;
    result[k] = Linear::atom(addAtom(remainder));
    rest = Linear::atom(addAtom(quotient));
  }
  if (!dims.empty())
    result[0] = dims[0] == DimExpr(1) ? Linear() : rest;
  return result;
}

int Trace::segmentOf(const Linear &index, ArrayRef<std::pair<DimExpr, DimExpr>> segments, Operation *op) {
  auto [least, most] = boundsOf(index);
  for (auto [i, segment] : llvm::enumerate(segments))
    if ((least - segment.first).isAtLeast(0) && (segment.second - DimExpr(1) - most).isAtLeast(0))
      return int(i);
  std::string site = std::to_string(uintptr_t(op)) + "@" + index.key();
  if (auto found = decisions.find(site); found != decisions.end())
    return found->second;
  // index = factor * counter + inner, inner in [0, factor): borders that are multiples of the factor cut the loop.
  for (const auto &[number, factor] : index.terms) {
    // A row is reduced as a whole: its loop is not cut.
    if (atoms[number].kind != Atom::Counter || loops[number].isRow || !factor.isAtLeast(1))
      continue;
    Linear inner = index;
    inner.terms.erase(number);
    inner.constant = DimExpr(0);
    auto [innerLeast, innerMost] = boundsOf(inner);
    if (!innerLeast.isAtLeast(0) || !(factor - DimExpr(1) - innerMost).isAtLeast(0))
      continue;
    std::vector<std::pair<DimExpr, DimExpr>> parts;
    const Loop &loop = loops[number];
    for (const auto &[begin, end] : segments) {
      auto from = (begin - index.constant).exactDiv(factor), to = (end - index.constant).exactDiv(factor);
      if (!from || !to)
        break;
      DimExpr low = DimExpr::max(loop.begin, *from), high = DimExpr::min(loop.end, *to);
      if ((low - high).isAtLeast(0))
        low = high; // empty: skipped by whoever cuts
      parts.push_back({low, high});
    }
    if (parts.size() != segments.size())
      continue;
    request = Cut;
    requestLoop = number;
    cutSite = site;
    cuts = std::move(parts);
    return -1;
  }
  return -2;
}

void Trace::collapse(std::vector<unsigned> &order, MutableArrayRef<Linear> stores) {
  SmallVector<Linear *> all;
  for (Linear &store : stores)
    all.push_back(&store);
  for (Node &node : nodes)
    all.push_back(&node.index);
  for (Atom &atom : atoms)
    all.push_back(&atom.argument);
  auto replaceBit = [&](unsigned from, uint64_t by) {
    uint64_t bit = uint64_t(1) << from;
    for (Node &node : nodes)
      if (node.loops & bit)
        node.loops = (node.loops & ~bit) | by;
    for (Atom &atom : atoms)
      if (atom.kind != Atom::Counter && (atom.loops & bit))
        atom.loops = (atom.loops & ~bit) | by;
  };
  std::vector<unsigned> kept;
  for (unsigned number : order) {
    const Loop &loop = loops[number];
    if (loop.end - loop.begin != DimExpr(1)) {
      kept.push_back(number);
      continue;
    }
    for (Linear *linear : all)
      if (auto found = linear->terms.find(number); found != linear->terms.end()) {
        DimExpr distance = found->second * loop.begin;
        linear->terms.erase(found);
        linear->constant = linear->constant + distance;
      }
    replaceBit(number, 0);
  }
  order = std::move(kept);
  for (size_t i = 0; i + 1 < order.size();) {
    unsigned outer = order[i], inner = order[i + 1];
    bool fits = loops[outer].isRow == loops[inner].isRow && loops[inner].isWhole();
    for (Linear *linear : all)
      fits = fits && linear->coefficient(outer) == linear->coefficient(inner) * loops[inner].size;
    if (!fits) {
      ++i;
      continue;
    }
    for (Linear *linear : all) {
      DimExpr coefficient = linear->coefficient(inner);
      linear->terms.erase(inner);
      linear->terms.erase(outer);
      if (coefficient != DimExpr(0))
        linear->terms.emplace(outer, coefficient);
    }
    Loop &merged = loops[outer];
    const DimExpr &count = loops[inner].size;
    merged.size = merged.size * count;
    merged.begin = merged.begin * count;
    merged.end = merged.end * count;
    replaceBit(inner, uint64_t(1) << outer);
    order.erase(order.begin() + long(i) + 1);
    i = 0;
  }
  rowLoops.clear();
  for (unsigned number : order)
    if (loops[number].isRow)
      rowLoops.push_back(number);
}

// --- pulling ---------------------------------------------------------------------------------------------------------

int Trace::pull(Value value, ArrayRef<Coordinate> position) {
  if (request != None)
    return -1;
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type)
    return fail("a value without a rank");
  if (!Elements::supports(type.getElementType()))
    return fail("no vector code for elements of type " + elementTypeText(type.getElementType()));
  std::string key = std::to_string(uintptr_t(value.getAsOpaquePointer()));
  for (const Coordinate &c : position)
    key += (c.isOne ? "|1 " : "|") + c.at.key();
  if (auto found = pulled.find(key); found != pulled.end())
    return found->second;
  int node;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    Node load{Node::Load};
    load.elementType = type.getElementType();
    load.buffer = argument.getArgNumber();
    load.index = linearize(position, dimsOf(type));
    node = add(load);
  } else {
    node = pullOperation(cast<OpResult>(value), position);
  }
  if (node >= 0)
    pulled[key] = node;
  return node;
}

int Trace::pullElementwise(Operation *op, ArrayRef<Coordinate> position) {
  SmallVector<DimExpr> dims = dimsOfValue(op->getResult(0));
  Node node{Node::Compute};
  node.op = op;
  node.elementType = cast<RankedTensorType>(op->getResult(0).getType()).getElementType();
  bool isPlain = isa<CastLikeOp, DropoutOp>(op);
  for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
    if (isAbsent(operand) || (isPlain && i > 0)) {
      node.operands.push_back(-1);
      continue;
    }
    SmallVector<DimExpr> own = dimsOfValue(operand);
    if (own.size() > dims.size()) // clip's bounds may be [1] where x is a scalar
      own = SmallVector<DimExpr>(ArrayRef(own).take_back(dims.size()));
    Position at;
    size_t offset = dims.size() - own.size();
    for (auto [k, dim] : llvm::enumerate(own)) {
      const Coordinate &c = position[offset + k];
      if (dim == dims[offset + k])
        at.push_back(c);
      else if (dim == DimExpr(1))
        at.push_back({c.at, true});
      else if (c.isOne)
        at.push_back(c);
      else // whether it is broadcast turns out while running: a stride of 0 or 1
        at.push_back({c.at * DimExpr::min(dim - DimExpr(1), DimExpr(1)), false});
    }
    size_t missing = dimsOfValue(operand).size() - own.size();
    if (missing > 0)
      at.insert(at.begin(), missing, Coordinate{Linear(), true});
    int pulledNode = pull(operand, at);
    if (pulledNode < 0)
      return -1;
    node.operands.push_back(pulledNode);
  }
  return add(node);
}

int Trace::pullReshape(Value x, Value result, ArrayRef<Coordinate> position) {
  // Groups of axes with equal products are independent of each other.
  SmallVector<DimExpr> from = dimsOfValue(x), to = dimsOfValue(result);
  Position at(from.size(), Coordinate{Linear(), true});
  size_t i = 0, j = 0;
  while (i < from.size() || j < to.size()) {
    while (i < from.size() && from[i] == DimExpr(1))
      ++i;
    while (j < to.size() && to[j] == DimExpr(1))
      ++j;
    if (i == from.size() && j == to.size())
      break;
    if (i == from.size() || j == to.size())
      return fail("a reshape whose sizes do not agree");
    if (from[i] == to[j]) {
      at[i++] = position[j++];
      continue;
    }
    // The shortest groups from here on; if products never meet (symbolic), the rest is one group.
    size_t iEnd = i + 1, jEnd = j + 1;
    DimExpr a = from[i], b = to[j];
    while (a != b) {
      auto aValue = a.asConstant(), bValue = b.asConstant();
      bool growA = aValue && bValue ? *aValue < *bValue : b.exactDiv(a).has_value();
      if (growA ? iEnd < from.size() : jEnd < to.size())
        growA ? (a = a * from[iEnd++]) : (b = b * to[jEnd++]);
      else if (iEnd < from.size() || jEnd < to.size())
        iEnd < from.size() ? (a = a * from[iEnd++]) : (b = b * to[jEnd++]);
      else
        break;
    }
    auto group = ArrayRef(from).slice(i, iEnd - i);
    Linear index = linearize(position.slice(j, jEnd - j), ArrayRef(to).slice(j, jEnd - j));
    auto parts = delinearize(index, group);
    if (!parts)
      return -1;
    for (size_t k = i; k < iEnd; ++k)
      at[k] = {(*parts)[k - i], from[k] == DimExpr(1)};
    i = iEnd;
    j = jEnd;
  }
  return pull(x, at);
}

int Trace::pullConstant(Attribute value, RankedTensorType type, ArrayRef<Coordinate> position) {
  auto bytes = constantBytes(value);
  if (!bytes || bytes->bytes.empty())
    return fail("a constant without bytes");
  Node node{Node::Splat};
  node.value = value;
  node.elementType = type.getElementType();
  Linear index = linearize(position, dimsOf(type));
  if (bytes->isSplat)
    return add(node);
  if (auto element = index.isConstant() ? index.constant.asConstant() : std::nullopt) {
    node.element = *element;
    return add(node);
  }
  node.kind = Node::Table;
  node.index = index;
  return add(node);
}

int Trace::pullOperation(OpResult result, ArrayRef<Coordinate> position) {
  Operation *op = result.getOwner();
  auto type = cast<RankedTensorType>(result.getType());
  auto indexNode = [&](Linear index) {
    Node node{Node::Index};
    node.index = std::move(index);
    node.elementType = type.getElementType();
    return add(node);
  };
  if (auto elements = integerElements(result); elements && (isa<DimValuesOp, ShapeOp, SizeOp>(op))) {
    Linear index = position.empty() ? Linear() : indexOf(position[0]);
    if (elements->size() == 1)
      return indexNode((*elements)[0]);
    if (auto at = index.isConstant() ? index.constant.asConstant() : std::nullopt)
      return indexNode((*elements)[size_t(*at)]);
    if (elements->size() > 16)
      return fail("more than 16 dimension values");
    int chosen = indexNode(elements->back());
    for (size_t i = elements->size() - 1; i-- > 0;) {
      Node test{Node::IsAtLeast};
      test.elementType = IntegerType::get(type.getContext(), 1);
      test.index = index + Linear(DimExpr(-int64_t(i) - 1));
      chosen = arith(Node::Select, type.getElementType(), {add(test), chosen, indexNode((*elements)[i])});
    }
    return chosen;
  }
  return TypeSwitch<Operation *, int>(op)
      .Case([&](ConstantOp constant) { return pullConstant(constant.getValue(), type, position); })
      .Case([&](ConstantOfShapeOp fill) {
        if (ElementsAttr value = fill.getValueAttr())
          return pullConstant(value, type, Position(position.size(), Coordinate{Linear(), true}));
        return splat(0, type.getElementType());
      })
      .Case<ReshapeOp, FlattenOp, SqueezeOp, UnsqueezeOp>(
          [&](auto) { return pullReshape(op->getOperand(0), result, position); })
      .Case([&](TransposeOp transpose) {
        Position at(position.size());
        auto perm = transpose.getPerm();
        for (size_t i = 0; i < position.size(); ++i)
          at[perm ? size_t((*perm)[i]) : position.size() - 1 - i] = position[i];
        return pull(transpose.getX(), at);
      })
      .Case([&](ExpandOp expand) {
        SmallVector<DimExpr> own = dimsOfValue(expand.getX()), dims = dimsOfValue(result);
        size_t offset = dims.size() - own.size();
        Position at;
        for (auto [k, dim] : llvm::enumerate(own)) {
          const Coordinate &c = position[offset + k];
          if (dim == dims[offset + k])
            at.push_back(c);
          else if (dim == DimExpr(1))
            at.push_back({c.at, true});
          else
            at.push_back({indexOf(c) * DimExpr::min(dim - DimExpr(1), DimExpr(1)), false});
        }
        return pull(expand.getX(), at);
      })
      .Case([&](TileOp tile) {
        SmallVector<DimExpr> own = dimsOfValue(tile.getX()), dims = dimsOfValue(result);
        Position at;
        for (auto [k, dim] : llvm::enumerate(own)) {
          if (dim == dims[k]) {
            at.push_back(position[k]);
          } else if (dim == DimExpr(1)) {
            at.push_back({Linear(), true});
          } else {
            auto times = dims[k].exactDiv(dim);
            auto parts = delinearize(indexOf(position[k]), {times ? *times : DimExpr(1), dim});
            if (!parts)
              return -1;
            at.push_back({(*parts)[1], false});
          }
        }
        return pull(tile.getX(), at);
      })
      .Case([&](SplitOp split) {
        int64_t axis = split.getAxis();
        if (axis < 0)
          axis += int64_t(position.size());
        DimExpr start(0);
        for (unsigned i = 0; i < result.getResultNumber(); ++i)
          start = start + dimsOfValue(split.getResult(i))[size_t(axis)];
        Position at(position.begin(), position.end());
        at[size_t(axis)] = {indexOf(position[size_t(axis)]) + Linear(start), false};
        return pull(split.getX(), at);
      })
      .Case([&](SliceOp slice) { return pullSlice(slice, position); })
      .Case([&](ConcatOp concat) { return pullConcat(concat, position); })
      .Case([&](PadOp pad) { return pullPad(pad, position); })
      .Case<GatherOp, GatherElementsOp, GatherNDOp>([&](auto) { return pullGather(op, position); })
      .Case([&](ResizeOp resize) { return pullResize(resize, position); })
      .Case([&](DepthToSpaceOp shuffle) {
        DimExpr block(shuffle.getBlocksize());
        SmallVector<DimExpr> own = dimsOfValue(shuffle.getX());
        auto h = delinearize(indexOf(position[2]), {own[2], block});
        auto w = h ? delinearize(indexOf(position[3]), {own[3], block}) : std::nullopt;
        if (!w)
          return -1;
        Linear channel = indexOf(position[1]);
        DimExpr depth = dimsOfValue(result)[1];
        Linear c = shuffle.getMode() == "CRD" ? channel * (block * block) + (*h)[1] * block + (*w)[1]
                                              : (*h)[1] * (block * depth) + (*w)[1] * depth + channel;
        return pull(shuffle.getX(), {position[0], {c, false}, {(*h)[0], false}, {(*w)[0], false}});
      })
      .Case([&](SpaceToDepthOp shuffle) {
        DimExpr block(shuffle.getBlocksize());
        SmallVector<DimExpr> own = dimsOfValue(shuffle.getX());
        auto mode = shuffle->getAttrOfType<StringAttr>("mode");
        bool isChannelFirst = mode && mode.getValue() == "CRD";
        auto c = isChannelFirst ? delinearize(indexOf(position[1]), {own[1], block, block})
                                : delinearize(indexOf(position[1]), {block, block, own[1]});
        if (!c)
          return -1;
        Linear h = indexOf(position[2]) * block + (*c)[isChannelFirst],
               w = indexOf(position[3]) * block + (*c)[1 + isChannelFirst];
        return pull(shuffle.getX(), {position[0], {(*c)[isChannelFirst ? 0 : 2], false}, {h, false}, {w, false}});
      })
      .Case([&](RangeOp range) {
        int start = pull(range.getStart(), Position(dimsOfValue(range.getStart()).size(), {Linear(), true}));
        int delta = pull(range.getDelta(), Position(dimsOfValue(range.getDelta()).size(), {Linear(), true}));
        if (start < 0 || delta < 0)
          return -1;
        Type element = type.getElementType();
        int step = arith(Node::Mul, element, {indexNode(indexOf(position[0])), delta});
        return arith(Node::Add, element, {start, step});
      })
      .Case([&](TriluOp trilu) {
        DimExpr k(0);
        if (Value diagonal = operandOf(op, 1)) {
          auto known = integerElements(diagonal);
          if (!known || known->size() != 1)
            return fail("trilu with a diagonal that is no constant");
          k = (*known)[0];
        }
        // upper: j - i - k >= 0; lower: i + k - j >= 0
        Linear i = indexOf(position[position.size() - 2]), j = indexOf(position.back());
        DimExpr minus(-1);
        Node test{Node::IsAtLeast};
        test.elementType = IntegerType::get(type.getContext(), 1);
        test.index = trilu.getUpper() ? j + i * minus + Linear(k * minus) : i + Linear(k) + j * minus;
        int x = pull(trilu.getX(), position);
        if (x < 0)
          return -1;
        return arith(Node::Select, type.getElementType(), {add(test), x, splat(0, type.getElementType())});
      })
      .Case([&](OneHotOp oneHot) { return pullOneHot(oneHot, position); })
      .Case<QuantizeLinearOp, DequantizeLinearOp>([&](auto) { return pullQuantization(op, position); })
      .Case([&](DropoutOp) {
        return result.getResultNumber() == 0 ? pull(op->getOperand(0), position) : fail("dropout's mask");
      })
      .Case<SoftmaxOp, LogSoftmaxOp, LayerNormalizationOp, RMSNormalizationOp, InstanceNormalizationOp,
            GroupNormalizationOp, LpNormalizationOp, BatchNormalizationOp>(
          [&](auto) { return pullNormalization(result, position); })
      .Case<ReduceSumOp, ReduceMeanOp, ReduceMaxOp, ReduceMinOp, ReduceProdOp, ReduceL1Op, ReduceL2Op, ReduceLogSumOp,
            ReduceLogSumExpOp, ReduceSumSquareOp, ArgMaxOp, ArgMinOp, GlobalAveragePoolOp, GlobalMaxPoolOp>(
          [&](auto) { return pullReduction(op, position); })
      .Default([&](Operation *) {
        if (!Elements::computes(op) || op->getNumResults() != 1)
          return fail("no vector code for " + op->getName().getStringRef());
        return pullElementwise(op, position);
      });
}

} // namespace firn

#include "compiler/export/Dimensions.h"
#include "compiler/import/Blob.h"
#include "dialects/firn/Firn.h"
#include "runtime/abi/dtype.h"
#include <cstring>

namespace firn {

static model::Attribute intAttr(const char *name, int64_t value) {
  model::Attribute attribute;
  attribute.name = name;
  attribute.kind = model::Attribute::Kind::Int;
  attribute.i = value;
  return attribute;
}

void Dimensions::define(mlir::Value value, const std::string &name) {
  auto type = mlir::dyn_cast<mlir::RankedTensorType>(value.getType());
  if (!type || !type.getEncoding())
    return;
  for (int64_t axis = 0; axis < type.getRank(); ++axis)
    if (std::optional<std::string> symbol = dimOf(type, axis).asSymbol())
      sources.try_emplace(*symbol, name, axis);
}

std::string Dimensions::node(const char *type, std::vector<std::string> inputs) {
  model::Node made;
  made.type = type;
  made.name = names.fresh("dim_" + std::string(type));
  made.inputs = std::move(inputs);
  made.outputs = {made.name};
  graph.nodes.push_back(std::move(made));
  return graph.nodes.back().name;
}

std::string Dimensions::number(int64_t value) {
  std::string &name = known[std::to_string(value)];
  if (name.empty()) {
    model::Tensor tensor;
    tensor.name = name = names.fresh("dim_" + std::to_string(value));
    tensor.dtype = FIRN_I64;
    tensor.dims = {1};
    std::memcpy(allocateBytes(tensor, 8), &value, 8);
    graph.constants.push_back(std::move(tensor));
  }
  return name;
}

std::optional<std::string> Dimensions::emitAtom(const DimExpr::Atom &atom) {
  if (atom.function == DimExpr::Function::Symbol) {
    auto source = sources.find(atom.name);
    if (source == sources.end())
      return std::nullopt;
    std::string shape = node("Shape", {source->second.first});
    neededOpset = std::max<int64_t>(neededOpset, 15);
    int64_t axis = source->second.second;
    graph.nodes.back().attributes = {intAttr("start", axis), intAttr("end", axis + 1)};
    return shape;
  }
  bool isCeil = atom.function == DimExpr::Function::CeilDiv;
  // ceil(a / b) = -floor(-a / b)
  std::optional<std::string> a = emit(isCeil ? DimExpr(0) - atom.args[0] : atom.args[0]), b = emit(atom.args[1]);
  if (!a || !b)
    return std::nullopt;
  switch (atom.function) {
  case DimExpr::Function::Mod:
    return node("Mod", {*a, *b});
  case DimExpr::Function::Min:
    return node("Min", {*a, *b});
  case DimExpr::Function::Max:
    return node("Max", {*a, *b});
  default: {
    // ONNX's division truncates; without the remainder, which has the divisor's sign, it is exact.
    std::string quotient = node("Div", {node("Sub", {*a, node("Mod", {*a, *b})}), *b});
    return isCeil ? node("Neg", {quotient}) : quotient;
  }
  }
}

std::optional<std::string> Dimensions::emit(const DimExpr &expr) {
  if (std::optional<int64_t> constant = expr.asConstant())
    return number(*constant);
  std::string text = expr.str();
  if (auto found = known.find(text); found != known.end())
    return found->second;
  std::optional<std::string> sum;
  for (const DimExpr::Term &term : expr.terms()) {
    std::optional<std::string> product;
    if (term.coefficient != 1 || term.atoms.empty())
      product = number(term.coefficient);
    for (const DimExpr::AtomRef &atom : term.atoms) {
      std::optional<std::string> factor = emitAtom(*atom);
      if (!factor)
        return std::nullopt;
      product = product ? node("Mul", {*product, *factor}) : *factor;
    }
    sum = sum ? node("Add", {*sum, *product}) : *product;
  }
  known[text] = *sum;
  return sum;
}

bool Dimensions::emitVector(llvm::ArrayRef<DimExpr> exprs, mlir::RankedTensorType type, const std::string &name) {
  std::vector<std::string> parts;
  for (const DimExpr &expr : exprs) {
    std::optional<std::string> part = emit(expr);
    if (!part)
      return false;
    parts.push_back(*part);
  }
  std::string vector;
  if (parts.empty()) {
    model::Tensor tensor;
    tensor.name = vector = names.fresh("dim_none");
    tensor.dtype = FIRN_I64;
    tensor.dims = {0};
    allocateBytes(tensor, 0);
    graph.constants.push_back(std::move(tensor));
  } else {
    vector = node("Concat", parts);
    graph.nodes.back().attributes = {intAttr("axis", 0)};
    neededOpset = std::max<int64_t>(neededOpset, 4);
  }
  if (type.getRank() == 0) {
    vector = node("Squeeze", {vector});
    neededOpset = std::max<int64_t>(neededOpset, 13);
  }
  // The name belongs to the last node.
  if (type.getElementType().isInteger(64)) {
    node("Identity", {vector});
  } else {
    node("Cast", {vector});
    graph.nodes.back().attributes = {intAttr("to", dtypeOf(type.getElementType()))};
  }
  graph.nodes.back().outputs = {name};
  return true;
}

bool Dimensions::emitShape(mlir::RankedTensorType type, const std::string &name) {
  llvm::SmallVector<DimExpr> dims;
  int64_t unknown = -1, count = 0;
  bool hasZero = false;
  for (int64_t axis = 0; axis < type.getRank(); ++axis) {
    dims.push_back(dimOf(type, axis));
    hasZero |= dims.back() == DimExpr(0);
    if (!dims.back().isConstant()) {
      unknown = axis;
      ++count;
    }
  }
  // One dimension may follow from the others.
  if (count == 1 && !hasZero)
    dims[unknown] = DimExpr(-1);
  auto vector = mlir::RankedTensorType::get({type.getRank()}, mlir::IntegerType::get(type.getContext(), 64));
  return emitVector(dims, vector, name);
}

} // namespace firn

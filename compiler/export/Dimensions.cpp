#include "compiler/export/Dimensions.h"
#include "compiler/import/Blob.h"
#include "compiler/import/onnx/Upgrade.h"
#include "dialects/firn/Firn.h"
#include "passes/GraphForm.h"
#include "runtime/abi/dtype.h"
#include <cstring>

namespace firn {

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
    graph.nodes.back().attributes = {intAttribute("start", axis), intAttribute("end", axis + 1)};
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

// Numbers alone need no nodes.
void Dimensions::emitConstant(llvm::ArrayRef<DimExpr> exprs, mlir::RankedTensorType type, const std::string &name) {
  model::Tensor tensor;
  tensor.name = name;
  tensor.dtype = dtypeOf(type.getElementType());
  tensor.dims.assign(type.getShape().begin(), type.getShape().end());
  size_t size = size_t(firn_dtype_bits(tensor.dtype) / 8);
  char *out = allocateBytes(tensor, exprs.size() * size);
  for (const DimExpr &expr : exprs) {
    int64_t value = expr.constant();
    std::memcpy(out, &value, size);
    out += size;
  }
  graph.constants.push_back(std::move(tensor));
}

bool Dimensions::emitVector(llvm::ArrayRef<DimExpr> exprs, mlir::RankedTensorType type, const std::string &name) {
  if (llvm::all_of(exprs, [](const DimExpr &expr) { return expr.isConstant(); })) {
    emitConstant(exprs, type, name);
    return true;
  }
  std::vector<std::string> parts;
  for (const DimExpr &expr : exprs) {
    std::optional<std::string> part = emit(expr);
    if (!part)
      return false;
    parts.push_back(*part);
  }
  std::string vector = node("Concat", parts);
  graph.nodes.back().attributes = {intAttribute("axis", 0)};
  neededOpset = std::max<int64_t>(neededOpset, 4);
  if (type.getRank() == 0) {
    node("Squeeze", {vector});
    neededOpset = std::max<int64_t>(neededOpset, 13);
  }
  if (!type.getElementType().isInteger(64)) {
    node("Cast", {graph.nodes.back().outputs[0]});
    graph.nodes.back().attributes = {intAttribute("to", dtypeOf(type.getElementType()))};
  }
  graph.nodes.back().outputs = {name}; // the name belongs to the last node
  return true;
}

bool Dimensions::emitShape(mlir::RankedTensorType from, mlir::RankedTensorType to, const std::string &name,
                           bool &hasZeros) {
  llvm::SmallVector<DimExpr> dims;
  std::optional<llvm::SmallVector<int64_t>> numbers = reshapeNumbers(from, to);
  hasZeros = !numbers;
  for (int64_t axis = 0; axis < to.getRank(); ++axis)
    dims.push_back(numbers ? DimExpr((*numbers)[axis]) : dimOf(to, axis));
  if (llvm::all_of(dims, [](const DimExpr &dim) { return dim.isConstant(); })) {
    model::Tensor tensor;
    tensor.name = name;
    tensor.dtype = FIRN_I64;
    tensor.dims = {to.getRank()};
    char *out = allocateBytes(tensor, size_t(to.getRank()) * 8);
    for (auto [i, dim] : llvm::enumerate(dims)) {
      int64_t value = dim.constant();
      std::memcpy(out + i * 8, &value, 8);
    }
    shapes.push_back(std::move(tensor));
    return true;
  }
  auto vector = mlir::RankedTensorType::get({to.getRank()}, mlir::IntegerType::get(to.getContext(), 64));
  return emitVector(dims, vector, name);
}

void Dimensions::finish() {
  for (model::Tensor &shape : shapes)
    graph.constants.push_back(std::move(shape));
  shapes.clear();
}

} // namespace firn

// Dimensions: dimension expressions written back as nodes that compute them from the shapes of values.
#ifndef FIRN_COMPILER_EXPORT_DIMENSIONS_H
#define FIRN_COMPILER_EXPORT_DIMENSIONS_H

#include "compiler/import/Model.h"
#include "dialects/firn/DimExpr.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Value.h"
#include <set>

namespace firn {

class UniqueNames {
public:
  std::string fresh(const std::string &wanted) {
    std::string name = wanted;
    for (unsigned i = 1; !used.insert(name).second; ++i)
      name = wanted + "_" + std::to_string(i);
    return name;
  }

private:
  std::set<std::string> used;
};

class Dimensions {
public:
  Dimensions(UniqueNames &uniqueNames, model::Graph &written) : names(uniqueNames), graph(written) {}
  /// For a graph nested in that of `outer`, which sees what is defined so far.
  Dimensions(const Dimensions &outer, model::Graph &written)
      : names(outer.names), graph(written), sources(outer.sources), known(outer.known) {}

  /// Symbols that are dimensions of `value` can be had from it.
  void define(mlir::Value value, const std::string &name);
  /// Nodes that compute the numbers as a tensor of this type (rank 0 or 1, i64 or i32) called `name`. False where a
  /// symbol comes from nowhere.
  bool emitVector(llvm::ArrayRef<DimExpr> exprs, mlir::RankedTensorType type, const std::string &name);
  /// The operand, called `name`, of a reshape from one type to the other. `hasZeros`: a 0 in it means 0, not a copy.
  bool emitShape(mlir::RankedTensorType from, mlir::RankedTensorType to, const std::string &name, bool &hasZeros);
  /// Appends the operands of reshapes to the graph's constants: last, so that they stay where they are when the file is
  /// read and written again, which drops and makes them anew.
  void finish();
  /// What the nodes need.
  int64_t opset() const { return neededOpset; }

private:
  void emitConstant(llvm::ArrayRef<DimExpr> exprs, mlir::RankedTensorType type, const std::string &name);
  std::string number(int64_t value);
  std::optional<std::string> emit(const DimExpr &expr);
  std::optional<std::string> emitAtom(const DimExpr::Atom &atom);
  std::string node(const char *type, std::vector<std::string> inputs);

  UniqueNames &names;
  model::Graph &graph;
  std::map<std::string, std::pair<std::string, int64_t>> sources; // symbol: value and axis
  std::map<std::string, std::string> known;                       // text of an expression: value of shape [1]
  std::vector<model::Tensor> shapes;
  int64_t neededOpset = 0;
};

} // namespace firn
#endif

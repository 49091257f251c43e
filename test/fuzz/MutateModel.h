// Mutations of ONNX graphs that keep them graphs: the readers take most results, so that what lies behind them is met.
#ifndef FIRN_TEST_FUZZ_MUTATEMODEL_H
#define FIRN_TEST_FUZZ_MUTATEMODEL_H

#include <cstddef>
#include <cstdint>
#include <string>

namespace firn::test {

/// Bytes of a model made from those of another by a few changes that `seed` chooses: edges, dimensions, element types,
/// attributes, operators, opsets, contents of constants, nodes doubled and removed, graphs nested into If and Loop.
/// Bytes that are no model give a small one.
std::string mutateModel(const std::string &bytes, unsigned seed);

/// A model with the nodes of both, one graph.
std::string spliceModels(const std::string &bytes, const std::string &other, unsigned seed);

} // namespace firn::test
#endif

// Runs the generated kernel of a fused operation and the reference kernels of its body on the same data.
#ifndef FIRN_TEST_COMPILER_CODEGEN_CONTRACTIONHARNESS_H
#define FIRN_TEST_COMPILER_CODEGEN_CONTRACTIONHARNESS_H

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace firn::test {

/// A dimension: a number, or a symbol with its value in FusedCase::sizes.
struct Dim {
  Dim(int64_t number) : value(number) {}
  Dim(int number) : value(number) {}
  Dim(const char *symbol) : name(symbol) {}
  int64_t value = -1;
  std::string name;
};
using Shape = std::vector<Dim>;

/// "tensor<?x3xf32, #firn.dims<["n", ""]>>"
std::string typeText(const Shape &shape, const std::string &element = "f32");

struct Input {
  Shape shape;
  std::string element = "f32";
  bool isFrozen = false; // a constant of the model
  double low = -1, high = 1;
  std::vector<double> values = {}; // instead of random ones
};

struct FusedCase {
  std::string kind = "contraction";
  std::vector<Input> inputs; // %0, %1, ... in the body
  std::string body;          // operations and firn.yield
  Shape result;
  std::string resultElement = "f32";
  std::vector<std::pair<Shape, std::string>> moreResults = {};
  std::map<std::string, int64_t> sizes = {}; // of symbols
  std::string target = "native";
  std::vector<int> workers = {1, 2, 3};
  double tolerance = 1e-5; // times the largest magnitude of the result, and absolute
};

/// A kernel ready to run, with its buffers.
class CompiledCase {
public:
  explicit CompiledCase(const FusedCase &from);
  ~CompiledCase();
  /// Empty, or why the kernel cannot be made.
  const std::string &failure() const;
  void run(int workers, bool isPoisoned = true);
  /// FIRN_FAULT_ of the last run.
  int fault() const;
  bool isParallel() const;
  /// "", or how the results differ from the reference.
  std::string compare();
  double flops() const;
  /// Kernel, LLVM IR and assembly, for looking at.
  std::string texts() const;

private:
  struct State;
  std::unique_ptr<State> state;
};

/// "" if the kernel's results agree with the reference's for every number of workers, else what is wrong.
std::string check(const FusedCase &fused);

} // namespace firn::test
#endif

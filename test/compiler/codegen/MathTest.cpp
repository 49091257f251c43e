// The ULP bounds that passes/kernel/ExpandMath.cpp states, over sweeps of bit patterns.
#include "compiler/codegen/cpu/Pipeline.h"
#include "mlir/Parser/Parser.h"
#include "runtime/abi/model.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Support/TargetSelect.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>

using namespace firn;

namespace {

/// f32 numbers between low and high, both signs where the range has them: steps through the bit patterns, and the ends.
std::vector<float> sweep(double low, double high) {
  std::vector<float> values;
  for (uint32_t bits = 0; bits < 0x7f800000; bits += 9973)
    for (uint32_t sign : {0u, 0x80000000u}) {
      uint32_t all = bits | sign;
      float value;
      std::memcpy(&value, &all, sizeof value);
      if (value >= low && value <= high)
        values.push_back(value);
    }
  values.push_back(float(low));
  values.push_back(float(high));
  values.resize(values.size() / 64 * 64);
  return values;
}

/// One operation of the dialect compiled for `target`, applied to many values.
std::vector<float> apply(const std::string &op, const std::string &target, std::vector<float> values) {
  mlir::MLIRContext context;
  loadKernelDialects(context);
  std::string type = "tensor<" + std::to_string(values.size()) + "xf32>";
  std::string text = "func.func @f(%a: " + type + ") {\n%r = firn.fused \"map\"(%a) : (" + type + ") -> (" + type +
                     ") {\n^bb0(%x: " + type + "):\n%y = firn." + op + " %x : (" + type + ") -> " + type +
                     "\nfirn.yield %y : " + type + "\n}\nreturn\n}\n";
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, mlir::ParserConfig(&context));
  REQUIRE(module);
  FusedOp fused;
  module->walk([&](FusedOp found) { fused = found; });
  CompileOptions options;
  options.threads = 1;
  auto description = describeTarget(target);
  REQUIRE(description);
  CompiledKernels compiled = compileKernels(KernelJob{fused, "kernel"}, *description, options);
  REQUIRE(compiled.error == "");
  REQUIRE(compiled.kernels[0].whyNot == "");
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  auto jit = llvm::cantFail(llvm::orc::LLJITBuilder().create());
  const std::vector<char> &object = compiled.objects.front();
  llvm::cantFail(jit->addObjectFile(
      llvm::MemoryBuffer::getMemBufferCopy(llvm::StringRef(object.data(), object.size()), "kernel")));
  auto kernel = llvm::cantFail(jit->lookup("kernel")).toPtr<firn_kernel>();
  std::vector<float> results(values.size());
  void *buffers[] = {values.data(), results.data()};
  int32_t status = 0;
  firn_kernel_args args{buffers, nullptr, nullptr, 0, &status, nullptr, nullptr};
  kernel(&args, 0, 1);
  return results;
}

/// The largest distance of two neighbouring f32 numbers at `value`.
double ulp(double value) {
  float rounded = float(std::fabs(value));
  if (rounded > std::numeric_limits<float>::max() / 2)
    return std::ldexp(1.0, 104);
  return double(std::nextafter(rounded, std::numeric_limits<float>::infinity())) - double(rounded);
}

void check(const std::string &op, double (*reference)(double), double low, double high, double bound) {
  std::vector<float> values = sweep(low, high);
  for (const char *target : {"x86-64-v2", "x86-64-v3", "native"}) {
    std::vector<float> results = apply(op, target, values);
    double worst = 0;
    float where = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      double wanted = reference(double(values[i]));
      bool isOver = std::fabs(wanted) > double(std::numeric_limits<float>::max());
      double error = isOver ? (std::isinf(results[i]) || std::fabs(results[i]) > 3.4e38f ? 0 : 1e9)
                            : std::fabs(double(results[i]) - wanted) / ulp(wanted);
      if (!(error <= worst)) {
        worst = std::isnan(error) ? 1e9 : error;
        where = values[i];
      }
    }
    INFO(op << " on " << target << ": worst at " << where);
    CHECK(worst <= bound);
  }
}

} // namespace

TEST_CASE("exponentials and logarithms stay within their bounds") {
  check("exp", std::exp, -120, 89, 1.5);
  check("log", std::log, 0, 3e38, 1.5);
  check(
      "softplus", [](double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }, -80, 1e30,
      6);
  check("sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }, -80, 100, 6);
}

TEST_CASE("circular functions stay within their bounds") {
  check("sin", std::sin, -1e6, 1e6, 1.5);
  check("cos", std::cos, -1e6, 1e6, 1.5);
  check("tan", std::tan, -1e6, 1e6, 3);
  check("asin", std::asin, -1, 1, 3);
  check("acos", std::acos, -1, 1, 3);
  check("atan", std::atan, -3e38, 3e38, 3);
}

TEST_CASE("hyperbolic functions and erf stay within their bounds") {
  check("tanh", std::tanh, -100, 100, 5);
  check("sinh", std::sinh, -89, 89, 5);
  check("cosh", std::cosh, -89, 89, 4);
  check("asinh", std::asinh, -3e38, 3e38, 4);
  check("acosh", std::acosh, 1, 3e38, 4);
  check("atanh", std::atanh, -0.999999, 0.999999, 4);
  check("erf", std::erf, -10, 10, 6);
}

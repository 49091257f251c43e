// Properties of compiled kernels as a whole: what objects need, that they depend on the jobs alone, keys, faults,
// places.
#include "compiler/codegen/cpu/Pipeline.h"
#include "mlir/Parser/Parser.h"
#include "runtime/abi/model.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/TargetSelect.h"

#include <catch2/catch.hpp>
#include <set>

using namespace firn;

namespace {

struct Kernels {
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::vector<KernelJob> jobs;

  explicit Kernels(const std::string &text) {
    loadKernelDialects(context);
    module = mlir::parseSourceString<mlir::ModuleOp>(text, mlir::ParserConfig(&context));
    REQUIRE(module);
    module->walk([&](FusedOp op) { jobs.push_back({op, "kernel" + std::to_string(jobs.size())}); });
  }
  CompiledKernels compile(const std::string &target, unsigned threads = 1, unsigned optLevel = 3) {
    CompileOptions options;
    options.threads = threads;
    options.optLevel = optLevel;
    auto description = describeTarget(target);
    REQUIRE(description);
    return compileKernels(jobs, *description, options);
  }
};

std::string fused(const std::string &kind, const std::string &from, const std::string &to, const std::string &body,
                  const std::string &name = "f") {
  return "func.func @" + name + "(%a: " + from + ") {\n%r = firn.fused \"" + kind + "\"(%a) : (" + from + ") -> (" +
         to + ") {\n^bb0(%x: " + from + "):\n" + body + "\nfirn.yield %y : " + to + "\n}\nreturn\n}\n";
}

std::string unary(const std::string &op, const std::string &from, const std::string &to,
                  const std::string &name = "f") {
  return fused("map", from, to, "%y = firn." + op + " : (" + from + ") -> " + to, name);
}

std::set<std::string> undefinedSymbols(const std::vector<char> &object) {
  auto file = llvm::cantFail(llvm::object::ObjectFile::createObjectFile(
      llvm::MemoryBufferRef(llvm::StringRef(object.data(), object.size()), "kernels")));
  std::set<std::string> names;
  for (const llvm::object::SymbolRef &symbol : file->symbols())
    if (llvm::cantFail(symbol.getFlags()) & llvm::object::SymbolRef::SF_Undefined)
      names.insert(llvm::cantFail(symbol.getName()).str());
  names.erase("");
  return names;
}

} // namespace

TEST_CASE("objects of every target need libc and libm alone") {
  std::string text;
  int number = 0;
  const std::pair<const char *, int> types[] = {{"f32", 1},  {"ui8", 2},   {"i8", 3},    {"i16", 5},
                                                {"i32", 6},  {"i64", 7},   {"i1", 9},    {"f16", 10},
                                                {"f64", 11}, {"ui32", 12}, {"ui64", 13}, {"bf16", 16}};
  for (auto [from, fromNumber] : types)
    for (auto [to, toNumber] : types)
      if (fromNumber != toNumber)
        text += unary("cast %x {to = " + std::to_string(toNumber) + " : i64}", std::string("tensor<37x") + from + ">",
                      std::string("tensor<37x") + to + ">", "f" + std::to_string(number++));
  for (const char *element : {"f32", "f64", "f16", "bf16"})
    for (const char *op :
         {"exp", "log", "tanh", "erf", "sin", "gelu", "mish", "floor", "round", "sqrt", "softplus", "sinh"})
      text += unary(std::string(op) + " %x", std::string("tensor<37x") + element + ">",
                    std::string("tensor<37x") + element + ">", "f" + std::to_string(number++));
  Kernels kernels(text);
  const std::set<std::string> allowed = {"memcpy", "memset", "memmove", "exp",   "log",  "tanh", "erf",      "sin",
                                         "expm1",  "log1p",  "sinh",    "floor", "ceil", "rint", "roundeven"};
  for (llvm::StringRef target : targetNames()) {
    CompiledKernels compiled = kernels.compile(target.str(), 2);
    INFO(target.str());
    REQUIRE(compiled.error == "");
    for (const CompiledKernel &kernel : compiled.kernels)
      CHECK(kernel.whyNot == "");
    for (const std::vector<char> &object : compiled.objects)
      for (const std::string &name : undefinedSymbols(object)) {
        INFO(name);
        CHECK(allowed.count(name));
      }
  }
}

TEST_CASE("the bytes depend on the jobs alone") {
  std::string text;
  for (int i = 0; i < 20; ++i)
    text += unary(i % 2 ? "exp %x" : "relu %x", "tensor<" + std::to_string(40 + i) + "xf32>",
                  "tensor<" + std::to_string(40 + i) + "xf32>", "f" + std::to_string(i));
  Kernels first(text), second(text);
  CHECK(first.compile("x86-64-v3", 1).objects == second.compile("x86-64-v3", 3).objects);
  CHECK(first.compile("x86-64-v3", 2).objects == first.compile("x86-64-v3", 2).objects);
}

TEST_CASE("every level of optimisation compiles") {
  Kernels kernels(unary("gelu %x", "tensor<40xf32>", "tensor<40xf32>"));
  for (unsigned level : {0u, 1u, 2u, 3u}) {
    CompiledKernels compiled = kernels.compile("native", 1, level);
    CHECK(compiled.error == "");
    CHECK(compiled.objects.size() == 1);
  }
}

TEST_CASE("keys tell kernels apart by what they compute, not by names and operands") {
  std::string a = unary("relu %x", "tensor<4xf32>", "tensor<4xf32>", "a"),
              b = unary("relu %x", "tensor<4xf32>", "tensor<4xf32>", "b");
  std::string c = unary("exp %x", "tensor<4xf32>", "tensor<4xf32>", "c"),
              d = unary("relu %x", "tensor<5xf32>", "tensor<5xf32>", "d");
  Kernels kernels(a + b + c + d);
  std::vector<std::string> keys;
  for (const KernelJob &job : kernels.jobs)
    keys.push_back(kernelKey(job.fused));
  CHECK(keys[0] == keys[1]);
  CHECK(keys[0] != keys[2]);
  CHECK(keys[0] != keys[3]);
}

TEST_CASE("an emitter that lacks something says what") {
  Kernels kernels(fused("map", "tensor<4xf32>", "tensor<4xf32>",
                        "%c = firn.constant {value = dense<0> : tensor<i64>} : tensor<i64>\n"
                        "%y = firn.cumsum %x, %c : (tensor<4xf32>, tensor<i64>) -> tensor<4xf32>"));
  CompiledKernels compiled = kernels.compile("native");
  CHECK(compiled.error == "");
  CHECK(!compiled.kernels[0].isEmitted);
  CHECK(compiled.kernels[0].whyNot == "no vector code for firn.cumsum");
  CHECK(compiled.objects.empty());
}

TEST_CASE("an index out of range is a fault and reads nothing outside") {
  std::string from = "tensor<3xi64>";
  Kernels kernels("func.func @f(%a: tensor<4x20xf32>, %b: tensor<3xi64>) {\n"
                  "%r = firn.fused \"map\"(%a, %b) : (tensor<4x20xf32>, tensor<3xi64>) -> (tensor<3x20xf32>) {\n"
                  "^bb0(%x: tensor<4x20xf32>, %i: tensor<3xi64>):\n"
                  "%y = firn.gather %x, %i {axis = 0 : i64} : (tensor<4x20xf32>, tensor<3xi64>) -> tensor<3x20xf32>\n"
                  "firn.yield %y : tensor<3x20xf32>\n}\nreturn\n}\n");
  CompiledKernels compiled = kernels.compile("native");
  REQUIRE(compiled.error == "");
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  auto jit = llvm::cantFail(llvm::orc::LLJITBuilder().create());
  const std::vector<char> &object = compiled.objects.front();
  llvm::cantFail(jit->addObjectFile(
      llvm::MemoryBuffer::getMemBufferCopy(llvm::StringRef(object.data(), object.size()), "kernel")));
  auto kernel = llvm::cantFail(jit->lookup("kernel0")).toPtr<firn_kernel>();
  std::vector<float> x(80), y(60);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = float(i);
  std::vector<int64_t> indices = {1, -4, 3};
  void *buffers[] = {x.data(), indices.data(), y.data()};
  int32_t status = FIRN_FAULT_NONE;
  firn_kernel_args args{buffers, nullptr, nullptr, 0, &status, nullptr, nullptr};
  kernel(&args, 0, 1);
  CHECK(status == FIRN_FAULT_NONE);
  CHECK(y[20] == 0);
  for (int64_t bad : {int64_t(4), int64_t(-5), INT64_MAX, INT64_MIN}) {
    indices[1] = bad;
    status = FIRN_FAULT_NONE;
    kernel(&args, 0, 1);
    CHECK(status == FIRN_FAULT_INDEX);
    CHECK((y[20] == 0 || y[20] == 60)); // some element of x
  }
}

TEST_CASE("a result takes an operand's place where each element is read before it is written") {
  Kernels same(unary("relu %x", "tensor<6x40xf32>", "tensor<6x40xf32>"));
  CHECK(inPlacePairs(same.jobs[0].fused) == std::vector<std::pair<unsigned, unsigned>>{{0, 0}});
  Kernels moved(unary("transpose %x {perm = array<i64: 1, 0>}", "tensor<40x40xf32>", "tensor<40x40xf32>"));
  CHECK(inPlacePairs(moved.jobs[0].fused).empty());
  Kernels narrowed(unary("cast %x {to = 10 : i64}", "tensor<40xf32>", "tensor<40xf16>"));
  CHECK(inPlacePairs(narrowed.jobs[0].fused).empty());
  Kernels reduced(fused("reduce", "tensor<6x40xf32>", "tensor<6x40xf32>",
                        "%y = firn.softmax %x : (tensor<6x40xf32>) -> tensor<6x40xf32>"));
  CHECK(inPlacePairs(reduced.jobs[0].fused).empty());
}

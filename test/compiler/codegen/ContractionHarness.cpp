#include "test/compiler/codegen/ContractionHarness.h"

#include "compiler/codegen/cpu/Contraction.h"
#include "compiler/codegen/cpu/Elements.h"
#include "compiler/codegen/cpu/Pipeline.h"
#include "mlir/Parser/Parser.h"
#include "passes/fold/ReferenceCall.h"
#include "runtime/abi/model.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Support/TargetSelect.h"
#include <atomic>
#include <cmath>
#include <random>
#include <thread>

using namespace mlir;

namespace firn::test {

std::string typeText(const Shape &shape, const std::string &element) {
  std::string text = "tensor<", dims;
  bool isDynamic = false;
  for (const Dim &dim : shape) {
    isDynamic |= !dim.name.empty();
    text += (dim.name.empty() ? std::to_string(dim.value) : "?") + "x";
    dims += (dims.empty() ? "\"" : ", \"") + dim.name + "\"";
  }
  return text + element + (isDynamic ? ", #firn.dims<[" + dims + "]>>" : ">");
}

namespace {

struct Barrier {
  std::atomic<int> arrived{0};
  std::atomic<int> generation{0};
};

void meet(void *pool, int32_t, int32_t workers) {
  auto *barrier = static_cast<Barrier *>(pool);
  int generation = barrier->generation.load();
  if (barrier->arrived.fetch_add(1) + 1 == workers) {
    barrier->arrived.store(0);
    barrier->generation.fetch_add(1);
    return;
  }
  while (barrier->generation.load() == generation)
    std::this_thread::yield();
}

/// Memory aligned as the executor's, with a guard behind it.
struct Buffer {
  explicit Buffer(int64_t size) : bytes(size), storage(size + 192, char(0xa5)) {
    auto address = reinterpret_cast<uintptr_t>(storage.data());
    data = storage.data() + (64 - address % 64) % 64;
  }
  bool isGuardIntact() const {
    for (int i = 0; i < 64; ++i)
      if (data[bytes + i] != char(0xa5))
        return false;
    return true;
  }
  int64_t bytes;
  std::vector<char> storage;
  char *data;
};

double numberAt(const char *bytes, Type element, int64_t i) {
  auto read = [&](auto zero) {
    std::memcpy(&zero, bytes + i * int64_t(sizeof zero), sizeof zero);
    return double(zero);
  };
  if (element.isF32())
    return read(0.0f);
  if (element.isF64())
    return read(0.0);
  if (element.isInteger(32))
    return read(int32_t(0));
  if (element.isInteger(64))
    return read(int64_t(0));
  if (element.isUnsignedInteger(8) || element.isInteger(1))
    return read(uint8_t(0));
  if (element.isInteger(8))
    return read(int8_t(0));
  uint16_t raw;
  std::memcpy(&raw, bytes + i * 2, 2);
  APFloat value(cast<FloatType>(element).getFloatSemantics(), APInt(16, raw));
  bool loses;
  value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &loses);
  return value.convertToDouble();
}

void putNumber(char *bytes, Type element, int64_t i, double value) {
  auto write = [&](auto number) { std::memcpy(bytes + i * int64_t(sizeof number), &number, sizeof number); };
  if (element.isF32())
    return write(float(value));
  if (element.isF64())
    return write(value);
  if (element.isInteger(32))
    return write(int32_t(value));
  if (element.isInteger(64))
    return write(int64_t(value));
  if (element.isUnsignedInteger(8) || element.isInteger(1))
    return write(uint8_t(value));
  if (element.isInteger(8))
    return write(int8_t(value));
  APFloat number(value);
  bool loses;
  number.convert(cast<FloatType>(element).getFloatSemantics(), APFloat::rmNearestTiesToEven, &loses);
  write(uint16_t(number.bitcastToAPInt().getZExtValue()));
}

/// The same elements with the axis of channels last, or second again.
ElementsAttr moveChannels(ElementsAttr value, bool toLast) {
  auto type = cast<RankedTensorType>(value.getType());
  std::vector<char> from = *expandedBytes(value);
  int64_t size = Elements::bytes(type.getElementType()), rank = type.getRank();
  SmallVector<int64_t> shape(type.getShape());
  int64_t channels = toLast ? shape[1] : shape[rank - 1], batch = shape[0];
  int64_t inner = type.getNumElements() / std::max<int64_t>(1, channels * batch);
  std::vector<char> to(from.size());
  for (int64_t n = 0; n < batch; ++n)
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t i = 0; i < inner; ++i) {
        int64_t first = (n * channels + c) * inner + i, last = (n * inner + i) * channels + c;
        std::memcpy(to.data() + (toLast ? last : first) * size, from.data() + (toLast ? first : last) * size, size);
      }
  SmallVector<int64_t> moved(shape);
  if (toLast)
    std::rotate(moved.begin() + 1, moved.begin() + 2, moved.end());
  else
    std::rotate(moved.begin() + 1, moved.end() - 1, moved.end());
  return constantFromBytes(RankedTensorType::get(moved, type.getElementType()), to);
}

} // namespace

struct CompiledCase::State {
  FusedCase given;
  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  FusedOp fused;
  std::string failure;
  std::vector<std::unique_ptr<Buffer>> buffers;
  std::vector<void *> addresses;
  std::vector<int64_t> dims;
  std::vector<ElementsAttr> inputs; // as the model has them
  SmallVector<ElementsAttr> expected;
  CompiledKernel kernel;
  std::unique_ptr<llvm::orc::LLJIT> jit;
  firn_kernel function = nullptr;
  int32_t status = FIRN_FAULT_NONE; // of the last run
  std::vector<char> scratch;
  double flops = 0;

  int64_t valueOf(const DimExpr &expr) const;
  SmallVector<int64_t> concrete(Type type) const;
  bool parse();
  void makeInputs();
  bool evaluateBody();
  bool compile();
};

int64_t CompiledCase::State::valueOf(const DimExpr &expr) const {
  auto atomValue = [&](const DimExpr::Atom &atom) -> int64_t {
    if (atom.function == DimExpr::Function::Symbol) {
      auto found = given.sizes.find(atom.name);
      return found == given.sizes.end() ? -1 : found->second;
    }
    int64_t a = valueOf(atom.args[0]), b = valueOf(atom.args[1]);
    switch (atom.function) {
    case DimExpr::Function::FloorDiv:
      return a >= 0 ? a / b : -((-a + b - 1) / b);
    case DimExpr::Function::CeilDiv:
      return (a + b - 1) / b;
    case DimExpr::Function::Mod:
      return a % b;
    case DimExpr::Function::Min:
      return std::min(a, b);
    default:
      return std::max(a, b);
    }
  };
  int64_t sum = 0;
  for (const DimExpr::Term &term : expr.terms()) {
    int64_t product = term.coefficient;
    for (const DimExpr::AtomRef &atom : term.atoms)
      product *= atomValue(*atom);
    sum += product;
  }
  return sum;
}

SmallVector<int64_t> CompiledCase::State::concrete(Type type) const {
  SmallVector<int64_t> shape;
  for (const DimExpr &dim : dimsOf(cast<RankedTensorType>(type)))
    shape.push_back(valueOf(dim));
  return shape;
}

bool CompiledCase::State::parse() {
  loadKernelDialects(context);
  std::string arguments, names, types, bodyArguments, results = typeText(given.result, given.resultElement);
  for (auto &[shape, element] : given.moreResults)
    results += ", " + typeText(shape, element);
  for (auto [i, input] : llvm::enumerate(given.inputs)) {
    std::string type = typeText(input.shape, input.element), comma = i ? ", " : "";
    arguments += comma + "%a" + std::to_string(i) + ": " + type;
    names += comma + "%a" + std::to_string(i);
    types += comma + type;
    bodyArguments += comma + "%" + std::to_string(i) + ": " + type;
  }
  std::string text = "func.func @f(" + arguments + ") {\n  %r:" + std::to_string(1 + given.moreResults.size()) +
                     " = firn.fused \"" + given.kind + "\"(" + names + ") : (" + types + ") -> (" + results +
                     ") {\n  ^bb0(" + bodyArguments + "):\n" + given.body + "\n  }\n  return\n}\n";
  std::string message;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) { message += diagnostic.str() + "\n"; });
  module = parseSourceString<ModuleOp>(text, ParserConfig(&context));
  if (!module) {
    failure = "parse: " + message + text;
    return false;
  }
  module->walk([&](FusedOp op) { fused = op; });
  return true;
}

void CompiledCase::State::makeInputs() {
  std::mt19937 random(1);
  OpBuilder builder(fused);
  for (auto [i, input] : llvm::enumerate(given.inputs)) {
    auto type = cast<RankedTensorType>(fused.getInputs()[i].getType());
    SmallVector<int64_t> shape = concrete(type);
    Type element = type.getElementType();
    int64_t count = 1;
    for (int64_t size : shape)
      count *= size;
    std::vector<char> bytes(count * Elements::bytes(element));
    std::uniform_real_distribution<double> uniform(input.low, input.high);
    for (int64_t j = 0; j < count; ++j)
      putNumber(bytes.data(), element, j,
                input.values.empty() ? uniform(random) : input.values[j % input.values.size()]);
    inputs.push_back(constantFromBytes(RankedTensorType::get(shape, element), bytes));
    if (input.isFrozen) {
      auto constant = builder.create<ConstantOp>(fused.getLoc(), inputs.back());
      fused->setOperand(i, constant.getResult());
    }
  }
}

bool CompiledCase::State::evaluateBody() {
  DenseMap<Value, ElementsAttr> values;
  for (auto [argument, value] : llvm::zip(fused.getBody().getArguments(), inputs))
    values[argument] = value;
  for (Operation &op : fused.getBody().front()) {
    if (isa<YieldOp>(op)) {
      for (Value value : op.getOperands())
        expected.push_back(values[value]);
      return true;
    }
    if (auto constant = dyn_cast<ConstantOp>(op)) {
      values[constant.getResult()] = cast<ElementsAttr>(constant.getValue());
      continue;
    }
    if (isa<AbsentOp>(op))
      continue;
    if (auto numbers = dyn_cast<DimValuesOp>(op)) {
      auto type = cast<RankedTensorType>(numbers.getResult().getType());
      std::vector<char> bytes(size_t(type.getNumElements() * 8));
      for (auto [i, expr] : llvm::enumerate(*integerElements(numbers.getResult())))
        putNumber(bytes.data(), type.getElementType(), int64_t(i), double(valueOf(expr)));
      values[numbers.getResult()] = constantFromBytes(type, bytes);
      continue;
    }
    if (auto reshape = dyn_cast<ReshapeOp>(op)) {
      ElementsAttr from = values[reshape.getX()];
      auto type = cast<RankedTensorType>(reshape.getType());
      values[reshape.getResult()] =
          constantFromBytes(RankedTensorType::get(concrete(type), type.getElementType()), *expandedBytes(from));
      continue;
    }
    SmallVector<ElementsAttr> operands;
    for (Value operand : op.getOperands())
      operands.push_back(values.lookup(operand));
    auto layout = op.getAttrOfType<StringAttr>("layout");
    bool isNhwc = layout && layout.getValue() == "nhwc";
    if (isNhwc) {
      op.removeAttr("layout");
      operands[0] = moveChannels(operands[0], false);
    }
    auto results = evaluate(&op, operands, int64_t(1) << 31, failure);
    if (isNhwc)
      op.setAttr("layout", layout);
    if (!results) {
      failure = "reference of " + op.getName().getStringRef().str() + ": " + failure;
      return false;
    }
    for (auto [result, value] : llvm::zip(op.getResults(), *results))
      values[result] = isNhwc ? moveChannels(value, true) : value;
  }
  failure = "no yield";
  return false;
}

bool CompiledCase::State::compile() {
  auto target = describeTarget(given.target);
  if (!target) {
    failure = "no target";
    return false;
  }
  flops = double(valueOf(contractionFlops(fused)));
  packConstants(fused, *target);
  CompileOptions options;
  options.wantTexts = true;
  options.threads = 1;
  KernelJob job{fused, "kernel"};
  CompiledKernels compiled = compileKernels(job, *target, options);
  if (!compiled.error.empty() || !compiled.kernels[0].isEmitted) {
    failure = compiled.error.empty() ? "refused: " + compiled.kernels[0].whyNot : "compile: " + compiled.error;
    return false;
  }
  kernel = compiled.kernels[0];
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  auto made = llvm::orc::LLJITBuilder().create();
  if (!made) {
    failure = llvm::toString(made.takeError());
    return false;
  }
  jit = std::move(*made);
  auto generator =
      llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(jit->getDataLayout().getGlobalPrefix());
  jit->getMainJITDylib().addGenerator(std::move(*generator));
  for (const std::vector<char> &object : compiled.objects)
    if (!object.empty())
      llvm::cantFail(
          jit->addObjectFile(llvm::MemoryBuffer::getMemBufferCopy(StringRef(object.data(), object.size()), "kernels")));
  auto symbol = jit->lookup("kernel");
  if (!symbol) {
    failure = llvm::toString(symbol.takeError());
    return false;
  }
  function = symbol->toPtr<firn_kernel>();

  auto addBuffer = [&](ArrayRef<int64_t> shape, Type element, ElementsAttr value) {
    int64_t count = 1;
    for (int64_t size : shape)
      count *= size;
    buffers.push_back(std::make_unique<Buffer>(count * Elements::bytes(element)));
    if (value) {
      std::vector<char> bytes = *expandedBytes(value);
      std::memcpy(buffers.back()->data, bytes.data(), bytes.size());
    }
    addresses.push_back(buffers.back()->data);
  };
  for (auto [i, operand] : llvm::enumerate(fused.getInputs())) {
    ElementsAttr value = constantOf(operand);
    auto type = cast<RankedTensorType>(operand.getType());
    addBuffer(value ? SmallVector<int64_t>(type.getShape()) : concrete(type), type.getElementType(),
              value ? value : inputs[i]);
  }
  for (Value result : fused.getResults())
    addBuffer(concrete(result.getType()), cast<RankedTensorType>(result.getType()).getElementType(), {});
  for (const std::string &name : kernelSymbols(fused))
    dims.push_back(given.sizes.at(name));
  return true;
}

CompiledCase::CompiledCase(const FusedCase &from) : state(std::make_unique<State>()) {
  state->given = from;
  if (state->parse()) {
    state->makeInputs();
    state->compile();
  }
}
CompiledCase::~CompiledCase() = default;
const std::string &CompiledCase::failure() const { return state->failure; }
int CompiledCase::fault() const { return state->status; }
bool CompiledCase::isParallel() const { return state->kernel.isParallel; }
double CompiledCase::flops() const { return state->flops; }
std::string CompiledCase::texts() const {
  return state->kernel.kernelText + "\n" + state->kernel.llvmText + "\n" + state->kernel.assemblyText;
}

void CompiledCase::run(int workers, bool isPoisoned) {
  // Results of an earlier run must not pass for those of this one: poison them.
  for (size_t i = state->fused.getNumOperands(); isPoisoned && i < state->buffers.size(); ++i)
    std::memset(state->buffers[i]->data, 0xa5, size_t(state->buffers[i]->bytes));
  Barrier barrier;
  state->status = FIRN_FAULT_NONE;
  int64_t stride = (state->kernel.scratchBytes + 63) / 64 * 64;
  state->scratch.resize(stride * workers + 64);
  auto address = reinterpret_cast<uintptr_t>(state->scratch.data());
  firn_kernel_args args{state->addresses.data(),
                        state->dims.data(),
                        state->scratch.data() + (64 - address % 64) % 64,
                        stride,
                        &state->status,
                        meet,
                        &barrier};
  if (!state->kernel.isParallel)
    workers = 1;
  std::vector<std::thread> threads;
  for (int worker = 1; worker < workers; ++worker)
    threads.emplace_back([&, worker] { state->function(&args, worker, workers); });
  state->function(&args, 0, workers);
  for (std::thread &thread : threads)
    thread.join();
}

std::string CompiledCase::compare() {
  if (state->expected.empty() && !state->evaluateBody())
    return state->failure;
  size_t inputCount = state->fused.getNumOperands();
  for (auto &buffer : state->buffers)
    if (!buffer->isGuardIntact())
      return "a write behind the end of a buffer";
  for (auto [i, value] : llvm::enumerate(state->expected)) {
    Type element = cast<RankedTensorType>(value.getType()).getElementType();
    std::vector<char> wanted = *expandedBytes(value);
    const char *found = state->buffers[inputCount + i]->data;
    int64_t count = int64_t(wanted.size()) / Elements::bytes(element);
    if (int64_t(wanted.size()) != state->buffers[inputCount + i]->bytes)
      return "result sizes differ: " + std::to_string(wanted.size());
    double largest = 1;
    for (int64_t j = 0; j < count; ++j)
      if (std::isfinite(numberAt(wanted.data(), element, j)))
        largest = std::max(largest, std::abs(numberAt(wanted.data(), element, j)));
    for (int64_t j = 0; j < count; ++j) {
      double a = numberAt(wanted.data(), element, j), b = numberAt(found, element, j);
      bool isSame = a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= state->given.tolerance * largest;
      if (!isSame)
        return "result " + std::to_string(i) + " element " + std::to_string(j) + " of " + std::to_string(count) +
               ": expected " + std::to_string(a) + ", found " + std::to_string(b);
    }
  }
  return "";
}

std::string check(const FusedCase &fused) {
  CompiledCase compiled(fused);
  if (!compiled.failure().empty())
    return compiled.failure();
  for (int workers : fused.workers) {
    compiled.run(workers);
    if (std::string difference = compiled.compare(); !difference.empty())
      return std::to_string(workers) + " workers: " + difference;
  }
  return "";
}

} // namespace firn::test

// Tables: a program in the structs of runtime/abi/model.h.
#include "compiler/artifact/Artifact.h"
#include "compiler/artifact/Image.h"
#include "compiler/codegen/cpu/Pipeline.h"
#include "passes/fold/ReferenceCall.h"
#include "runtime/abi/variants.h"
#include "runtime/kernels/Table.h"

#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"

namespace firn {

namespace {
class TableWriter {
public:
  TableWriter(const Program &from, const ArtifactContents &more) : program(from), contents(more) {}

  Image write(int64_t proofOffset) {
    firn_model_desc desc{};
    desc.struct_size = sizeof desc;
    desc.abi_version = FIRN_ABI_VERSION;
    desc.input_count = program.inputs.size();
    desc.output_count = program.outputs.size();
    desc.value_count = program.values.size();
    desc.buffer_count = program.buffers.size();
    desc.step_count = program.steps.size();
    desc.constraint_count = program.constraints.size();
    desc.metadata_count = contents.metadata.size();
    desc.provenance_count = contents.provenance.size();
    desc.proof_count = contents.proof.size();
    desc.max_threads = contents.maxThreads;
    desc.arena_bytes = program.arenaBytes;
    desc.proof_rtol = contents.proofRtol;
    desc.proof_atol = contents.proofAtol;
    image.append(&desc, sizeof desc, 64); // at offset 0: the image's symbol is the descriptor
    point(offsetof(firn_model_desc, inputs), ports(program.inputs));
    point(offsetof(firn_model_desc, outputs), ports(program.outputs));
    point(offsetof(firn_model_desc, values), image.array(program.values));
    point(offsetof(firn_model_desc, buffers), buffers());
    point(offsetof(firn_model_desc, steps), steps());
    point(offsetof(firn_model_desc, constraints), constraints());
    point(offsetof(firn_model_desc, metadata), pairs(contents.metadata));
    point(offsetof(firn_model_desc, provenance), pairs(contents.provenance));
    point(offsetof(firn_model_desc, proof), proof(proofOffset));
    point(offsetof(firn_model_desc, name), image.text(contents.name));
    return std::move(image);
  }

private:
  void point(int64_t at, int64_t target) { image.pointTo(at, target); }
  template <typename T> int64_t table(const std::vector<T> &entries) {
    return entries.empty() ? image.append("", 1, 8) : image.array(entries);
  }
  int64_t list(const std::vector<int32_t> &numbers) { return table(numbers); }

  int64_t ports(const std::vector<ProgramPort> &from) {
    std::vector<firn_port> entries;
    for (const ProgramPort &p : from) {
      firn_port port{};
      port.dtype = p.dtype;
      port.rank = p.dims.size();
      port.buffer = p.buffer;
      port.optional = p.isOptional;
      port.default_offset = p.defaultOffset;
      entries.push_back(port);
    }
    int64_t at = table(entries);
    for (auto [i, p] : llvm::enumerate(from)) {
      int64_t place = at + i * sizeof(firn_port);
      point(place + offsetof(firn_port, name), image.text(p.name));
      point(place + offsetof(firn_port, dims), list(p.dims));
      std::vector<int64_t> names(p.symbols.size());
      int64_t symbols = table(names);
      for (auto [axis, symbol] : llvm::enumerate(p.symbols))
        if (!symbol.empty())
          point(symbols + axis * 8, image.text(symbol));
      point(place + offsetof(firn_port, symbols), symbols);
    }
    return at;
  }

  int64_t buffers() {
    std::vector<firn_buffer> entries;
    for (const ProgramBuffer &b : program.buffers) {
      firn_buffer buffer{};
      buffer.kind = b.kind;
      buffer.dtype = b.dtype;
      buffer.form = b.form;
      buffer.rank = b.dims.size();
      buffer.offset = b.offset;
      buffer.first_step = std::max(b.firstStep, 0);
      buffer.last_step = std::max(b.lastStep, 0);
      entries.push_back(buffer);
    }
    int64_t at = table(entries);
    for (auto [i, b] : llvm::enumerate(program.buffers))
      point(at + i * sizeof(firn_buffer) + offsetof(firn_buffer, dims), list(b.dims));
    return at;
  }

  int64_t steps() {
    std::vector<firn_step> entries;
    for (const ProgramStep &s : program.steps) {
      firn_step step{};
      step.kind = s.kind;
      step.parallel = s.isParallel;
      step.input_count = s.inputCount;
      step.buffer_count = s.buffers.size();
      step.dim_count = s.dims.size();
      step.begin = s.begin;
      step.middle = s.middle;
      step.end = s.end;
      step.operation = s.operation;
      step.scratch_bytes = s.scratchBytes;
      step.flops = s.flops;
      step.bytes = s.bytes;
      owned.emplace_back(s.op ? new ReferenceAttributes(s.op) : nullptr);
      step.attribute_count = s.op ? owned.back()->list().size() : 0;
      entries.push_back(step);
    }
    int64_t at = table(entries);
    for (auto [i, s] : llvm::enumerate(program.steps)) {
      int64_t place = at + i * sizeof(firn_step);
      if (!s.kernel.empty())
        image.pointTo(place + offsetof(firn_step, kernel), s.kernel);
      if (s.op) {
        image.pointTo(place + offsetof(firn_step, op), kernels::symbolName(llvm::cast<Operator>(s.op).operatorName()));
        point(place + offsetof(firn_step, attributes), attributesOf(*owned[i]));
      }
      point(place + offsetof(firn_step, buffers), list(s.buffers));
      point(place + offsetof(firn_step, dims), list(s.dims));
      point(place + offsetof(firn_step, name), image.text(s.name));
      point(place + offsetof(firn_step, kind_name), image.text(s.kindName));
    }
    return at;
  }

  int64_t attributesOf(const ReferenceAttributes &from) {
    std::vector<firn_attribute> entries(from.list());
    for (firn_attribute &a : entries)
      a.name = nullptr, a.data = nullptr;
    int64_t at = table(entries);
    for (auto [i, a] : llvm::enumerate(from.list())) {
      int64_t place = at + i * sizeof(firn_attribute);
      point(place + offsetof(firn_attribute, name), image.text(a.name));
      point(place + offsetof(firn_attribute, data), attributeData(a));
    }
    return at;
  }
  int64_t strings(const firn_string *from, int64_t count) {
    std::vector<firn_string> entries(from, from + count);
    for (firn_string &s : entries)
      s.data = nullptr;
    int64_t at = table(entries);
    for (int64_t i = 0; i < count; ++i)
      point(at + i * sizeof(firn_string), image.append(from[i].data, from[i].length, 1));
    return at;
  }
  int64_t attributeData(const firn_attribute &a) {
    switch (a.kind) {
    case FIRN_ATTR_INT:
    case FIRN_ATTR_INTS:
      return image.append(a.data, a.count * 8, 8);
    case FIRN_ATTR_FLOAT:
    case FIRN_ATTR_FLOATS:
      return image.append(a.data, a.count * 4, 8);
    case FIRN_ATTR_STRINGS:
      return strings(static_cast<const firn_string *>(a.data), a.count);
    case FIRN_ATTR_TENSOR: {
      firn_view view = *static_cast<const firn_view *>(a.data);
      int64_t count = 1;
      for (int32_t i = 0; i < view.rank; ++i)
        count *= view.dims[i];
      int64_t data = view.dtype == FIRN_STRING ? strings(static_cast<const firn_string *>(view.data), count)
                                               : image.append(view.data, firn_dtype_bytes(view.dtype, count), 64);
      view.data = nullptr;
      int64_t at = image.append(&view, sizeof view, 8);
      point(at + offsetof(firn_view, data), data);
      return at;
    }
    default:
      return image.append(a.data, a.count, 8);
    }
  }

  int64_t constraints() {
    std::vector<firn_constraint> entries;
    for (const ProgramConstraint &c : program.constraints)
      entries.push_back({c.value, 0, c.lower, c.upper, nullptr});
    int64_t at = table(entries);
    for (auto [i, c] : llvm::enumerate(program.constraints))
      point(at + i * sizeof(firn_constraint) + offsetof(firn_constraint, message), image.text(c.message));
    return at;
  }

  int64_t pairs(const std::vector<std::pair<std::string, std::string>> &from) {
    std::vector<firn_pair> entries(from.size());
    int64_t at = table(entries);
    for (auto [i, pair] : llvm::enumerate(from)) {
      point(at + i * sizeof(firn_pair) + offsetof(firn_pair, key), image.text(pair.first));
      point(at + i * sizeof(firn_pair) + offsetof(firn_pair, value), image.text(pair.second));
    }
    return at;
  }

  int64_t proof(int64_t offset) {
    std::vector<firn_proof_tensor> entries;
    for (const ProofTensor &tensor : contents.proof) {
      entries.push_back({tensor.view, offset});
      entries.back().view.data = nullptr;
      offset += (tensor.bytes.size() + FIRN_BUFFER_ALIGNMENT - 1) / FIRN_BUFFER_ALIGNMENT * FIRN_BUFFER_ALIGNMENT;
    }
    return table(entries);
  }

  const Program &program;
  const ArtifactContents &contents;
  Image image;
  std::vector<std::unique_ptr<ReferenceAttributes>> owned;
};
} // namespace

/// What is said of the whole model is not repeated.
static void emitVariants(const ArtifactContents &contents, llvm::Module &module) {
  ArtifactContents own;
  own.name = contents.name;
  own.maxThreads = contents.maxThreads;
  firn_variants header = {sizeof header, int32_t(contents.variants.size()), nullptr};
  std::vector<const void *> models(contents.variants.size());
  Image list;
  list.append(&header, sizeof header, 64);
  int64_t at = list.array(models);
  list.pointTo(offsetof(firn_variants, models), at);
  for (auto [i, program] : llvm::enumerate(contents.variants)) {
    std::string symbol = "firn_variant_" + std::to_string(i + 1);
    TableWriter(*program, own).write(0).emit(module, symbol);
    list.pointTo(at + int64_t(i * sizeof models[0]), symbol);
  }
  list.emit(module, FIRN_VARIANTS_SYMBOL);
}

std::string tablesObject(const Program &program, const ArtifactContents &contents, const TargetDescription &target,
                         int64_t proofOffset, std::vector<char> &object) {
  llvm::LLVMContext context;
  llvm::Module module("firn.tables", context);
  module.setTargetTriple(target.triple);
  TableWriter(program, contents).write(proofOffset).emit(module, FIRN_MODEL_SYMBOL);
  if (!contents.variants.empty())
    emitVariants(contents, module);
  std::string error;
  if (!emitObject(module, target, 0, object, nullptr, error))
    return error;
  return "";
}

} // namespace firn

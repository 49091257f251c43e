#include "tools/firn-inspect/Artifact.h"

#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "runtime/abi/model.h"
#include "tools/firn-inspect/Expressions.h"
#include "tools/tensor_io/Inputs.h"

namespace firn::tools {

namespace {

using Json = nlohmann::ordered_json;

std::string hex(const uint8_t *bytes, size_t count) {
  std::string text;
  char pair[3];
  for (size_t i = 0; i < count; ++i) {
    std::snprintf(pair, sizeof pair, "%02x", bytes[i]);
    text += pair;
  }
  return text;
}

std::string machineText(uint32_t machine) {
  switch (machine) {
  case FIRN_MACHINE_X86_64:
    return "x86-64";
  case FIRN_MACHINE_AARCH64:
    return "AArch64";
  case FIRN_MACHINE_RISCV:
    return "RISC-V";
  }
  return "machine " + std::to_string(machine);
}

std::string featuresText(uint32_t features) {
  char text[512];
  return firn_cpu_features_text(features, text, sizeof text);
}

Json describePort(const firn_port_info &port, bool isInput) {
  Json dims = Json::array();
  for (int32_t d = 0; d < port.rank; ++d) {
    if (port.dims[d] >= 0)
      dims.push_back(port.dims[d]);
    else if (port.symbols[d])
      dims.push_back(port.symbols[d]);
    else
      dims.push_back(nullptr);
  }
  Json result = {{"name", port.name}, {"dtype", firn_dtype_name(port.dtype)}, {"dims", dims}};
  if (port.form != FIRN_FORM_TENSOR)
    result["form"] = portType(port);
  if (isInput)
    result["optional"] = port.optional != 0;
  return result;
}

using PairAt = firn_status (*)(const firn_model *, int32_t, const char **, const char **);
Json pairs(const firn_model *model, PairAt pairAt) {
  Json result = Json::object();
  const char *key, *value;
  for (int32_t i = 0; pairAt(model, i, &key, &value) == FIRN_OK; ++i)
    result[key] = value;
  return result;
}

Json describeSteps(const firn_model *model, bool withSteps) {
  static const char *const runs[] = {"generated", "reference", "inside"};
  int64_t counts[3] = {};
  Json kinds = Json::object(), list = Json::array();
  firn_step_info step{};
  step.struct_size = sizeof step;
  for (int32_t i = 0; firn_model_step(model, i, &step) == FIRN_OK; ++i) {
    ++counts[step.runs];
    kinds[step.kind] = kinds.value(step.kind, int64_t(0)) + 1;
    list.push_back({{"name", step.name},
                    {"kind", step.kind},
                    {"runs", runs[step.runs]},
                    {"parallel", step.parallel != 0},
                    {"depth", step.depth}});
  }
  Json result = {{"total", list.size()},
                 {"generated", counts[0]},
                 {"reference", counts[1]},
                 {"inside", counts[2]},
                 {"kinds", kinds}};
  if (withSteps)
    result["list"] = list;
  return result;
}

// The ranges of dynamic dimensions (firnc --dim NAME=LOWEST..HIGHEST), by name.
using Ranges = std::map<std::string, std::pair<int64_t, int64_t>>;

bool isRange(const firn_model_desc &tables, const firn_constraint &constraint) {
  const firn_value &value = tables.values[constraint.value];
  return value.op == FIRN_VALUE_INPUT_DIM && tables.inputs[value.a].symbols && tables.inputs[value.a].symbols[value.b];
}

Ranges rangesOf(const firn_model_desc &tables) {
  Ranges ranges;
  for (int32_t i = 0; i < tables.constraint_count; ++i) {
    const firn_constraint &constraint = tables.constraints[i];
    const firn_value &value = tables.values[constraint.value];
    if (isRange(tables, constraint))
      ranges[tables.inputs[value.a].symbols[value.b]] = {constraint.lower, constraint.upper};
  }
  return ranges;
}

// Memory for sizes of dynamic dimensions; a text if they cannot be.
std::string measure(const firn_model *model, const std::vector<std::string> &dims, firn_memory &memory) {
  InputOptions options;
  options.dims = dims;
  options.isRandomAllowed = true;
  firn_error error{};
  error.struct_size = sizeof error;
  memory.struct_size = sizeof memory;
  std::vector<Tensor> tensors = makeInputs(model, options);
  std::vector<firn_tensor> inputs = views(tensors);
  return firn_model_memory(model, inputs.data(), &memory, nullptr, &error) == FIRN_OK ? "" : error.message;
}

// The memory contract. An arena that depends on dynamic dimensions is a number where these have ranges (then it is that
// of the largest) or where `dims` says what they are. Else it is null, and lies between two formulas.
Json describeMemory(const firn_model *model, const firn_model_info &info, std::vector<std::string> dims) {
  const firn_model_desc &tables = *firn_model_tables(model);
  Json result = {{"weights_bytes", info.weights_bytes}, {"arena_bytes", nullptr}};
  bool isStated = !dims.empty();
  for (const auto &[name, range] : rangesOf(tables)) {
    bool isGiven = false;
    for (const std::string &dim : dims)
      isGiven |= dim.compare(0, name.size() + 1, name + "=") == 0;
    if (!isGiven)
      dims.push_back(name + "=" + std::to_string(range.second));
  }
  firn_memory memory{};
  std::string problem = measure(model, dims, memory);
  if (info.arena_bytes < 0) {
    result["arena_bytes_at_least"] = arenaExpression(tables);
    std::vector<int32_t> rows(static_cast<size_t>(tables.buffer_count) + 1);
    if (firn_model_arena_rows(model, rows.data()) != FIRN_OK)
      throw Failure(Rejected, "not enough memory");
    result["arena_bytes_at_most"] = arenaLimit(tables, rows);
  }
  if (problem.empty()) {
    if (info.arena_bytes >= 0 || isStated)
      result["arena_bytes"] = memory.arena_bytes;
    else
      result["arena_bytes_where_dynamic_dims_are_1"] = memory.arena_bytes;
    result["output_bytes"] = memory.output_bytes;
  } else if (isStated) {
    throw Failure(Rejected, problem);
  } else if (info.arena_bytes >= 0) {
    result["arena_bytes"] = info.arena_bytes;
  }
  result["scratch_bytes_per_thread"] = info.scratch_bytes;
  result["has_sizes_that_depend_on_data"] = info.has_late_sizes != 0;
  int64_t references = 0;
  for (int32_t i = 0; i < tables.step_count; ++i)
    references += tables.steps[i].kind == FIRN_STEP_REFERENCE;
  result["steps_with_memory_of_their_own"] = references;
  return result;
}

// "batch 4, seq 128": the sizes that a variant is for.
std::string sizesOf(const firn_model *whole, const firn_model *variant) {
  std::map<std::string, int64_t> sizes;
  for (int32_t i = 0; i < firn_model_input_count(whole); ++i) {
    firn_port_info general = inputInfo(whole, i), special = inputInfo(variant, i);
    for (int32_t d = 0; d < general.rank; ++d)
      if (general.dims[d] < 0 && special.dims[d] >= 0 && general.symbols[d])
        sizes[general.symbols[d]] = special.dims[d];
  }
  std::string text;
  for (const auto &[name, size] : sizes)
    text += (text.empty() ? "" : ", ") + name + " " + std::to_string(size);
  return text;
}

Json describeVariants(const firn_model *model, bool withSteps) {
  Json result = Json::array();
  for (int32_t i = 0; const firn_model *variant = firn_model_variant(model, i); ++i) {
    firn_model_info info{};
    info.struct_size = sizeof info;
    if (firn_model_describe(variant, &info) != FIRN_OK)
      throw Failure(Internal, "a variant does not describe itself");
    Json entry = {{"for", sizesOf(model, variant)}, {"memory", describeMemory(variant, info, {})}};
    entry["steps"] = describeSteps(variant, withSteps);
    result.push_back(entry);
  }
  return result;
}

firn_footer readFooter(const std::string &path) {
  firn_footer footer{};
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (file && int64_t(file.tellg()) >= int64_t(sizeof footer)) {
    file.seekg(-std::streamoff(sizeof footer), std::ios::end);
    file.read(reinterpret_cast<char *>(&footer), sizeof footer);
  }
  return footer;
}

Json describe(const std::string &path, const std::vector<std::string> &dims, bool withSteps) {
  ModelHandle handle = openModel(path, /*toRead=*/true);
  const firn_model *model = handle.get();
  firn_model_info info{};
  info.struct_size = sizeof info;
  if (firn_model_describe(model, &info) != FIRN_OK)
    throw Failure(Internal, "the model does not describe itself");
  Json result = {{"file", path}, {"name", info.name}, {"format_version", info.abi_version}};
  result["machine"] = machineText(info.machine);
  result["cpu_features"] = featuresText(info.cpu_features);
  result["inputs"] = Json::array();
  for (int32_t i = 0; i < firn_model_input_count(model); ++i)
    result["inputs"].push_back(describePort(inputInfo(model, i), true));
  result["outputs"] = Json::array();
  for (int32_t i = 0; i < firn_model_output_count(model); ++i)
    result["outputs"].push_back(describePort(outputInfo(model, i), false));
  result["constraints"] = Json::array();
  const firn_model_desc &tables = *firn_model_tables(model);
  for (int32_t i = 0; i < tables.constraint_count; ++i)
    if (!isRange(tables, tables.constraints[i]))
      result["constraints"].push_back(tables.constraints[i].message);
  result["ranges"] = Json::object();
  for (const auto &[name, range] : rangesOf(tables))
    result["ranges"][name] = {range.first, range.second};
  result["memory"] = describeMemory(model, info, dims);
  result["steps"] = describeSteps(model, withSteps);
  result["variants"] = describeVariants(model, withSteps);
  result["bytes"] = {{"file", info.file_bytes}, {"code_and_tables", info.image_bytes}, {"weights", info.weights_bytes}};
  result["threads"] = info.thread_hint;
  result["has_proof"] = info.has_proof != 0;
  result["sha256"] = hex(info.digest, sizeof info.digest);
  result["provenance"] = pairs(model, firn_model_provenance);
  result["metadata"] = pairs(model, firn_model_metadata);
  return result;
}

// --- for people ---

std::string bytesText(const Json &bytes) {
  if (bytes.is_null())
    return "depends on the inputs' dimensions (state them with --dim NAME=N)";
  char text[64];
  double value = bytes.get<double>();
  if (value < 10e3)
    std::snprintf(text, sizeof text, "%.0f bytes", value);
  else
    std::snprintf(text, sizeof text, value < 10e6 ? "%.1f KB" : "%.1f MB", value / (value < 10e6 ? 1e3 : 1e6));
  return text;
}

std::string shortened(const std::string &text) {
  constexpr size_t most = 400;
  return text.size() <= most ? text : text.substr(0, most) + " ... (whole with --json)";
}

std::string portText(const Json &port) {
  if (port.contains("form"))
    return port["name"].get<std::string>() + ": " + port["form"].get<std::string>();
  std::string text = port["name"].get<std::string>() + ": " + port["dtype"].get<std::string>() + "[";
  bool isFirst = true;
  for (const Json &dim : port["dims"]) {
    text += (isFirst ? "" : ",") + (dim.is_null() ? "?" : dim.is_string() ? dim.get<std::string>() : dim.dump());
    isFirst = false;
  }
  return text + "]" + (port.value("optional", false) ? " (may be left out)" : "");
}

std::string pairsText(const char *title, const Json &pairs) {
  std::string text;
  for (const auto &[key, value] : pairs.items())
    text += (text.empty() ? std::string(title) + "\n" : "") + "  " + key + ": " + value.get<std::string>() + "\n";
  return text;
}

std::string memoryText(const Json &memory) {
  std::string text = "memory\n  weights: " + bytesText(memory["weights_bytes"]) + ", mapped read-only and shared\n";
  text += "  arena: " + bytesText(memory["arena_bytes"]);
  if (memory.contains("arena_bytes_where_dynamic_dims_are_1"))
    text += "; " + bytesText(memory["arena_bytes_where_dynamic_dims_are_1"]) + " where they are 1";
  if (memory.contains("arena_bytes_at_least"))
    text += "\n    at least " + shortened(memory["arena_bytes_at_least"].get<std::string>()) +
            " bytes, the most that is alive at once\n    at most " +
            shortened(memory["arena_bytes_at_most"].get<std::string>()) + " bytes";
  text += "\n  scratch: " + bytesText(memory["scratch_bytes_per_thread"]) + " a thread\n";
  if (memory["has_sizes_that_depend_on_data"].get<bool>())
    text += "  and what sizes that depend on data need\n";
  if (int64_t steps = memory["steps_with_memory_of_their_own"].get<int64_t>())
    text += "  and what " + std::to_string(steps) + " steps on reference kernels take while they run\n";
  return text;
}

std::string text(const Json &model) {
  std::string result = model["file"].get<std::string>() + ": model '" + model["name"].get<std::string>() + "' for " +
                       model["machine"].get<std::string>();
  std::string features = model["cpu_features"].get<std::string>();
  result += features.empty() ? "\n" : " with " + features + "\n";
  for (const char *kind : {"inputs", "outputs"}) {
    result += std::string(kind) + "\n";
    for (const Json &port : model[kind])
      result += "  " + portText(port) + "\n";
  }
  for (const Json &constraint : model["constraints"])
    result += "  " + constraint.get<std::string>() + "\n";
  for (const auto &[name, range] : model["ranges"].items())
    result += "  " + name + " is " + range[0].dump() + " to " + range[1].dump() + "\n";
  result += memoryText(model["memory"]);
  const Json &steps = model["steps"];
  result += "steps\n  " + steps["total"].dump() + ": " + steps["generated"].dump() + " generated kernels, " +
            steps["reference"].dump() + " reference kernels, " + steps["inside"].dump() + " in the executor\n";
  std::string kinds;
  for (const auto &[kind, count] : steps["kinds"].items())
    kinds += (kinds.empty() ? "  " : ", ") + kind + " " + count.dump();
  result += kinds.empty() ? "" : kinds + "\n";
  if (steps.contains("list"))
    for (const Json &step : steps["list"])
      result += "  " + std::string(size_t(2 * step["depth"].get<int>()), ' ') + step["kind"].get<std::string>() + "  " +
                step["name"].get<std::string>() + "\n";
  for (const Json &variant : model["variants"])
    result += "variant for " + variant["for"].get<std::string>() +
              "\n  arena: " + bytesText(variant["memory"]["arena_bytes"]) + "; " + variant["steps"]["total"].dump() +
              " steps, " + variant["steps"]["reference"].dump() + " on reference kernels\n";
  result += "file\n  " + bytesText(model["bytes"]["file"]) + ", of which " +
            bytesText(model["bytes"]["code_and_tables"]) + " code and tables\n  SHA-256 of its content " +
            model["sha256"].get<std::string>() + "\n";
  result +=
      std::string("  proof: ") + (model["has_proof"].get<bool>() ? "stored, firn-run --verify replays it\n" : "none\n");
  return result + pairsText("provenance", model["provenance"]) + pairsText("metadata", model["metadata"]);
}

} // namespace

bool isArtifact(const std::string &path) {
  char start[4] = {};
  std::ifstream(path, std::ios::binary).read(start, sizeof start);
  return std::memcmp(start,
                     "\x7f"
                     "ELF",
                     4) == 0 ||
         std::memcmp(readFooter(path).magic, FIRN_MAGIC, 8) == 0;
}

std::string describeArtifact(const std::string &path, const std::vector<std::string> &dims, bool withSteps,
                             bool asJson) {
  Json model = describe(path, dims, withSteps);
  return asJson ? model.dump(2, ' ', false, Json::error_handler_t::replace) + "\n" : text(model);
}

} // namespace firn::tools

// Report: what became of each node, for --report and --check.
#include "compiler/driver/Stages.h"

#include "llvm/Support/Format.h"
#include <nlohmann/json.hpp>
#include <set>

using namespace mlir;

namespace firn {

/// The value of an expression if no symbol is in it.
static std::optional<int64_t> constantOfValue(const Program &program, int32_t value) {
  if (value < 0)
    return std::nullopt;
  const firn_value &v = program.values[value];
  if (v.op == FIRN_VALUE_CONSTANT)
    return v.a;
  return std::nullopt;
}

/// A value of the integer program in terms of the inputs' dimensions: "(batch * 768)".
static std::string valueText(const Program &program, int32_t value) {
  const firn_value &v = program.values[value];
  switch (v.op) {
  case FIRN_VALUE_CONSTANT:
    return std::to_string(v.a);
  case FIRN_VALUE_INPUT_DIM: {
    const ProgramPort &port = program.inputs[v.a];
    const std::string &symbol = port.symbols[v.b];
    return symbol.empty() ? port.name + "[" + std::to_string(v.b) + "]" : symbol;
  }
  case FIRN_VALUE_SYMBOL:
    return "?"; // found while running
  default:
    break;
  }
  static const char *const signs[] = {" + ", " - ", " * ", " / ", " ceil/ ", " mod ", " min ", " max "};
  return "(" + valueText(program, int32_t(v.a)) + signs[v.op - FIRN_VALUE_ADD] + valueText(program, int32_t(v.b)) + ")";
}

/// A number where it is one, else the formula.
static nlohmann::ordered_json numberOrFormula(const Program &program, int32_t value) {
  if (value < 0)
    return nullptr;
  if (auto number = constantOfValue(program, value))
    return *number;
  return valueText(program, value);
}

static bool runsCode(const ProgramStep &step) {
  return step.kind == FIRN_STEP_KERNEL || step.kind == FIRN_STEP_REFERENCE;
}

int report(ModuleOp, const Program &program, const GeneratedKernels &generated, const std::vector<PassRemark> &remarks,
           const CompileModelOptions &options) {
  nlohmann::ordered_json json;
  json["schema"] = "firn.report.v1";
  json["model"] = options.input;
  llvm::raw_ostream &out = llvm::outs();
  out << "kind         flops        bytes        code        workers  nodes\n";
  size_t references = 0;
  for (const ProgramStep &step : program.steps) {
    if (!runsCode(step))
      continue;
    auto flops = constantOfValue(program, step.flops), bytes = constantOfValue(program, step.bytes);
    bool isReference = step.kind == FIRN_STEP_REFERENCE;
    references += isReference;
    out << llvm::format("%-12s %-12s %-12s %-11s %-8s ", step.kindName.c_str(),
                        flops ? std::to_string(*flops).c_str() : "dynamic",
                        bytes ? std::to_string(*bytes).c_str() : "dynamic",
                        static_cast<const char *>(isReference ? "reference" : "generated"),
                        static_cast<const char *>(step.isParallel ? "all" : "one"))
        << step.name << "\n";
    nlohmann::ordered_json entry = {{"kind", step.kindName},
                                    {"nodes", step.name},
                                    {"generated", !isReference},
                                    {"partition", step.isParallel ? "all workers" : "one worker"}};
    entry["flops"] = numberOrFormula(program, step.flops);
    entry["bytes"] = numberOrFormula(program, step.bytes);
    if (!step.kernel.empty())
      entry["symbol"] = step.kernel;
    json["steps"].push_back(entry);
  }
  if (!generated.refusals.empty())
    out << "\nwithout generated code, or in smaller pieces:\n";
  for (const auto &[node, why] : generated.refusals) {
    out << "  " << node << ": " << why << "\n";
    json["refusals"].push_back({{"nodes", node}, {"why", why}});
  }
  std::set<std::string> known; // passes run several times
  for (const PassRemark &remark : remarks)
    if (remark.isRefusal) {
      std::string line = "  " + remark.pass + " " + remark.node + ": " + remark.text + "\n";
      if (known.empty())
        out << "\nnot rewritten:\n";
      if (!known.insert(line).second)
        continue;
      out << line;
      json["remarks"].push_back({{"pass", remark.pass}, {"node", remark.node}, {"why", remark.text}});
    }
  out << "\n"
      << program.steps.size() << " steps, " << references << " on reference kernels, weights " << program.weightBytes
      << " bytes, arena " << (program.arenaBytes >= 0 ? std::to_string(program.arenaBytes) + " bytes" : "by dimensions")
      << "\n";
  json["weights_bytes"] = program.weightBytes;
  json["arena_bytes"] = program.arenaBytes >= 0 ? nlohmann::ordered_json(program.arenaBytes) : nullptr;
  if (options.reportFile.empty())
    return exitDone;
  std::error_code error;
  llvm::raw_fd_ostream file(options.reportFile, error);
  if (error) {
    llvm::errs() << options.reportFile << ": " << error.message() << "\n";
    return exitFile;
  }
  file << json.dump(2) << "\n";
  return exitDone;
}

static nlohmann::ordered_json checkJson(const Diagnostics &diagnostics, bool isAccepted) {
  nlohmann::ordered_json json = {{"schema", "firn.check.v1"}, {"accepted", isAccepted}};
  json.update(nlohmann::ordered_json::parse(diagnostics.json()));
  return json;
}

std::string rejectedCheckText(const Diagnostics &diagnostics) { return checkJson(diagnostics, false).dump(2) + "\n"; }

std::string checkText(const Program &program, const GeneratedKernels &generated, const Diagnostics &diagnostics,
                      bool wantJson) {
  size_t kernels = 0;
  std::vector<std::string> references, dynamic;
  for (const ProgramStep &step : program.steps) {
    kernels += step.kind == FIRN_STEP_KERNEL;
    if (step.kind == FIRN_STEP_REFERENCE)
      references.push_back(step.name + " (" + cast<Operator>(step.op).operatorName() + ")");
  }
  for (const ProgramPort &input : program.inputs)
    for (auto [axis, symbol] : llvm::enumerate(input.symbols))
      if (!symbol.empty())
        dynamic.push_back(symbol + " (dimension " + std::to_string(axis) + " of input '" + input.name + "')");
  size_t late = llvm::count_if(program.values, [](const firn_value &v) { return v.op == FIRN_VALUE_SYMBOL; });
  if (wantJson) {
    nlohmann::ordered_json json = checkJson(diagnostics, true);
    json["kernels"] = kernels;
    json["reference_steps"] = references;
    for (const auto &[node, why] : generated.refusals)
      json["without_generated_code"].push_back({{"nodes", node}, {"why", why}});
    json["dynamic_dimensions"] = dynamic;
    json["dimensions_found_while_running"] = late;
    json["weights_bytes"] = program.weightBytes;
    json["arena_bytes"] = program.arenaBytes >= 0 ? nlohmann::ordered_json(program.arenaBytes) : nullptr;
    return json.dump(2) + "\n";
  }
  std::string text;
  llvm::raw_string_ostream out(text);
  if (!diagnostics.all().empty())
    out << diagnostics.text();
  out << "every operator is supported: " << kernels << " kernels, " << references.size()
      << " steps on reference kernels\n";
  if (!references.empty())
    out << "slow, on reference kernels:\n";
  for (const std::string &name : references)
    out << "  " << name << "\n";
  out << "dynamic dimensions: " << (dynamic.empty() ? "none" : llvm::join(dynamic, ", ")) << "\n";
  if (late)
    out << "dimensions found while running: " << late << "\n";
  out << "weights " << program.weightBytes << " bytes, arena "
      << (program.arenaBytes >= 0 ? std::to_string(program.arenaBytes) + " bytes"
                                  : "by dimensions (firn-inspect prints the formula of the compiled file)")
      << "\n";
  return text;
}

} // namespace firn

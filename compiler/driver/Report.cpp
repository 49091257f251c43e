// Report: what became of each node, for --report and --check.
#include "compiler/driver/Stages.h"

#include "llvm/Support/Format.h"
#include <nlohmann/json.hpp>

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

int report(ModuleOp, const Program &program, const GeneratedKernels &generated, const std::vector<PassRemark> &remarks,
           const CompileModelOptions &options) {
  nlohmann::ordered_json json;
  json["schema"] = "firn.report.v1";
  json["model"] = options.input;
  llvm::raw_ostream &out = llvm::outs();
  out << "kind         flops        bytes        code        nodes\n";
  size_t references = 0;
  for (const ProgramStep &step : program.steps) {
    if (step.kind != FIRN_STEP_KERNEL && step.kind != FIRN_STEP_REFERENCE)
      continue;
    auto flops = constantOfValue(program, step.flops), bytes = constantOfValue(program, step.bytes);
    bool isReference = step.kind == FIRN_STEP_REFERENCE;
    references += isReference;
    const char *codeText = isReference ? "reference" : "generated";
    out << llvm::format("%-12s %-12s %-12s %-11s ", step.kindName.c_str(),
                        flops ? std::to_string(*flops).c_str() : "dynamic",
                        bytes ? std::to_string(*bytes).c_str() : "dynamic", codeText)
        << step.name << "\n";
    nlohmann::ordered_json entry = {
        {"kind", step.kindName}, {"nodes", step.name}, {"generated", !isReference}, {"parallel", step.isParallel}};
    entry["flops"] = flops ? nlohmann::ordered_json(*flops) : nullptr;
    entry["bytes"] = bytes ? nlohmann::ordered_json(*bytes) : nullptr;
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
  bool isFirst = true;
  for (const PassRemark &remark : remarks)
    if (remark.isRefusal) {
      if (isFirst)
        out << "\nnot rewritten:\n";
      isFirst = false;
      out << "  " << remark.pass << " " << remark.node << ": " << remark.text << "\n";
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

std::string checkText(ModuleOp module, const Diagnostics &diagnostics, bool wantJson) {
  if (wantJson)
    return diagnostics.json() + "\n";
  std::string text;
  llvm::raw_string_ostream out(text);
  size_t operations = 0;
  std::set<std::string> symbols, late;
  module.walk([&](Operation *op) {
    if (isa<Operator>(op) && !isa<ConstantOp>(op))
      ++operations;
    for (Value result : op->getResults())
      if (auto type = dyn_cast<RankedTensorType>(result.getType()))
        for (const DimExpr &dim : dimsOf(type)) {
          std::set<std::string> names;
          dim.collectSymbols(names);
          for (const std::string &name : names)
            (name[0] == 'u' && isdigit(name[1]) ? late : symbols).insert(name);
        }
  });
  out << diagnostics.text() << operations << " operators after optimisation; every one is supported\n";
  out << "dynamic dimensions: " << (symbols.empty() ? "none" : llvm::join(symbols, ", "))
      << "; found while running: " << late.size() << "\n";
  return text;
}

} // namespace firn

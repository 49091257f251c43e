#include "compiler/Diagnostics.h"
#include "compiler/SourceLocation.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <unordered_map>

namespace firn {

Diagnostics::Diagnostics(llvm::StringRef file, unsigned maxErrors) : fileName(file.str()), limit(maxErrors) {}

void Diagnostics::report(Diagnostic diagnostic) {
  bool isError = diagnostic.severity == Severity::Error;
  ++(isError ? errorCount : warningCount);
  // Warnings obey the same limit, so that a hostile file cannot fill memory with them.
  unsigned seen = isError ? errorCount : warningCount;
  if (limit == 0 || seen <= limit)
    records.push_back(std::move(diagnostic));
}

void Diagnostics::error(llvm::StringRef id, llvm::StringRef what, llvm::StringRef fix) {
  Diagnostic diagnostic;
  diagnostic.id = id.str();
  diagnostic.what = what.str();
  diagnostic.fix = fix.str();
  report(std::move(diagnostic));
}

void Diagnostics::warning(llvm::StringRef id, llvm::StringRef what, llvm::StringRef fix) {
  Diagnostic diagnostic;
  diagnostic.severity = Severity::Warning;
  diagnostic.id = id.str();
  diagnostic.what = what.str();
  diagnostic.fix = fix.str();
  report(std::move(diagnostic));
}

// Names come from the file: control characters in them must not reach a terminal.
static std::string printable(llvm::StringRef text) {
  std::string out;
  for (char c : text) {
    unsigned char u = c;
    if (c == '\n' || c == '\t' || (u >= 0x20 && u != 0x7f))
      out += c;
    else
      out += "\\x" + std::string(1, "0123456789abcdef"[u >> 4]) + "0123456789abcdef"[u & 15];
  }
  return out;
}

static std::string line(const Diagnostic &diagnostic, llvm::StringRef file, size_t moreNodes) {
  std::string text;
  llvm::raw_string_ostream out(text);
  if (!file.empty())
    out << file << ": ";
  out << (diagnostic.severity == Severity::Error ? "error" : "warning") << '[' << diagnostic.id << "]: ";
  if (!diagnostic.node.empty())
    out << "node '" << diagnostic.node << "'";
  if (moreNodes)
    out << " and " << moreNodes << " more node" << (moreNodes > 1 ? "s" : "");
  if (!diagnostic.operatorName.empty())
    out << (diagnostic.node.empty() ? "" : " ") << '(' << diagnostic.operatorName << ')';
  if (!diagnostic.node.empty() || !diagnostic.operatorName.empty())
    out << ": ";
  out << diagnostic.what;
  if (!diagnostic.expected.empty())
    out << ": expected " << diagnostic.expected;
  if (!diagnostic.found.empty())
    out << (diagnostic.expected.empty() ? ": got " : ", got ") << diagnostic.found;
  out << '\n';
  if (!diagnostic.fix.empty())
    out << "  fix: " << diagnostic.fix << '\n';
  return printable(out.str());
}

std::string toText(const Diagnostic &diagnostic, llvm::StringRef file) { return line(diagnostic, file, 0); }

std::vector<Diagnostics::Merged> Diagnostics::merged() const {
  std::vector<Merged> groups;
  std::unordered_map<std::string, size_t> places;
  for (const Diagnostic &diagnostic : records) {
    std::string key = std::to_string(int(diagnostic.severity)) + '\0' + diagnostic.id + '\0' + diagnostic.operatorName +
                      '\0' + diagnostic.what + '\0' + diagnostic.expected + '\0' + diagnostic.found + '\0' +
                      diagnostic.fix;
    auto [place, isNew] = places.emplace(key, groups.size());
    if (isNew)
      groups.push_back({&diagnostic, {}});
    std::vector<std::string> &nodes = groups[place->second].nodes;
    if (nodes.empty() || nodes.back() != diagnostic.node)
      nodes.push_back(diagnostic.node);
  }
  return groups;
}

std::string Diagnostics::text() const {
  std::string text;
  for (const Merged &group : merged())
    text += line(*group.first, fileName, group.nodes.size() - 1);
  if (limit && errorCount > limit)
    text +=
        "only the first " + std::to_string(limit) + " errors are shown (--max-errors=" + std::to_string(limit) + ")\n";
  auto count = [](unsigned n, const char *what) { return std::to_string(n) + " " + what + (n == 1 ? "" : "s"); };
  if (errorCount || warningCount)
    text += count(errorCount, "error") + ", " + count(warningCount, "warning") + "\n";
  return text;
}

std::string Diagnostics::json() const {
  auto safe = [](llvm::StringRef text) { return llvm::json::fixUTF8(text); };
  llvm::json::Array list;
  for (const Merged &group : merged()) {
    const Diagnostic &d = *group.first;
    llvm::json::Object entry{
        {"severity", d.severity == Severity::Error ? "error" : "warning"}, {"id", d.id}, {"what", safe(d.what)}};
    llvm::json::Array nodes;
    for (const std::string &node : group.nodes)
      if (!node.empty())
        nodes.push_back(safe(node));
    entry["nodes"] = std::move(nodes);
    for (auto [key, value] : {std::pair<const char *, const std::string &>{"operator", d.operatorName},
                              {"expected", d.expected},
                              {"found", d.found},
                              {"fix", d.fix}})
      if (!value.empty())
        entry[key] = safe(value);
    list.push_back(std::move(entry));
  }
  std::string text;
  llvm::raw_string_ostream out(text);
  llvm::json::Value root = llvm::json::Object{{"file", safe(fileName)},
                                              {"errors", int64_t(errorCount)},
                                              {"warnings", int64_t(warningCount)},
                                              {"diagnostics", std::move(list)}};
  out << llvm::formatv("{0:2}", root) << '\n';
  return out.str();
}

Diagnostic diagnosticAt(mlir::Location location, llvm::StringRef id, llvm::StringRef what) {
  Diagnostic diagnostic;
  diagnostic.id = id.str();
  diagnostic.what = what.str();
  SourceLocation source = sourceOf(location);
  diagnostic.node = source.node;
  diagnostic.operatorName = source.operatorName;
  return diagnostic;
}

struct MlirDiagnosticCollector::State {
  State(mlir::MLIRContext *context, Diagnostics &diagnostics, llvm::StringRef id)
      : handler(context, [&diagnostics, id = id.str()](mlir::Diagnostic &reported) {
          if (reported.getSeverity() != mlir::DiagnosticSeverity::Error &&
              reported.getSeverity() != mlir::DiagnosticSeverity::Warning)
            return mlir::failure();
          Diagnostic diagnostic = diagnosticAt(reported.getLocation(), id, reported.str());
          if (reported.getSeverity() == mlir::DiagnosticSeverity::Warning)
            diagnostic.severity = Severity::Warning;
          for (mlir::Diagnostic &note : reported.getNotes())
            if (std::string text = note.str(); !llvm::StringRef(text).starts_with("see current operation"))
              diagnostic.what += "; " + text;
          diagnostics.report(std::move(diagnostic));
          return mlir::success();
        }) {}
  mlir::ScopedDiagnosticHandler handler;
};

MlirDiagnosticCollector::MlirDiagnosticCollector(mlir::MLIRContext *context, Diagnostics &diagnostics,
                                                 llvm::StringRef id)
    : state(std::make_unique<State>(context, diagnostics, id)) {}
MlirDiagnosticCollector::~MlirDiagnosticCollector() = default;

} // namespace firn

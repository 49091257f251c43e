#include "compiler/Diagnostics.h"
#include "compiler/SourceLocation.h"
#include "dialects/firn/Firn.h"
#include "dialects/firn/Inference.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <unordered_map>

namespace firn {

static constexpr DiagnosticCode codes[] = {
#define FIRN_CODE(id, meaning, remedy) {id, meaning, remedy},
#include "compiler/DiagnosticCodes.inc"
#undef FIRN_CODE
};

const DiagnosticCode *findDiagnosticCode(llvm::StringRef id) {
  for (const DiagnosticCode &code : codes)
    if (code.id == id)
      return &code;
  return nullptr;
}

Diagnostics::Diagnostics(llvm::StringRef file, unsigned maxErrors) : fileName(file.str()), limit(maxErrors) {}

void Diagnostics::report(Diagnostic diagnostic) {
  bool isError = diagnostic.severity == Severity::Error;
  if (diagnostic.fix.empty())
    if (const DiagnosticCode *code = findDiagnosticCode(diagnostic.id))
      diagnostic.fix = code->remedy.str();
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

bool Diagnostics::hasOnly(llvm::StringRef id) const {
  return hasErrors() && llvm::all_of(records, [&](const Diagnostic &diagnostic) {
           return diagnostic.severity == Severity::Warning || diagnostic.id == id;
         });
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

/// "what: expected e, got f".
static std::string message(const Diagnostic &diagnostic) {
  std::string text = diagnostic.what;
  auto add = [&](llvm::StringRef before, llvm::StringRef word, const std::string &value) {
    if (!value.empty())
      text += (text.empty() ? "" : before.str()) + word.str() + value;
  };
  add(": ", "expected ", diagnostic.expected);
  add(diagnostic.expected.empty() ? ": " : ", ", "got ", diagnostic.found);
  return text;
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
  out << message(diagnostic) << '\n';
  if (!diagnostic.inputs.empty()) {
    out << "  inputs: ";
    llvm::interleaveComma(diagnostic.inputs, out, [&](const Diagnostic::Input &input) {
      out << (input.name.empty() ? "" : "'" + input.name + "' ") << input.type;
    });
    out << '\n';
  }
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
    llvm::json::Object entry{{"severity", d.severity == Severity::Error ? "error" : "warning"},
                             {"code", d.id},
                             {"file", safe(fileName)},
                             {"message", safe(message(d))}};
    llvm::json::Array nodes, inputs;
    for (const std::string &node : group.nodes)
      if (!node.empty())
        nodes.push_back(safe(node));
    for (const Diagnostic::Input &input : d.inputs)
      inputs.push_back(llvm::json::Object{{"name", safe(input.name)}, {"type", safe(input.type)}});
    entry["nodes"] = std::move(nodes);
    if (!inputs.empty())
      entry["inputs"] = std::move(inputs);
    for (auto [key, value] : {std::pair<const char *, const std::string &>{"node", d.node},
                              {"operator", d.operatorName},
                              {"input", d.input},
                              {"expected", d.expected},
                              {"found", d.found},
                              {"remedy", d.fix}})
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

void takeApart(llvm::StringRef text, Diagnostic &diagnostic) {
  llvm::StringRef what, expected, found;
  size_t at = text.starts_with("expected ") ? 0 : text.find(": expected ");
  if (at == llvm::StringRef::npos) {
    std::tie(what, found) = text.rsplit(", found ");
  } else {
    what = text.substr(0, at);
    std::tie(expected, found) =
        text.substr(at == 0 ? strlen("expected ") : at + strlen(": expected ")).rsplit(", found ");
  }
  diagnostic.what = what.str();
  diagnostic.expected = expected.str();
  diagnostic.found = found.str();
}

/// The name of result `index` of whatever lies at `location`: the value's own where the file gives one.
static std::string valueName(mlir::Location location, unsigned index) {
  SourceLocation source = sourceOf(location);
  if (auto outputs = source.details ? source.details.getAs<mlir::ArrayAttr>(outputsKey) : mlir::ArrayAttr())
    if (index < outputs.size())
      if (auto name = mlir::dyn_cast<mlir::StringAttr>(outputs[index]))
        return name.getValue().str();
  return source.node;
}

/// A diagnostic at `location`, with the code and the inputs that problemLocation put there.
static Diagnostic problemAt(mlir::Location location, llvm::StringRef id, llvm::StringRef text) {
  auto fused = mlir::dyn_cast<mlir::FusedLoc>(location);
  auto problem = fused ? mlir::dyn_cast_or_null<mlir::DictionaryAttr>(fused.getMetadata()) : mlir::DictionaryAttr();
  auto code = problem ? problem.getAs<mlir::StringAttr>(problemCodeKey) : mlir::StringAttr();
  Diagnostic diagnostic = diagnosticAt(code ? fused.getLocations()[0] : location, code ? code.getValue() : id, "");
  takeApart(text, diagnostic);
  if (!code)
    return diagnostic;
  for (mlir::Attribute entry : problem.getAs<mlir::ArrayAttr>(problemInputsKey)) {
    auto parts = mlir::cast<mlir::ArrayAttr>(entry);
    auto type = mlir::dyn_cast<mlir::TensorType>(mlir::cast<mlir::TypeAttr>(parts[2]).getValue());
    if (mlir::isa<mlir::NoneType>(mlir::cast<mlir::TypeAttr>(parts[2]).getValue())) {
      diagnostic.inputs.push_back({"", "absent"});
      continue;
    }
    unsigned index = unsigned(mlir::cast<mlir::IntegerAttr>(parts[1]).getInt());
    diagnostic.inputs.push_back({valueName(mlir::cast<mlir::LocationAttr>(parts[0]), index),
                                 type ? elementTypeText(type.getElementType()) + " " + shapeText(type) : "no tensor"});
  }
  return diagnostic;
}

struct MlirDiagnosticCollector::State {
  State(mlir::MLIRContext *context, Diagnostics &diagnostics, llvm::StringRef id)
      : handler(context, [&diagnostics, id = id.str()](mlir::Diagnostic &reported) {
          if (reported.getSeverity() != mlir::DiagnosticSeverity::Error &&
              reported.getSeverity() != mlir::DiagnosticSeverity::Warning)
            return mlir::failure();
          Diagnostic diagnostic = problemAt(reported.getLocation(), id, reported.str());
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

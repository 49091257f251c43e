// Diagnostics: every problem of one model, collected in order, printed as text or JSON.
//
//   bert.onnx: error[import.shape]: node 'ln_3' (LayerNormalization-17): scale has the wrong shape: expected [8], got
//   [16]
//     inputs: 'x' f32 [2, 8], 'ln_3.scale' f32 [16]
//     fix: store 'ln_3.scale' with shape [8]
//   3 errors, 0 warnings
//
// Every code stands in DiagnosticCodes.inc, with what to do where the message does not say it better.
#ifndef FIRN_COMPILER_DIAGNOSTICS_H
#define FIRN_COMPILER_DIAGNOSTICS_H

#include "llvm/ADT/StringRef.h"
#include <memory>
#include <string>
#include <vector>

namespace mlir {
class Location;
class MLIRContext;
class Operation;
} // namespace mlir

namespace firn {

enum class Severity { Error, Warning };

/// One problem. Only `id` and `what` or `expected` are always there.
struct Diagnostic {
  struct Input {
    std::string name, type; // "x", "f32 [2, 8]"
  };
  Severity severity = Severity::Error;
  std::string id;            // stable: "import.dangling"
  std::string what;          // lower case, no full stop, quotes round names of the model
  std::string node;          // "" where it concerns the whole file
  std::string operatorName;  // "Conv-11"
  std::string input;         // the name of the value that is wrong, where it is one
  std::vector<Input> inputs; // of the node, where their types are known
  std::string expected;
  std::string found;
  std::string fix; // what the user can do; "": what DiagnosticCodes.inc says
};

/// A line of DiagnosticCodes.inc.
struct DiagnosticCode {
  llvm::StringRef id, meaning, remedy;
};
/// Null where there is no such code.
const DiagnosticCode *findDiagnosticCode(llvm::StringRef id);

class Diagnostics {
public:
  /// `file`: the model, as the user named it. Beyond `maxErrors` errors are only counted; 0: no limit.
  explicit Diagnostics(llvm::StringRef file = "", unsigned maxErrors = 50);

  void report(Diagnostic diagnostic);
  void error(llvm::StringRef id, llvm::StringRef what, llvm::StringRef fix = "");
  void warning(llvm::StringRef id, llvm::StringRef what, llvm::StringRef fix = "");

  const std::string &file() const { return fileName; }
  void setFile(llvm::StringRef file) { fileName = file.str(); }
  bool hasErrors() const { return errorCount != 0; }
  /// Whether there are errors, all of the code `id`.
  bool hasOnly(llvm::StringRef id) const;
  unsigned errors() const { return errorCount; }
  unsigned warnings() const { return warningCount; }
  const std::vector<Diagnostic> &all() const { return records; }

  /// All problems and a last line with their number. Problems that differ in the node alone are merged.
  std::string text() const;
  /// {"file", "errors", "warnings", "diagnostics": [{"severity", "code", "file", "message", "node", "nodes", ...}]}
  /// as docs/errors.md describes it.
  std::string json() const;

private:
  struct Merged {
    const Diagnostic *first;
    std::vector<std::string> nodes;
  };
  std::vector<Merged> merged() const;

  std::string fileName;
  unsigned limit;
  unsigned errorCount = 0, warningCount = 0;
  std::vector<Diagnostic> records;
};

/// "file: error[id]: node 'n' (Op-1): what: expected e, got f\n  fix: ...\n"
std::string toText(const Diagnostic &diagnostic, llvm::StringRef file);

/// While it lives, what MLIR reports becomes diagnostics: node name and operator are taken from the location; code and
/// inputs from what the reporting pass attached (dialects/firn/Inference.h), else the code is `id`; "what: expected e,
/// found f" is taken apart; notes are joined to the message.
class MlirDiagnosticCollector {
public:
  MlirDiagnosticCollector(mlir::MLIRContext *context, Diagnostics &diagnostics, llvm::StringRef id);
  ~MlirDiagnosticCollector();
  MlirDiagnosticCollector(const MlirDiagnosticCollector &) = delete;
  MlirDiagnosticCollector &operator=(const MlirDiagnosticCollector &) = delete;

private:
  struct State;
  std::unique_ptr<State> state;
};

/// Puts "what: expected e, found f" into the diagnostic; each of the three may be missing.
void takeApart(llvm::StringRef text, Diagnostic &diagnostic);

/// A diagnostic with node and operator ("Conv-11") of the location of an imported operation filled in.
Diagnostic diagnosticAt(mlir::Location location, llvm::StringRef id, llvm::StringRef what);

} // namespace firn
#endif

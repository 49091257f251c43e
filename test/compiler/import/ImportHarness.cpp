#include "test/compiler/import/ImportHarness.h"
#include "compiler/export/Export.h"
#include "compiler/import/Import.h"
#include "dialects/firn/Firn.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include <fstream>
#include <google/protobuf/text_format.h>
#include <iterator>
#include <onnx/onnx_pb.h>

namespace firn::test {

static Imported describe(mlir::OwningOpRef<mlir::ModuleOp> module, Diagnostics &diagnostics) {
  Imported result;
  result.hasModule = bool(module);
  if (module) {
    mlir::OpPrintingFlags flags;
    llvm::raw_string_ostream(result.module) << *module;
    llvm::raw_string_ostream locations(result.locations);
    module->print(locations, flags.enableDebugInfo(true, false).useLocalScope());
    MlirDiagnosticCollector collector(module->getContext(), diagnostics, "verify");
    (void)mlir::verify(*module);
  }
  result.errors = diagnostics.text();
  result.json = diagnostics.json();
  return result;
}

Imported importModelBytes(const std::string &bytes, const std::string &path, bool refuseUnknown) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  Diagnostics diagnostics(path);
  ImportOptions options;
  options.refuseUnknown = refuseUnknown;
  options.limits.nodes = 10000;
  options.isKnown = [](llvm::StringRef name) { return name == "known::Operator"; };
  return describe(importBytes(bytes, path, options, context, diagnostics), diagnostics);
}

Imported importModelFile(const std::string &path) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  Diagnostics diagnostics(llvm::StringRef(path).substr(path.rfind('/') + 1));
  return describe(importModel(path, {}, context, diagnostics), diagnostics);
}

std::string onnxModel(int opset, const std::string &graph, const std::string &moreFields, int format) {
  std::string text = "ir_version: " + std::to_string(format) + (opset ? " opset_import { version: " : " ") +
                     (opset ? std::to_string(opset) + " } " : "") + moreFields + " graph { name: 'g' " + graph + " }";
  onnx::ModelProto model;
  if (!google::protobuf::TextFormat::ParseFromString(text, &model)) {
    llvm::errs() << "malformed test model: " << text << "\n";
    std::abort();
  }
  return model.SerializeAsString();
}

Imported importOnnxText(int opset, const std::string &graph, const std::string &moreFields) {
  return importModelBytes(onnxModel(opset, graph, moreFields));
}

static std::string repeated(const std::string &field, llvm::StringRef list) {
  std::string text;
  llvm::SmallVector<llvm::StringRef> parts;
  list.split(parts, ',');
  if (!list.empty())
    for (llvm::StringRef part : parts)
      text += field + ": " + part.trim().str() + " ";
  return text;
}

static std::string names(const std::string &field, llvm::StringRef list) {
  std::string text;
  llvm::SmallVector<llvm::StringRef> parts;
  list.split(parts, ',');
  if (!list.empty())
    for (llvm::StringRef part : parts)
      text += field + ": '" + part.trim().str() + "' ";
  return text;
}

std::string input(const std::string &name, const std::string &dims, int dtype) {
  std::string shape;
  llvm::SmallVector<llvm::StringRef> parts;
  llvm::StringRef(dims).split(parts, ',');
  int64_t size;
  for (llvm::StringRef part : parts) {
    part = part.trim();
    if (part.empty())
      continue;
    shape += !part.getAsInteger(10, size) ? "dim { dim_value: " + part.str() + " } "
             : part == "?"                ? "dim { } "
                                          : "dim { dim_param: '" + part.str() + "' } ";
  }
  return "input { name: '" + name + "' type { tensor_type { elem_type: " + std::to_string(dtype) + " shape { " + shape +
         "} } } } ";
}

std::string output(const std::string &name) { return "output { name: '" + name + "' } "; }

std::string node(const std::string &type, const std::string &inputs, const std::string &outputs,
                 const std::string &attributes, const std::string &name) {
  return "node { op_type: '" + type + "' name: '" + name + "' " + names("input", inputs) + names("output", outputs) +
         attributes + "} ";
}

std::string floats(const std::string &name, const std::string &dims, const std::string &values) {
  return "initializer { name: '" + name + "' data_type: 1 " + repeated("dims", dims) + repeated("float_data", values) +
         "} ";
}
std::string integers(const std::string &name, const std::string &dims, const std::string &values) {
  return "initializer { name: '" + name + "' data_type: 7 " + repeated("dims", dims) + repeated("int64_data", values) +
         "} ";
}
std::string intAttribute(const std::string &name, const std::string &value) {
  return "attribute { name: '" + name + "' type: INT i: " + value + " } ";
}
std::string intsAttribute(const std::string &name, const std::string &values) {
  return "attribute { name: '" + name + "' type: INTS " + repeated("ints", values) + "} ";
}
std::string floatAttribute(const std::string &name, const std::string &value) {
  return "attribute { name: '" + name + "' type: FLOAT f: " + value + " } ";
}
std::string stringAttribute(const std::string &name, const std::string &value) {
  return "attribute { name: '" + name + "' type: STRING s: '" + value + "' } ";
}
std::string graphAttribute(const std::string &name, const std::string &graph) {
  return "attribute { name: '" + name + "' type: GRAPH g { name: '" + name + "' " + graph + "} } ";
}

std::string convert(const std::string &from, const std::string &to, long sideFileBytes) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  Diagnostics diagnostics;
  mlir::OwningOpRef<mlir::ModuleOp> module = importModel(from, {}, context, diagnostics);
  ExportOptions options;
  options.sideFileBytes = sideFileBytes;
  if (module && !diagnostics.hasErrors())
    exportModel(*module, to, options, diagnostics);
  return diagnostics.text();
}

std::string emptyFolder(const std::string &name) {
  llvm::SmallString<128> path;
  llvm::sys::fs::createUniqueDirectory(name, path);
  return path.str().str();
}

void writeBytes(const std::string &path, const std::string &bytes) { std::ofstream(path, std::ios::binary) << bytes; }

std::string readBytes(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

std::string onnxText(const std::string &path) {
  onnx::ModelProto model;
  std::string text;
  if (model.ParseFromString(readBytes(path)))
    google::protobuf::TextFormat::PrintToString(model, &text);
  return text;
}

} // namespace firn::test

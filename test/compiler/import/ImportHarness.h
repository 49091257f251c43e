// Models written as text, imported, and what came out as text again. Keeps MLIR and protobuf out of the tests' files.
#ifndef FIRN_TEST_COMPILER_IMPORT_IMPORTHARNESS_H
#define FIRN_TEST_COMPILER_IMPORT_IMPORTHARNESS_H

#include <functional>
#include <string>

namespace firn::test {

struct Imported {
  bool hasModule = false;
  std::string module;    // printed
  std::string locations; // the same with locations
  std::string errors;    // Diagnostics::text()
  std::string json;
};

/// Imports the bytes of a model file; known operators are those of the dialect and of `isKnown`.
Imported importModelBytes(const std::string &bytes, const std::string &path = "model.onnx", bool refuseUnknown = false);
Imported importModelFile(const std::string &path);

/// An ONNX model of the opset: the fields of its graph in protobuf's text form.
std::string onnxModel(int opset, const std::string &graph, const std::string &moreFields = "", int format = 8);
/// Imports it.
Imported importOnnxText(int opset, const std::string &graph, const std::string &moreFields = "");

/// Parts of a graph. Dimensions: numbers and symbols, "?" for unknown ones; dtype: a number of TensorProto.DataType.
std::string input(const std::string &name, const std::string &dims, int dtype = 1);
std::string output(const std::string &name);
std::string node(const std::string &type, const std::string &inputs, const std::string &outputs,
                 const std::string &attributes = "", const std::string &name = "n");
std::string floats(const std::string &name, const std::string &dims, const std::string &values);
std::string integers(const std::string &name, const std::string &dims, const std::string &values);
std::string intAttribute(const std::string &name, const std::string &value);
std::string intsAttribute(const std::string &name, const std::string &values);
std::string floatAttribute(const std::string &name, const std::string &value);
std::string stringAttribute(const std::string &name, const std::string &value);
std::string graphAttribute(const std::string &name, const std::string &graph);

/// Exports what the file holds under `to`; returns the diagnostics.
std::string convert(const std::string &from, const std::string &to, long sideFileBytes = 0);
/// A fresh folder below the build folder, for files of one test.
std::string emptyFolder(const std::string &name);
void writeBytes(const std::string &path, const std::string &bytes);
std::string readBytes(const std::string &path);
/// The text form of an ONNX file, "" if it is none.
std::string onnxText(const std::string &path);

} // namespace firn::test
#endif

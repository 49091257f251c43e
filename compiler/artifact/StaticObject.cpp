// StaticObject: a compiled model as one object file and a header, for programs that link it in.
#include "compiler/artifact/Artifact.h"
#include "compiler/codegen/cpu/Pipeline.h"

#include "llvm/IR/Constants.h"
#include "llvm/IR/GlobalVariable.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/raw_ostream.h"

namespace firn {

/// An identifier of C made of the file's name.
static std::string identifierOf(llvm::StringRef path) {
  std::string name;
  for (char c : llvm::sys::path::stem(path))
    name += isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name.empty() || isdigit(static_cast<unsigned char>(name[0])) ? "_" + name : name;
}

/// The object that defines the weights and the firn_static_model `symbol`.
static std::string rootObject(llvm::ArrayRef<char> weights, const std::string &symbol, const TargetDescription &target,
                              std::vector<char> &object) {
  llvm::LLVMContext context;
  llvm::Module module("firn.static", context);
  module.setTargetTriple(target.triple);
  auto global = [&](llvm::Constant *content, llvm::StringRef name) {
    auto *made =
        new llvm::GlobalVariable(module, content->getType(), true, llvm::GlobalValue::ExternalLinkage, content, name);
    made->setVisibility(llvm::GlobalValue::HiddenVisibility);
    return made;
  };
  auto *bytes =
      global(llvm::ConstantDataArray::getString(context, llvm::StringRef(weights.data(), weights.size()), false),
             "firn_weights");
  bytes->setAlignment(llvm::Align(target.pageSize));
  bytes->setSection(".rodata.firn_weights");
  auto *tables = new llvm::GlobalVariable(module, llvm::Type::getInt8Ty(context), true,
                                          llvm::GlobalValue::ExternalLinkage, nullptr, FIRN_MODEL_SYMBOL);
  auto number = [&](unsigned bits, uint64_t value) {
    return llvm::ConstantInt::get(llvm::Type::getIntNTy(context, bits), value);
  };
  auto digest = llvm::SHA256::hash(llvm::ArrayRef(reinterpret_cast<const uint8_t *>(weights.data()), weights.size()));
  // The layout of firn_static_model (runtime/include/firn/firn.h).
  constexpr uint32_t structBytes = 72;
  auto *root = global(
      llvm::ConstantStruct::getAnon(
          {number(32, structBytes), number(32, target.machine), number(32, target.featureMask), number(32, 0), tables,
           bytes, number(64, weights.size()), llvm::ConstantDataArray::get(context, llvm::ArrayRef<uint8_t>(digest))}),
      symbol);
  root->setVisibility(llvm::GlobalValue::DefaultVisibility);
  root->setAlignment(llvm::Align(16));
  std::string error;
  return emitObject(module, target, 0, object, nullptr, error) ? "" : error;
}

static std::string portLine(const Program &program, const ProgramPort &port) {
  std::string line = "\"" + port.name + "\", element type " + std::to_string(port.dtype) + ", [";
  for (auto [axis, dim] : llvm::enumerate(port.dims)) {
    line += axis ? ", " : "";
    line += port.symbols[axis].empty() ? std::to_string(program.values[dim].a) : port.symbols[axis];
  }
  line += "]";
  for (size_t at = 0; (at = line.find("*/", at)) != std::string::npos;)
    line.replace(at, 2, "* /"); // a name must not end the comment
  return line;
}

static std::string headerText(const std::string &identifier, llvm::StringRef object, const Program &program,
                              const TargetDescription &target) {
  std::string text = "/* A compiled model to link in: written by firnc --emit=obj for " + target.name +
                     ".\n *\n *   cc program.c " + llvm::sys::path::filename(object).str() +
                     " libfirn_runtime.a -lm -lpthread -ldl\n *\n";
  for (auto [i, port] : llvm::enumerate(program.inputs))
    text += " * input " + std::to_string(i) + ": " + portLine(program, port) + "\n";
  for (auto [i, port] : llvm::enumerate(program.outputs))
    text += " * output " + std::to_string(i) + ": " + portLine(program, port) + "\n";
  return text + " */\n#ifndef FIRN_MODEL_" + identifier + "_H\n#define FIRN_MODEL_" + identifier +
         "_H\n\n#include <firn/firn.h>\n\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n" +
         "/* For firn_model_open_static. */\nextern const firn_static_model " + identifier +
         "_model;\n\n#ifdef __cplusplus\n}\n#endif\n#endif\n";
}

static std::string writeWhole(const std::string &path, llvm::ArrayRef<char> bytes) {
  std::string temporary = path + ".part";
  std::error_code error;
  {
    llvm::raw_fd_ostream out(temporary, error);
    if (!error)
      out.write(bytes.data(), bytes.size());
    out.close();
    if (!error && out.has_error()) {
      error = out.error();
      out.clear_error();
    }
  }
  if (!error)
    error = llvm::sys::fs::rename(temporary, path);
  if (!error)
    return "";
  llvm::sys::fs::remove(temporary);
  return "cannot write '" + path + "': " + error.message();
}

std::string writeStaticObject(llvm::StringRef path, const Program &program, const ArtifactContents &contents,
                              llvm::ArrayRef<std::vector<char>> objects, const TargetDescription &target) {
  std::string identifier = identifierOf(path), symbol = identifier + "_model";
  std::vector<char> weights;
  writeWeights(program, contents,
               [&](llvm::ArrayRef<char> bytes) { weights.insert(weights.end(), bytes.begin(), bytes.end()); });
  if (weights.empty())
    weights.resize(FIRN_BUFFER_ALIGNMENT); // an address that is there
  std::vector<std::vector<char>> all(objects);
  all.resize(all.size() + 2);
  if (std::string error = tablesObject(program, contents, target, program.weightBytes, all.back()); !error.empty())
    return error;
  if (std::string error = rootObject(weights, symbol, target, all[all.size() - 2]); !error.empty())
    return error;
  std::vector<char> object;
  if (std::string error = linkRelocatable(all, target, symbol, object); !error.empty())
    return error;
  llvm::SmallString<128> header(path);
  llvm::sys::path::replace_extension(header, "h");
  std::string text = headerText(identifier, path, program, target);
  if (std::string error = writeWhole(path.str(), object); !error.empty())
    return error;
  return writeWhole(header.str().str(), {text.data(), text.size()});
}

} // namespace firn

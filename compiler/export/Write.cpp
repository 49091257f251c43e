#include "compiler/export/Write.h"
#include "compiler/export/Collect.h"
#include "compiler/export/Export.h"
#include "compiler/export/firn/Writer.h"
#include "compiler/export/onnx/Writer.h"
#include "compiler/import/Blob.h"
#include <climits>
#include <cstring>
#include <unistd.h>

namespace firn {

static bool fail(Diagnostics &diagnostics, llvm::StringRef path) {
  diagnostics.error("export.unwritable", "'" + path.str() + "' cannot be written: " + std::strerror(errno));
  return false;
}

void tooLarge(Diagnostics &diagnostics) {
  diagnostics.error("export.size", "the model is larger than 2 GiB, which no protobuf message may be",
                    "write the weights to a side file: --external=auto");
}

std::optional<int64_t> writeWithSideFile(llvm::StringRef path, llvm::StringRef bytes, SideFileWriter &side,
                                         Diagnostics &diagnostics) {
  if (!side.finish(diagnostics) || !writeFile(path, bytes, diagnostics))
    return std::nullopt;
  return int64_t(bytes.size()) + side.bytes();
}

bool writeFile(llvm::StringRef path, llvm::StringRef bytes, Diagnostics &diagnostics) {
  std::string target = path.str(), beside = target + ".part";
  std::FILE *file = std::fopen(beside.c_str(), "wb");
  if (!file)
    return fail(diagnostics, target);
  bool isWritten = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  isWritten &= std::fclose(file) == 0;
  if (isWritten && std::rename(beside.c_str(), target.c_str()) == 0)
    return true;
  fail(diagnostics, target);
  unlink(beside.c_str());
  return false;
}

SideFileWriter::SideFileWriter(llvm::StringRef modelPath)
    : path(modelPath.str() + ".data"), name(modelPath.substr(modelPath.rfind('/') + 1).str() + ".data") {}

SideFileWriter::~SideFileWriter() {
  if (!file)
    return;
  std::fclose(file);
  unlink((path + ".part").c_str());
}

int64_t SideFileWriter::add(llvm::ArrayRef<char> bytes) {
  if (!file && !isFailed)
    file = std::fopen((path + ".part").c_str(), "wb");
  if (!file) {
    isFailed = true;
    return 0;
  }
  // Readers map the file: pages start where tensors do, unless they are tiny.
  int64_t alignment = bytes.size() >= 4096 ? 4096 : 64;
  static const char zeros[4096] = {};
  int64_t padding = (alignment - size % alignment) % alignment;
  isFailed |= std::fwrite(zeros, 1, size_t(padding), file) != size_t(padding);
  // Weights may be larger than memory: what is written goes.
  constexpr size_t chunk = size_t(8) << 20;
  for (size_t at = 0; at < bytes.size() && !isFailed; at += chunk) {
    llvm::ArrayRef<char> part = bytes.slice(at, std::min(chunk, bytes.size() - at));
    isFailed |= std::fwrite(part.data(), 1, part.size(), file) != part.size();
    releasePages(part);
  }
  int64_t offset = size + padding;
  size = offset + int64_t(bytes.size());
  return offset;
}

bool SideFileWriter::finish(Diagnostics &diagnostics) {
  if (file) {
    isFailed |= std::fclose(file) != 0;
    file = nullptr;
    if (!isFailed && std::rename((path + ".part").c_str(), path.c_str()) == 0)
      return true;
    fail(diagnostics, path);
    unlink((path + ".part").c_str());
    return false;
  }
  return isFailed ? fail(diagnostics, path) : true;
}

int64_t constantBytesOf(const model::Graph &graph) {
  int64_t total = 0;
  for (const model::Tensor &tensor : graph.constants)
    total += int64_t(tensor.bytes.size());
  for (const model::Node &node : graph.nodes)
    for (const model::Attribute &attribute : node.attributes)
      total += attribute.graph ? constantBytesOf(*attribute.graph) : int64_t(attribute.tensor.bytes.size());
  return total;
}

int64_t sideFileThreshold(int64_t asked, const model::Model &model) {
  if (asked > 0)
    return asked;
  return constantBytesOf(model.graph) > int64_t(INT_MAX) * 3 / 4 ? 4096 : INT64_MAX;
}

std::optional<int64_t> exportModel(mlir::ModuleOp module, llvm::StringRef path, const ExportOptions &options,
                                   Diagnostics &diagnostics) {
  std::optional<model::Model> model = collectModel(module, options, diagnostics);
  if (!model)
    return std::nullopt;
  if (options.sideFileBytes == INT64_MAX && constantBytesOf(model->graph) > INT_MAX) { // before they are copied
    tooLarge(diagnostics);
    return std::nullopt;
  }
  bool isFirn = path.ends_with(".fpb") || path.ends_with(".fpbtxt");
  return (isFirn ? writeFirn : writeOnnx)(*model, path, options.sideFileBytes, diagnostics);
}

} // namespace firn

// Frozen tensors of ONNX: raw, typed, external and sparse ones.
#ifndef FIRN_COMPILER_IMPORT_ONNX_TENSORREADER_H
#define FIRN_COMPILER_IMPORT_ONNX_TENSORREADER_H

#include "compiler/Diagnostics.h"
#include "compiler/import/Blob.h"
#include "llvm/ADT/Twine.h"

namespace onnx {
class TensorProto;
class SparseTensorProto;
} // namespace onnx

namespace firn {

class TensorReader {
public:
  TensorReader(llvm::StringRef modelPath, std::shared_ptr<void> message, const Limits &bounds, Diagnostics &reported)
      : sideFiles(modelPath, bounds), owner(std::move(message)), limits(bounds), diagnostics(reported) {}

  /// Decodes `proto`; reports what is wrong with it, as of node `node` where that is not empty. False then.
  bool read(const onnx::TensorProto &proto, llvm::StringRef node, model::Tensor &tensor);
  /// The dense form of a sparse tensor.
  bool read(const onnx::SparseTensorProto &proto, llvm::StringRef node, model::Tensor &tensor);

private:
  bool readExternal(const onnx::TensorProto &proto, int64_t bytes, model::Tensor &tensor);
  bool readTyped(const onnx::TensorProto &proto, int64_t count, int64_t bytes, model::Tensor &tensor);
  bool fail(llvm::StringRef id, const llvm::Twine &what, const llvm::Twine &expected = "",
            const llvm::Twine &found = "", const llvm::Twine &fix = "");

  SideFiles sideFiles;
  std::shared_ptr<void> owner;
  const Limits &limits;
  Diagnostics &diagnostics;
  std::string currentNode, currentTensor;
};

} // namespace firn
#endif

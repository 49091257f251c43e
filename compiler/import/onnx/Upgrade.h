// Upgrade: nodes of older opsets get the newest opset's form.
//
// One rule per change that is more than a wider range of types: the table in Upgrade.cpp names operator, the version
// that brought the change and the function that carries a node across it. A node crosses all changes between its
// version and the newest, oldest first. Attributes that became inputs become constants named "node/attribute".
#ifndef FIRN_COMPILER_IMPORT_ONNX_UPGRADE_H
#define FIRN_COMPILER_IMPORT_ONNX_UPGRADE_H

#include "compiler/Diagnostics.h"
#include "compiler/import/Model.h"
#include <unordered_map>
#include <unordered_set>

namespace firn {

/// Upgrades all nodes of ai.onnx and ai.onnx.ml (and FlexAttention) in `graph`, whose nodes are in order. Afterwards
/// their version is the newest.
void upgradeGraph(model::Graph &graph, Diagnostics &diagnostics);

/// The oldest opset of ai.onnx in which the newest form of the operator means the same, where it is accepted at all
/// (versionAccepting); 0 if it is not ONNX's.
int64_t formSince(llvm::StringRef name);

/// What is known of values while walking a graph, and of those of the graphs around it.
struct Facts {
  struct Fact {
    int32_t dtype = 0; // 0: unknown
    std::optional<int64_t> rank;
    bool isSequence = false; // of tensors of that dtype
  };
  const Facts *outer = nullptr;
  std::unordered_map<std::string, Fact> known;
  std::unordered_map<std::string, const model::Tensor *> constants;

  Fact of(const std::string &name) const;
  /// The contents of a list of i64 or f32, where it is constant.
  std::optional<std::vector<int64_t>> integers(const std::string &name) const;
  std::optional<std::vector<float>> floats(const std::string &name) const;
  /// Notes what a file declares of a value.
  void declare(const model::Value &value);
  /// Notes the facts of the outputs of a node in its newest form.
  void follow(const model::Node &node);
};

/// One node on its way up.
class UpgradeContext {
public:
  UpgradeContext(model::Graph &upgraded, Facts &valueFacts, std::unordered_set<std::string> &names,
                 const std::unordered_set<std::string> &namesRead, model::Node &&taken, Diagnostics &reported)
      : node(std::move(taken)), facts(valueFacts), graph(upgraded), used(names), read(namesRead),
        diagnostics(reported) {}

  model::Node node;
  Facts &facts;
  std::vector<model::Node> before, after; // nodes made beside it

  bool has(llvm::StringRef attribute) const { return node.attribute(attribute); }
  int64_t intOf(llvm::StringRef attribute, int64_t fallback) const;
  float floatOf(llvm::StringRef attribute, float fallback) const;
  std::vector<int64_t> intsOf(llvm::StringRef attribute) const;
  void set(llvm::StringRef attribute, int64_t value);
  void set(llvm::StringRef attribute, float value);
  void set(llvm::StringRef attribute, llvm::StringRef value);
  void drop(llvm::StringRef attribute);
  /// Input i, "" where it is left out.
  std::string input(size_t i) const { return i < node.inputs.size() ? node.inputs[i] : ""; }
  /// Whether output i is given and somebody reads it.
  bool reads(size_t i) const {
    return i < node.outputs.size() && !node.outputs[i].empty() && read.count(node.outputs[i]) != 0;
  }
  void setInput(size_t i, const std::string &name);

  /// Constants of the graph: a list or a scalar of i64, a scalar of the element type of `like`.
  std::string integers(llvm::StringRef what, llvm::ArrayRef<int64_t> values);
  std::string integer(llvm::StringRef what, int64_t value);
  std::string floats(llvm::StringRef what, llvm::ArrayRef<float> values);
  std::string scalarLike(llvm::StringRef what, double value, const std::string &like);

  /// A node before this one; its output's name, and its own, is returned.
  std::string emit(llvm::StringRef what, llvm::StringRef type, std::vector<std::string> inputs,
                   std::vector<model::Attribute> attributes = {});
  /// A node behind this one, which defines what output i of this one did and reads the name that is returned.
  std::string emitAfter(size_t i, llvm::StringRef what, llvm::StringRef type, std::vector<std::string> moreInputs,
                        std::vector<model::Attribute> attributes = {});
  /// Marks the node as broken.
  void report(llvm::StringRef id, const std::string &what, const std::string &fix = "");
  void unsupported(const std::string &what, const std::string &fix = "");
  std::string fresh(llvm::StringRef what);

private:
  model::Node beside(llvm::StringRef what, llvm::StringRef type, std::vector<std::string> inputs,
                     std::vector<model::Attribute> attributes);
  std::string addConstant(model::Tensor tensor, llvm::StringRef what);

  model::Graph &graph;
  std::unordered_set<std::string> &used;
  const std::unordered_set<std::string> &read;
  Diagnostics &diagnostics;
};

model::Attribute intAttribute(llvm::StringRef name, int64_t value);
model::Attribute intsAttribute(llvm::StringRef name, std::vector<int64_t> values);

// The rules, by family.
namespace upgrade {
// UpgradeElementwise.cpp
void broadcastAttribute(UpgradeContext &); // Add, Sub, And, ... before 7
void prelu7(UpgradeContext &);
void selu6(UpgradeContext &);
void clip6(UpgradeContext &);
void clip11(UpgradeContext &);
void dropout7(UpgradeContext &);
void dropout12(UpgradeContext &);
void cast6(UpgradeContext &);
void consumedInputs(UpgradeContext &);
void gemm7(UpgradeContext &);
// UpgradeMovement.cpp
void reshape5(UpgradeContext &);
void concat4(UpgradeContext &);
void split2(UpgradeContext &);
void split13(UpgradeContext &);
void split18(UpgradeContext &);
void slice10(UpgradeContext &);
void pad2(UpgradeContext &);
void pad11(UpgradeContext &);
void axesToInput(UpgradeContext &); // Squeeze, Unsqueeze 13, Reduce* 18, ReduceSum 13
void tile6(UpgradeContext &);
void topk10(UpgradeContext &);
void scatter(UpgradeContext &);
void upsample(UpgradeContext &);
void resize11(UpgradeContext &);
void depthToSpace11(UpgradeContext &);
// UpgradeNormalization.cpp
void softmax13(UpgradeContext &);
void batchNormalization7(UpgradeContext &);
void batchNormalization9(UpgradeContext &);
void batchNormalization14(UpgradeContext &);
void groupNormalization21(UpgradeContext &);
void lpPool2(UpgradeContext &);
void recurrent7(UpgradeContext &);
void dft20(UpgradeContext &);
void gridSample20(UpgradeContext &);
void roiAlign16(UpgradeContext &);
// UpgradeLearning.cpp
void labelEncoder2(UpgradeContext &); // of ai.onnx.ml
// UpgradeScan.cpp
void scan9(UpgradeContext &);
void sequenceMapToLoop(UpgradeContext &);
void scanToLoop(UpgradeContext &);
// UpgradeFlexAttention.cpp
void flexAttention(UpgradeContext &);
} // namespace upgrade

} // namespace firn
#endif

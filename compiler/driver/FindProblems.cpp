// FindProblems: all that types and sizes tell about a model, before anything in it is changed.
#include "compiler/driver/Stages.h"
#include "dialects/firn/Inference.h"
#include "passes/Passes.h"
#include "passes/fold/ReferenceCall.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include <set>

using namespace mlir;

namespace firn {

/// The code of what a reference kernel says; its statuses do not tell element types, attributes and shapes apart, its
/// texts do.
static StringRef codeOf(StringRef message) {
  for (StringRef part : {"element type", "has a type", "the type of"})
    if (message.contains(part))
      return "import.dtype";
  if (message.starts_with("attribute "))
    return "import.attribute";
  return "import.shape";
}

/// The rules of the dialect look at what inference needs; the reference kernels know the whole specification.
static void checkOperands(ModuleOp module, const Diagnostics &diagnostics) {
  std::set<std::string> reported;
  for (const Diagnostic &diagnostic : diagnostics.all())
    if (diagnostic.severity == Severity::Error)
      reported.insert(diagnostic.node);
  module.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isa<IfOp>(op))
      return WalkResult::skip(); // a branch may be wrong and never be taken
    if (!isa<Operator>(op) || isa<ConstantOp, AbsentOp, LoopOp, FailOp>(op) || reported.count(nodeName(op->getLoc())))
      return WalkResult::advance();
    if (std::string message = invalidByReference(op); !message.empty())
      emitError(problemLocation(op, codeOf(message)), message);
    return WalkResult::advance();
  });
}

static std::string typeText(Type type) {
  return elementTypeText(cast<TensorType>(type).getElementType()) + " " + shapeText(type);
}

/// Whether a value of type `found` can be what the file declares. Names of dimensions may differ: exporters invent
/// them.
static bool fits(Type declaredType, Type foundType) {
  auto declared = dyn_cast<TensorType>(declaredType), found = dyn_cast<TensorType>(foundType);
  if (!declared || !found || isa<UnknownType>(found.getElementType()))
    return true;
  if (!isa<UnknownType>(declared.getElementType()) && declared.getElementType() != found.getElementType())
    return false;
  if (!isa<RankedTensorType>(declared) || !isa<RankedTensorType>(found))
    return true;
  SmallVector<DimExpr> a = dimsOf(cast<RankedTensorType>(declared)), b = dimsOf(cast<RankedTensorType>(found));
  if (a.size() != b.size())
    return false;
  for (auto [x, y] : llvm::zip(a, b))
    if (x.isConstant() && y.isConstant() && x.constant() >= 0 && y.constant() >= 0 && x != y)
      return false;
  return true;
}

static void checkDeclarations(ModuleOp module, Diagnostics &diagnostics) {
  for (auto main : module.getOps<func::FuncOp>()) {
    Operation *end = main.getBody().front().getTerminator();
    for (unsigned i = 0; i < end->getNumOperands(); ++i) {
      auto declared = main.getResultAttrOfType<TypeAttr>(i, "firn.declared");
      auto name = main.getResultAttrOfType<StringAttr>(i, "firn.name");
      Type found = end->getOperand(i).getType();
      if (!declared || !name || fits(declared.getValue(), found))
        continue;
      Diagnostic diagnostic = diagnosticAt(end->getOperand(i).getLoc(), "import.declared",
                                           "graph output '" + name.str() + "' is not what the file declares");
      diagnostic.severity = Severity::Warning;
      diagnostic.expected = typeText(declared.getValue());
      diagnostic.found = typeText(found);
      diagnostics.report(std::move(diagnostic));
    }
  }
}

bool findProblems(ModuleOp module, Diagnostics &diagnostics) {
  MlirDiagnosticCollector collector(module.getContext(), diagnostics, "import.shape");
  PassManager manager(module.getContext());
  manager.enableVerifier(false);
  manager.addPass(createSimplifyControl());
  manager.addPass(createInferShapes());
  (void)manager.run(module);
  checkOperands(module, diagnostics);
  if (!diagnostics.hasErrors()) // else wrong declarations follow from what was said already
    checkDeclarations(module, diagnostics);
  return !diagnostics.hasErrors();
}

} // namespace firn

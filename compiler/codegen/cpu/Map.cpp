// The emitters of kinds "map" and "reduce": trace, then one nest after the other.
#include "compiler/codegen/cpu/LoneOperation.h"
#include "compiler/codegen/cpu/Nest.h"

using namespace mlir;

namespace firn {
namespace {

/// Whether a nest is one row: nothing that workers could share, and its passes meet in memory (what one keeps in the
/// result, the next changes in place), so that it must not run twice at a time.
bool isOneRow(const TracedNest &nest) {
  return !nest.order.empty() && llvm::all_of(nest.order, [&](unsigned loop) { return nest.trace->loops[loop].isRow; });
}

LogicalResult emitNests(FusedOp fused, kernel::FuncOp func, const TargetDescription &target, bool mayReduce,
                        std::string &whyNot) {
  OpBuilder builder(func.getContext());
  auto isEmpty = [](Type type) { return llvm::is_contained(cast<RankedTensorType>(type).getShape(), 0); };
  if (llvm::all_of(fused->getResultTypes(), isEmpty)) { // nothing to write, and no strides to find
    func.setParallel(false);
    func.setScratchBytes(0);
    builder.setInsertionPointToEnd(&func.getBody().front());
    builder.create<kernel::ReturnOp>(fused.getLoc());
    return success();
  }
  std::vector<TracedNest> traced;
  if (!traceResults(fused, mayReduce, traced, whyNot))
    return failure();
  DimValues dims(fused, func);
  std::vector<std::unique_ptr<Nest>> nests;
  bool isParallel = false;
  for (TracedNest &nest : traced) {
    nests.push_back(std::make_unique<Nest>(nest, fused, func, target, dims, builder));
    isParallel |= worthWorkers(nests.back()->elementCount(), nests.back()->cyclesPerElement());
  }
  func.setParallel(isParallel && llvm::none_of(traced, isOneRow));
  int64_t scratchBytes = 0;
  for (auto &nest : nests) {
    if (!nest->emit()) {
      whyNot = nest->whyNot;
      return failure();
    }
    scratchBytes = std::max(scratchBytes, nest->scratchBytes);
  }
  func.setScratchBytes(uint64_t(scratchBytes));
  builder.setInsertionPointToEnd(&func.getBody().front());
  builder.create<kernel::ReturnOp>(fused.getLoc());
  return success();
}

} // namespace

LogicalResult emitMap(FusedOp fused, kernel::FuncOp func, const TargetDescription &target, std::string &whyNot) {
  return emitNests(fused, func, target, false, whyNot);
}

LogicalResult emitReduce(FusedOp fused, kernel::FuncOp func, const TargetDescription &target, std::string &whyNot) {
  return emitNests(fused, func, target, true, whyNot);
}

std::vector<std::pair<unsigned, unsigned>> inPlacePairs(FusedOp fused) {
  std::vector<std::pair<unsigned, unsigned>> pairs;
  std::vector<TracedNest> traced;
  std::string whyNot;
  if (fused.getKind() == "scatter" || fused.getKind() == "scan") {
    // A scatter reads its data only to copy it, a scan each element before it writes the one in its place.
    auto lone = LoneOperation::of(fused, whyNot);
    auto data = lone ? dyn_cast<BlockArgument>(lone->op->getOperand(0)) : BlockArgument();
    if (data && data.hasOneUse())
      pairs.push_back({data.getArgNumber(), 0});
    return pairs;
  }
  // One nest that reads each element of the operand where it writes the result, and no other.
  if (fused.getKind() != "map" || !traceResults(fused, false, traced, whyNot) || traced.size() != 1)
    return pairs;
  const TracedNest &nest = traced.front();
  if (nest.stores.size() != 1)
    return pairs;
  auto result = cast<RankedTensorType>(fused->getResult(0).getType());
  for (unsigned i = 0; i < fused->getNumOperands(); ++i) {
    auto operand = cast<RankedTensorType>(fused->getOperand(i).getType());
    bool fits = operand.getElementType() == result.getElementType(), isRead = false;
    for (const Node &node : nest.trace->nodes)
      if (node.kind == Node::Load && node.buffer == i) {
        isRead = true;
        fits = fits && node.index.key() == nest.indices.front().key();
      }
    if (fits && isRead)
      pairs.push_back({i, 0});
  }
  return pairs;
}

} // namespace firn

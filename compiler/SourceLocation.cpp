#include "compiler/SourceLocation.h"
#include "dialects/firn/Firn.h"

namespace firn {

mlir::Location sourceLocation(mlir::MLIRContext *context, llvm::StringRef node, llvm::StringRef file,
                              mlir::DictionaryAttr details) {
  mlir::Location child = mlir::FileLineColLoc::get(context, file, 0, 0);
  if (details && !details.empty())
    child = mlir::FusedLoc::get(context, {child}, details);
  return mlir::NameLoc::get(mlir::StringAttr::get(context, node), child);
}

// The details below a location, of the last node where several are fused: that is the one whose result is left.
static mlir::DictionaryAttr detailsOf(mlir::Location location) {
  if (auto name = mlir::dyn_cast<mlir::NameLoc>(location))
    return detailsOf(name.getChildLoc());
  auto fused = mlir::dyn_cast<mlir::FusedLoc>(location);
  if (!fused)
    return {};
  if (auto details = mlir::dyn_cast_or_null<mlir::DictionaryAttr>(fused.getMetadata()))
    return details;
  for (mlir::Location part : llvm::reverse(fused.getLocations()))
    if (mlir::DictionaryAttr details = detailsOf(part))
      return details;
  return {};
}

SourceLocation sourceOf(mlir::Location location) {
  SourceLocation source;
  source.node = nodeName(location);
  source.isFused = !mlir::isa<mlir::NameLoc>(location);
  source.details = detailsOf(location);
  if (source.details)
    if (auto op = source.details.getAs<mlir::StringAttr>(opKey))
      source.operatorName = op.str();
  return source;
}

static void collectNodes(mlir::Location location, std::vector<std::string> &nodes) {
  if (auto name = mlir::dyn_cast<mlir::NameLoc>(location)) {
    if (!llvm::is_contained(nodes, name.getName().str()))
      nodes.push_back(name.getName().str());
  } else if (auto fused = mlir::dyn_cast<mlir::FusedLoc>(location)) {
    for (mlir::Location part : fused.getLocations())
      collectNodes(part, nodes);
  }
}

std::vector<std::string> sourceNodes(mlir::Location location) {
  std::vector<std::string> nodes;
  collectNodes(location, nodes);
  return nodes;
}

} // namespace firn

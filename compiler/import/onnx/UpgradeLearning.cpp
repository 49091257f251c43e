// Upgrades of ai.onnx.ml.
#include "compiler/import/onnx/Upgrade.h"

namespace firn::upgrade {

// It mapped classes to their positions and back, whichever its input was: what CategoryMapper does.
void labelEncoder2(UpgradeContext &context) {
  std::vector<std::string> classes;
  if (const model::Attribute *given = context.node.attribute("classes_strings"))
    classes = given->strings;
  context.drop("classes_strings");
  std::vector<int64_t> positions;
  for (size_t i = 0; i < classes.size(); ++i)
    positions.push_back(int64_t(i));
  model::Attribute names;
  names.name = "cats_strings";
  names.kind = model::Attribute::Kind::Strings;
  names.strings = std::move(classes);
  context.node.attributes.push_back(std::move(names));
  context.node.attributes.push_back(intsAttribute("cats_int64s", std::move(positions)));
  context.node.type = "CategoryMapper";
}

} // namespace firn::upgrade

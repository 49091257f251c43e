// TransformOptions: the options of firn-opt that change what the graph says, on the command line and parsed.
#ifndef FIRN_TOOLS_FIRN_OPT_TRANSFORMOPTIONS_H
#define FIRN_TOOLS_FIRN_OPT_TRANSFORMOPTIONS_H

#include "compiler/driver/OptimiseGraph.h"
#include "tools/options/Sizes.h"

#include <CLI/CLI.hpp>

namespace firn {

/// Adds them to an app; finish() reads what CLI11 keeps as text.
class TransformOptions {
public:
  TransformOptions(CLI::App &app, OptimiseGraphOptions &to) : options(to) {
    auto names = [&](const char *name, std::vector<std::string> &list, const char *help) {
      app.add_option(name, list, help)->delimiter(',')->allow_extra_args(false);
    };
    names("--inputs", options.edits.inputs, "cut out the part that starts at these values, separated by commas");
    names("--outputs", options.edits.outputs, "cut out the part that computes these values, separated by commas");
    names("--rename", values, "OLD=NEW: another name for an input, an output or any value; may be given again");
    names("--rename-dim", dims, "OLD=NEW: another name for a symbolic dimension; may be given again");
  }

  /// Returns what is wrong with the command line, or "".
  std::string finish() {
    std::string why = renamed("--rename", values, options.edits.values);
    return why.empty() ? renamed("--rename-dim", dims, options.edits.dims) : why;
  }

private:
  static std::string renamed(const char *option, const std::vector<std::string> &texts, ModelEdits::Renaming &to) {
    for (const std::string &text : texts) {
      std::string before, after;
      if (!splitPair(text, before, after))
        return std::string(option) + " expects OLD=NEW, found '" + text + "'";
      to.emplace_back(before, after);
    }
    return "";
  }

  OptimiseGraphOptions &options;
  std::vector<std::string> values, dims;
};

} // namespace firn
#endif

// TransformOptions: the options of firn-opt that change what the graph says, on the command line and parsed.
#ifndef FIRN_TOOLS_FIRN_OPT_TRANSFORMOPTIONS_H
#define FIRN_TOOLS_FIRN_OPT_TRANSFORMOPTIONS_H

#include "compiler/driver/OptimiseGraph.h"
#include "runtime/abi/dtype.h"
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
    app.add_option(
           "--convert", conversion,
           "fp16 or bf16: compute in floats of 16 bits what is f32, but for operators that need the range or the "
           "precision; inputs and outputs keep their types")
        ->check(CLI::IsMember({"fp16", "bf16"}));
    names(
        "--keep-f32", options.floats.kept,
        "operators and nodes that --convert leaves in f32, beside its own list of operators; 'none' empties that list");
    app.add_flag("--convert-io", options.floats.withInterface, "--convert inputs and outputs too");
  }

  /// Returns what is wrong with the command line, or "".
  std::string finish() {
    if (conversion.empty() && (options.floats.withInterface || !options.floats.kept.empty()))
      return "--keep-f32 and --convert-io belong to --convert";
    options.floats.dtype = conversion.empty() ? 0 : conversion == "fp16" ? FIRN_F16 : FIRN_BF16;
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
  std::string conversion;
};

} // namespace firn
#endif

// ModelOptions: the options that firnc and firn-opt share, on the command line and parsed.
#ifndef FIRN_TOOLS_OPTIONS_MODELOPTIONS_H
#define FIRN_TOOLS_OPTIONS_MODELOPTIONS_H

#include "compiler/driver/Options.h"
#include "tools/options/Sizes.h"

#include <CLI/CLI.hpp>

namespace firn {

/// Adds the options of a SourceOptions to an app; finish() reads what CLI11 keeps as text.
class ModelOptions {
public:
  ModelOptions(CLI::App &app, SourceOptions &to, const char *dimHelp) : options(to) {
    app.add_option("--dim", dims, dimHelp)->allow_extra_args(false);
    app.add_option("--shape", shapes, "INPUT=1x3x224x224: fixes all dimensions of an input")->allow_extra_args(false);
    app.add_option("--ops", options.operatorLibraries,
                   "a library of your own operators, .so or .a (docs/custom-operators.md); may be given again")
        ->allow_extra_args(false);
    app.add_option("--diagnostics", format, "text or json")->check(CLI::IsMember({"text", "json"}));
    app.add_option("--max-errors", options.maxErrors, "stop printing after so many errors (default 50, 0: all)");
    auto limit = [&](const char *name, int64_t &value, const char *what, int64_t most = INT64_MAX) {
      app.add_option(name, value, std::string(what) + " (default " + std::to_string(value) + ")")
          ->check(CLI::Range(int64_t(1), most))
          ->group("Limits against hostile files");
    };
    limit("--max-model-bytes", options.limits.modelBytes, "bytes of the file and of its external data");
    limit("--max-tensor-bytes", options.limits.tensorBytes, "bytes of one stored tensor");
    limit("--max-nodes", options.limits.nodes, "nodes once functions are inlined");
    limit("--max-depth", options.limits.depth, "nested graphs, and nested calls of functions", Limits::mostDepth);
    limit("--max-folded-bytes", options.limits.foldedBytes, "bytes of a tensor that folding or filling makes");
  }

  /// Where --dim gives sizes alone. Returns what is wrong with the command line, or "".
  std::string finish() {
    options.wantJsonDiagnostics = format == "json";
    return parseSizes(dims, shapes, options.dims, options.shapes);
  }
  /// Where it gives ranges and several sizes too.
  std::string finish(DimOptions &sizes) {
    options.wantJsonDiagnostics = format == "json";
    std::string why = parseDims(dims, sizes);
    options.dims = sizes.sizes;
    return why.empty() ? parseSizes({}, shapes, options.dims, options.shapes) : why;
  }

private:
  SourceOptions &options;
  std::vector<std::string> dims, shapes;
  std::string format = "text";
};

} // namespace firn
#endif

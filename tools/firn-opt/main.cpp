// firn-opt: optimise a graph and stay in its format, or convert it; one, or many at once.
#include "compiler/driver/OptimiseGraph.h"
#include "tools/firn-opt/Batch.h"
#include "tools/firn-opt/TransformOptions.h"
#include "tools/options/ModelOptions.h"

#include <filesystem>
#include <limits>
#include <unistd.h>

namespace {

/// The command line.
class Program {
public:
  Program() {
    app.footer("The formats follow the names: .onnx, .fpb (Firn's graph), .fpbtxt (Firn's graph as text).\n"
               "Examples:\n"
               "  firn-opt model.onnx -o smaller.onnx\n"
               "  firn-opt model.onnx -o smaller.onnx --verify --report\n"
               "  firn-opt model.onnx -o model.fpbtxt --no-optimise\n"
               "  firn-opt model.onnx -o fixed.onnx --dim batch=1\n"
               "  firn-opt model.onnx -o part.onnx --inputs hidden --outputs logits --rename hidden=x\n"
               "  firn-opt model.onnx -o model.out.onnx --skip=fuse-bias,fold-conv-batch-norm\n"
               "  firn-opt model.onnx -o smaller.onnx --bisect --check-cmd 'python3 evaluate.py {}'\n"
               "  firn-opt models/ -o smaller/ --jobs 4\n"
               "Exit status: 0 done, 1 model rejected, 2 wrong command line, 3 file unreadable or unwritable,\n"
               "4 a check failed (--verify, --check-cmd), 70 a failure of Firn itself.");
    app.add_option("models", inputs, "the models: .onnx, .fpb or .fpbtxt, or folders of them");
    app.add_option("-o,--output", options.output, "the file to write; the folder, for several models or a folder");
    app.add_option("--jobs", jobs, "models at a time (default: one for each core)")->check(CLI::PositiveNumber);
    addPasses();
    addSizes();
    addChecks();
    app.add_flag(
        "--report{text}", report,
        "say what was rewritten and what was not, and why; =json for JSON instead, =FILE for JSON in a file too");
    app.set_version_flag("--version", "firn-opt 0.1.0");
  }

  int run(int argc, char **argv) {
    try {
      app.parse(argc, argv);
    } catch (const CLI::Success &done) {
      return app.exit(done);
    } catch (const CLI::ParseError &error) {
      app.exit(error);
      return firn::exitBadCommandLine;
    }
    if (listsPasses) {
      std::cout << firn::passList();
      return firn::exitDone;
    }
    if (std::string why = problem(); !why.empty()) {
      std::cerr << "firn-opt: " << why << "\n";
      return firn::exitBadCommandLine;
    }
    if (isatty(STDERR_FILENO))
      options.progress = [](const std::string &line) { std::cerr << line << "\n"; };
    if (isBatch())
      return firn::optimiseBatch(items, options, jobs);
    options.input = inputs[0];
    firn::OptimiseGraphResult result = firn::optimiseGraph(options);
    std::cerr << result.messages;
    std::cout << result.report;
    return result.status;
  }

private:
  void addPasses() {
    app.add_flag("--no-optimise", options.isConversionOnly, "only convert: every operator stays as it is");
    app.add_option("--passes", options.passes, "run these passes alone, separated by commas")->delimiter(',');
    app.add_option("--skip", options.skipped, "leave out these passes, separated by commas")->delimiter(',');
    app.add_flag("--list-passes", listsPasses, "print the passes in their order and end");
    auto *strict = app.add_flag("--strict,--strict-math", options.strictMath, "no rewriting that changes rounding");
    app.add_flag(
           "--fast-math", options.fastMath,
           "also rewrites that treat numbers as real ones: values may change by rounding, and where they are NaN, "
           "infinite or -0")
        ->excludes(strict);
    app.add_option("--opset", options.opset,
                   "the opset of ai.onnx to write, newer or older than the model's (default: the model's, raised where "
                   "a rewrite needs a newer operator)")
        ->check(CLI::Range(7, 1000));
    app.add_flag("--prune-inputs", options.pruneInputs, "drop inputs that nothing reads");
  }

  void addSizes() {
    app.add_option("--max-growth", options.maxGrowth, "bytes that folding one node may add (default 1048576)")
        ->check(CLI::NonNegativeNumber);
    app.add_flag("--allow-growth", options.allowGrowth,
                 "the output may have more bytes than the input (default: what would make it larger is not done)");
    app.add_option(
        "--external", external,
        "which constants go to OUTPUT.data: auto (where they must: above 2 GiB; the default), never, or those "
        "of at least so many bytes (4096, 1M)");
  }

  void addChecks() {
    app.add_flag("--verify{3}", options.verifyRuns,
                 "run the original and the result on so many seeded inputs (3 where no number is given; dynamic "
                 "dimensions at several sizes) with the reference kernels, and compare")
        ->group("Checks");
    app.add_option("--rtol", options.rtol, "relative tolerance of --verify (default 1e-3, with --strict 0)")
        ->check(CLI::NonNegativeNumber)
        ->group("Checks");
    app.add_option("--atol", options.atol, "absolute tolerance of --verify (default 1e-4, with --strict 0)")
        ->check(CLI::NonNegativeNumber)
        ->group("Checks");
    app.add_option("--check-cmd", options.checkCommand,
                   "a command for /bin/sh that ends with 0 where the graph in {} (its path) is right")
        ->group("Checks");
    app.add_flag("--bisect", options.bisect,
                 "where a check fails, find the rewrite that makes it fail; without --check-cmd it implies --verify")
        ->group("Checks");
  }

  bool isBatch() const { return !items.empty(); }

  /// What is wrong with the command line, or "".
  std::string problem() {
    if (inputs.empty())
      return "a model is required";
    if (options.output.empty())
      return "-o FILE is required";
    std::error_code error;
    if (inputs.size() > 1 || std::filesystem::is_directory(inputs[0], error) ||
        std::filesystem::is_directory(options.output, error) || options.output.back() == '/') {
      std::string why;
      items = firn::batchItems(inputs, options.output, "", why);
      if (!why.empty())
        return why;
    } else if (!firn::isGraphName(options.output)) {
      return "the output's name must end in .onnx, .fpb or .fpbtxt, found '" + options.output + "'";
    }
    for (const auto *names : {&options.passes, &options.skipped})
      if (std::string why = firn::unknownPass(*names); !why.empty())
        return why;
    if (options.bisect && options.checkCommand.empty() && !options.verifyRuns)
      options.verifyRuns = 3;
    if (!readExternal())
      return "--external expects auto, never or a number of bytes, found '" + external + "'";
    options.wantReport = !report.empty();
    options.wantJsonReport = report == "json";
    if (report != "text" && report != "json")
      options.reportFile = report;
    std::string why = shared.finish();
    return why.empty() ? transforms.finish() : why;
  }

  /// Reads --external; false where it is none of what it may be.
  bool readExternal() {
    if (external == "auto" || external == "never") {
      options.sideFileBytes = external == "auto" ? 0 : std::numeric_limits<int64_t>::max();
      return true;
    }
    std::string bytes = external;
    try {
      return CLI::AsSizeValue(false)(bytes).empty() && CLI::detail::lexical_cast(bytes, options.sideFileBytes) &&
             options.sideFileBytes > 0;
    } catch (const CLI::ValidationError &) { // an unknown unit, or too large a number
      return false;
    }
  }

  CLI::App app{"Optimises ONNX models or Firn graphs and writes them as graphs again."};
  firn::OptimiseGraphOptions options;
  firn::ModelOptions shared{app, options, "NAME=SIZE: fixes a symbolic dimension"};
  firn::TransformOptions transforms{app, options};
  std::vector<std::string> inputs;
  std::vector<firn::BatchItem> items;
  unsigned jobs = 0;
  std::string report, external = "auto";
  bool listsPasses = false;
};

} // namespace

int main(int argc, char **argv) { return Program().run(argc, argv); }

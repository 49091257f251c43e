// firn-opt: optimise a graph and stay in its format, or convert it.
#include "compiler/driver/OptimiseGraph.h"
#include "tools/firn-opt/TransformOptions.h"
#include "tools/options/ModelOptions.h"

int main(int argc, char **argv) {
  firn::OptimiseGraphOptions options;
  CLI::App app{"Optimises an ONNX model or a Firn graph and writes it as a graph again."};
  app.footer("The formats follow the names: .onnx, .fpb (Firn's graph), .fpbtxt (Firn's graph as text).\n"
             "Examples:\n"
             "  firn-opt model.onnx -o smaller.onnx\n"
             "  firn-opt model.onnx -o model.fpbtxt --no-optimise\n"
             "  firn-opt model.onnx -o fixed.onnx --dim batch=1 --report\n"
             "  firn-opt model.onnx -o part.onnx --inputs hidden --outputs logits --rename hidden=x\n"
             "  firn-opt model.onnx -o model.out.onnx --skip=fuse-bias,fold-conv-batch-norm\n"
             "Exit status: 0 done, 1 model rejected, 2 wrong command line, 3 file unreadable or unwritable,\n"
             "70 a failure of Firn itself.");
  bool listsPasses = false;
  app.add_option("model", options.input, "the model: .onnx, .fpb or .fpbtxt");
  app.add_option("-o,--output", options.output, "the file to write");
  firn::ModelOptions shared(app, options, "NAME=SIZE: fixes a symbolic dimension");
  firn::TransformOptions transforms(app, options);
  app.add_flag("--no-optimise", options.isConversionOnly, "only convert: every operator stays as it is");
  app.add_option("--passes", options.passes, "run these passes alone, separated by commas")->delimiter(',');
  app.add_option("--skip", options.skipped, "leave out these passes, separated by commas")->delimiter(',');
  app.add_flag("--list-passes", listsPasses, "print the passes in their order and end");
  auto *strict = app.add_flag("--strict,--strict-math", options.strictMath, "no rewriting that changes rounding");
  app.add_flag("--fast-math", options.fastMath,
               "also rewrites that treat numbers as real ones: values may change by rounding, and where they are NaN, "
               "infinite or -0")
      ->excludes(strict);
  app.add_flag("--prune-inputs", options.pruneInputs, "drop inputs that nothing reads");
  app.add_option("--max-growth", options.maxGrowth, "bytes that folding one node may add (default 1048576)")
      ->check(CLI::NonNegativeNumber);
  app.add_flag("--allow-growth", options.allowGrowth,
               "the output may have more bytes than the input (default: what would make it larger is not done)");
  app.add_option("--side-file", options.sideFileBytes,
                 "constants of at least so many bytes go to OUTPUT.data (default: only where they must)")
      ->check(CLI::PositiveNumber);
  auto *report = app.add_option("--report", options.reportFile,
                                "say what was rewritten and what was not, and why; with a file also as JSON")
                     ->expected(0, 1);
  app.set_version_flag("--version", "firn-opt 0.1.0");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &done) {
    return app.exit(done);
  } catch (const CLI::ParseError &error) {
    app.exit(error);
    return firn::exitBadCommandLine;
  }
  auto usage = [](const std::string &text) {
    std::cerr << "firn-opt: " << text << "\n";
    return firn::exitBadCommandLine;
  };
  if (listsPasses) {
    std::cout << firn::passList();
    return firn::exitDone;
  }
  if (options.input.empty())
    return usage("a model is required");
  if (options.output.empty())
    return usage("-o FILE is required");
  auto endsWith = [&](const std::string &end) {
    return options.output.size() > end.size() &&
           options.output.compare(options.output.size() - end.size(), end.size(), end) == 0;
  };
  if (!endsWith(".onnx") && !endsWith(".fpb") && !endsWith(".fpbtxt"))
    return usage("the output's name must end in .onnx, .fpb or .fpbtxt, found '" + options.output + "'");
  for (const auto *names : {&options.passes, &options.skipped})
    if (std::string why = firn::unknownPass(*names); !why.empty())
      return usage(why);
  if (std::string why = shared.finish(); !why.empty())
    return usage(why);
  if (std::string why = transforms.finish(); !why.empty())
    return usage(why);
  options.wantReport = report->count() > 0;
  return firn::optimiseGraph(options);
}

// firnc: compile a model into one file that the executor runs.
#include "compiler/driver/Options.h"
#include "tools/firnc/Sizes.h"

#include <CLI/CLI.hpp>
#include <unistd.h>

int main(int argc, char **argv) {
  firn::CompileModelOptions options;
  CLI::App app{"Compiles an ONNX model or a Firn graph into one file, which firn-run or libfirn_runtime runs."};
  app.footer("Examples:\n"
             "  firnc model.onnx -o model.firn\n"
             "  firnc model.onnx -o model.firn --dim batch=4 --threads 2 --proof\n"
             "  firnc model.onnx -o model.firn --dim batch=1..32\n"
             "  firnc model.onnx -o model.firn --shape image=1x3x224x224 --target x86-64-v3\n"
             "  firnc model.onnx --check\n"
             "  firnc model.onnx --emit=fused | less\n"
             "Exit status: 0 done, 1 model rejected, 2 wrong command line, 3 file unreadable or unwritable,\n"
             "70 a failure of Firn itself.");
  std::vector<std::string> dims, shapes;
  std::string level = "3", diagnosticsFormat = "text";
  app.add_option("model", options.input, "the model: .onnx, .fpb or .fpbtxt")->required();
  app.add_option("-o,--output", options.output, "the file to write (default: the model's name with .firn)");
  app.add_option("--dim", dims,
                 "NAME=4: fixes a symbolic dimension; NAME=1..32: its range, whose memory is announced;\n"
                 "NAME=1,4,16: code for these sizes beside the general one")
      ->allow_extra_args(false);
  app.add_option("--shape", shapes, "INPUT=1x3x224x224: fixes all dimensions of an input")->allow_extra_args(false);
  app.add_option("--target", options.target, "native (default), x86-64-v2, x86-64-v3, x86-64-v4, aarch64");
  app.add_option("--threads", options.threads, "workers that a session uses unless it is told otherwise");
  app.add_option("--jobs", options.hostThreads, "threads of this compilation (default: all cores)");
  app.add_option("-O", level, "0 to 3 (default 3)")->check(CLI::IsMember({"0", "1", "2", "3"}));
  app.add_option("--emit", options.emit, "stop early and write text (stdout without -o); obj: an object and a header")
      ->check(CLI::IsMember({"firn", "fused", "kernel", "plan", "llvm", "asm", "obj"}));
  auto *report =
      app.add_option("--report", options.reportFile, "say what became of each node; with a file also as JSON")
          ->expected(0, 1);
  app.add_flag("--proof", options.wantProof, "store inputs and reference results, which firn-run --verify replays");
  app.add_flag("--check", options.checkOnly, "only report: unsupported operators, dynamic dimensions, memory");
  app.add_flag("--strict-math", options.strictMath, "no rewriting that changes rounding");
  app.add_option("--diagnostics", diagnosticsFormat, "text or json")->check(CLI::IsMember({"text", "json"}));
  app.add_option("--max-errors", options.maxErrors, "stop printing after so many errors (default 50, 0: all)");
  app.set_version_flag("--version", "firnc 0.1.0");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &done) {
    return app.exit(done);
  } catch (const CLI::ParseError &error) {
    app.exit(error);
    return firn::exitBadCommandLine;
  }
  options.wantReport = report->count() > 0;
  options.wantJsonDiagnostics = diagnosticsFormat == "json";
  options.optLevel = unsigned(level[0] - '0');
  options.wantProgress = isatty(STDERR_FILENO);
  auto usage = [](const std::string &text) {
    std::cerr << "firnc: " << text << "\n";
    return firn::exitBadCommandLine;
  };
  firn::DimOptions sizes;
  std::string why = firn::parseDims(dims, sizes);
  if (why.empty())
    why = firn::parseSizes({}, shapes, options.dims, options.shapes);
  if (!why.empty())
    return usage(why);
  options.dims = sizes.sizes;
  options.ranges = sizes.ranges;
  options.variants = sizes.variants;
  if (!options.variants.empty() && options.emit == "obj")
    return usage("--dim with several sizes makes variants, which --emit=obj has not");
  if (options.output.empty() && (options.emit.empty() || options.emit == "obj")) {
    options.output = options.input.substr(0, options.input.rfind('.')) + (options.emit.empty() ? ".firn" : ".o");
  }
  return firn::compileModel(options);
}

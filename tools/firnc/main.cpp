// firnc: compile a model into one file that the executor runs.
#include "compiler/driver/Options.h"
#include "tools/options/ModelOptions.h"

#include <unistd.h>

int main(int argc, char **argv) {
  firn::CompileModelOptions options;
  CLI::App app{"Compiles an ONNX model or a Firn graph into one file, which firn-run or libfirn_runtime runs."};
  app.footer("Examples:\n"
             "  firnc model.onnx -o model.firn\n"
             "  firnc model.onnx -o model.firn --dim batch=4 --threads 2 --proof\n"
             "  firnc model.onnx -o model.firn --dim batch=1..32\n"
             "  firnc model.onnx -o model.firn --shape image=1x3x224x224 --target x86-64-v3\n"
             "  firnc --check model.onnx\n"
             "  firnc model.onnx --emit=fused | less\n"
             "Exit status: 0 done, 1 model rejected, 2 wrong command line, 3 file unreadable or unwritable,\n"
             "70 a failure of Firn itself.");
  std::string level = "3", check = "text";
  app.add_option("model", options.input, "the model: .onnx, .fpb or .fpbtxt")->required();
  app.add_option("-o,--output", options.output, "the file to write (default: the model's name with .firn)");
  firn::ModelOptions shared(app, options,
                            "NAME=4: fixes a symbolic dimension; NAME=1..32: its range, whose memory is announced;\n"
                            "NAME=1,4,16: code for these sizes beside the general one");
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
  // A flag, so that it leaves the word behind it alone.
  auto *checks = app.add_flag("--check{text}", check,
                              "only report: every problem, what is dynamic or slow, memory; --check=json as JSON");
  app.add_flag("--strict-math", options.strictMath, "no rewriting that changes rounding");
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
  options.optLevel = unsigned(level[0] - '0');
  options.wantProgress = isatty(STDERR_FILENO);
  auto usage = [](const std::string &text) {
    std::cerr << "firnc: " << text << "\n";
    return firn::exitBadCommandLine;
  };
  firn::DimOptions sizes;
  if (std::string why = shared.finish(sizes); !why.empty())
    return usage(why);
  options.ranges = sizes.ranges;
  options.variants = sizes.variants;
  if (!options.variants.empty() && options.emit == "obj")
    return usage("--dim with several sizes makes variants, which --emit=obj has not");
  if (check != "text" && check != "json")
    return usage("--check is text or json, found '" + check + "'");
  options.checkOnly = checks->count() > 0;
  options.wantJsonDiagnostics |= check == "json";
  if (options.output.empty() && (options.emit.empty() || options.emit == "obj")) {
    options.output = options.input.substr(0, options.input.rfind('.')) + (options.emit.empty() ? ".firn" : ".o");
  }
  return firn::compileModel(options);
}

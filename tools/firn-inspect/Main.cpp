// firn-inspect: what is inside a compiled model or a graph file.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <unistd.h>

#include "tools/firn-inspect/Artifact.h"
#include "tools/tensor_io/Files.h"

using namespace firn::tools;

namespace {

struct Options {
  std::string file;
  std::vector<std::string> dims;
  bool withSteps = false;
  bool asJson = false;
};

const char *const examples = R"(
Examples:
  firn-inspect model.firn
  firn-inspect model.firn --json | python3 -m json.tool
  firn-inspect model.firn --dim batch=8 --dim sequence=128
  firn-inspect model.onnx

Exit status: 0 done, 1 model rejected, 2 wrong command line, 3 file unreadable, 70 a failure of Firn itself.)";

// Graph files are read by the compiler's libraries, which a program of its own links, so that a look at a compiled
// model does not wait for them.
[[noreturn]] void inspectGraph(const Options &options) {
  std::error_code error;
  std::string reader =
      std::filesystem::read_symlink("/proc/self/exe", error).replace_filename("firn-inspect-graph").string();
  std::vector<const char *> words = {"firn-inspect-graph", options.file.c_str()};
  if (options.asJson)
    words.push_back("--json");
  words.push_back(nullptr);
  execv(reader.c_str(), const_cast<char *const *>(words.data()));
  throw Failure(Rejected,
                options.file + ": is not a compiled model, and graph files need " + reader + ", which is not there");
}

int inspect(const Options &options) {
  if (FILE *file = std::fopen(options.file.c_str(), "rb"))
    std::fclose(file);
  else
    throw Failure(BadFile, options.file + ": cannot be read");
  if (isArtifact(options.file)) {
    std::fputs(describeArtifact(options.file, options.dims, options.withSteps, options.asJson).c_str(), stdout);
    return Done;
  }
  inspectGraph(options);
}

} // namespace

int main(int argc, char **argv) {
  Options options;
  CLI::App app("Says what is inside a model.", "firn-inspect");
  app.footer(examples);
  app.set_version_flag("--version", FIRN_VERSION);
  app.add_option("FILE", options.file, "a compiled model (.firn) or a graph")->required()->type_name("");
  app.add_option("--dim", options.dims, "state the memory for this dynamic dimension; may be given again")
      ->type_name("NAME=N")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_flag("--steps", options.withSteps, "list every step");
  app.add_flag("--json", options.asJson, "print JSON");
  try {
    app.parse(argc, argv);
    return inspect(options);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? Done : BadCommandLine;
  } catch (const Failure &failure) {
    std::fprintf(stderr, "firn-inspect: %s\n", failure.what());
    return failure.status;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "firn-inspect: %s\n", error.what());
    return Internal;
  }
}

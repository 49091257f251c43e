// firn-run: runs a compiled model on tensors from files.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>

#include "tools/firn-run/Profile.h"
#include "tools/tensor_io/Compare.h"
#include "tools/tensor_io/Inputs.h"

using namespace firn::tools;

namespace {

struct Options {
  std::string file;
  InputOptions inputs;
  std::string outputs;
  bool asNpy = false;
  int32_t threads = 0;
  int64_t repeat = 1;
  std::vector<std::string> states;
  std::string profile;
  bool verify = false;
  std::string compare;
  double rtol = 1e-3, atol = 1e-4;
  bool quiet = false;
};

const char *const examples = R"(
Examples:
  firn-run model.firn --input x=@x.npy
  firn-run model.firn --inputs test_data_set_0 --compare test_data_set_0
  firn-run model.firn --input x=random:7 --dim batch=4 --repeat 100 --threads 2
  firn-run model.firn --inputs data --outputs results --profile trace.json
  firn-run step.firn --inputs first --state present=past --repeat 200
  firn-run model.firn --verify

Exit status: 0 done, 1 model or input rejected, 2 wrong command line, 3 file unreadable or unwritable,
4 outputs differ (--verify, --compare), 70 a failure of Firn itself.)";

void describeOptions(CLI::App &app, Options &options) {
  app.footer(examples);
  app.set_version_flag("--version", FIRN_VERSION);
  app.add_option("FILE", options.file, "the compiled model (.firn)")->required()->type_name("");
  app.add_option("--input", options.inputs.inputs,
                 "NAME=@file.npy, NAME=@file.pb or NAME=random[:SEED]; may be given again")
      ->type_name("NAME=VALUE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--inputs", options.inputs.folder, "all inputs: input_0.pb ... (or .npy, NAME.npy, one .npz)")
      ->type_name("DIR");
  app.add_option("--dim", options.inputs.dims, "a dynamic dimension of random inputs (default 1); may be given again")
      ->type_name("NAME=N")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--outputs", options.outputs, "write the outputs there: output_0.pb ...")->type_name("DIR");
  app.add_flag("--npy", options.asNpy, "write outputs as .npy, but for sequences and maps");
  app.add_option("--threads", options.threads, "threads, the main one included; 0: one per usable core")
      ->type_name("N")
      ->check(CLI::Range(0, 4096));
  app.add_option("--repeat", options.repeat, "run N times and print the median time")
      ->type_name("N")
      ->check(CLI::Range(int64_t(1), int64_t(1) << 40));
  app.add_option("--state", options.states,
                 "from the second run on, this input is that output of the run before; may be given again")
      ->type_name("OUTPUT=INPUT")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--profile", options.profile, "write Chrome trace events and print the hottest nodes")
      ->type_name("FILE.json");
  app.add_flag("--verify", options.verify, "check the digest of the whole file and replay the stored proof");
  app.add_option("--compare", options.compare, "compare with output_0.pb ... of a folder or .npz")->type_name("DIR");
  app.add_option("--rtol", options.rtol, "relative tolerance of --compare")->capture_default_str();
  app.add_option("--atol", options.atol, "absolute tolerance of --compare")->capture_default_str();
  app.add_flag("--quiet", options.quiet, "do not print the outputs");
}

void verify(const firn_model *model, const Options &options) {
  firn_error error{};
  error.struct_size = sizeof error;
  auto check = [&](uint32_t what) {
    firn_status status = firn_model_verify(model, what, options.threads, &error);
    if (status != FIRN_OK && status != FIRN_NO_PROOF)
      throw Failure(exitStatusOf(status), options.file + ": " + error.message);
    return status;
  };
  check(FIRN_VERIFY_DIGEST);
  std::puts("digest: right, the file is what the compiler wrote");
  if (check(FIRN_VERIFY_PROOF) == FIRN_NO_PROOF)
    std::puts("proof: none, the model was compiled without --proof");
  else
    std::puts("proof: right, this machine computes what the model computes");
}

// Binds what --state names; returns the inputs that are absent from the second run on.
std::vector<int32_t> bindStates(const firn_model *model, firn_session *session, const std::vector<std::string> &pairs) {
  std::vector<int32_t> bound;
  for (const std::string &pair : pairs) {
    // A name may contain '=': every place to split is tried.
    int32_t output = -1, input = -1;
    for (size_t at = pair.find('='); at != std::string::npos && (output < 0 || input < 0);
         at = pair.find('=', at + 1)) {
      output = firn_model_find_output(model, pair.substr(0, at).c_str());
      input = firn_model_find_input(model, pair.c_str() + at + 1);
    }
    if (output < 0 || input < 0)
      throw Failure(BadCommandLine, "--state expects OUTPUT=INPUT, names of this model, found '" + pair + "'");
    if (firn_session_bind_state(session, output, input) != FIRN_OK)
      throw Failure(BadCommandLine, "--state " + pair + ": " + firn_session_message(session));
    bound.push_back(input);
  }
  return bound;
}

double microseconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double, std::micro>(duration).count();
}

void runProfiled(const firn_model *model, firn_session *session, const std::vector<firn_tensor> &inputs,
                 std::vector<firn_tensor> &outputs, const std::string &path) {
  std::vector<firn_step_time> times(4096);
  for (;;) {
    if (firn_session_profile(session, times.data(), int64_t(times.size())) != FIRN_OK)
      throw Failure(Internal, "the session cannot be profiled");
    runSession(session, inputs, outputs);
    size_t count = size_t(firn_session_profile_count(session));
    if (count <= times.size()) {
      times.resize(count);
      break;
    }
    times.resize(count); // a model with loops: run again with room for all
  }
  if (firn_session_profile(session, nullptr, 0) != FIRN_OK)
    throw Failure(Internal, "the session cannot be profiled");
  if (const firn_model *variant = firn_model_variant(model, firn_session_variant(session)))
    model = variant; // whose steps these are
  writeFile(path, chromeTrace(model, times));
  std::fputs(hottestNodes(model, times, 15, firn_session_threads(session)).c_str(), stdout);
}

void printOutputs(const std::vector<Tensor> &outputs) {
  for (const Tensor &output : outputs)
    std::printf("%s: %s\n", output.name.c_str(), summary(output).c_str());
}

void writeOutputs(const firn_model *model, const std::vector<Tensor> &outputs, const Options &options) {
  makeFolder(options.outputs);
  for (size_t i = 0; i < outputs.size(); ++i) {
    int32_t form = outputInfo(model, int32_t(i)).form;
    bool isNpy = options.asNpy && !outputs[i].isList() && outputs[i].dtype != FIRN_DTYPE_NONE;
    writeFile(options.outputs + "/output_" + std::to_string(i) + (isNpy ? ".npy" : ".pb"),
              isNpy ? formatNpy(outputs[i]) : formatPb(outputs[i], form));
  }
}

void compareOutputs(const firn_model *model, const std::vector<Tensor> &outputs, const Options &options) {
  std::vector<Tensor> wanted = readTensors(options.compare, "output", outputNames(model));
  std::string differences;
  size_t compared = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (wanted[i].dtype == FIRN_DTYPE_NONE)
      continue;
    ++compared;
    std::string why = difference(outputs[i], wanted[i], options.rtol, options.atol);
    if (!why.empty())
      differences += (differences.empty() ? "" : "\n") + std::string("output '") + outputs[i].name + "' " + why;
  }
  if (compared == 0)
    throw Failure(BadFile, options.compare + ": has no output_0.pb, output_0.npy or the like");
  if (!differences.empty())
    throw Failure(Different, differences);
  std::printf("compare: %zu of %zu outputs equal within rtol %g, atol %g\n", compared, outputs.size(), options.rtol,
              options.atol);
}

void run(const Options &options) {
  ModelHandle model = openModel(options.file);
  if (options.verify) {
    verify(model.get(), options);
    bool runsToo = !options.inputs.folder.empty() || !options.inputs.inputs.empty() || !options.compare.empty() ||
                   !options.outputs.empty() || !options.profile.empty();
    if (!runsToo)
      return;
  }
  std::vector<Tensor> inputTensors = makeInputs(model.get(), options.inputs);
  SessionHandle session = createSession(model.get(), options.threads);
  std::vector<firn_tensor> inputs = views(inputTensors);
  std::vector<firn_tensor> outputs(size_t(firn_model_output_count(model.get())));
  std::vector<int32_t> states = bindStates(model.get(), session.get(), options.states);
  std::vector<double> times;
  for (int64_t i = 0; i < options.repeat; ++i) {
    auto start = std::chrono::steady_clock::now();
    runSession(session.get(), inputs, outputs);
    times.push_back(microseconds(std::chrono::steady_clock::now() - start));
    for (int32_t input : states)
      inputs[size_t(input)] = {};
  }
  if (!options.profile.empty())
    runProfiled(model.get(), session.get(), inputs, outputs, options.profile);

  std::vector<Tensor> results;
  for (size_t i = 0; i < outputs.size(); ++i) {
    results.push_back(Tensor::borrow(outputs[i]));
    results.back().name = outputInfo(model.get(), int32_t(i)).name;
  }
  if (!options.quiet)
    printOutputs(results);
  if (options.repeat > 1) {
    std::sort(times.begin(), times.end());
    std::printf("%lld runs, %d threads: min %.1f us, median %.1f us\n", static_cast<long long>(options.repeat),
                firn_session_threads(session.get()), times.front(), times[times.size() / 2]);
  }
  if (!options.outputs.empty())
    writeOutputs(model.get(), results, options);
  if (!options.compare.empty())
    compareOutputs(model.get(), results, options);
}

} // namespace

int main(int argc, char **argv) {
  Options options;
  CLI::App app("Runs a compiled model.", "firn-run");
  describeOptions(app, options);
  try {
    app.parse(argc, argv);
    run(options);
    return std::fflush(stdout) == 0 ? Done : BadFile;
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? Done : BadCommandLine;
  } catch (const Failure &failure) {
    std::fflush(stdout);
    std::fprintf(stderr, "firn-run: %s\n", failure.what());
    return failure.status;
  } catch (const std::bad_alloc &) {
    std::fprintf(stderr, "firn-run: not enough memory\n");
    return Rejected;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "firn-run: %s\n", error.what());
    return Internal;
  }
}

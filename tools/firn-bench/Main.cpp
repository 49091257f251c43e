// firn-bench: how fast a compiled model runs, starts, and how much memory it takes.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>

#include "tools/firn-bench/Process.h"
#include "tools/tensor_io/Inputs.h"

using namespace firn::tools;
using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

namespace {

struct Options {
  std::string file;
  InputOptions inputs;
  int32_t threads = 0;
  double seconds = 2;
  int64_t starts = 5;
  bool asJson = false;
  bool isChild = false; // started by runSelf: run once, say the peak memory
};

const char *const examples = R"(
Inputs that are not given are random, their dynamic dimensions 1 or what --dim says.

Examples:
  firn-bench model.firn --threads 2 --seconds 5
  firn-bench model.firn --inputs test_data_set_0 --json
  firn-bench model.firn --dim batch=8

Exit status: 0 done, 1 model or input rejected, 2 wrong command line, 3 file unreadable, 70 a failure of Firn itself.)";

void describeOptions(CLI::App &app, Options &options) {
  app.footer(examples);
  app.set_version_flag("--version", FIRN_VERSION);
  app.add_option("FILE", options.file, "the compiled model (.firn)")->required()->type_name("");
  app.add_option("--inputs", options.inputs.folder, "inputs: input_0.pb ... (or .npy, NAME.npy, one .npz)")
      ->type_name("DIR");
  app.add_option("--input", options.inputs.inputs,
                 "NAME=@file.npy, NAME=@file.pb or NAME=random[:SEED]; may be given again")
      ->type_name("NAME=VALUE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--dim", options.inputs.dims, "a dynamic dimension of random inputs (default 1); may be given again")
      ->type_name("NAME=N")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--threads", options.threads, "threads, the main one included; 0: one per usable core")
      ->type_name("N")
      ->check(CLI::Range(0, 4096));
  app.add_option("--seconds", options.seconds, "how long to measure")
      ->capture_default_str()
      ->check(CLI::Range(0., 1e6));
  app.add_option("--starts", options.starts, "new processes to measure the cold start with")
      ->capture_default_str()
      ->check(CLI::Range(int64_t(0), int64_t(10000)));
  app.add_flag("--json", options.asJson, "print JSON");
  app.add_flag("--as-child", options.isChild)->group("");
}

double micros(Clock::duration duration) { return std::chrono::duration<double, std::micro>(duration).count(); }

// The value that a share of the sorted `times` does not exceed.
double percentile(const std::vector<double> &times, double share) {
  size_t rank = size_t(std::max(0., std::min(double(times.size()) - 1, share * double(times.size()))));
  return times[rank];
}

Json measureLatency(firn_session *session, const std::vector<firn_tensor> &inputs, std::vector<firn_tensor> &outputs,
                    double seconds) {
  std::vector<double> times;
  double sum = 0;
  auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  do {
    auto start = Clock::now();
    runSession(session, inputs, outputs);
    times.push_back(micros(Clock::now() - start));
    sum += times.back();
  } while (Clock::now() < end && times.size() < 10000000);
  std::sort(times.begin(), times.end());
  return {{"min", times.front()},          {"median", percentile(times, .5)},    {"p95", percentile(times, .95)},
          {"p99", percentile(times, .99)}, {"mean", sum / double(times.size())}, {"runs", times.size()}};
}

// Arguments that make a child run the same model on the same inputs.
std::vector<std::string> childArguments(const Options &options) {
  std::vector<std::string> arguments = {options.file, "--as-child", "--threads", std::to_string(options.threads)};
  if (!options.inputs.folder.empty())
    arguments.insert(arguments.end(), {"--inputs", options.inputs.folder});
  for (const std::string &input : options.inputs.inputs)
    arguments.insert(arguments.end(), {"--input", input});
  for (const std::string &dim : options.inputs.dims)
    arguments.insert(arguments.end(), {"--dim", dim});
  return arguments;
}

void runAsChild(const Options &options) {
  ModelHandle model = openModel(options.file);
  SessionHandle session = createSession(model.get(), options.threads);
  std::vector<Tensor> tensors = makeInputs(model.get(), options.inputs);
  std::vector<firn_tensor> inputs = views(tensors), outputs(size_t(firn_model_output_count(model.get())));
  runSession(session.get(), inputs, outputs);
  std::printf("%lld\n", static_cast<long long>(peakRssBytes()));
}

Json measure(const Options &options) {
  auto start = Clock::now();
  ModelHandle model = openModel(options.file);
  auto opened = Clock::now();
  SessionHandle session = createSession(model.get(), options.threads);
  auto created = Clock::now();
  std::vector<Tensor> tensors = makeInputs(model.get(), options.inputs);
  std::vector<firn_tensor> inputs = views(tensors), outputs(size_t(firn_model_output_count(model.get())));
  auto begun = Clock::now();
  runSession(session.get(), inputs, outputs);
  auto ran = Clock::now();
  Json result = {{"file", options.file}, {"threads", firn_session_threads(session.get())}};
  result["latency_us"] = measureLatency(session.get(), inputs, outputs, options.seconds);
  result["load_us"] = {
      {"open", micros(opened - start)}, {"session", micros(created - opened)}, {"first_run", micros(ran - begun)}};
  firn_memory memory{};
  memory.struct_size = sizeof memory;
  if (firn_model_memory(model.get(), inputs.data(), &memory, nullptr, nullptr) == FIRN_OK)
    result["memory"] = {{"weights_bytes", memory.weights_bytes},
                        {"arena_bytes", memory.arena_bytes},
                        {"scratch_bytes_per_thread", memory.scratch_bytes}};
  result["memory"]["session_bytes"] = firn_session_memory(session.get());
  std::vector<double> starts;
  int64_t peak = 0;
  for (int64_t i = 0; i < options.starts; ++i) {
    ProcessFigures figures = runSelf(childArguments(options));
    starts.push_back(figures.millis);
    peak = std::max(peak, figures.peakRssBytes);
  }
  std::sort(starts.begin(), starts.end());
  if (!starts.empty()) {
    result["cold_start_ms"] = {
        {"min", starts.front()}, {"median", percentile(starts, .5)}, {"processes", starts.size()}};
    result["peak_rss_bytes"] = peak;
  }
  return result;
}

void print(const Json &figures) {
  const Json &latency = figures["latency_us"], &load = figures["load_us"], &memory = figures["memory"];
  std::printf("%s, %d threads\n", figures["file"].get<std::string>().c_str(), figures["threads"].get<int>());
  std::printf("latency     min %.1f  median %.1f  p95 %.1f  p99 %.1f us  (%lld runs)\n", latency["min"].get<double>(),
              latency["median"].get<double>(), latency["p95"].get<double>(), latency["p99"].get<double>(),
              latency["runs"].get<long long>());
  std::printf("load        open %.0f  session %.0f  first run %.0f us\n", load["open"].get<double>(),
              load["session"].get<double>(), load["first_run"].get<double>());
  if (figures.contains("cold_start_ms"))
    std::printf("cold start  min %.1f  median %.1f ms  (a new process, from start to end)\n",
                figures["cold_start_ms"]["min"].get<double>(), figures["cold_start_ms"]["median"].get<double>());
  std::printf("memory      weights %.2f MB  arena %.2f MB", memory.value("weights_bytes", 0.) / 1e6,
              memory.value("arena_bytes", 0.) / 1e6);
  if (figures.contains("peak_rss_bytes"))
    std::printf("  peak resident %.2f MB", figures["peak_rss_bytes"].get<double>() / 1e6);
  std::printf("\n");
}

} // namespace

int main(int argc, char **argv) {
  Options options;
  options.inputs.isRandomAllowed = true;
  CLI::App app("Measures a compiled model.", "firn-bench");
  describeOptions(app, options);
  try {
    app.parse(argc, argv);
    if (options.isChild) {
      runAsChild(options);
      return Done;
    }
    Json figures = measure(options);
    if (options.asJson)
      std::printf("%s\n", figures.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
    else
      print(figures);
    return Done;
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? Done : BadCommandLine;
  } catch (const Failure &failure) {
    std::fprintf(stderr, "firn-bench: %s\n", failure.what());
    return failure.status;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "firn-bench: %s\n", error.what());
    return Internal;
  }
}

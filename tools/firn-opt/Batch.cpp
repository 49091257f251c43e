#include "tools/firn-opt/Batch.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>
#include <mutex>
#include <thread>

namespace firn {

namespace fs = std::filesystem;

bool isGraphName(const std::string &path) {
  std::string extension = fs::path(path).extension().string();
  return extension == ".onnx" || extension == ".fpb" || extension == ".fpbtxt";
}

std::vector<BatchItem> batchItems(const std::vector<std::string> &inputs, const std::string &folder,
                                  const std::string &extension, std::string &problem) {
  std::vector<BatchItem> items;
  auto add = [&](const fs::path &input, fs::path below) {
    if (!extension.empty())
      below.replace_extension(extension);
    items.push_back({input.string(), (fs::path(folder) / below).string()});
  };
  for (const std::string &input : inputs) {
    std::error_code error;
    if (!fs::is_directory(input, error)) {
      add(input, fs::path(input).filename());
      continue;
    }
    std::vector<fs::path> found;
    auto place = fs::recursive_directory_iterator(input, error);
    for (; !error && place != fs::recursive_directory_iterator(); place.increment(error))
      if (isGraphName(place->path().string()) && place->is_regular_file(error))
        found.push_back(place->path());
    if (error)
      problem = input + ": " + error.message();
    else if (found.empty())
      problem = input + ": no .onnx, .fpb or .fpbtxt in this folder";
    std::sort(found.begin(), found.end());
    for (const fs::path &path : found)
      add(path, path.lexically_relative(input));
  }
  std::map<std::string, std::string> sources;
  for (const BatchItem &item : items)
    if (auto [other, isNew] = sources.emplace(item.output, item.input); !isNew)
      problem = "'" + other->second + "' and '" + item.input + "' would both become '" + item.output + "'";
  return items;
}

namespace {

int64_t bytesOf(const std::string &path) {
  std::error_code error;
  auto bytes = fs::file_size(path, error);
  return error ? 0 : int64_t(bytes);
}

/// "a.onnx: 1234567 -> 1230000 bytes, 0.4 s" or what became of it instead.
std::string outcome(const BatchItem &item, int status, int64_t bytes, double seconds) {
  std::string text = item.input + ": ";
  if (status != exitDone && status != exitDiffers)
    return text + "failed, status " + std::to_string(status);
  char time[32];
  std::snprintf(time, sizeof(time), ", %.1f s", seconds);
  return text + std::to_string(bytes) + " -> " + std::to_string(bytesOf(item.output)) + " bytes" + time +
         (status == exitDiffers ? ", not right" : "");
}

} // namespace

int optimiseBatch(const std::vector<BatchItem> &items, const OptimiseGraphOptions &options, unsigned jobs) {
  jobs = jobs ? jobs : std::max(1u, std::thread::hardware_concurrency());
  std::atomic<size_t> next{0};
  std::mutex printing;
  size_t done = 0;
  int worst = exitDone;
  auto work = [&] {
    for (size_t i; (i = next++) < items.size();) {
      OptimiseGraphOptions own = options;
      own.input = items[i].input;
      own.output = items[i].output;
      if (!own.reportFile.empty() || own.wantJsonReport)
        own.reportFile = own.output + ".json";
      auto start = std::chrono::steady_clock::now();
      int64_t bytes = bytesOf(own.input);
      std::error_code error; // of the folder: writing says it
      fs::create_directories(fs::path(own.output).parent_path(), error);
      OptimiseGraphResult result = optimiseGraph(own);
      std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
      if (own.wantJsonReport)
        result.report.clear(); // is in its file
      std::lock_guard<std::mutex> lock(printing);
      worst = std::max(worst, result.status);
      std::fprintf(stderr, "%s", result.messages.c_str());
      std::printf("[%zu/%zu] %s\n%s", ++done, items.size(),
                  outcome(items[i], result.status, bytes, took.count()).c_str(), result.report.c_str());
      std::fflush(stdout);
    }
  };
  std::vector<std::thread> others;
  for (unsigned i = 1; i < std::min<size_t>(jobs, items.size()); ++i)
    others.emplace_back(work);
  work();
  for (std::thread &other : others)
    other.join();
  return worst;
}

} // namespace firn

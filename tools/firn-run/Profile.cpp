#include "tools/firn-run/Profile.h"

#include <algorithm>
#include <cstdio>
#include <map>

#include "tools/firn-run/Roofline.h"

namespace firn::tools {

namespace {

firn_step_info stepInfo(const firn_model *model, int32_t index) {
  firn_step_info info{};
  info.struct_size = sizeof info;
  if (firn_model_step(model, index, &info) != FIRN_OK)
    throw Failure(Internal, "the model does not describe its steps");
  return info;
}

std::string quoted(const std::string &text) {
  std::string result = "\"";
  for (char c : text) {
    char escape[8];
    if (c == '"' || c == '\\')
      result += {'\\', c};
    else if (uint8_t(c) < 32)
      result.append(escape, size_t(std::snprintf(escape, sizeof escape, "\\u%04x", c)));
    else
      result += c;
  }
  return result + '"';
}

// Units per nanosecond are billions per second.
double rate(int64_t amount, int64_t nanos) { return amount > 0 && nanos > 0 ? double(amount) / double(nanos) : 0; }

struct Total {
  int32_t step = 0;
  int64_t nanos = 0, count = 0, flops = 0, bytes = 0;
};

std::vector<Total> totals(const std::vector<firn_step_time> &times) {
  std::map<int32_t, Total> bySteps;
  for (const firn_step_time &time : times) {
    Total &total = bySteps[time.step];
    total.step = time.step;
    total.nanos += time.duration_nanos;
    ++total.count;
    total.flops += std::max<int64_t>(time.flops, 0);
    total.bytes += std::max<int64_t>(time.bytes, 0);
  }
  std::vector<Total> result;
  for (const auto &entry : bySteps)
    result.push_back(entry.second);
  std::sort(result.begin(), result.end(),
            [](const Total &a, const Total &b) { return a.nanos != b.nanos ? a.nanos > b.nanos : a.step < b.step; });
  return result;
}

std::string rateText(double value) {
  char text[32];
  if (value == 0)
    return "-";
  std::snprintf(text, sizeof text, value < 10 ? "%.2f" : "%.1f", value);
  return text;
}

} // namespace

std::string chromeTrace(const firn_model *model, const std::vector<firn_step_time> &times) {
  std::string result = "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n";
  for (size_t i = 0; i < times.size(); ++i) {
    const firn_step_time &time = times[i];
    firn_step_info step = stepInfo(model, time.step);
    char text[320];
    std::snprintf(text, sizeof text,
                  ", \"ph\": \"X\", \"pid\": 1, \"tid\": 1, \"ts\": %.3f, \"dur\": %.3f, \"args\": {\"step\": %d, "
                  "\"flops\": %lld, "
                  "\"bytes\": %lld, \"GFLOP/s\": %.2f, \"GB/s\": %.2f}}%s\n",
                  double(time.start_nanos) / 1e3, double(time.duration_nanos) / 1e3, time.step,
                  static_cast<long long>(time.flops), static_cast<long long>(time.bytes),
                  rate(time.flops, time.duration_nanos), rate(time.bytes, time.duration_nanos),
                  i + 1 < times.size() ? "," : "");
    result += "{\"name\": " + quoted(step.name) + ", \"cat\": " + quoted(step.kind) + text;
  }
  return result + "]}\n";
}

std::string hottestNodes(const firn_model *model, const std::vector<firn_step_time> &times, size_t most,
                         int32_t threads) {
  Roofline roofline = measureRoofline(threads);
  std::vector<Total> sorted = totals(times);
  int64_t all = 0;
  for (const Total &total : sorted)
    all += total.nanos;
  char line[640];
  std::snprintf(line, sizeof line, "roofline of %d threads: %.0f GFLOP/s, %.0f GB/s from memory\n", threads,
                roofline.gigaFlops, roofline.gigaBytes);
  std::string result = line;
  result += "      us      %   times  GFLOP/s   GB/s  roofline  kind             node\n";
  for (size_t i = 0; i < std::min(most, sorted.size()); ++i) {
    const Total &total = sorted[i];
    firn_step_info step = stepInfo(model, total.step);
    double share = shareOf(roofline, total.flops, total.bytes, total.nanos);
    char shareText[16] = "-";
    if (share >= 0)
      std::snprintf(shareText, sizeof shareText, "%.0f %%", 100 * share);
    std::snprintf(line, sizeof line, "%8.1f  %5.1f  %6lld  %7s  %5s  %8s  %-16.24s %.400s\n", double(total.nanos) / 1e3,
                  all ? 100. * double(total.nanos) / double(all) : 0., static_cast<long long>(total.count),
                  rateText(rate(total.flops, total.nanos)).c_str(), rateText(rate(total.bytes, total.nanos)).c_str(),
                  shareText, step.kind, step.name);
    result += line;
  }
  if (sorted.size() > most)
    result += "          and " + std::to_string(sorted.size() - most) + " more steps\n";
  return result;
}

} // namespace firn::tools

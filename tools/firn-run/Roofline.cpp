#include "tools/firn-run/Roofline.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "runtime/abi/model.h"
#include "runtime/include/firn/firn.h"

namespace firn::tools {

namespace {

using Clock = std::chrono::steady_clock;

double nanosSince(Clock::time_point start) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

// Twelve independent chains of multiply-adds: enough to fill two units of latency 4 or 5. `Vector` is one register.
template <typename Vector> __attribute__((always_inline)) inline double multiplyAdds(int64_t rounds) {
#pragma clang fp contract(fast)
  Vector sums[12], factor, addend;
  for (int i = 0; i < 12; ++i)
    sums[i] = Vector{} + float(i);
  factor = Vector{} + 0.999f;
  addend = Vector{} + 0.001f;
  for (int64_t r = 0; r < rounds; ++r) {
#pragma clang loop unroll(full)
    for (int i = 0; i < 12; ++i)
      sums[i] = sums[i] * factor + addend;
  }
  Vector total = sums[0];
  for (int i = 1; i < 12; ++i)
    total += sums[i];
  return double(total[0]);
}

using Vector128 = float __attribute__((vector_size(16)));
using Vector256 = float __attribute__((vector_size(32)));
using Vector512 = float __attribute__((vector_size(64)));

double run128(int64_t rounds) { return multiplyAdds<Vector128>(rounds); }
#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) double run256(int64_t rounds) { return multiplyAdds<Vector256>(rounds); }
__attribute__((target("avx512f"))) double run512(int64_t rounds) { return multiplyAdds<Vector512>(rounds); }
#endif

// GFLOP/s of one core with the widest vectors; the best of three tries.
double measureFlops() {
  double (*run)(int64_t) = run128;
  int lanes = 4;
#if defined(__x86_64__)
  uint32_t features = firn_cpu_features();
  if (features & FIRN_CPU_AVX512)
    run = run512, lanes = 16;
  else if ((features & FIRN_CPU_AVX2) && (features & FIRN_CPU_FMA))
    run = run256, lanes = 8;
#endif
  constexpr int64_t rounds = 100000;
  volatile double sink = run(rounds); // wakes the wide units
  double best = 0;
  for (int attempt = 0; attempt < 3; ++attempt) {
    auto start = Clock::now();
    sink = run(rounds);
    best = std::max(best, double(rounds) * 12 * 2 * lanes / nanosSince(start));
  }
  (void)sink;
  return best;
}

double measureBytes(const std::vector<uint64_t> &memory) {
  double best = 0;
  for (int attempt = 0; attempt < 2; ++attempt) {
    auto start = Clock::now();
    uint64_t sums[4] = {};
    for (size_t i = 0; i + 32 <= memory.size(); i += 32)
      for (size_t k = 0; k < 32; ++k)
        sums[k % 4] += memory[i + k];
    double nanos = nanosSince(start);
    volatile uint64_t sink = sums[0] + sums[1] + sums[2] + sums[3];
    (void)sink;
    best = std::max(best, double(memory.size() * sizeof(uint64_t)) / nanos);
  }
  return best;
}

} // namespace

Roofline measureRoofline(int32_t threads) {
  threads = std::max(threads, 1);
  std::vector<Roofline> cores(static_cast<size_t>(threads));
  // Each core reads 64 MB of its own, which no cache holds.
  auto measure = [&](size_t core) {
    std::vector<uint64_t> memory(size_t(8) << 20, core);
    cores[core] = {measureFlops(), measureBytes(memory)};
  };
  std::vector<std::thread> others;
  for (size_t core = 1; core < cores.size(); ++core)
    others.emplace_back(measure, core);
  measure(0);
  for (std::thread &other : others)
    other.join();
  Roofline sum{};
  for (const Roofline &core : cores) {
    sum.gigaFlops += core.gigaFlops;
    sum.gigaBytes += core.gigaBytes;
  }
  return sum;
}

double shareOf(const Roofline &roofline, int64_t flops, int64_t bytes, int64_t nanos) {
  if ((flops <= 0 && bytes <= 0) || nanos <= 0)
    return -1;
  // The time that the slower of the two takes at least.
  double least = std::max(double(std::max<int64_t>(flops, 0)) / roofline.gigaFlops,
                          double(std::max<int64_t>(bytes, 0)) / roofline.gigaBytes);
  return least / double(nanos);
}

} // namespace firn::tools

#include "runtime/src/Machine.h"

#include <atomic>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

#include "runtime/abi/model.h"
#include "runtime/include/firn/firn.h"
#include "runtime/src/Error.h"

namespace firn::runtime {

uint32_t hostMachine() {
#if defined(__x86_64__)
  return FIRN_MACHINE_X86_64;
#elif defined(__aarch64__)
  return FIRN_MACHINE_AARCH64;
#elif defined(__riscv)
  return FIRN_MACHINE_RISCV;
#else
  return 0;
#endif
}

const char *machineName(uint32_t machine) {
  switch (machine) {
  case FIRN_MACHINE_X86_64:
    return "x86-64";
  case FIRN_MACHINE_AARCH64:
    return "AArch64";
  case FIRN_MACHINE_RISCV:
    return "RISC-V";
  }
  return nullptr;
}

namespace {

#if defined(__x86_64__)
uint64_t enabledState() {
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t(high) << 32) | low;
}
bool has(uint32_t word, uint32_t mask) { return (word & mask) == mask; }

uint32_t readCpuFeatures() {
  uint32_t a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d))
    return 0;
  uint32_t features = 0;
  if (has(c, bit_SSE4_1))
    features |= FIRN_CPU_SSE41;
  if (has(c, bit_SSE4_2 | bit_POPCNT))
    features |= FIRN_CPU_SSE42;
  // A CPU may have wide registers that the operating system does not save: XCR0 tells.
  uint64_t state = has(c, bit_OSXSAVE) ? enabledState() : 0;
  bool ymm = (state & 0x6) == 0x6, zmm = (state & 0xe6) == 0xe6;
  if (!ymm || !has(c, bit_AVX))
    return features;
  features |= FIRN_CPU_AVX;
  if (has(c, bit_FMA))
    features |= FIRN_CPU_FMA;
  if (has(c, bit_F16C))
    features |= FIRN_CPU_F16C;
  bool movbe = has(c, bit_MOVBE);
  uint32_t a7, b7, c7, d7;
  if (!__get_cpuid_count(7, 0, &a7, &b7, &c7, &d7))
    return features;
  if (has(b7, bit_AVX2))
    features |= FIRN_CPU_AVX2;
  uint32_t extended = 0;
  if (__get_cpuid(0x80000001, &a, &b, &c, &d))
    extended = c;
  if (movbe && has(b7, bit_BMI | bit_BMI2) && has(extended, 1u << 5 /* LZCNT */))
    features |= FIRN_CPU_BMI2;
  const uint32_t avx512 = (1u << 16) | (1u << 17) | (1u << 28) | (1u << 30) | (1u << 31); // F, DQ, CD, BW, VL
  if (!zmm || !has(b7, avx512))
    return features;
  features |= FIRN_CPU_AVX512;
  if (has(c7, 1u << 11))
    features |= FIRN_CPU_AVX512VNNI;
  if (has(d7, 1u << 23))
    features |= FIRN_CPU_AVX512FP16;
  // VBMI, VBMI2, GFNI, BITALG, VPOPCNTDQ, and IFMA.
  if (has(c7, (1u << 1) | (1u << 6) | (1u << 8) | (1u << 12) | (1u << 14)) && has(b7, 1u << 21))
    features |= FIRN_CPU_AVX512EXTRA;
  uint32_t subleaves = a7;
  if (subleaves >= 1 && __get_cpuid_count(7, 1, &a7, &b7, &c7, &d7) && has(a7, 1u << 5))
    features |= FIRN_CPU_AVX512BF16;
  return features;
}
#elif defined(__aarch64__)
uint32_t readCpuFeatures() {
  unsigned long capabilities = getauxval(AT_HWCAP);
  uint32_t features = 0;
  if (capabilities & (1ul << 1)) // HWCAP_ASIMD
    features |= FIRN_CPU_NEON;
  if (capabilities & (1ul << 20)) // HWCAP_ASIMDDP
    features |= FIRN_CPU_DOTPROD;
  return features;
}
#else
uint32_t readCpuFeatures() { return 0; }
#endif

constexpr uint32_t isRead = 1u << 31; // no feature has this bit

// The start of a small file of /proc or /sys as terminated text; empty if it cannot be read.
void readText(const char *path, char *text, size_t capacity) {
  text[0] = 0;
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return;
  ssize_t bytes = read(file, text, capacity - 1);
  close(file);
  text[bytes > 0 ? bytes : 0] = 0;
}

bool mayHaveSiblings() {
#if defined(__x86_64__)
  uint32_t a, b, c, d;
  return !__get_cpuid_count(0xb, 0, &a, &b, &c, &d) || (b & 0xffff) != 1;
#else
  return true;
#endif
}

// CPUs of `mask` that are not a hyper-thread of an earlier one of `mask`.
int32_t coresOf(const cpu_set_t &mask) {
  int32_t cores = CPU_COUNT(&mask);
  if (cores < 2 || !mayHaveSiblings())
    return cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &mask))
      continue;
    char path[96], siblings[128];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
    readText(path, siblings, sizeof siblings);
    int first = atoi(siblings); // "0,4" or "0-1": the lowest comes first
    if (siblings[0] && first < cpu && CPU_ISSET(first, &mask))
      --cores;
  }
  return cores;
}

// CPUs that the text of a cgroup's cpu.max grants ("max 100000", "150000 100000"), rounded up; `most` without a limit.
int32_t quotaOf(const char *text, int32_t most) {
  char *end;
  long quota = strtol(text, &end, 10);
  long period = strtol(end, nullptr, 10);
  if (end == text || quota <= 0 || period <= 0)
    return most;
  long cpus = (quota + period - 1) / period;
  return cpus < most ? int32_t(cpus) : most;
}

int32_t cgroupQuota(int32_t most) {
  char groups[1024], text[64];
  readText("/proc/self/cgroup", groups, sizeof groups);
  char *line = strstr(groups, "0::/");
  if (line) {
    char path[1100];
    char *group = line + 3;
    group[strcspn(group, "\n")] = 0;
    // A limit may lie on any ancestor.
    for (size_t length = strlen(group);; --length) {
      if (length == 0 || group[length] == '/' || group[length] == 0) {
        snprintf(path, sizeof path, "/sys/fs/cgroup%.*s/cpu.max", int(length), group);
        readText(path, text, sizeof text);
        most = quotaOf(text, most);
      }
      if (length == 0)
        return most;
    }
  }
  char period[32];
  readText("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", text, 24);
  readText("/sys/fs/cgroup/cpu/cpu.cfs_period_us", period, sizeof period);
  text[strcspn(text, "\n")] = ' ';
  appendText(text, sizeof text, " %s", period);
  return quotaOf(text, most);
}

} // namespace

uint32_t hostCpuFeatures() {
  // Under a hypervisor each CPUID leaves the guest: half a dozen cost as much as loading a small model.
  static std::atomic<uint32_t> known{0};
  uint32_t features = known.load(std::memory_order_relaxed);
  if (!features) {
    features = readCpuFeatures() | isRead;
    known.store(features, std::memory_order_relaxed);
  }
  return features & ~isRead;
}

int32_t usableCores() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  int32_t cores = 1;
  if (sched_getaffinity(0, sizeof mask, &mask) == 0)
    cores = coresOf(mask);
  else if (long online = sysconf(_SC_NPROCESSORS_ONLN); online > 0)
    cores = int32_t(online);
  cores = cgroupQuota(cores);
  return cores > 0 ? cores : 1;
}

} // namespace firn::runtime

extern "C" {

uint32_t firn_cpu_features(void) { return firn::runtime::hostCpuFeatures(); }

const char *firn_cpu_features_text(uint32_t features, char *text, uint64_t capacity) {
  static const struct {
    uint32_t bit;
    const char *name;
  } names[] = {{FIRN_CPU_SSE41, "SSE4.1"},
               {FIRN_CPU_SSE42, "SSE4.2+POPCNT"},
               {FIRN_CPU_AVX, "AVX"},
               {FIRN_CPU_AVX2, "AVX2"},
               {FIRN_CPU_FMA, "FMA"},
               {FIRN_CPU_F16C, "F16C"},
               {FIRN_CPU_BMI2, "BMI2+LZCNT+MOVBE"},
               {FIRN_CPU_AVX512, "AVX-512 (F, BW, CD, DQ, VL)"},
               {FIRN_CPU_AVX512VNNI, "AVX-512 VNNI"},
               {FIRN_CPU_AVX512BF16, "AVX-512 BF16"},
               {FIRN_CPU_AVX512FP16, "AVX-512 FP16"},
               {FIRN_CPU_AVX512EXTRA, "AVX-512 VBMI2+IFMA+BITALG+VPOPCNTDQ+GFNI"},
               {FIRN_CPU_NEON, "NEON"},
               {FIRN_CPU_DOTPROD, "DotProd"}};
  if (!text || capacity == 0)
    return "";
  text[0] = 0;
  for (const auto &entry : names)
    if (features & entry.bit) {
      firn::runtime::appendText(text, size_t(capacity), "%s%s", text[0] ? ", " : "", entry.name);
      features &= ~entry.bit;
    }
  if (features)
    firn::runtime::appendText(text, size_t(capacity), "%sunknown features 0x%x", text[0] ? ", " : "", features);
  return text;
}

} // extern "C"

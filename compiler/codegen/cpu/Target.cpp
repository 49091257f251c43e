// The table of targets, and the host as one.
#include "compiler/codegen/cpu/Target.h"

#include "runtime/abi/model.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/TargetParser/Host.h"
#include <unistd.h>

namespace firn {
namespace {

/// The LLVM features that a FIRN_CPU_ bit covers. Whatever is not listed here stays off, `native` included, so that an
/// artifact never uses an instruction that its reader has not checked for.
struct FeatureGroup {
  uint32_t bit;
  llvm::SmallVector<llvm::StringRef, 6> features; // all are needed for the bit; the extras of a group come when present
  bool isOptionalEach = false;
};

const llvm::SmallVector<FeatureGroup> &x86Features() {
  static const llvm::SmallVector<FeatureGroup> groups = {
      {FIRN_CPU_SSE41, {"sse3", "ssse3", "sse4.1"}},
      {FIRN_CPU_SSE42, {"sse4.2", "popcnt"}},
      {FIRN_CPU_AVX, {"avx"}},
      {FIRN_CPU_AVX2, {"avx2"}},
      {FIRN_CPU_FMA, {"fma"}},
      {FIRN_CPU_F16C, {"f16c"}},
      {FIRN_CPU_BMI2, {"bmi", "bmi2", "lzcnt", "movbe"}},
      {FIRN_CPU_AVX512, {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}},
      {FIRN_CPU_AVX512VNNI, {"avx512vnni"}},
      {FIRN_CPU_AVX512BF16, {"avx512bf16"}},
  };
  return groups;
}

/// Turns on the groups whose bits are in `mask` and fills the derived fields.
void setX86(TargetDescription &target, uint32_t mask) {
  target.triple = "x86_64-unknown-linux-gnu";
  target.cpu = "x86-64";
  target.machine = FIRN_MACHINE_X86_64;
  target.featureMask = mask;
  target.features.clear();
  for (const FeatureGroup &group : x86Features())
    if (mask & group.bit)
      for (llvm::StringRef feature : group.features)
        target.features += (target.features.empty() ? "+" : ",+") + feature.str();
  target.hasAvx2 = mask & FIRN_CPU_AVX2;
  target.hasFma = mask & FIRN_CPU_FMA;
  target.hasF16c = mask & FIRN_CPU_F16C;
  target.hasAvx512 = mask & FIRN_CPU_AVX512;
  target.hasVnni = mask & FIRN_CPU_AVX512VNNI;
  target.hasBf16 = mask & FIRN_CPU_AVX512BF16;
  target.vectorBytes = target.hasAvx512 ? 64 : target.hasAvx2 ? 32 : 16;
  target.vectorRegisters = target.hasAvx512 ? 32 : 16;
}

constexpr uint32_t x86V2 = FIRN_CPU_SSE41 | FIRN_CPU_SSE42;
constexpr uint32_t x86V3 = x86V2 | FIRN_CPU_AVX | FIRN_CPU_AVX2 | FIRN_CPU_FMA | FIRN_CPU_F16C | FIRN_CPU_BMI2;
constexpr uint32_t x86V4 = x86V3 | FIRN_CPU_AVX512;

int64_t cacheBytes(int name, int64_t fallback) {
  long bytes = sysconf(name);
  return bytes > 0 ? bytes : fallback;
}

std::optional<TargetDescription> describeHost() {
  TargetDescription target;
  target.name = "native";
  target.tuneCpu = llvm::sys::getHostCPUName().str();
  target.l1Bytes = cacheBytes(_SC_LEVEL1_DCACHE_SIZE, target.l1Bytes);
  target.l2Bytes = cacheBytes(_SC_LEVEL2_CACHE_SIZE, target.l2Bytes);
  target.pageSize = cacheBytes(_SC_PAGESIZE, 4096);
#if defined(__x86_64__)
  llvm::StringMap<bool> host = llvm::sys::getHostCPUFeatures();
  uint32_t mask = 0;
  for (const FeatureGroup &group : x86Features()) {
    bool isComplete = true;
    for (llvm::StringRef feature : group.features)
      isComplete &= host.lookup(feature);
    if (isComplete)
      mask |= group.bit;
  }
  // AVX-512 without the masked byte and word forms of BW is not worth a third code path.
  if (!(mask & FIRN_CPU_AVX2) || !(mask & FIRN_CPU_FMA))
    mask &= x86V2 | FIRN_CPU_AVX | FIRN_CPU_BMI2;
  if (!(mask & FIRN_CPU_AVX512))
    mask &= ~(FIRN_CPU_AVX512VNNI | FIRN_CPU_AVX512BF16);
  setX86(target, mask);
  bool isZen = llvm::StringRef(target.tuneCpu).starts_with("znver");
  target.fmaUnits = isZen && target.hasAvx512 && target.tuneCpu == "znver4" ? 1 : 2;
  target.fastBf16Dot = target.hasBf16 && isZen;
  return target;
#elif defined(__aarch64__)
  target.triple = "aarch64-unknown-linux-gnu";
  target.cpu = "generic";
  target.features = "+neon";
  target.machine = FIRN_MACHINE_AARCH64;
  target.featureMask = FIRN_CPU_NEON;
  target.vectorRegisters = 32;
  target.hasFma = target.hasF16c = target.hasNeon = true;
  return target;
#else
  return std::nullopt;
#endif
}

} // namespace

llvm::ArrayRef<llvm::StringRef> targetNames() {
  static const llvm::StringRef names[] = {"native", "x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64", "riscv64"};
  return names;
}

std::optional<TargetDescription> describeTarget(llvm::StringRef name) {
  if (name == "native")
    return describeHost();
  TargetDescription target;
  target.name = name.str();
  if (name.starts_with("x86-64-v")) {
    uint32_t mask =
        llvm::StringSwitch<uint32_t>(name.drop_front(8)).Case("2", x86V2).Case("3", x86V3).Case("4", x86V4).Default(0);
    if (mask == 0)
      return std::nullopt;
    setX86(target, mask);
    target.tuneCpu = mask == x86V2 ? "x86-64" : mask == x86V3 ? "haswell" : "skylake-avx512";
    target.l2Bytes = mask == x86V4 ? 1 << 20 : 256 << 10;
    return target;
  }
  if (name == "aarch64") {
    target.triple = "aarch64-unknown-linux-gnu";
    target.cpu = target.tuneCpu = "generic";
    target.features = "+neon";
    target.machine = FIRN_MACHINE_AARCH64;
    target.featureMask = FIRN_CPU_NEON;
    target.vectorRegisters = 32;
    target.l1Bytes = 64 << 10;
    target.hasFma = target.hasF16c = target.hasNeon = true;
    target.pageSize = 64 << 10; // kernels with pages of 4, 16 and 64 KB exist
    return target;
  }
  if (name == "riscv64") {
    // RV64GC: no vector unit is assumed, LLVM splits vectors into scalars.
    target.triple = "riscv64-unknown-linux-gnu";
    target.cpu = target.tuneCpu = "generic-rv64";
    target.features = "+m,+a,+f,+d,+c";
    target.machine = FIRN_MACHINE_RISCV;
    target.vectorRegisters = 32;
    target.hasFma = true;
    return target;
  }
  return std::nullopt;
}

} // namespace firn

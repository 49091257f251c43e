// What emitters need to know of the CPU that kernels are compiled for.
#ifndef FIRN_COMPILER_CODEGEN_CPU_TARGET_H
#define FIRN_COMPILER_CODEGEN_CPU_TARGET_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>
#include <string>

namespace firn {

struct TargetDescription {
  std::string name;     // as the user says it: "native", "x86-64-v3"
  std::string triple;   // "x86_64-unknown-linux-gnu"
  std::string cpu;      // which instructions LLVM may use ("x86-64"); all others are in `features`
  std::string tuneCpu;  // which CPU LLVM schedules for ("znver4")
  std::string features; // "+avx2,+fma,..."; covered by featureMask
  unsigned vectorBytes = 16;
  unsigned vectorRegisters = 16;
  unsigned fmaUnits = 2; // vector FMAs of vectorBytes started per cycle
  int64_t l1Bytes = 32 << 10;
  int64_t l2Bytes = 512 << 10;
  bool hasFma = false;
  bool hasAvx2 = false;
  bool hasAvx512 = false; // F, BW, CD, DQ, VL: masked loads and stores are cheap
  bool hasVnni = false;   // vpdpbusd on 512 bits
  bool hasBf16 = false;   // vdpbf16ps
  bool hasF16c = false;   // f16 <-> f32 in hardware
  bool hasNeon = false;
  bool hasDotprod = false;
  bool fastBf16Dot = false; // vdpbf16ps beats fp32 FMA (performance.md §1)
  uint32_t featureMask = 0; // FIRN_CPU_ bits of runtime/abi/model.h
  uint32_t machine = 0;     // FIRN_MACHINE_
  int64_t pageSize = 4096;

  /// Lanes of one vector register for elements of `bytes` bytes.
  unsigned lanes(unsigned bytes) const { return vectorBytes / bytes; }
};

/// The names that describeTarget knows, for messages: native, x86-64-v2, x86-64-v3, x86-64-v4, aarch64, riscv64.
llvm::ArrayRef<llvm::StringRef> targetNames();

/// The target of that name; nothing if the name is unknown or (native) the host is none that is supported.
std::optional<TargetDescription> describeTarget(llvm::StringRef name);

} // namespace firn
#endif

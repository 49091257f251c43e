// What this machine is: CPU features, and how many cores this process may use.
#ifndef FIRN_RUNTIME_MACHINE_H
#define FIRN_RUNTIME_MACHINE_H

#include <stdint.h>

namespace firn::runtime {

/// This machine as FIRN_MACHINE_, 0 for one that has no number.
uint32_t hostMachine();

/// "x86-64", "AArch64", "RISC-V", or NULL.
const char *machineName(uint32_t machine);

/// FIRN_CPU_ bits of this CPU that the operating system lets programs use.
uint32_t hostCpuFeatures();

/// Physical cores within the CPU mask of this process, no more than its cgroup's quota; at least 1.
int32_t usableCores();

} // namespace firn::runtime
#endif

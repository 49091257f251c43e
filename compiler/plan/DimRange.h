// DimRange: the sizes that a symbolic dimension may have.
#ifndef FIRN_COMPILER_PLAN_DIMRANGE_H
#define FIRN_COMPILER_PLAN_DIMRANGE_H

#include <cstdint>
#include <map>
#include <string>

namespace firn {

struct DimRange {
  int64_t lower, upper;
};
using DimRanges = std::map<std::string, DimRange>; // by symbol

} // namespace firn
#endif

// Sizes: the options --dim and --shape, which firnc and firn-opt share.
#ifndef FIRN_TOOLS_OPTIONS_SIZES_H
#define FIRN_TOOLS_OPTIONS_SIZES_H

#include "compiler/plan/DimRange.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace firn {

/// "1x3x224x224".
inline bool parseShape(const std::string &text, std::vector<int64_t> &dims) {
  size_t at = 0;
  while (at <= text.size()) {
    size_t end = std::min(text.find('x', at), text.size());
    std::string part = text.substr(at, end - at);
    if (part.empty() || part.find_first_not_of("0123456789") != std::string::npos || part.size() > 15)
      return false;
    dims.push_back(std::stoll(part));
    at = end + 1;
  }
  return !dims.empty();
}

/// "NAME=VALUE", split at the last '='.
inline bool splitPair(const std::string &text, std::string &name, std::string &value) {
  size_t at = text.rfind('=');
  if (at == std::string::npos || at == 0 || at + 1 == text.size())
    return false;
  name = text.substr(0, at);
  value = text.substr(at + 1);
  return true;
}

/// What all --dim of firnc say.
struct DimOptions {
  std::map<std::string, int64_t> sizes;                 // NAME=4
  DimRanges ranges;                                     // NAME=1..32
  std::map<std::string, std::vector<int64_t>> variants; // NAME=1,4,16
};

/// One size of --dim.
inline bool parseSize(const std::string &text, int64_t &size) {
  std::vector<int64_t> sizes;
  if (!parseShape(text, sizes) || sizes.size() != 1)
    return false;
  size = sizes[0];
  return true;
}

/// Reads all --dim of firnc. Returns what is wrong, or "".
inline std::string parseDims(const std::vector<std::string> &texts, DimOptions &dims) {
  for (const std::string &text : texts) {
    std::string name, value;
    if (!splitPair(text, name, value))
      return "--dim expects NAME=SIZE, NAME=LOWEST..HIGHEST or NAME=SIZE,SIZE..., found '" + text + "'";
    if (dims.sizes.count(name) || dims.ranges.count(name) || dims.variants.count(name))
      return "--dim names '" + name + "' twice";
    if (size_t dots = value.find(".."); dots != std::string::npos) {
      DimRange range;
      if (!parseSize(value.substr(0, dots), range.lower) || !parseSize(value.substr(dots + 2), range.upper) ||
          range.lower > range.upper)
        return "--dim expects NAME=LOWEST..HIGHEST, two sizes in this order, found '" + text + "'";
      dims.ranges[name] = range;
    } else if (value.find(',') != std::string::npos) {
      std::vector<int64_t> &sizes = dims.variants[name];
      for (size_t at = 0; at <= value.size();) {
        size_t end = std::min(value.find(',', at), value.size());
        int64_t size;
        if (!parseSize(value.substr(at, end - at), size) || std::count(sizes.begin(), sizes.end(), size))
          return "--dim expects NAME=SIZE,SIZE..., each size once, found '" + text + "'";
        sizes.push_back(size);
        at = end + 1;
      }
    } else if (!parseSize(value, dims.sizes[name])) {
      return "--dim expects NAME=SIZE, NAME=LOWEST..HIGHEST or NAME=SIZE,SIZE..., found '" + text + "'";
    }
  }
  size_t variants = 1;
  for (const auto &[name, sizes] : dims.variants)
    variants *= sizes.size();
  constexpr size_t most = 16;
  return variants <= most
             ? ""
             : "--dim asks for " + std::to_string(variants) + " variants, " + std::to_string(most) + " are the most";
}

/// Reads all --dim NAME=SIZE and --shape INPUT=1x3x224x224 (or "scalar"). Returns what is wrong, or "".
inline std::string parseSizes(const std::vector<std::string> &dimTexts, const std::vector<std::string> &shapeTexts,
                              std::map<std::string, int64_t> &dims,
                              std::map<std::string, std::vector<int64_t>> &shapes) {
  for (const std::string &text : dimTexts) {
    std::string name, value;
    std::vector<int64_t> size;
    if (!splitPair(text, name, value) || !parseShape(value, size) || size.size() != 1)
      return "--dim expects NAME=SIZE, found '" + text + "'";
    dims[name] = size[0];
  }
  for (const std::string &text : shapeTexts) {
    std::string name, value;
    std::vector<int64_t> size;
    if (!splitPair(text, name, value) || (value != "scalar" && !parseShape(value, size)))
      return "--shape expects INPUT=1x3x224x224, found '" + text + "'";
    shapes[name] = size;
  }
  return "";
}

} // namespace firn
#endif

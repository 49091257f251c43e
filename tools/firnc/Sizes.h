// Sizes: the options --dim and --shape, which firnc and firn-opt share.
#ifndef FIRN_TOOLS_FIRNC_SIZES_H
#define FIRN_TOOLS_FIRNC_SIZES_H

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

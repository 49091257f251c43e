#include "runtime/kernels/Table.h"

#include <algorithm>
#include <map>

#define FIRN_TABLE_ENTRY(symbol) extern "C" __attribute__((visibility("hidden"))) const firn_operator symbol;
#include "runtime/kernels/Table.inc"
#undef FIRN_TABLE_ENTRY

namespace firn::kernels {

static const firn_operator *const table[] = {
#define FIRN_TABLE_ENTRY(symbol) &symbol,
#include "runtime/kernels/Table.inc"
#undef FIRN_TABLE_ENTRY
};

// Filled before the first model is read, by one thread.
static std::map<std::string, const firn_custom_operator *, std::less<>> &customOperators() {
  static std::map<std::string, const firn_custom_operator *, std::less<>> operators;
  return operators;
}

bool addCustom(const firn_custom_operator &added) {
  return !find(added.op->name) && customOperators().emplace(added.op->name, &added).second;
}

const firn_custom_operator *findCustom(std::string_view qualified) {
  auto found = customOperators().find(qualified);
  return found == customOperators().end() ? nullptr : found->second;
}

const firn_operator *find(std::string_view qualified) {
  if (const firn_custom_operator *custom = findCustom(qualified))
    return custom->op;
  const firn_operator *const *end = std::end(table);
  const firn_operator *const *found =
      std::lower_bound(std::begin(table), end, qualified,
                       [](const firn_operator *entry, std::string_view name) { return entry->name < name; });
  return found != end && (*found)->name == qualified ? *found : nullptr;
}

const firn_operator *const *operators(size_t *count) {
  *count = std::size(table);
  return table;
}

std::string symbolName(std::string_view qualified) {
  size_t separator = qualified.find("::");
  if (separator == std::string_view::npos)
    return "";
  std::string symbol = "firn_op_" + std::string(qualified.substr(0, separator));
  std::replace(symbol.begin(), symbol.end(), '.', '_');
  return symbol + "_" + std::string(qualified.substr(separator + 2));
}

} // namespace firn::kernels

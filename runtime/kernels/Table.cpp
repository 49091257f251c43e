#include "runtime/kernels/Table.h"

#include <algorithm>
#include <map>

#define FIRN_TABLE_ENTRY(symbol) extern "C" __attribute__((visibility("hidden"))) const firn_operator symbol;
#define FIRN_COMPOSITE_ENTRY(symbol)                                                                                   \
  extern "C" __attribute__((visibility("hidden"))) const firn::kernels::Composite symbol;
#include "runtime/kernels/Table.inc"
#undef FIRN_TABLE_ENTRY
#undef FIRN_COMPOSITE_ENTRY

namespace firn::kernels {

static const firn_operator *const table[] = {
#define FIRN_TABLE_ENTRY(symbol) &symbol,
#define FIRN_COMPOSITE_ENTRY(symbol)
#include "runtime/kernels/Table.inc"
#undef FIRN_TABLE_ENTRY
#undef FIRN_COMPOSITE_ENTRY
};

static const Composite *const composites[] = {
#define FIRN_TABLE_ENTRY(symbol)
#define FIRN_COMPOSITE_ENTRY(symbol) &symbol,
#include "runtime/kernels/Table.inc"
#undef FIRN_TABLE_ENTRY
#undef FIRN_COMPOSITE_ENTRY
};

template <typename Entry, size_t count>
static const Entry *findIn(const Entry *const (&sorted)[count], std::string_view qualified) {
  auto found = std::lower_bound(std::begin(sorted), std::end(sorted), qualified,
                                [](const Entry *entry, std::string_view name) { return entry->name < name; });
  return found != std::end(sorted) && (*found)->name == qualified ? *found : nullptr;
}

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
  const firn_custom_operator *custom = findCustom(qualified);
  return custom ? custom->op : findIn(table, qualified);
}

const Composite *findComposite(std::string_view qualified) { return findIn(composites, qualified); }

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

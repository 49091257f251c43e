#include "compiler/import/onnx/Schema.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include <climits>
#include <map>
#include <tuple>

namespace firn {

static const Schema table[] = {
#include "compiler/import/onnx/Schemas.inc"
};

static size_t leastOf(llvm::StringRef letters) {
  size_t least = 0;
  for (size_t i = 0; i < letters.size(); ++i)
    if (letters[i] == 'r' || letters[i] == 'v')
      least = i + 1;
  return least;
}
static size_t mostOf(llvm::StringRef letters) {
  return letters.contains('v') || letters.contains('w') ? SIZE_MAX : letters.size();
}

size_t Schema::minInputs() const { return leastOf(inputs); }
size_t Schema::maxInputs() const { return mostOf(inputs); }
size_t Schema::minOutputs() const { return leastOf(outputs); }
size_t Schema::maxOutputs() const { return mostOf(outputs); }
bool Schema::requiresInput(size_t i) const {
  llvm::StringRef letters = inputs;
  return i < letters.size() && letters[i] == 'r';
}

char Schema::kindOf(llvm::StringRef key) const {
  llvm::SmallVector<llvm::StringRef> entries;
  llvm::StringRef(attributes).split(entries, ' ', -1, false);
  for (llvm::StringRef entry : entries)
    if (auto [name_, kind] = entry.split(':'); name_ == key)
      return kind[0];
  return 0;
}

/// The number for element i of the list; the last one is that of all behind it.
static bool hasType(llvm::StringRef masks, size_t i, const model::Type &type) {
  uint64_t mask = 0;
  do {
    auto [first, rest] = masks.split(' ');
    if (first.getAsInteger(16, mask))
      return true; // none are known
    masks = rest;
  } while (i-- > 0 && !masks.empty());
  bool isTensor = type.kind == model::Type::Kind::Tensor;
  if (type.kind == model::Type::Kind::Unknown || (isTensor && type.dtype == 0))
    return true;
  return (mask >> (isTensor ? type.dtype : 0)) & 1;
}

bool Schema::takes(size_t i, const model::Type &type) const { return hasType(inputTypes, i, type); }
bool Schema::gives(size_t i, const model::Type &type) const { return hasType(outputTypes, i, type); }

std::vector<std::string> Schema::requiredAttributes() const {
  std::vector<std::string> required;
  llvm::SmallVector<llvm::StringRef> entries;
  llvm::StringRef(attributes).split(entries, ' ', -1, false);
  for (llvm::StringRef entry : entries)
    if (entry.consume_back("!"))
      required.push_back(entry.split(':').first.str());
  return required;
}

// By domain and name: what addSchema was given.
static std::map<std::pair<std::string, std::string>, Schema> &customSchemas() {
  static std::map<std::pair<std::string, std::string>, Schema> schemas;
  return schemas;
}

void addSchema(const Schema &added) { customSchemas()[{added.domain, added.name}] = added; }

// The rows of one operator, oldest first.
static llvm::ArrayRef<Schema> rowsOf(llvm::StringRef domain, llvm::StringRef name) {
  if (auto custom = customSchemas().find({domain.str(), name.str()}); custom != customSchemas().end())
    return custom->second;
  auto key = std::make_tuple(domain, name);
  auto keyOf = [](const Schema &row) {
    return std::make_tuple(llvm::StringRef(row.domain), llvm::StringRef(row.name));
  };
  const Schema *first = llvm::partition_point(table, [&](const Schema &row) { return keyOf(row) < key; });
  const Schema *last = first;
  while (last != std::end(table) && keyOf(*last) == key)
    ++last;
  return {first, last};
}

const Schema *findSchema(llvm::StringRef domain, llvm::StringRef name, int64_t version) {
  const Schema *found = nullptr;
  for (const Schema &row : rowsOf(domain, name))
    if (row.since <= version)
      found = &row;
  return found;
}

const Schema *newestSchema(llvm::StringRef domain, llvm::StringRef name) { return findSchema(domain, name, INT64_MAX); }

int64_t introducedIn(llvm::StringRef domain, llvm::StringRef name) {
  llvm::ArrayRef<Schema> rows = rowsOf(domain, name);
  return rows.empty() ? 0 : rows.front().since;
}

int64_t versionAccepting(const model::Node &node, int64_t least) {
  llvm::ArrayRef<Schema> rows = rowsOf(node.domain, node.type);
  for (size_t i = 0; i < rows.size(); ++i) {
    const Schema &row = rows[i];
    if (i + 1 < rows.size() && rows[i + 1].since <= least)
      continue;
    auto isKnown = [&](const model::Attribute &attribute) { return row.kindOf(attribute.name) != 0; };
    bool hasRequired = node.inputs.size() >= row.minInputs();
    for (size_t input = 0; input < node.inputs.size(); ++input)
      hasRequired &= !node.inputs[input].empty() || !row.requiresInput(input);
    if (hasRequired && llvm::all_of(node.attributes, isKnown) && node.inputs.size() <= row.maxInputs() &&
        node.outputs.size() <= row.maxOutputs())
      return std::max(least, row.since);
  }
  return 0;
}

int64_t newestVersion(llvm::StringRef domain) {
  int64_t newest = 0;
  for (const Schema &row : table)
    if (domain == row.domain)
      newest = std::max(newest, row.since);
  return newest;
}

std::string operatorLabel(const model::Node &node) {
  if (node.type.empty())
    return "";
  std::string name = node.domain.empty() ? node.type : node.domain + "::" + node.type;
  const Schema *schema = findSchema(node.domain, node.type, node.version);
  int64_t version = schema ? schema->since : node.version;
  return version > 0 ? name + "-" + std::to_string(version) : name;
}

std::string closestOperator(llvm::StringRef domain, llvm::StringRef name) {
  std::string best;
  unsigned bestDistance = unsigned(std::min<size_t>(3, name.size() / 3 + 1)) + 1; // the first one too far
  for (const Schema &row : table)
    if (domain == row.domain)
      if (unsigned distance = name.edit_distance(row.name, true, bestDistance); distance < bestDistance) {
        best = row.name;
        bestDistance = distance;
      }
  return best;
}

char kindLetter(model::Attribute::Kind kind) {
  using Kind = model::Attribute::Kind;
  switch (kind) {
  case Kind::Float:
    return 'f';
  case Kind::Int:
    return 'i';
  case Kind::String:
    return 's';
  case Kind::Tensor:
    return 't';
  case Kind::Graph:
    return 'g';
  case Kind::Floats:
    return 'F';
  case Kind::Ints:
    return 'I';
  case Kind::Strings:
    return 'S';
  case Kind::Type:
    return 'y';
  default:
    return 0;
  }
}

std::string kindText(char letter) {
  switch (letter) {
  case 'f':
    return "a float";
  case 'i':
    return "an int";
  case 's':
    return "a string";
  case 't':
    return "a tensor";
  case 'g':
    return "a graph";
  case 'F':
    return "floats";
  case 'I':
    return "ints";
  case 'S':
    return "strings";
  case 'p':
    return "a sparse tensor";
  case 'y':
    return "a type";
  default:
    return "another kind";
  }
}

} // namespace firn

// ShareWeights: programs in one file read the same weights.
#include "compiler/plan/Program.h"

#include "llvm/Support/xxhash.h"
#include <cstring>

namespace firn {

static uint64_t hashOf(const ConstantBytes &bytes, int64_t count) {
  uint64_t hash =
      llvm::xxh3_64bits(llvm::ArrayRef(reinterpret_cast<const uint8_t *>(bytes.bytes.data()), bytes.bytes.size()));
  return bytes.isSplat ? hash ^ uint64_t(count) : hash;
}

static int64_t countOf(const ProgramWeight &weight) {
  return llvm::cast<mlir::ShapedType>(weight.type).getNumElements();
}

/// Strings at another offset: the places of their texts count from the beginning of the weights.
static ProgramWeight movedStrings(const ProgramWeight &weight, int64_t offset) {
  ProgramWeight moved = weight;
  moved.offset = offset;
  for (int64_t i = 0; i < countOf(weight); ++i) {
    int64_t place;
    char *at = moved.strings.data() + i * sizeof(firn_string);
    std::memcpy(&place, at, sizeof place);
    place += offset - weight.offset;
    std::memcpy(at, &place, sizeof place);
  }
  return moved;
}

void shareWeights(Program &whole, Program &part) {
  std::multimap<uint64_t, const ProgramWeight *> known;
  for (const ProgramWeight &weight : whole.weights)
    if (auto bytes = constantBytes(weight.value))
      known.emplace(hashOf(*bytes, countOf(weight)), &weight);
  std::vector<ProgramWeight> added;
  std::map<int64_t, int64_t> moved; // offsets in `part`
  for (const ProgramWeight &weight : part.weights) {
    auto mine = constantBytes(weight.value);
    int64_t count = countOf(weight), offset = -1;
    auto [begin, end] = mine ? known.equal_range(hashOf(*mine, count)) : std::make_pair(known.end(), known.end());
    for (auto at = begin; at != end && offset < 0; ++at) {
      auto theirs = constantBytes(at->second->value);
      bool isEqual = theirs->isSplat == mine->isSplat && theirs->bytes == mine->bytes;
      if (isEqual && (!mine->isSplat || countOf(*at->second) == count))
        offset = at->second->offset;
    }
    if (offset < 0) {
      offset = whole.weightBytes;
      added.push_back(weight.value ? ProgramWeight{weight.value, offset, weight.type, {}}
                                   : movedStrings(weight, offset));
      auto type = llvm::cast<mlir::ShapedType>(weight.type);
      int64_t bytes =
          weight.value ? firn_dtype_bytes(dtypeOf(type.getElementType()), count) : int64_t(weight.strings.size());
      whole.weightBytes += (bytes + FIRN_BUFFER_ALIGNMENT - 1) / FIRN_BUFFER_ALIGNMENT * FIRN_BUFFER_ALIGNMENT;
    }
    moved[weight.offset] = offset;
  }
  whole.weights.insert(whole.weights.end(), added.begin(), added.end());
  for (ProgramBuffer &buffer : part.buffers)
    if (buffer.kind == FIRN_BUFFER_WEIGHT)
      buffer.offset = moved.at(buffer.offset);
  for (ProgramPort &port : part.inputs)
    if (port.isOptional)
      port.defaultOffset = moved.at(port.defaultOffset);
  part.weights.clear();
}

} // namespace firn

#include "runtime/src/Memory.h"

#include <new>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "runtime/abi/model.h"

namespace firn::runtime {

namespace {

constexpr uint64_t mappedFrom = 1u << 20; // smaller blocks come from malloc
constexpr uint64_t hugePage = 2u << 20;
constexpr uint64_t hugeFrom = 2 * hugePage;

uint64_t roundUp(uint64_t x, uint64_t to) { return (x + to - 1) / to * to; }

void *systemAllocate(void *, uint64_t bytes, uint64_t alignment) {
  if (bytes >= (uint64_t(1) << 62))
    return nullptr;
  if (bytes < mappedFrom)
    return aligned_alloc(size_t(alignment), size_t(roundUp(bytes ? bytes : 1, alignment)));
  bytes = roundUp(bytes, 4096);
  bool huge = bytes >= hugeFrom;
  uint64_t slack = huge ? hugePage : 0;
  void *mapped = mmap(nullptr, size_t(bytes + slack), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED)
    return nullptr;
  char *begin = static_cast<char *>(mapped);
  if (!huge)
    return begin;
  // A first run touches the whole arena: with huge pages that is a fault per 2 MB instead of one per 4 KB.
  char *aligned = reinterpret_cast<char *>(roundUp(reinterpret_cast<uint64_t>(begin), hugePage));
  if (aligned > begin)
    munmap(begin, size_t(aligned - begin));
  char *end = begin + bytes + slack;
  if (end > aligned + bytes)
    munmap(aligned + bytes, size_t(end - (aligned + bytes)));
  madvise(aligned, size_t(bytes / hugePage * hugePage), MADV_HUGEPAGE);
  return aligned;
}

void systemRelease(void *, void *memory, uint64_t bytes) {
  if (bytes < mappedFrom)
    free(memory);
  else
    munmap(memory, size_t(roundUp(bytes, 4096)));
}

} // namespace

firn_allocator makeAllocator(const firn_allocator *caller) {
  if (caller)
    return *caller;
  firn_allocator system{};
  system.struct_size = sizeof system;
  system.allocate = systemAllocate;
  system.release = systemRelease;
  return system;
}

void prefault(const firn_allocator &allocator, const Block &block) {
#ifdef MADV_POPULATE_WRITE
  constexpr int64_t worthwhile = 64 << 10;
  if (allocator.allocate != systemAllocate || block.capacity < worthwhile || block.capacity >= int64_t(hugeFrom))
    return;
  uint64_t begin = roundUp(reinterpret_cast<uint64_t>(block.data), 4096);
  uint64_t end = (reinterpret_cast<uint64_t>(block.data) + uint64_t(block.capacity)) / 4096 * 4096;
  madvise(reinterpret_cast<void *>(begin), size_t(end - begin), MADV_POPULATE_WRITE); // an older system refuses
#else
  (void)allocator, (void)block;
#endif
}

bool reserve(const firn_allocator &allocator, Block &block, int64_t bytes, int64_t kept) {
  if (bytes <= block.capacity && block.data)
    return true;
  // A size that grows run by run (a growing sequence) would otherwise allocate every time.
  int64_t capacity = bytes;
  if (block.data && block.capacity + block.capacity / 2 > bytes)
    capacity = block.capacity + block.capacity / 2;
  capacity = (capacity + FIRN_BUFFER_ALIGNMENT) / FIRN_BUFFER_ALIGNMENT * FIRN_BUFFER_ALIGNMENT;
  if (kept == 0) // nothing to copy: let the allocator have the old memory back first
    release(allocator, block);
  char *data = static_cast<char *>(allocator.allocate(allocator.context, uint64_t(capacity), FIRN_BUFFER_ALIGNMENT));
  if (!data)
    return false;
  if (kept > 0)
    memcpy(data, block.data, size_t(kept));
  release(allocator, block);
  block = {data, capacity};
  return true;
}

void release(const firn_allocator &allocator, Block &block) {
  if (block.data)
    allocator.release(allocator.context, block.data, uint64_t(block.capacity));
  block = {};
}

void *Bump::take(const firn_allocator &allocator, int64_t bytes) {
  if (bytes < 0 || bytes > INT64_MAX / 4)
    return nullptr;
  bytes = (bytes + FIRN_BUFFER_ALIGNMENT) / FIRN_BUFFER_ALIGNMENT * FIRN_BUFFER_ALIGNMENT;
  char *memory;
  if (used == 0 && bytes > main.capacity) // nothing lies there: a larger block takes its place, not one beside it
    reserve(allocator, main, bytes > most ? bytes : most);
  if (!overflow && inMain + bytes <= main.capacity) {
    memory = main.data + inMain;
    inMain += bytes;
  } else {
    int64_t whole = bytes + FIRN_BUFFER_ALIGNMENT;
    char *block = static_cast<char *>(allocator.allocate(allocator.context, uint64_t(whole), FIRN_BUFFER_ALIGNMENT));
    if (!block)
      return nullptr;
    overflow = new (block) Overflow{overflow, whole, used};
    overflowBytes += whole;
    memory = block + FIRN_BUFFER_ALIGNMENT;
  }
  used += bytes;
  if (used > most)
    most = used;
  return memory;
}

void Bump::rewind(const firn_allocator &allocator, int64_t position) {
  while (overflow && overflow->position >= position) {
    Overflow *last = overflow;
    overflow = last->next;
    overflowBytes -= last->bytes;
    allocator.release(allocator.context, last, uint64_t(last->bytes));
  }
  used = position;
  if (inMain > position)
    inMain = position;
  // Grow only when nothing points into the old block. If memory is refused, overflow blocks serve again.
  if (used == 0 && most > main.capacity)
    reserve(allocator, main, most);
}

void Bump::free(const firn_allocator &allocator) {
  rewind(allocator, 0);
  release(allocator, main);
}

} // namespace firn::runtime

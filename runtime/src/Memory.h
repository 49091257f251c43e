// Memory of a session: the caller's or the system's allocator, and blocks that grow and are kept between runs.
#ifndef FIRN_RUNTIME_MEMORY_H
#define FIRN_RUNTIME_MEMORY_H

#include <stdint.h>

#include "runtime/include/firn/firn.h"

namespace firn::runtime {

/// The system's functions if `caller` is NULL. Large blocks come from mmap, aligned for huge pages.
firn_allocator makeAllocator(const firn_allocator *caller);

struct Block;
/// Has the system provide the pages of a block that is about to be written, at once instead of one by one as they are
/// touched. Not for blocks of huge pages, which are few, nor for a caller's memory.
void prefault(const firn_allocator &allocator, const Block &block);

/// Kept memory. Zeroed, it is empty.
struct Block {
  char *data;
  int64_t capacity;
};

/// Makes room for `bytes`, keeping the first `kept` bytes; false where memory is refused (the block is then as before).
bool reserve(const firn_allocator &allocator, Block &block, int64_t bytes, int64_t kept = 0);
void release(const firn_allocator &allocator, Block &block);

/// Memory for reference kernels within one step: handed out in order, forgotten together. After a first run one block
/// holds what all steps need, so that later ones allocate nothing.
class Bump {
public:
  /// 64-byte aligned, valid until rewind() below this point; NULL where refused.
  void *take(const firn_allocator &allocator, int64_t bytes);
  int64_t position() const { return used; }
  /// Forgets everything taken since `position`.
  void rewind(const firn_allocator &allocator, int64_t position);
  void free(const firn_allocator &allocator);
  int64_t bytes() const { return main.capacity + overflowBytes; }

private:
  // Blocks taken while `main` was too small; each begins with this header.
  struct Overflow {
    Overflow *next;
    int64_t bytes;    // of the whole block
    int64_t position; // before it was taken
  };
  Block main{};
  int64_t used = 0; // of main and overflow together
  int64_t most = 0; // highest `used` ever
  int64_t inMain = 0;
  Overflow *overflow = nullptr;
  int64_t overflowBytes = 0;
};

} // namespace firn::runtime
#endif

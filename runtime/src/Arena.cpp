#include "runtime/src/Arena.h"

#include <string.h>

namespace firn::runtime {

namespace {

// Larger first; of equal ones the earlier in the table.
bool before(const Placement *buffers, int32_t a, int32_t b) {
  return buffers[a].bytes != buffers[b].bytes ? buffers[a].bytes > buffers[b].bytes : a < b;
}

// Heap sort: libc's qsort may call malloc.
void siftDown(const Placement *buffers, int32_t *order, int32_t root, int32_t count) {
  for (int32_t child; (child = 2 * root + 1) < count; root = child) {
    if (child + 1 < count && before(buffers, order[child], order[child + 1]))
      ++child;
    if (!before(buffers, order[root], order[child]))
      return;
    int32_t other = order[root];
    order[root] = order[child];
    order[child] = other;
  }
}

void sortBySize(const Placement *buffers, int32_t *order, int32_t count) {
  for (int32_t i = 0; i < count; ++i)
    order[i] = i;
  for (int32_t root = count / 2 - 1; root >= 0; --root)
    siftDown(buffers, order, root, count);
  for (int32_t last = count - 1; last > 0; --last) {
    int32_t largest = order[0];
    order[0] = order[last];
    order[last] = largest;
    siftDown(buffers, order, 0, last);
  }
}

int64_t aligned(int64_t bytes) {
  return (bytes + FIRN_BUFFER_ALIGNMENT - 1) / FIRN_BUFFER_ALIGNMENT * FIRN_BUFFER_ALIGNMENT;
}

// The offset of buffer `self` among order[0, placed), which is sorted by offset.
int64_t bestFit(const Placement *buffers, const int32_t *order, int32_t placed, const Placement &self) {
  int64_t end = 0, best = -1, bestHole = INT64_MAX;
  for (int32_t i = 0; i < placed; ++i) {
    const Placement &other = buffers[order[i]];
    if (other.lastStep < self.firstStep || other.firstStep > self.lastStep)
      continue;
    int64_t hole = other.offset - end;
    if (hole >= self.bytes && hole < bestHole) {
      best = end;
      bestHole = hole;
    }
    int64_t otherEnd = other.offset + aligned(other.bytes);
    if (otherEnd > end)
      end = otherEnd;
  }
  return best >= 0 ? best : end;
}

} // namespace

int64_t placeBuffers(Placement *buffers, int32_t count, int32_t *order) {
  sortBySize(buffers, order, count);
  int64_t total = 0;
  // order[0, n) holds what is placed, sorted by offset; order[n, count) what is left, sorted by size.
  for (int32_t n = 0; n < count; ++n) {
    int32_t self = order[n];
    int64_t offset = bestFit(buffers, order, n, buffers[self]);
    buffers[self].offset = offset;
    int64_t end = offset + aligned(buffers[self].bytes);
    if (end > total)
      total = end;
    int32_t at = n;
    for (; at > 0 && buffers[order[at - 1]].offset > offset; --at)
      order[at] = order[at - 1];
    order[at] = self;
  }
  return total;
}

namespace {

bool haveEqualSizes(const firn_buffer &a, const firn_buffer &b) {
  return firn_dtype_bits(a.dtype) == firn_dtype_bits(b.dtype) && a.rank == b.rank &&
         memcmp(a.dims, b.dims, size_t(a.rank) * sizeof *a.dims) == 0;
}

} // namespace

int32_t assignRows(const firn_buffer *buffers, int32_t count, int32_t *order, Row *rows, int32_t *rowOf) {
  int32_t placed = 0, rowCount = 0;
  for (int32_t i = 0; i < count; ++i) { // by their first step; tables nearly have this order
    rowOf[i] = -1;
    if (buffers[i].kind != FIRN_BUFFER_ARENA)
      continue;
    int32_t at = placed++;
    for (; at > 0 && buffers[order[at - 1]].first_step > buffers[i].first_step; --at)
      order[at] = order[at - 1];
    order[at] = i;
  }
  for (int32_t n = 0; n < placed; ++n) {
    const firn_buffer &buffer = buffers[order[n]];
    int32_t row = rowCount;
    for (int32_t r = 0; r < rowCount; ++r) {
      if (rows[r].lastStep >= buffer.first_step)
        continue;
      row = row == rowCount ? r : row;
      if (haveEqualSizes(buffers[rows[r].buffer], buffer)) {
        row = r;
        break;
      }
    }
    rowCount += row == rowCount;
    rows[row] = {0, buffer.last_step, order[n]};
    rowOf[order[n]] = row;
  }
  return rowCount;
}

} // namespace firn::runtime

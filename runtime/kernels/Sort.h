// A stable sort that needs no allocation of its own.
#ifndef FIRN_KERNELS_SORT_H
#define FIRN_KERNELS_SORT_H

#include <stdint.h>
#include <string.h>

namespace firn::kernels {

/// Sorts items[0..count) so that no later item is isBefore(later, earlier); equals keep their order. `space` holds as
/// many items as `items`.
template <typename IsBefore> void mergeSort(int64_t *items, int64_t *space, int64_t count, IsBefore isBefore) {
  for (int64_t width = 1; width < count; width *= 2) {
    for (int64_t begin = 0; begin < count; begin += 2 * width) {
      int64_t middle = begin + width < count ? begin + width : count;
      int64_t end = middle + width < count ? middle + width : count;
      int64_t left = begin, right = middle;
      for (int64_t k = begin; k < end; ++k)
        space[k] =
            left < middle && (right == end || !isBefore(items[right], items[left])) ? items[left++] : items[right++];
    }
    memcpy(items, space, size_t(count) * sizeof(int64_t));
  }
}

} // namespace firn::kernels
#endif

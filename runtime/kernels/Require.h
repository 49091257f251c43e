// What reference kernels demand of their call: inputs that are present, of an allowed dtype and of the right shape.
// Each function returns FIRN_CALL_OK or the status of a message that names the input, what was expected and what was
// found.
#ifndef FIRN_KERNELS_REQUIRE_H
#define FIRN_KERNELS_REQUIRE_H

#include "runtime/kernels/Kernel.h"

namespace firn::kernels {

constexpr uint32_t byteTypes = typeSet(FIRN_I8) | typeSet(FIRN_U8);
constexpr uint32_t wideIntegerTypes = typeSet(FIRN_I32) | typeSet(FIRN_U32) | typeSet(FIRN_I64) | typeSet(FIRN_U64);

/// A printed shape, "[2, 3]".
struct ShapeText {
  char text[320];
};
ShapeText describe(const int64_t *dims, int32_t rank);
inline ShapeText describe(const firn_view &view) { return describe(view.dims, view.rank); }

/// Input `i`, which must be present with a dtype out of `dtypes`.
int32_t requireInput(firn_call *call, int32_t i, const char *name, uint32_t dtypes, const firn_view **view);
/// The same, but NULL where the input is absent.
int32_t optionalInput(firn_call *call, int32_t i, const char *name, uint32_t dtypes, const firn_view **view);
int32_t requireSameDtype(firn_call *call, const char *name, const firn_view *view, const char *otherName,
                         const firn_view &other);
int32_t requireRank(firn_call *call, const char *name, const firn_view &view, int32_t low, int32_t high);
/// Does nothing where `view` is NULL.
int32_t requireShape(firn_call *call, const char *name, const firn_view *view, const int64_t *dims, int32_t rank);
/// Shape [count]; nothing where `view` is NULL.
int32_t requireVector(firn_call *call, const char *name, const firn_view *view, int64_t count);
/// One element whatever the rank; nothing where `view` is NULL.
int32_t requireOneElement(firn_call *call, const char *name, const firn_view *view);
/// Integer attribute `name`, which must lie in [low, high].
int32_t boundedAttribute(firn_call *call, const char *name, int64_t fallback, int64_t low, int64_t high,
                         int64_t *value);
/// The position of string attribute `name` among `choices`; `fallback` where it is absent.
int32_t choiceAttribute(firn_call *call, const char *name, const char *const *choices, int32_t count, int32_t fallback,
                        int32_t *choice);

int32_t outOfMemory(firn_call *call, int64_t count, int64_t size);

/// Scratch memory for `count` elements, or FIRN_CALL_NO_MEMORY.
template <typename T> int32_t allocate(firn_call *call, int64_t count, T **to) {
  int64_t bytes;
  *to = nullptr;
  if (count >= 0 && !__builtin_mul_overflow(count, int64_t(sizeof(T)), &bytes))
    *to = static_cast<T *>(call->scratch(call, bytes ? bytes : 1));
  return *to ? FIRN_CALL_OK : outOfMemory(call, count, sizeof(T));
}

inline void loadAll(const firn_view &view, int64_t first, int64_t stride, int64_t count, double *to) {
  loadDoubles(view, first, stride, count, to);
}
inline void loadAll(const firn_view &view, int64_t first, int64_t stride, int64_t count, int64_t *to) {
  loadInts(view, first, stride, count, to);
}
/// Of 8-bit elements.
void loadAll(const firn_view &view, int64_t first, int64_t stride, int64_t count, int32_t *to);
inline void storeAll(const firn_view &view, int64_t first, int64_t count, const double *from) {
  storeDoubles(view, first, count, from);
}
/// Into 32-bit elements.
inline void storeAll(const firn_view &view, int64_t first, int64_t count, const int32_t *from) {
  if (count > 0)
    memcpy(static_cast<int32_t *>(view.data) + first, from, size_t(count) * sizeof *from);
}
inline void storeAll(const firn_view &view, int64_t first, int64_t count, const int64_t *from) {
  storeInts(view, first, count, from);
}

/// A copy of the whole of `view` in scratch memory, as doubles or integers; NULL for an absent view.
template <typename T> int32_t copyOf(firn_call *call, const firn_view *view, T **to) {
  *to = nullptr;
  if (!view)
    return FIRN_CALL_OK;
  int64_t count = elementCount(*view);
  FIRN_TRY(allocate(call, count, to));
  loadAll(*view, 0, 1, count, *to);
  return FIRN_CALL_OK;
}

/// a + b * c; integers wrap.
inline double multiplyAdd(double a, double b, double c) { return a + b * c; }
inline int32_t multiplyAdd(int32_t a, int32_t b, int32_t c) { return int32_t(uint32_t(a) + uint32_t(b) * uint32_t(c)); }
inline int64_t multiplyAdd(int64_t a, int64_t b, int64_t c) { return int64_t(uint64_t(a) + uint64_t(b) * uint64_t(c)); }

} // namespace firn::kernels
#endif

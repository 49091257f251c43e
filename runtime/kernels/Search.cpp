// Looking for elements: the largest, those that are not zero, those that differ.
#include "runtime/kernels/Elementwise.h"
#include "runtime/kernels/Movement.h"
#include "runtime/kernels/Sort.h"

namespace firn::kernels {
namespace {

int32_t noMemory(firn_call *call, int64_t count) {
  return fail(call, FIRN_CALL_NO_MEMORY, "no memory for %lld positions", static_cast<long long>(count));
}

// --- TopK ------------------------------------------------------------------------------------------------------------

int32_t inferTopK(firn_call *call) {
  FIRN_TRY(requireInput(call, 0, numericTypes));
  FIRN_TRY(requireIntegers(call, 1, "K", typeSet(FIRN_I64)));
  firn_view result = call->inputs[0];
  int32_t axis;
  FIRN_TRY(checkAxis(call, intAttribute(call, "axis", -1), result.rank, &axis));
  if (elementCount(call->inputs[1]) != 1)
    return fail(call, FIRN_CALL_INVALID, "K must be one value, found %lld",
                static_cast<long long>(elementCount(call->inputs[1])));
  int64_t k = getInt(call->inputs[1], 0);
  if (k < 0 || k > result.dims[axis])
    return fail(call, FIRN_CALL_INVALID, "K must lie in [0, %lld], the length of axis %d: found %lld",
                static_cast<long long>(result.dims[axis]), axis, static_cast<long long>(k));
  result.dims[axis] = k;
  FIRN_TRY(setChecked(call, 0, result.dtype, result.dims, result.rank));
  return setChecked(call, 1, FIRN_I64, result.dims, result.rank);
}

/// The first k of n positions in the order of isBefore, into `best`; equals keep their order. For small k: each
/// position that is among the best so far is inserted, and few are.
template <typename IsBefore> void insertBest(int64_t *best, int64_t k, int64_t n, IsBefore isBefore) {
  int64_t count = 0;
  for (int64_t j = 0; j < n; ++j) {
    if (count == k && !isBefore(j, best[k - 1]))
      continue;
    int64_t at = count < k ? count++ : k - 1;
    for (; at > 0 && isBefore(j, best[at - 1]); --at)
      best[at] = best[at - 1];
    best[at] = j;
  }
}

template <typename T> int32_t topKAs(firn_call *call) {
  const firn_view &x = call->inputs[0];
  const firn_view *values = output(call, 0), *indices = output(call, 1);
  bool largest = intAttribute(call, "largest", 1) != 0;
  int32_t axis = normalizeAxis(intAttribute(call, "axis", -1), x.rank);
  int64_t k = getInt(call->inputs[1], 0), n = x.dims[axis];
  int64_t outer = extent(x, 0, axis), inner = extent(x, axis + 1, x.rank);
  T *row = scratch<T>(call, n);
  int64_t *order = scratch<int64_t>(call, n), *space = scratch<int64_t>(call, n);
  if (!row || !order || !space)
    return noMemory(call, n);
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < inner; ++i) {
      load(x, o * n * inner + i, inner, n, row);
      auto isBefore = [&](int64_t a, int64_t b) { return isBeyond(row[a], row[b], largest); };
      if (k <= 32) {
        insertBest(order, k, n, isBefore);
      } else {
        for (int64_t j = 0; j < n; ++j)
          order[j] = j;
        mergeSort(order, space, n, isBefore);
      }
      for (int64_t j = 0; j < k; ++j) {
        int64_t to = (o * k + j) * inner + i;
        if (values)
          copyElement(*values, to, x, (o * n + order[j]) * inner + i);
        if (indices)
          static_cast<int64_t *>(indices->data)[to] = order[j];
      }
    }
  return FIRN_CALL_OK;
}

int32_t runTopK(firn_call *call) {
  const firn_view &x = call->inputs[0];
  if (elementCount(x) == 0 || getInt(call->inputs[1], 0) == 0)
    return FIRN_CALL_OK;
  if (isFloat(x.dtype))
    return topKAs<double>(call);
  if (x.dtype == FIRN_U64)
    return topKAs<uint64_t>(call);
  return topKAs<int64_t>(call);
}

// --- NonZero ---------------------------------------------------------------------------------------------------------

bool isNonZero(const firn_view &x, int64_t i) {
  switch (x.dtype) {
  case FIRN_STRING:
    return static_cast<const firn_string *>(x.data)[i].length > 0;
  case FIRN_C64:
    return static_cast<const float *>(x.data)[2 * i] != 0 || static_cast<const float *>(x.data)[2 * i + 1] != 0;
  case FIRN_C128:
    return static_cast<const double *>(x.data)[2 * i] != 0 || static_cast<const double *>(x.data)[2 * i + 1] != 0;
  default:
    return isFloat(x.dtype) ? getDouble(x, i) != 0 : getInt(x, i) != 0;
  }
}

int32_t inferNonZero(firn_call *call) {
  FIRN_TRY(requireInput(call, 0, allTypes));
  FIRN_TRY(requireValue(call, 0));
  const firn_view &x = call->inputs[0];
  int64_t dims[2] = {x.rank, 0}, total = elementCount(x);
  for (int64_t i = 0; i < total; ++i)
    dims[1] += isNonZero(x, i);
  return setChecked(call, 0, FIRN_I64, dims, 2);
}

int32_t runNonZero(firn_call *call) {
  const firn_view *y = output(call, 0);
  const firn_view &x = call->inputs[0];
  if (!y || elementCount(*y) == 0)
    return FIRN_CALL_OK;
  int64_t *to = static_cast<int64_t *>(y->data), index[FIRN_MAX_RANK] = {}, position = 0, found = 0;
  do {
    if (!isNonZero(x, position++))
      continue;
    for (int32_t k = 0; k < x.rank; ++k)
      to[k * y->dims[1] + found] = index[k];
    ++found;
  } while (nextIndex(index, x.dims, x.rank));
  return FIRN_CALL_OK;
}

// --- Unique ----------------------------------------------------------------------------------------------------------

template <typename T> int32_t order(T a, T b) { return a < b ? -1 : a > b ? 1 : 0; }

/// -1, 0 or 1 as element i is below, equal to or above element j. NaN is above all and equal to itself.
int32_t compareElements(const firn_view &x, int64_t i, int64_t j) {
  if (x.dtype == FIRN_STRING) {
    const firn_string &a = static_cast<const firn_string *>(x.data)[i],
                      &b = static_cast<const firn_string *>(x.data)[j];
    int64_t common = a.length < b.length ? a.length : b.length;
    int difference = common ? memcmp(a.data, b.data, size_t(common)) : 0;
    return difference ? (difference < 0 ? -1 : 1) : order(a.length, b.length);
  }
  if (isFloat(x.dtype)) {
    double a = getDouble(x, i), b = getDouble(x, j);
    if (isnan(a) || isnan(b))
      return int32_t(isnan(a)) - int32_t(isnan(b));
    return order(a, b);
  }
  if (x.dtype == FIRN_U64)
    return order(uint64_t(getInt(x, i)), uint64_t(getInt(x, j)));
  return order(getInt(x, i), getInt(x, j));
}

/// The slices of a tensor along an axis (or its elements), grouped by equality.
struct Groups {
  const firn_view *x;
  int64_t outer = 1, n, inner = 1; // slice s is the elements (o * n + s) * inner + i
  int64_t *first;                  // for each group its first slice, in the order of the output
  int64_t *groupOf;                // for each slice its group
  int64_t count = 0;               // of groups

  int32_t compare(int64_t s, int64_t t) const {
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t i = 0; i < inner; ++i)
        if (int32_t difference = compareElements(*x, (o * n + s) * inner + i, (o * n + t) * inner + i))
          return difference;
    return 0;
  }

  /// Finds the groups with the help of two lists of n positions.
  void find(bool sorted, int64_t *slices, int64_t *space) {
    for (int64_t s = 0; s < n; ++s)
      slices[s] = s;
    mergeSort(slices, space, n, [&](int64_t s, int64_t t) { return compare(s, t) < 0; });
    for (int64_t k = 0; k < n; ++k) {
      if (k == 0 || compare(slices[k - 1], slices[k]) != 0)
        first[count++] = slices[k]; // the sort is stable: the first of equals
      groupOf[slices[k]] = count - 1;
    }
    if (sorted)
      return;
    // By first occurrence: ranks of the groups, then both lists renamed.
    for (int64_t g = 0; g < count; ++g)
      slices[g] = g;
    mergeSort(slices, space, count, [&](int64_t g, int64_t h) { return first[g] < first[h]; });
    for (int64_t g = 0; g < count; ++g)
      space[slices[g]] = g;
    for (int64_t s = 0; s < n; ++s)
      groupOf[s] = space[groupOf[s]];
    mergeSort(first, space, count, [](int64_t s, int64_t t) { return s < t; });
  }
};

int32_t findGroups(firn_call *call, Groups *groups, int32_t *axis) {
  const firn_view &x = call->inputs[0];
  groups->x = &x;
  groups->n = elementCount(x);
  *axis = -1;
  if (findAttribute(call, "axis")) {
    FIRN_TRY(checkAxis(call, intAttribute(call, "axis", 0), x.rank, axis));
    groups->outer = extent(x, 0, *axis);
    groups->n = x.dims[*axis];
    groups->inner = extent(x, *axis + 1, x.rank);
  }
  int64_t n = groups->n;
  groups->first = scratch<int64_t>(call, n + 1);
  groups->groupOf = scratch<int64_t>(call, n + 1);
  int64_t *slices = scratch<int64_t>(call, n + 1), *space = scratch<int64_t>(call, n + 1);
  if (!groups->first || !groups->groupOf || !slices || !space)
    return noMemory(call, n);
  groups->find(intAttribute(call, "sorted", 1) != 0, slices, space);
  return FIRN_CALL_OK;
}

int32_t inferUnique(firn_call *call) {
  FIRN_TRY(requireInput(call, 0, numericTypes | boolType | stringType));
  setRank(call, 0, call->inputs[0].dtype, findAttribute(call, "axis") ? call->inputs[0].rank : 1);
  for (int32_t i = 1; i < 4; ++i)
    setRank(call, i, FIRN_I64, 1);
  FIRN_TRY(requireValue(call, 0));
  Groups groups;
  int32_t axis;
  FIRN_TRY(findGroups(call, &groups, &axis));
  firn_view result = call->inputs[0];
  if (axis < 0)
    result.rank = 1;
  result.dims[axis < 0 ? 0 : axis] = groups.count;
  FIRN_TRY(setChecked(call, 0, result.dtype, result.dims, result.rank));
  FIRN_TRY(setChecked(call, 1, FIRN_I64, &groups.count, 1));
  FIRN_TRY(setChecked(call, 2, FIRN_I64, &groups.n, 1));
  return setChecked(call, 3, FIRN_I64, &groups.count, 1);
}

int32_t runUnique(firn_call *call) {
  Groups groups;
  int32_t axis;
  FIRN_TRY(findGroups(call, &groups, &axis));
  int64_t inner = groups.inner;
  if (const firn_view *y = output(call, 0))
    for (int64_t o = 0; o < groups.outer && inner > 0; ++o)
      for (int64_t g = 0; g < groups.count; ++g)
        copyElements(*y, (o * groups.count + g) * inner, call->inputs[0], (o * groups.n + groups.first[g]) * inner,
                     inner);
  if (const firn_view *indices = output(call, 1); indices && groups.count)
    memcpy(indices->data, groups.first, size_t(groups.count) * sizeof(int64_t));
  if (const firn_view *inverse = output(call, 2); inverse && groups.n)
    memcpy(inverse->data, groups.groupOf, size_t(groups.n) * sizeof(int64_t));
  if (const firn_view *counts = output(call, 3); counts && groups.count) {
    int64_t *to = static_cast<int64_t *>(counts->data);
    memset(to, 0, size_t(groups.count) * sizeof(int64_t));
    for (int64_t s = 0; s < groups.n; ++s)
      ++to[groups.groupOf[s]];
  }
  return FIRN_CALL_OK;
}

// --- NonMaxSuppression -----------------------------------------------------------------------------------------------

struct Box {
  float low[2], high[2]; // y and x
};

Box boxAt(const firn_view &boxes, int64_t i, bool center) {
  const float *b = static_cast<const float *>(boxes.data) + 4 * i;
  if (center) // x, y, width, height
    return {{b[1] - b[3] / 2, b[0] - b[2] / 2}, {b[1] + b[3] / 2, b[0] + b[2] / 2}};
  return {{smaller(b[0], b[2]), smaller(b[1], b[3])}, {larger(b[0], b[2]), larger(b[1], b[3])}};
}

float area(const Box &box) { return (box.high[0] - box.low[0]) * (box.high[1] - box.low[1]); }

/// Intersection over union; 0 where a box has no area.
float overlap(const Box &a, const Box &b) {
  float common = 1;
  for (int32_t k = 0; k < 2; ++k)
    common *= larger(0.0f, smaller(a.high[k], b.high[k]) - larger(a.low[k], b.low[k]));
  float joined = area(a) + area(b) - common;
  return area(a) <= 0 || area(b) <= 0 || joined <= 0 ? 0 : common / joined;
}

/// Writes the selected [batch, class, box] triples if `to` is given; counts them always.
int32_t selectBoxes(firn_call *call, int64_t *to, int64_t *selected) {
  const firn_view &boxes = call->inputs[0], &scores = call->inputs[1];
  const firn_view *limit = input(call, 2), *overlapLimit = input(call, 3), *scoreLimit = input(call, 4);
  int64_t most = limit ? getInt(*limit, 0) : 0;
  float maxOverlap = overlapLimit ? float(getDouble(*overlapLimit, 0)) : 0;
  bool center = intAttribute(call, "center_point_box", 0) != 0;
  int64_t batches = scores.dims[0], classes = scores.dims[1], n = scores.dims[2];
  int64_t *order = scratch<int64_t>(call, n + 1), *space = scratch<int64_t>(call, n + 1);
  if (!order || !space)
    return noMemory(call, n);
  *selected = 0;
  for (int64_t b = 0; b < batches; ++b)
    for (int64_t c = 0; c < classes; ++c) {
      const float *score = static_cast<const float *>(scores.data) + (b * classes + c) * n;
      int64_t candidates = 0, kept = 0; // the kept ones move to the front of `order`
      for (int64_t i = 0; i < n; ++i)
        if (!scoreLimit || score[i] >= float(getDouble(*scoreLimit, 0)))
          order[candidates++] = i;
      mergeSort(order, space, candidates, [&](int64_t i, int64_t j) { return score[i] > score[j]; });
      for (int64_t k = 0; k < candidates && kept < most; ++k) {
        Box box = boxAt(boxes, b * n + order[k], center);
        bool suppressed = false;
        for (int64_t j = 0; j < kept && !suppressed; ++j)
          suppressed = overlap(box, boxAt(boxes, b * n + order[j], center)) > maxOverlap;
        if (suppressed)
          continue;
        order[kept++] = order[k];
        if (to) {
          to[3 * *selected] = b;
          to[3 * *selected + 1] = c;
          to[3 * *selected + 2] = order[kept - 1];
        }
        ++*selected;
      }
    }
  return FIRN_CALL_OK;
}

int32_t inferNonMaxSuppression(firn_call *call) {
  int64_t dims[2] = {-1, 3};
  setType(output(call, 0), FIRN_I64, dims, 2);
  constexpr uint32_t types[] = {typeSet(FIRN_F32), typeSet(FIRN_F32), typeSet(FIRN_I64), typeSet(FIRN_F32),
                                typeSet(FIRN_F32)};
  for (int32_t i = 0; i < 5; ++i) {
    if (i >= 2 && !input(call, i))
      continue;
    FIRN_TRY(requireInput(call, i, types[i]));
    if (i >= 2 && elementCount(call->inputs[i]) != 1)
      return fail(call, FIRN_CALL_INVALID, "input %d must be one value, found %lld", i,
                  static_cast<long long>(elementCount(call->inputs[i])));
  }
  const firn_view &boxes = call->inputs[0], &scores = call->inputs[1];
  if (boxes.rank != 3 || scores.rank != 3 || boxes.dims[2] != 4 || boxes.dims[0] != scores.dims[0] ||
      boxes.dims[1] != scores.dims[2]) {
    char first[320], second[320];
    return fail(call, FIRN_CALL_INVALID,
                "boxes and scores must have shapes [batches, n, 4] and [batches, classes, n]: found "
                "%s and %s",
                shapeText(boxes, first, sizeof first), shapeText(scores, second, sizeof second));
  }
  for (int32_t i = 0; i < 5; ++i)
    FIRN_TRY(requireValue(call, i));
  dims[0] = 0;
  FIRN_TRY(selectBoxes(call, nullptr, &dims[0]));
  return setChecked(call, 0, FIRN_I64, dims, 2);
}

int32_t runNonMaxSuppression(firn_call *call) {
  const firn_view *y = output(call, 0);
  if (!y || elementCount(*y) == 0)
    return FIRN_CALL_OK;
  int64_t selected;
  return selectBoxes(call, static_cast<int64_t *>(y->data), &selected);
}

} // namespace

FIRN_OPERATOR(ai_onnx, TopK, "ai.onnx::TopK", inferTopK, runTopK)
FIRN_OPERATOR(ai_onnx, NonZero, "ai.onnx::NonZero", inferNonZero, runNonZero)
FIRN_OPERATOR(ai_onnx, Unique, "ai.onnx::Unique", inferUnique, runUnique)
FIRN_OPERATOR(ai_onnx, NonMaxSuppression, "ai.onnx::NonMaxSuppression", inferNonMaxSuppression, runNonMaxSuppression)

} // namespace firn::kernels

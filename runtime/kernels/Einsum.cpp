// Einsum: the equation is parsed into labels, then operands are contracted from left to right, two at a time, each time
// summing over the labels that neither a later operand nor the output mentions.
#include "runtime/kernels/Require.h"

namespace firn::kernels {

namespace {

// Labels 0..51 are the letters, then come the axes of the ellipsis.
constexpr int32_t ellipsisLabel = 52;
constexpr int32_t labelCount = ellipsisLabel + FIRN_MAX_RANK;

struct Term {
  int32_t labels[FIRN_MAX_RANK];
  int32_t rank;
};

struct Equation {
  const char *text;
  int64_t length;
  int64_t position;          // of the next character to read
  int32_t ellipsisRank = -1; // -1: not seen yet
  int64_t dims[labelCount];  // 0 entries of letters that do not occur are never read
  int32_t uses[labelCount] = {0};
  Term output;
};

int32_t letterLabel(char c) {
  if (c >= 'A' && c <= 'Z')
    return c - 'A';
  return c >= 'a' && c <= 'z' ? 26 + c - 'a' : -1;
}

int32_t malformed(firn_call *call, const Equation &equation, const char *what) {
  int length = equation.length < 120 ? int(equation.length) : 120;
  return fail(call, FIRN_CALL_INVALID, "equation '%.*s' is malformed at character %lld: %s", length, equation.text,
              static_cast<long long>(equation.position), what);
}

/// The next character that is no space, without consuming it; 0 at the end.
char peek(Equation &equation) {
  while (equation.position < equation.length && equation.text[equation.position] == ' ')
    ++equation.position;
  return equation.position < equation.length ? equation.text[equation.position] : 0;
}

/// Consumes "..." if it comes next. `isBroken`: dots that are no ellipsis.
bool takeEllipsis(Equation &equation, bool *isBroken) {
  if (peek(equation) != '.')
    return false;
  *isBroken = equation.length - equation.position < 3 || memcmp(equation.text + equation.position, "...", 3) != 0;
  if (!*isBroken)
    equation.position += 3;
  return !*isBroken;
}

/// Reads the term of an operand of `rank` axes, up to the next comma, arrow or end.
int32_t parseOperand(firn_call *call, Equation &equation, int32_t operand, const firn_view &view, Term *term) {
  int32_t before[FIRN_MAX_RANK], after[FIRN_MAX_RANK]; // labels before and after the ellipsis
  int32_t beforeCount = 0, afterCount = 0;
  bool hasEllipsis = false;
  for (;;) {
    bool isBroken = false;
    if (takeEllipsis(equation, &isBroken)) {
      if (hasEllipsis)
        return malformed(call, equation, "a second ellipsis in one term");
      hasEllipsis = true;
      continue;
    }
    if (isBroken)
      return malformed(call, equation, "expected '...'");
    int32_t label = letterLabel(peek(equation));
    if (label < 0)
      break;
    if (beforeCount + afterCount >= view.rank) {
      ShapeText shape = describe(view);
      return fail(call, FIRN_CALL_INVALID, "the term of operand %d has more letters than its shape %s has axes",
                  operand, shape.text);
    }
    (hasEllipsis ? after[afterCount++] : before[beforeCount++]) = label;
    ++equation.position;
  }
  char next = peek(equation);
  if (next && next != ',' && next != '-')
    return malformed(call, equation, "expected a letter, '...', ',' or '->'");
  int32_t rest = view.rank - beforeCount - afterCount;
  if (!hasEllipsis && rest != 0) {
    ShapeText shape = describe(view);
    return fail(call, FIRN_CALL_INVALID,
                "the term of operand %d has the wrong number of letters: expected %d for shape %s, found %d", operand,
                view.rank, shape.text, beforeCount);
  }
  if (hasEllipsis && equation.ellipsisRank >= 0 && rest != equation.ellipsisRank)
    return fail(call, FIRN_CALL_INVALID,
                "the ellipsis stands for different numbers of axes: expected %d, found %d in operand %d",
                equation.ellipsisRank, rest, operand);
  if (hasEllipsis)
    equation.ellipsisRank = rest;
  term->rank = 0;
  for (int32_t i = 0; i < beforeCount; ++i)
    term->labels[term->rank++] = before[i];
  for (int32_t i = 0; i < rest; ++i)
    term->labels[term->rank++] = ellipsisLabel + rest - 1 - i;
  for (int32_t i = 0; i < afterCount; ++i)
    term->labels[term->rank++] = after[i];
  int64_t own[labelCount];
  for (int32_t i = 0; i < labelCount; ++i)
    own[i] = -1;
  for (int32_t axis = 0; axis < term->rank; ++axis) {
    int32_t label = term->labels[axis];
    int64_t size = view.dims[axis], &known = equation.dims[label];
    bool isFirst = equation.uses[label]++ == 0;
    if (own[label] >= 0 ? own[label] != size : !isFirst && known != size && known != 1 && size != 1)
      return fail(call, FIRN_CALL_INVALID,
                  "the axes of one index differ in size: expected %lld, found %lld in axis %d of operand %d",
                  static_cast<long long>(own[label] >= 0 ? own[label] : known), static_cast<long long>(size), axis,
                  operand);
    own[label] = size;
    if (isFirst || known == 1)
      known = size;
  }
  return FIRN_CALL_OK;
}

int32_t appendOutput(firn_call *call, Equation &equation, int32_t label) {
  if (equation.output.rank == FIRN_MAX_RANK)
    return fail(call, FIRN_CALL_UNSUPPORTED, "the result of the equation has more than %d axes", FIRN_MAX_RANK);
  equation.output.labels[equation.output.rank++] = label;
  return FIRN_CALL_OK;
}

int32_t appendEllipsis(firn_call *call, Equation &equation) {
  for (int32_t i = equation.ellipsisRank - 1; i >= 0; --i)
    FIRN_TRY(appendOutput(call, equation, ellipsisLabel + i));
  return FIRN_CALL_OK;
}

/// Reads what follows "->".
int32_t parseOutput(firn_call *call, Equation &equation) {
  bool hasEllipsis = false, seen[labelCount] = {false};
  for (;;) {
    bool isBroken = false;
    if (takeEllipsis(equation, &isBroken)) {
      if (hasEllipsis)
        return malformed(call, equation, "a second ellipsis in the output");
      hasEllipsis = true;
      FIRN_TRY(appendEllipsis(call, equation));
      continue;
    }
    char next = peek(equation);
    if (!next)
      break;
    int32_t label = letterLabel(next);
    if (isBroken || label < 0)
      return malformed(call, equation, "expected a letter or '...'");
    if (equation.uses[label] == 0)
      return malformed(call, equation, "an index of the output that no operand has");
    if (seen[label])
      return malformed(call, equation, "an index that occurs twice in the output");
    seen[label] = true;
    FIRN_TRY(appendOutput(call, equation, label));
    ++equation.position;
  }
  if (equation.ellipsisRank > 0 && !hasEllipsis)
    return malformed(call, equation, "the output lacks the ellipsis of the operands");
  return FIRN_CALL_OK;
}

/// Parses as far as operand `wanted` (its term is in `term`), or the whole equation where `wanted` is -1.
int32_t parseEquation(firn_call *call, Equation &equation, int32_t wanted, Term *term) {
  const firn_attribute *attribute = findAttribute(call, "equation");
  if (!attribute || attribute->kind != FIRN_ATTR_STRING)
    return fail(call, FIRN_CALL_INVALID, "attribute equation is missing");
  equation = Equation();
  equation.text = static_cast<const char *>(attribute->data);
  equation.length = attribute->count;
  equation.position = 0;
  equation.output.rank = 0;
  constexpr uint32_t dtypes = floatTypes | integerTypes;
  const firn_view *first;
  FIRN_TRY(requireInput(call, 0, "Inputs", dtypes, &first));
  for (int32_t operand = 0; operand < call->input_count; ++operand) {
    const firn_view *view;
    FIRN_TRY(requireInput(call, operand, "Inputs", dtypes, &view));
    FIRN_TRY(requireSameDtype(call, "every operand", view, "the first", *first));
    if (operand > 0) {
      if (peek(equation) != ',')
        return malformed(call, equation, "expected ',' and one term for each operand");
      ++equation.position;
    }
    FIRN_TRY(parseOperand(call, equation, operand, *view, term));
    if (operand == wanted)
      return FIRN_CALL_OK;
  }
  char next = peek(equation);
  if (next == ',')
    return malformed(call, equation, "more terms than operands");
  if (next == '-') {
    if (equation.length - equation.position < 2 || equation.text[equation.position + 1] != '>')
      return malformed(call, equation, "expected '->'");
    equation.position += 2;
    return parseOutput(call, equation);
  }
  if (next)
    return malformed(call, equation, "expected a letter, ',' or '->'");
  FIRN_TRY(appendEllipsis(call, equation));
  for (int32_t label = 0; label < ellipsisLabel; ++label)
    if (equation.uses[label] == 1)
      FIRN_TRY(appendOutput(call, equation, label));
  return FIRN_CALL_OK;
}

int32_t inferEinsum(firn_call *call) {
  Equation equation;
  Term term;
  FIRN_TRY(parseEquation(call, equation, -1, &term));
  int64_t dims[FIRN_MAX_RANK];
  for (int32_t i = 0; i < equation.output.rank; ++i)
    dims[i] = equation.dims[equation.output.labels[i]];
  return setChecked(call, 0, call->inputs[0].dtype, dims, equation.output.rank);
}

/// An operand or an intermediate: values with a stride per label, 0 for labels that it lacks or repeats.
template <typename T> struct Labelled {
  const T *values;
  int64_t strides[labelCount];
  bool has[labelCount];
};

template <typename T>
int32_t readOperand(firn_call *call, const Equation &equation, int32_t operand, Labelled<T> *result) {
  Equation scratchEquation;
  Term term;
  FIRN_TRY(parseEquation(call, scratchEquation, operand, &term));
  const firn_view &view = call->inputs[operand];
  T *values;
  FIRN_TRY(copyOf(call, &view, &values));
  *result = {values, {0}, {false}};
  int64_t stride = 1;
  for (int32_t axis = term.rank - 1; axis >= 0; --axis) {
    int32_t label = term.labels[axis];
    result->has[label] = true;
    if (view.dims[axis] != 1 || equation.dims[label] == 1)
      result->strides[label] += stride; // both axes of a repeated index move together
    stride *= view.dims[axis];
  }
  return FIRN_CALL_OK;
}

/// to[kept...] = sum over the summed labels of a * b; `b` may be NULL. `kept` in the order of the result's axes.
template <typename T>
void contract(const Equation &equation, const Labelled<T> &a, const Labelled<T> *b, const int32_t *kept,
              int32_t keptCount, const int32_t *summed, int32_t summedCount, T *to) {
  int64_t keptIndex[labelCount] = {0}, summedIndex[labelCount] = {0}, keptDims[labelCount], summedDims[labelCount];
  int64_t keptTotal = 1, summedTotal = 1;
  for (int32_t i = 0; i < keptCount; ++i)
    keptTotal *= keptDims[i] = equation.dims[kept[i]];
  for (int32_t i = 0; i < summedCount; ++i)
    summedTotal *= summedDims[i] = equation.dims[summed[i]];
  if (keptTotal == 0)
    return;
  // The last summed label is the inner loop.
  int32_t outerSummed = summedCount ? summedCount - 1 : 0;
  int64_t inner = summedCount ? summedDims[outerSummed] : 1;
  int64_t aStep = summedCount ? a.strides[summed[outerSummed]] : 0;
  int64_t bStep = summedCount && b ? b->strides[summed[outerSummed]] : 0;
  do {
    int64_t aBase = 0, bBase = 0;
    for (int32_t i = 0; i < keptCount; ++i) {
      aBase += keptIndex[i] * a.strides[kept[i]];
      bBase += b ? keptIndex[i] * b->strides[kept[i]] : 0;
    }
    T sum = 0;
    if (summedTotal > 0)
      do {
        int64_t aAt = aBase, bAt = bBase;
        for (int32_t i = 0; i < outerSummed; ++i) {
          aAt += summedIndex[i] * a.strides[summed[i]];
          bAt += b ? summedIndex[i] * b->strides[summed[i]] : 0;
        }
        for (int64_t k = 0; k < inner; ++k)
          sum = multiplyAdd(sum, a.values[aAt + k * aStep], b ? b->values[bAt + k * bStep] : T(1));
      } while (nextIndex(summedIndex, summedDims, outerSummed));
    *to++ = sum;
  } while (nextIndex(keptIndex, keptDims, keptCount));
}

template <typename T> int32_t einsum(firn_call *call, const firn_view &y) {
  Equation equation;
  Term term;
  FIRN_TRY(parseEquation(call, equation, -1, &term));
  Labelled<T> total = {}, next = {};
  bool isNeeded[labelCount];
  for (int32_t operand = 0; operand < call->input_count; ++operand) {
    if (operand == 0 && call->input_count > 1) {
      FIRN_TRY(readOperand(call, equation, 0, &total));
      continue;
    }
    FIRN_TRY(readOperand(call, equation, operand, operand ? &next : &total));
    bool isLast = operand + 1 == call->input_count;
    memset(isNeeded, 0, sizeof isNeeded);
    for (int32_t i = 0; i < equation.output.rank; ++i)
      isNeeded[equation.output.labels[i]] = true;
    for (int32_t later = operand + 1; later < call->input_count; ++later) {
      Equation scratchEquation;
      FIRN_TRY(parseEquation(call, scratchEquation, later, &term));
      for (int32_t i = 0; i < term.rank; ++i)
        isNeeded[term.labels[i]] = true;
    }
    int32_t kept[labelCount], summed[labelCount];
    int32_t keptCount = 0, summedCount = 0;
    for (int32_t label = 0; label < labelCount; ++label)
      if (total.has[label] || (operand && next.has[label])) {
        if (!isNeeded[label])
          summed[summedCount++] = label;
        else if (!isLast)
          kept[keptCount++] = label;
      }
    if (isLast)
      for (; keptCount < equation.output.rank; ++keptCount)
        kept[keptCount] = equation.output.labels[keptCount];
    int64_t count = 1;
    for (int32_t i = 0; i < keptCount; ++i)
      if (__builtin_mul_overflow(count, equation.dims[kept[i]], &count))
        return fail(call, FIRN_CALL_NO_MEMORY, "an intermediate of the equation is too large");
    T *values;
    FIRN_TRY(allocate(call, count, &values));
    contract(equation, total, operand ? &next : nullptr, kept, keptCount, summed, summedCount, values);
    total = {values, {0}, {false}};
    int64_t stride = 1;
    for (int32_t i = keptCount - 1; i >= 0; --i) {
      total.has[kept[i]] = true;
      total.strides[kept[i]] = stride;
      stride *= equation.dims[kept[i]];
    }
  }
  storeAll(y, 0, elementCount(y), total.values);
  return FIRN_CALL_OK;
}

int32_t runEinsum(firn_call *call) {
  firn_view *y = output(call, 0);
  if (!y)
    return FIRN_CALL_OK;
  return isFloat(y->dtype) ? einsum<double>(call, *y) : einsum<int64_t>(call, *y);
}

} // namespace

FIRN_OPERATOR(ai_onnx, Einsum, "ai.onnx::Einsum", inferEinsum, runEinsum)

} // namespace firn::kernels

// Operators on strings. The bytes of new strings lie in scratch memory, which whoever calls keeps as long as the
// output.
#include "runtime/kernels/Elementwise.h"
#include "runtime/kernels/Movement.h"

namespace firn::kernels {
namespace {

const firn_string *stringsOf(const firn_view &view) { return static_cast<const firn_string *>(view.data); }
firn_string *stringsTo(const firn_view &view) { return static_cast<firn_string *>(view.data); }

bool isEqual(const firn_string &a, const firn_string &b) {
  return a.length == b.length && (a.length == 0 || memcmp(a.data, b.data, size_t(a.length)) == 0);
}

// --- StringConcat ----------------------------------------------------------------------------------------------------

int32_t runStringConcat(firn_call *call) {
  const firn_view *z = output(call, 0);
  if (!z || elementCount(*z) == 0)
    return FIRN_CALL_OK;
  const firn_view &x = call->inputs[0], &y = call->inputs[1];
  Operand operands[2] = {{&x, 0, 0, {}}, {&y, 0, 0, {}}};
  int64_t bytes = 0;
  auto forEachPair = [&](auto body) {
    BroadcastLoop(*z, operands, 2).run([&](int64_t first, int64_t count) {
      for (int64_t i = 0; i < count; ++i)
        body(first + i, stringsOf(x)[operands[0].offset + i * operands[0].step],
             stringsOf(y)[operands[1].offset + i * operands[1].step]);
    });
  };
  forEachPair([&](int64_t, const firn_string &a, const firn_string &b) { bytes += a.length + b.length; });
  char *to = scratch<char>(call, bytes + 1);
  if (!to)
    return fail(call, FIRN_CALL_NO_MEMORY, "no memory for %lld bytes of strings", static_cast<long long>(bytes));
  forEachPair([&](int64_t i, const firn_string &a, const firn_string &b) {
    stringsTo(*z)[i] = {to, a.length + b.length};
    const firn_string parts[] = {a, b};
    for (const firn_string &part : parts) {
      if (part.length)
        memcpy(to, part.data, size_t(part.length));
      to += part.length;
    }
  });
  return FIRN_CALL_OK;
}

// --- StringSplit -----------------------------------------------------------------------------------------------------

struct Splitting {
  firn_string delimiter; // empty: runs of blanks
  int64_t most;          // splits
};

Splitting splittingOf(const firn_call *call) {
  Splitting splitting = {{"", 0}, INT64_MAX};
  const firn_attribute *delimiter = findAttribute(call, "delimiter");
  if (delimiter && delimiter->kind == FIRN_ATTR_STRING)
    splitting.delimiter = {static_cast<const char *>(delimiter->data), delimiter->count};
  if (findAttribute(call, "maxsplit"))
    splitting.most = intAttribute(call, "maxsplit", 0);
  return splitting;
}

bool isBlank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/// Calls body(part) on each part of `text`; returns how many there are.
template <typename Body> int64_t splitString(const firn_string &text, const Splitting &splitting, Body body) {
  const char *at = text.data, *end = text.data + text.length;
  int64_t parts = 0;
  if (splitting.delimiter.length == 0) {
    while (true) {
      while (at < end && isBlank(*at))
        ++at;
      if (at == end)
        return parts;
      const char *stop = at;
      if (parts >= splitting.most) { // the rest, without the blanks behind it
        for (stop = end; isBlank(stop[-1]);)
          --stop;
        body(firn_string{at, stop - at});
        return parts + 1;
      }
      while (stop < end && !isBlank(*stop))
        ++stop;
      body(firn_string{at, stop - at});
      ++parts;
      at = stop;
    }
  }
  if (text.length == 0)
    return 0;
  int64_t length = splitting.delimiter.length;
  for (const char *stop = at; parts < splitting.most && stop + length <= end;) {
    if (memcmp(stop, splitting.delimiter.data, size_t(length)) != 0) {
      ++stop;
      continue;
    }
    body(firn_string{at, stop - at});
    ++parts;
    at = stop += length;
  }
  body(firn_string{at, end - at});
  return parts + 1;
}

int32_t inferStringSplit(firn_call *call) {
  FIRN_TRY(requireInput(call, 0, stringType));
  const firn_view &x = call->inputs[0];
  if (x.rank >= FIRN_MAX_RANK)
    return fail(call, FIRN_CALL_UNSUPPORTED, "the output has %d axes: at most %d are supported", x.rank + 1,
                FIRN_MAX_RANK);
  setRank(call, 0, FIRN_STRING, x.rank + 1);
  setType(output(call, 1), FIRN_I64, x.dims, x.rank);
  FIRN_TRY(requireValue(call, 0));
  Splitting splitting = splittingOf(call);
  int64_t most = 0, total = elementCount(x);
  for (int64_t i = 0; i < total; ++i)
    most = larger(most, splitString(stringsOf(x)[i], splitting, [](const firn_string &) {}));
  int64_t dims[FIRN_MAX_RANK];
  for (int32_t k = 0; k < x.rank; ++k)
    dims[k] = x.dims[k];
  dims[x.rank] = most;
  FIRN_TRY(setChecked(call, 0, FIRN_STRING, dims, x.rank + 1));
  return setChecked(call, 1, FIRN_I64, x.dims, x.rank);
}

/// The parts are stretches of the input's own bytes.
int32_t runStringSplit(firn_call *call) {
  const firn_view &x = call->inputs[0];
  const firn_view *y = output(call, 0), *z = output(call, 1);
  Splitting splitting = splittingOf(call);
  int64_t total = elementCount(x), width = y ? y->dims[x.rank] : 0;
  for (int64_t i = 0; i < total; ++i) {
    int64_t k = 0;
    int64_t parts = splitString(stringsOf(x)[i], splitting, [&](const firn_string &part) {
      if (y && k < width)
        stringsTo(*y)[i * width + k++] = part;
    });
    for (; y && k < width; ++k)
      stringsTo(*y)[i * width + k] = {"", 0};
    if (z)
      static_cast<int64_t *>(z->data)[i] = parts;
  }
  return FIRN_CALL_OK;
}

// --- StringNormalizer ------------------------------------------------------------------------------------------------

enum class Case { Keep, Lower, Upper };

/// The other case of a character of the alphabets that have one in UTF-8's two bytes and keep their length: Latin-1,
/// Greek and Cyrillic, beside ASCII.
uint32_t changeCase(uint32_t c, Case wanted) {
  bool lower = wanted == Case::Lower;
  auto between = [&](uint32_t low, uint32_t high) { return c >= low && c <= high; };
  if (lower ? between('A', 'Z') : between('a', 'z'))
    return c ^ 0x20;
  if (lower ? between(0xc0, 0xde) && c != 0xd7 : between(0xe0, 0xfe) && c != 0xf7)
    return c ^ 0x20;
  if (lower ? between(0x391, 0x3a9) && c != 0x3a2 : between(0x3b1, 0x3c9) && c != 0x3c2)
    return lower ? c + 0x20 : c - 0x20;
  if (lower ? between(0x410, 0x42f) : between(0x430, 0x44f))
    return lower ? c + 0x20 : c - 0x20;
  if (lower ? between(0x400, 0x40f) : between(0x450, 0x45f))
    return lower ? c + 0x50 : c - 0x50;
  return c;
}

/// The character at `*i` of UTF-8 text, which moves on. Bytes of characters beyond two bytes come one by one, as
/// numbers that no character has.
uint32_t nextCharacter(const firn_string &text, int64_t *i) {
  uint8_t lead = uint8_t(text.data[(*i)++]);
  if (lead < 0x80)
    return lead;
  if ((lead & 0xe0) == 0xc0 && *i < text.length)
    return (lead & 0x1fu) << 6 | (uint8_t(text.data[(*i)++]) & 0x3fu);
  return 0x1000000u | lead;
}

/// Writes `text` in another case; the length stays.
void changeCase(const firn_string &text, Case wanted, char *to) {
  if (wanted == Case::Keep) {
    if (text.length)
      memcpy(to, text.data, size_t(text.length));
    return;
  }
  for (int64_t i = 0; i < text.length;) {
    int64_t start = i;
    uint32_t c = changeCase(nextCharacter(text, &i), wanted);
    if (i - start == 2) {
      *to++ = char(0xc0 | c >> 6);
      *to++ = char(0x80 | (c & 0x3f));
    } else {
      *to++ = char(c);
    }
  }
}

struct Normalizer {
  Case change = Case::Keep;
  bool isCaseSensitive = false;
  const firn_string *stopwords = nullptr;
  int64_t stopwordCount = 0;
};

int32_t normalizerOf(firn_call *call, Normalizer *normalizer) {
  static const char names[][6] = {"NONE", "LOWER", "UPPER"};
  int32_t change = -1;
  for (int32_t k = 0; k < 3; ++k)
    if (stringAttributeIs(call, "case_change_action", names[k], "NONE"))
      change = k;
  if (change < 0)
    return fail(call, FIRN_CALL_INVALID, "attribute 'case_change_action' must be NONE, LOWER or UPPER");
  normalizer->change = Case(change);
  normalizer->isCaseSensitive = intAttribute(call, "is_case_sensitive", 0) != 0;
  const firn_attribute *stopwords = findAttribute(call, "stopwords");
  if (stopwords && stopwords->kind == FIRN_ATTR_STRINGS) {
    normalizer->stopwords = static_cast<const firn_string *>(stopwords->data);
    normalizer->stopwordCount = stopwords->count;
  }
  return FIRN_CALL_OK;
}

/// Whether two strings are equal, or equal but for case.
bool matches(const firn_string &a, const firn_string &b, bool isCaseSensitive) {
  if (isCaseSensitive || a.length != b.length)
    return isEqual(a, b);
  int64_t i = 0, j = 0;
  while (i < a.length && j < b.length)
    if (changeCase(nextCharacter(a, &i), Case::Lower) != changeCase(nextCharacter(b, &j), Case::Lower))
      return false;
  return i == a.length && j == b.length;
}

bool isStopword(const firn_string &text, const Normalizer &normalizer) {
  for (int64_t k = 0; k < normalizer.stopwordCount; ++k)
    if (matches(text, normalizer.stopwords[k], normalizer.isCaseSensitive))
      return true;
  return false;
}

int32_t inferStringNormalizer(firn_call *call) {
  FIRN_TRY(requireInput(call, 0, stringType));
  const firn_view &x = call->inputs[0];
  if (x.rank != 1 && !(x.rank == 2 && x.dims[0] == 1)) {
    char found[320];
    return fail(call, FIRN_CALL_INVALID, "input 0 must have shape [c] or [1, c], found %s",
                shapeText(x, found, sizeof found));
  }
  setRank(call, 0, FIRN_STRING, x.rank);
  FIRN_TRY(requireValue(call, 0));
  Normalizer normalizer;
  FIRN_TRY(normalizerOf(call, &normalizer));
  int64_t kept = 0, total = elementCount(x);
  for (int64_t i = 0; i < total; ++i)
    kept += !isStopword(stringsOf(x)[i], normalizer);
  int64_t dims[2] = {1, 1};
  dims[x.rank - 1] = kept ? kept : 1; // one empty string where nothing is left
  return setChecked(call, 0, FIRN_STRING, dims, x.rank);
}

int32_t runStringNormalizer(firn_call *call) {
  const firn_view *y = output(call, 0);
  const firn_view &x = call->inputs[0];
  if (!y)
    return FIRN_CALL_OK;
  Normalizer normalizer;
  FIRN_TRY(normalizerOf(call, &normalizer));
  int64_t bytes = 0, total = elementCount(x), kept = 0;
  for (int64_t i = 0; i < total; ++i)
    bytes += stringsOf(x)[i].length;
  char *to = scratch<char>(call, bytes + 1);
  if (!to)
    return fail(call, FIRN_CALL_NO_MEMORY, "no memory for %lld bytes of strings", static_cast<long long>(bytes));
  stringsTo(*y)[0] = {"", 0};
  for (int64_t i = 0; i < total; ++i) {
    const firn_string &text = stringsOf(x)[i];
    if (isStopword(text, normalizer))
      continue;
    changeCase(text, normalizer.change, to);
    stringsTo(*y)[kept++] = {to, text.length};
    to += text.length;
  }
  return FIRN_CALL_OK;
}

} // namespace

FIRN_OPERATOR(ai_onnx, StringConcat, "ai.onnx::StringConcat", inferBinary<stringType>, runStringConcat)
FIRN_OPERATOR(ai_onnx, StringSplit, "ai.onnx::StringSplit", inferStringSplit, runStringSplit)
FIRN_OPERATOR(ai_onnx, StringNormalizer, "ai.onnx::StringNormalizer", inferStringNormalizer, runStringNormalizer)

} // namespace firn::kernels

// RegexFullMatch, and com.microsoft's Tokenizer.
#include "runtime/kernels/Regex.h"

namespace firn::kernels {
namespace {

const firn_string *stringsOf(const firn_view &view) { return static_cast<const firn_string *>(view.data); }

// --- RegexFullMatch --------------------------------------------------------------------------------------------------

int32_t patternOf(firn_call *call, const char *name, firn_string *pattern) {
  const firn_attribute *attribute = findAttribute(call, name);
  if (!attribute || attribute->kind != FIRN_ATTR_STRING)
    return fail(call, FIRN_CALL_INVALID, "attribute '%s' must be given", name);
  *pattern = {static_cast<const char *>(attribute->data), attribute->count};
  return FIRN_CALL_OK;
}

int32_t inferRegexFullMatch(firn_call *call) {
  Regex regex;
  firn_string pattern;
  FIRN_TRY(requireInput(call, 0, stringType));
  FIRN_TRY(patternOf(call, "pattern", &pattern));
  FIRN_TRY(regex.compile(call, pattern));
  return setChecked(call, 0, FIRN_BOOL, call->inputs[0].dims, call->inputs[0].rank);
}

int32_t runRegexFullMatch(firn_call *call) {
  Regex regex;
  firn_string pattern;
  FIRN_TRY(patternOf(call, "pattern", &pattern));
  FIRN_TRY(regex.compile(call, pattern));
  for (int64_t i = 0; i < elementCount(call->inputs[0]); ++i)
    setInt(call->outputs[0], i, regex.matchesAll(stringsOf(call->inputs[0])[i]));
  return FIRN_CALL_OK;
}

// --- Tokenizer -------------------------------------------------------------------------------------------------------

/// Splits a text into its tokens: matches of an expression, what lies between matches of separators, or characters.
class Splitter {
public:
  int32_t read(firn_call *call);
  /// Calls body(token) for each token.
  template <typename Body> void split(const firn_string &text, Body body) const {
    if (isByCharacter) {
      for (int64_t at = 0, length; at < text.length; at += length) {
        characterAt(text, at, &length);
        body(firn_string{text.data + at, length});
      }
    } else if (separatorCount > 0) {
      splitAt(text, 0, body);
    } else {
      for (int64_t at = 0, begin, end; expression.find(text, at, &begin, &end); at = end > begin ? end : end + 1)
        if (end > begin)
          offer({text.data + begin, end - begin}, body);
    }
  }

  bool isMarked;
  firn_string padding;

private:
  template <typename Body> void offer(const firn_string &token, Body &body) const {
    if (characterCount(token) >= shortest)
      body(token);
  }
  /// By separator `i`, then each part by the next one.
  template <typename Body> void splitAt(const firn_string &text, int64_t i, Body &body) const {
    if (i == separatorCount)
      return body(text);
    int64_t from = 0, begin, end, at = 0;
    auto part = [&](int64_t to) {
      firn_string token = {text.data + from, to - from};
      if (characterCount(token) >= shortest)
        splitAt(token, i + 1, body);
    };
    while (separators[i].find(text, at, &begin, &end)) {
      if (end == begin) {
        at = end + 1;
        continue;
      }
      part(begin);
      from = at = end;
    }
    part(text.length);
  }

  bool isByCharacter;
  int64_t shortest, separatorCount;
  Regex *separators;
  Regex expression;
};

int32_t Splitter::read(firn_call *call) {
  const firn_attribute *list = findAttribute(call, "separators"), *token = findAttribute(call, "tokenexp");
  bool hasSeparators = list && list->kind == FIRN_ATTR_STRINGS && list->count > 0;
  if (hasSeparators == (token != nullptr && token->kind == FIRN_ATTR_STRING))
    return fail(call, FIRN_CALL_INVALID, "one of the attributes 'separators' and 'tokenexp' must be given: found %s",
                hasSeparators ? "both" : "neither");
  FIRN_TRY(boundedAttribute(call, "mincharnum", 1, 1, INT64_MAX, &shortest));
  FIRN_TRY(patternOf(call, "pad_value", &padding));
  isMarked = intAttribute(call, "mark", 0) != 0;
  isByCharacter = false;
  separatorCount = 0;
  if (!hasSeparators)
    return expression.compile(call, {static_cast<const char *>(token->data), token->count});
  const firn_string *texts = static_cast<const firn_string *>(list->data);
  isByCharacter = list->count == 1 && texts[0].length == 0;
  if (isByCharacter)
    return FIRN_CALL_OK;
  if (list->count > 32)
    return fail(call, FIRN_CALL_UNSUPPORTED, "more than 32 separators are not supported");
  separatorCount = list->count;
  FIRN_TRY(allocate(call, separatorCount, &separators));
  for (int64_t i = 0; i < separatorCount; ++i) {
    separators[i] = Regex();
    FIRN_TRY(separators[i].compile(call, texts[i]));
  }
  return FIRN_CALL_OK;
}

int32_t inferTokenizer(firn_call *call) {
  FIRN_TRY(requireInput(call, 0, stringType));
  const firn_view &x = call->inputs[0];
  if (x.rank < 1 || x.rank > 2)
    return fail(call, FIRN_CALL_INVALID, "the input must have shape [C] or [N, C], found %d axes", x.rank);
  Splitter splitter;
  FIRN_TRY(splitter.read(call));
  setRank(call, 0, FIRN_STRING, x.rank + 1);
  FIRN_TRY(requireValue(call, 0));
  int64_t most = 0;
  for (int64_t i = 0; i < elementCount(x); ++i) {
    int64_t tokens = 0;
    splitter.split(stringsOf(x)[i], [&](const firn_string &) { ++tokens; });
    most = tokens > most ? tokens : most;
  }
  int64_t dims[3] = {x.dims[0], x.dims[1], 0};
  dims[x.rank] = elementCount(x) == 0 ? 0 : most + (splitter.isMarked ? 2 : 0);
  return setChecked(call, 0, FIRN_STRING, dims, x.rank + 1);
}

/// The tokens of each text, between marks where they are wanted, filled up on the right. They are stretches of the
/// input's own bytes.
int32_t runTokenizer(firn_call *call) {
  const firn_view &x = call->inputs[0], &y = call->outputs[0];
  Splitter splitter;
  FIRN_TRY(splitter.read(call));
  firn_string *to = static_cast<firn_string *>(y.data);
  int64_t width = y.dims[x.rank];
  for (int64_t i = 0; i < elementCount(x) && width > 0; ++i, to += width) {
    int64_t k = 0, last = width - (splitter.isMarked ? 1 : 0);
    if (splitter.isMarked)
      to[k++] = {"\x02", 1};
    splitter.split(stringsOf(x)[i], [&](const firn_string &token) {
      if (k < last)
        to[k++] = token;
    });
    if (splitter.isMarked && k < width)
      to[k++] = {"\x03", 1};
    while (k < width)
      to[k++] = splitter.padding;
  }
  return FIRN_CALL_OK;
}

} // namespace

FIRN_OPERATOR(ai_onnx, RegexFullMatch, "ai.onnx::RegexFullMatch", inferRegexFullMatch, runRegexFullMatch)
FIRN_OPERATOR(com_microsoft, Tokenizer, "com.microsoft::Tokenizer", inferTokenizer, runTokenizer)

} // namespace firn::kernels

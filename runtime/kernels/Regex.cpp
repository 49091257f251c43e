#include "runtime/kernels/Regex.h"

namespace firn::kernels {

uint32_t characterAt(const firn_string &text, int64_t at, int64_t *length) {
  auto byte = [&](int64_t i) { return static_cast<uint8_t>(text.data[i]); };
  uint8_t first = byte(at);
  int64_t more = first >= 0xf0 && first < 0xf8   ? 3
                 : first >= 0xe0 && first < 0xf0 ? 2
                 : first >= 0xc2 && first < 0xe0 ? 1
                                                 : 0;
  *length = 1;
  if (more == 0 || at + more >= text.length)
    return first;
  uint32_t character = first & (0x3fu >> more);
  for (int64_t i = 1; i <= more; ++i) {
    if ((byte(at + i) & 0xc0) != 0x80)
      return first;
    character = character << 6 | (byte(at + i) & 0x3fu);
  }
  *length = more + 1;
  return character;
}

int64_t characterCount(const firn_string &text) {
  int64_t count = 0, length;
  for (int64_t at = 0; at < text.length; at += length, ++count)
    characterAt(text, at, &length);
  return count;
}

namespace {

bool isWordByte(const firn_string &text, int64_t at) {
  if (at < 0 || at >= text.length)
    return false;
  char c = text.data[at];
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

uint32_t otherCase(uint32_t c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ? c ^ 0x20 : c; }

} // namespace

/// A recursive descent that writes steps as it goes.
class RegexReader {
public:
  RegexReader(firn_call *theCall, Regex &read, const firn_string &text) : call(theCall), regex(read), pattern(text) {}

  int32_t read() {
    flags();
    alternatives();
    if (!why && at < pattern.length)
      refuse("an unmatched )");
    emit(Regex::Op::Match);
    if (!why)
      return FIRN_CALL_OK;
    return fail(call, FIRN_CALL_UNSUPPORTED, "pattern '%.*s' at byte %lld: %s",
                int(pattern.length < 120 ? pattern.length : 120), pattern.data, static_cast<long long>(at), why);
  }

private:
  using Op = Regex::Op;

  void refuse(const char *reason) {
    if (!why)
      why = reason;
  }
  bool peek(const char *text) const {
    int64_t length = int64_t(strlen(text));
    return at + length <= pattern.length && memcmp(pattern.data + at, text, size_t(length)) == 0;
  }
  bool take(const char *text) {
    if (!peek(text))
      return false;
    at += int64_t(strlen(text));
    return true;
  }
  uint32_t next() {
    int64_t length;
    uint32_t character = characterAt(pattern, at, &length);
    at += length;
    return character;
  }

  int32_t emit(Op op, uint32_t character = 0) {
    if (regex.stepCount == Regex::mostSteps) {
      refuse("it is too large");
      return 0;
    }
    regex.steps[regex.stepCount] = {op, false, character, regex.stepCount + 1, -1, 0};
    return regex.stepCount++;
  }
  void range(uint32_t low, uint32_t high) {
    if (low > high)
      return refuse("a range of characters that ends before it begins");
    if (regex.rangeCount == Regex::mostRanges)
      return refuse("it is too large");
    regex.ranges[regex.rangeCount++] = {low, high};
  }

  void flags() {
    while (peek("(?i)") || peek("(?s)") || peek("(?is)") || peek("(?si)")) {
      for (at += 2; pattern.data[at] != ')'; ++at)
        (pattern.data[at] == 'i' ? regex.ignoresCase : regex.dotTakesNewline) = true;
      ++at;
    }
  }

  void alternatives() {
    if (++depth > 200)
      refuse("groups are nested too deep");
    int32_t lastJump = -1; // jumps to the end form a list through `other`
    while (!why) {
      int64_t begin = at;
      if (!moreAlternatives(begin)) {
        sequence();
        break;
      }
      int32_t split = emit(Op::Split);
      sequence();
      ++at; // the |
      int32_t jump = emit(Op::Jump);
      regex.steps[jump].other = lastJump;
      lastJump = jump;
      regex.steps[split].other = regex.stepCount;
    }
    while (lastJump >= 0 && !why) {
      int32_t before = regex.steps[lastJump].other;
      regex.steps[lastJump].other = -1;
      regex.steps[lastJump].next = regex.stepCount;
      lastJump = before;
    }
    --depth;
  }

  /// Whether a | of this level follows what stands at `from`.
  bool moreAlternatives(int64_t from) const {
    int64_t level = 0;
    bool inClass = false;
    for (int64_t i = from; i < pattern.length; ++i) {
      char c = pattern.data[i];
      if (c == '\\')
        ++i;
      else if (inClass)
        inClass = c != ']' || i == classBegin(from, i);
      else if (c == '[')
        inClass = true;
      else if (c == '(')
        ++level;
      else if (c == ')' && level-- == 0)
        return false;
      else if (c == '|' && level == 0)
        return true;
    }
    return false;
  }
  /// Where a ] at `i` would still be the first member of its class: right behind [ or [^.
  int64_t classBegin(int64_t from, int64_t i) const {
    bool isFirst = i > from && (pattern.data[i - 1] == '[' ||
                                (i - 1 > from && pattern.data[i - 1] == '^' && pattern.data[i - 2] == '['));
    return isFirst ? i : -1;
  }

  void sequence() {
    while (!why && at < pattern.length && pattern.data[at] != '|' && pattern.data[at] != ')')
      repeated();
  }

  void repeated() {
    int32_t first = regex.stepCount;
    atom();
    int64_t least = 1, most = 1;
    if (take("*"))
      least = 0, most = -1;
    else if (take("+"))
      most = -1;
    else if (take("?"))
      least = 0;
    else if (!bounds(&least, &most))
      return;
    take("?"); // lazy: the same texts
    if (peek("*") || peek("+") || peek("?") || peek("{"))
      return refuse("a repetition of a repetition; put a group round it");
    if (most == 0) {
      regex.stepCount = first;
      return;
    }
    int32_t length = regex.stepCount - first, last = first;
    for (int64_t i = 1; i < least && !why; ++i)
      last = copy(first, length);
    if (least == 0) { // the only copy becomes one that may be left out
      emit(Op::Jump);
      relocate(first, length, first + 1);
      ++first;
      regex.steps[first - 1] = {Op::Split, false, 0, first, regex.stepCount, 0};
      if (most < 0) {
        regex.steps[emit(Op::Jump)].next = first - 1;
        regex.steps[first - 1].other = regex.stepCount;
      }
    } else if (most < 0) {
      int32_t split = emit(Op::Split);
      regex.steps[split].next = last;
      regex.steps[split].other = regex.stepCount;
    }
    for (int64_t i = least ? least : 1; i < most && !why; ++i) {
      int32_t split = emit(Op::Split);
      copy(first, length);
      regex.steps[split].other = regex.stepCount;
    }
  }
  /// Moves steps that only lead to each other or to what follows them; what they lead to moves along.
  void relocate(int32_t from, int32_t length, int32_t to) {
    if (why)
      return;
    memmove(regex.steps + to, regex.steps + from, size_t(length) * sizeof *regex.steps);
    for (int32_t i = to; i < to + length; ++i) {
      regex.steps[i].next += to - from;
      if (regex.steps[i].op == Op::Split)
        regex.steps[i].other += to - from;
    }
  }
  int32_t copy(int32_t from, int32_t length) {
    int32_t to = regex.stepCount;
    for (int32_t i = 0; i < length && !why; ++i)
      emit(Op::Jump);
    relocate(from, length, to);
    return to;
  }
  bool bounds(int64_t *least, int64_t *most) {
    int64_t from = at;
    if (!take("{"))
      return false;
    if (!number(least)) { // a brace that is only a character
      at = from;
      return false;
    }
    *most = *least;
    if (take(",") && !number(most))
      *most = -1;
    if (!take("}") || *least > 1000 || *most > 1000 || (*most >= 0 && *most < *least))
      refuse("a repetition that is none of {m}, {m,} and {m,n} with 0 <= m <= n <= 1000");
    return true;
  }
  bool number(int64_t *value) {
    int64_t from = at;
    *value = 0;
    while (at < pattern.length && pattern.data[at] >= '0' && pattern.data[at] <= '9' && *value < 100000)
      *value = *value * 10 + (pattern.data[at++] - '0');
    return at > from;
  }

  void atom() {
    if (take("(")) {
      if (take("?P<") || (peek("?<") && !peek("?<=") && !peek("?<!") && take("?<"))) {
        while (at < pattern.length && pattern.data[at] != '>')
          ++at;
        take(">");
      } else if (peek("?") && !take("?:")) {
        return refuse("look-around and flags inside are not supported");
      }
      alternatives();
      if (!take(")"))
        refuse("a ( without its )");
    } else if (take("[")) {
      set();
    } else if (take(".")) {
      emit(Op::Any);
    } else if (take("^")) {
      emit(Op::TextBegin);
    } else if (take("$")) {
      emit(Op::TextEnd);
    } else if (peek("*") || peek("+") || peek("?")) {
      refuse("nothing to repeat");
    } else if (take("\\")) {
      escape();
    } else {
      emit(Op::Char, next());
    }
  }

  void escape() {
    if (at >= pattern.length)
      return refuse("a \\ at the end");
    char c = pattern.data[at];
    if (c == 'b' || c == 'B' || c == 'A' || c == 'z') {
      ++at;
      emit(c == 'b' ? Op::WordEdge : c == 'B' ? Op::NoWordEdge : c == 'A' ? Op::TextBegin : Op::TextEnd);
      return;
    }
    int32_t first = regex.rangeCount;
    bool isNegated = false;
    if (named(&isNegated)) {
      closeSet(first, isNegated);
      return;
    }
    emit(Op::Char, escaped());
  }

  /// \d, \w, \s and their opposites.
  bool named(bool *isNegated) {
    char c = pattern.data[at];
    char kind = c >= 'A' && c <= 'Z' ? char(c + 32) : c;
    if (kind != 'd' && kind != 'w' && kind != 's')
      return false;
    ++at;
    *isNegated = kind != c;
    if (kind == 's') {
      range('\t', '\n');
      range('\f', '\r');
      range(' ', ' ');
      return true;
    }
    range('0', '9');
    if (kind == 'w') {
      range('a', 'z');
      range('A', 'Z');
      range('_', '_');
    }
    return true;
  }

  uint32_t escaped() {
    static const char names[] = "ntrfva", values[] = "\n\t\r\f\v\a";
    char c = pattern.data[at];
    if (take("x")) {
      bool isBraced = take("{");
      uint32_t value = 0;
      int digits = 0;
      for (; at < pattern.length && digits < (isBraced ? 6 : 2); ++at, ++digits) {
        char d = pattern.data[at];
        int v = d >= '0' && d <= '9'   ? d - '0'
                : d >= 'a' && d <= 'f' ? d - 'a' + 10
                : d >= 'A' && d <= 'F' ? d - 'A' + 10
                                       : -1;
        if (v < 0)
          break;
        value = value * 16 + uint32_t(v);
      }
      if (digits == 0 || (isBraced && !take("}")))
        refuse("\\x needs hexadecimal digits");
      return value;
    }
    for (int i = 0; names[i]; ++i)
      if (c == names[i]) {
        ++at;
        return static_cast<uint8_t>(values[i]);
      }
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')) {
      refuse("an escape that is not supported");
      return 0;
    }
    return next();
  }

  void set() {
    int32_t first = regex.rangeCount;
    bool isNegated = take("^");
    bool isFirst = true;
    while (!why && at < pattern.length && (isFirst || !peek("]"))) {
      isFirst = false;
      if (posix())
        continue;
      uint32_t low;
      if (take("\\")) {
        if (at >= pattern.length)
          return refuse("a \\ at the end");
        bool isOpposite = false;
        if (named(&isOpposite)) {
          if (isOpposite)
            refuse("the opposite of a class inside a class");
          continue;
        }
        low = escaped();
      } else {
        low = next();
      }
      uint32_t high = low;
      if (peek("-") && at + 1 < pattern.length && pattern.data[at + 1] != ']') {
        ++at;
        high = take("\\") ? (at < pattern.length ? escaped() : 0) : next();
      }
      range(low, high);
    }
    if (!take("]"))
      return refuse("a [ without its ]");
    closeSet(first, isNegated);
  }
  bool posix() {
    struct Named {
      const char *name;
      uint32_t bounds[8];
    };
    static const Named classes[] = {{"[:alpha:]", {'a', 'z', 'A', 'Z'}},
                                    {"[:alnum:]", {'0', '9', 'a', 'z', 'A', 'Z'}},
                                    {"[:digit:]", {'0', '9'}},
                                    {"[:lower:]", {'a', 'z'}},
                                    {"[:upper:]", {'A', 'Z'}},
                                    {"[:space:]", {'\t', '\r', ' ', ' '}},
                                    {"[:blank:]", {'\t', '\t', ' ', ' '}},
                                    {"[:punct:]", {'!', '/', ':', '@', '[', '`', '{', '~'}},
                                    {"[:xdigit:]", {'0', '9', 'a', 'f', 'A', 'F'}},
                                    {"[:word:]", {'0', '9', 'a', 'z', 'A', 'Z', '_', '_'}}};
    for (const Named &named : classes)
      if (take(named.name)) {
        for (int i = 0; i < 8 && named.bounds[i]; i += 2)
          range(named.bounds[i], named.bounds[i + 1]);
        return true;
      }
    return false;
  }
  void closeSet(int32_t first, bool isNegated) {
    int32_t step = emit(Op::Class);
    regex.steps[step].isNegated = isNegated;
    regex.steps[step].other = first;
    regex.steps[step].count = regex.rangeCount - first;
  }

  firn_call *call;
  Regex &regex;
  firn_string pattern;
  int64_t at = 0;
  int depth = 0;
  const char *why = nullptr;
};

int32_t Regex::compile(firn_call *call, const firn_string &pattern) {
  FIRN_TRY(allocate(call, mostSteps, &steps));
  FIRN_TRY(allocate(call, mostRanges, &ranges));
  FIRN_TRY(RegexReader(call, *this, pattern).read());
  FIRN_TRY(allocate(call, stepCount, &lists[0]));
  FIRN_TRY(allocate(call, stepCount, &lists[1]));
  FIRN_TRY(allocate(call, 2 * stepCount + 2, &stack));
  FIRN_TRY(allocate(call, stepCount, &marks));
  memset(marks, 0, size_t(stepCount) * sizeof *marks);
  return FIRN_CALL_OK;
}

bool Regex::accepts(const Step &step, uint32_t character) const {
  switch (step.op) {
  case Op::Char:
    return character == step.character || (ignoresCase && otherCase(character) == step.character);
  case Op::Any:
    return dotTakesNewline || character != '\n';
  case Op::Class: {
    bool isIn = false;
    for (int32_t i = 0; i < step.count && !isIn; ++i) {
      const Range &range = ranges[step.other + i];
      uint32_t other = ignoresCase ? otherCase(character) : character;
      isIn = (character >= range.low && character <= range.high) || (other >= range.low && other <= range.high);
    }
    return isIn != step.isNegated;
  }
  default:
    return false;
  }
}

/// Puts on the list what can be reached from `step` without reading a character.
void Regex::add(int32_t step, const firn_string &text, int64_t at, int32_t *list, int32_t *count, uint32_t mark) const {
  int32_t depth = 0;
  stack[depth++] = step;
  while (depth > 0) {
    int32_t i = stack[--depth];
    if (marks[i] == mark)
      continue;
    marks[i] = mark;
    const Step &s = steps[i];
    bool isEdge = isWordByte(text, at - 1) != isWordByte(text, at);
    switch (s.op) {
    case Op::Jump:
      stack[depth++] = s.next;
      break;
    case Op::Split:
      stack[depth++] = s.next;
      stack[depth++] = s.other;
      break;
    case Op::TextBegin:
    case Op::TextEnd:
      if (at == (s.op == Op::TextBegin ? 0 : text.length))
        stack[depth++] = s.next;
      break;
    case Op::WordEdge:
    case Op::NoWordEdge:
      if (isEdge == (s.op == Op::WordEdge))
        stack[depth++] = s.next;
      break;
    default:
      list[(*count)++] = i;
    }
  }
}

int64_t Regex::longestFrom(const firn_string &text, int64_t begin) const {
  int64_t longest = -1;
  int32_t counts[2] = {0, 0}, now = 0;
  add(0, text, begin, lists[0], &counts[0], ++lastMark);
  for (int64_t at = begin; counts[now] > 0;) {
    int64_t length = 0;
    uint32_t character = at < text.length ? characterAt(text, at, &length) : 0;
    int32_t after = 1 - now;
    counts[after] = 0;
    ++lastMark;
    for (int32_t k = 0; k < counts[now]; ++k) {
      int32_t i = lists[now][k];
      if (steps[i].op == Op::Match)
        longest = at;
      else if (at < text.length && accepts(steps[i], character))
        add(steps[i].next, text, at + length, lists[after], &counts[after], lastMark);
    }
    at += length;
    now = after;
  }
  return longest;
}

bool Regex::matchesAll(const firn_string &text) const { return longestFrom(text, 0) == text.length; }

bool Regex::find(const firn_string &text, int64_t from, int64_t *begin, int64_t *end) const {
  for (int64_t at = from, length; at <= text.length; at += length) {
    *end = longestFrom(text, at);
    *begin = at;
    if (*end >= 0)
      return true;
    length = 1;
    if (at < text.length)
      characterAt(text, at, &length);
  }
  return false;
}

} // namespace firn::kernels

// Regular expressions over UTF-8, in RE2's syntax, without backtracking: time is text times pattern.
//
// Taken: literals, ., classes with ranges and negation, \d \w \s \D \W \S, [:alpha:] and the like, escapes, groups
// (also (?:...) and named ones), |, * + ? {m} {m,} {m,n} (lazy ones match the same texts), ^ $ \A \z \b \B, (?i) and
// (?s) in front. Not taken: Unicode properties, back references, look-around; those are refused by name.
#ifndef FIRN_KERNELS_REGEX_H
#define FIRN_KERNELS_REGEX_H

#include "runtime/kernels/Require.h"

namespace firn::kernels {

class Regex {
public:
  /// Reads the pattern; its program lies in scratch memory.
  int32_t compile(firn_call *call, const firn_string &pattern);
  bool matchesAll(const firn_string &text) const;
  /// The longest one of the leftmost matches that begin at byte `from` or later; false where there is none.
  bool find(const firn_string &text, int64_t from, int64_t *begin, int64_t *end) const;

private:
  friend class RegexReader;
  enum class Op : uint8_t { Char, Any, Class, Split, Jump, TextBegin, TextEnd, WordEdge, NoWordEdge, Match };
  struct Step {
    Op op;
    bool isNegated;
    uint32_t character;
    int32_t next, other; // next: of Class the first range, of others a step
    int32_t count;       // ranges of a Class
  };
  struct Range {
    uint32_t low, high;
  };
  static constexpr int32_t mostSteps = 20000, mostRanges = 20000;

  /// The end of the longest match that begins at `begin`, -1 for none.
  int64_t longestFrom(const firn_string &text, int64_t begin) const;
  void add(int32_t step, const firn_string &text, int64_t at, int32_t *list, int32_t *count, uint32_t mark) const;
  bool accepts(const Step &step, uint32_t character) const;

  Step *steps = nullptr;
  Range *ranges = nullptr;
  int32_t stepCount = 0, rangeCount = 0;
  bool ignoresCase = false, dotTakesNewline = false;
  int32_t *lists[2] = {}, *stack = nullptr;
  uint32_t *marks = nullptr; // when a step was last put on a list
  mutable uint32_t lastMark = 0;
};

/// The character at byte `at` of UTF-8 text and how many bytes it has; a byte that begins none stands for itself.
uint32_t characterAt(const firn_string &text, int64_t at, int64_t *length);
/// How many characters the text has.
int64_t characterCount(const firn_string &text);

} // namespace firn::kernels
#endif

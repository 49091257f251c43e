#include "runtime/kernels/Regex.h"

#include <catch2/catch.hpp>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

using namespace firn::kernels;

namespace {

/// A pattern with the memory that its program lies in.
class Pattern {
public:
  explicit Pattern(const std::string &text) {
    call.message = message;
    call.message_capacity = sizeof message;
    call.context = this;
    call.scratch = [](firn_call *self, int64_t bytes) -> void * {
      auto *owner = static_cast<Pattern *>(self->context);
      owner->memory.emplace_back(std::aligned_alloc(64, size_t(bytes + 64) / 64 * 64), &std::free);
      return owner->memory.back().get();
    };
    status = regex.compile(&call, {text.data(), int64_t(text.size())});
  }
  bool matches(const std::string &text) { return regex.matchesAll({text.data(), int64_t(text.size())}); }
  /// The first match from `from` on, "-" where there is none.
  std::string find(const std::string &text, int64_t from = 0) {
    int64_t begin, end;
    return regex.find({text.data(), int64_t(text.size())}, from, &begin, &end)
               ? text.substr(size_t(begin), size_t(end - begin))
               : "-";
  }

  int32_t status;
  char message[256] = "";

private:
  firn_call call{};
  Regex regex;
  std::vector<std::unique_ptr<void, void (*)(void *)>> memory;
};

bool matches(const std::string &pattern, const std::string &text) {
  Pattern compiled(pattern);
  INFO(pattern << ": " << compiled.message);
  REQUIRE(compiled.status == FIRN_CALL_OK);
  return compiled.matches(text);
}

} // namespace

TEST_CASE("regex_repeats_what_stands_before") {
  CHECK(matches("ab*c", "ac"));
  CHECK(matches("ab*c", "abbbc"));
  CHECK_FALSE(matches("ab+c", "ac"));
  CHECK(matches("ab?c", "abc"));
  CHECK_FALSE(matches("ab?c", "abbc"));
  CHECK(matches("(ab){2,3}", "abab"));
  CHECK(matches("(ab){2,3}", "ababab"));
  CHECK_FALSE(matches("(ab){2,3}", "abababab"));
  CHECK(matches("a{2}", "aa"));
  CHECK(matches("a{2,}", "aaaaa"));
  CHECK_FALSE(matches("a{2,}", "a"));
  CHECK(matches("a{0}b", "b"));
  CHECK(matches("(a*)*", "aaa"));
  CHECK(matches("(a|b){0,2}c", "abc"));
}

TEST_CASE("regex_takes_alternatives_at_every_level") {
  CHECK(matches("cat|dog|", ""));
  CHECK(matches("(cat|dog)s?", "dogs"));
  CHECK(matches("a(b|c(d|e))f", "acef"));
  CHECK(matches("[|]|x", "|"));
  CHECK_FALSE(matches("cat|dog", "catdog"));
}

TEST_CASE("regex_classes_hold_ranges_names_and_their_opposites") {
  CHECK(matches("[a-c_]+", "ab_c"));
  CHECK(matches("[^a-c]", "d"));
  CHECK_FALSE(matches("[^a-c]", "b"));
  CHECK(matches("[]a]+", "]a"));
  CHECK(matches("\\w+\\s\\d\\D", "ab_9 1x"));
  CHECK(matches("[[:alpha:]-]+", "a-Z"));
  CHECK(matches("[\\d.]+", "3.14"));
  CHECK(matches("\\x41\\x{e9}", "A\xc3\xa9"));
}

TEST_CASE("regex_reads_utf8_by_character") {
  CHECK(matches("^.$", "\xe6\x97\xa5"));
  CHECK(matches("[\xc3\xa0-\xc3\xbf]+", "\xc3\xa9\xc3\xa8"));
}

TEST_CASE("regex_edges_and_flags") {
  CHECK(Pattern("\\bcat\\b").find("a cat sat") == "cat");
  CHECK(Pattern("\\bcat\\b").find("concatenate") == "-");
  CHECK(matches("(?i)CaT", "cAt"));
  CHECK_FALSE(matches("a.b", "a\nb"));
  CHECK(matches("(?s)a.b", "a\nb"));
}

TEST_CASE("regex_finds_the_leftmost_match_and_of_those_the_longest") {
  CHECK(Pattern("a|ab|abc").find("xabcd") == "abc");
  CHECK(Pattern("[a-z]+").find("12 word, next", 4) == "ord");
  CHECK(Pattern("b").find("aaa") == "-");
}

TEST_CASE("regex_time_stays_small_for_patterns_that_make_backtracking_explode") {
  CHECK_FALSE(matches("(a+)+b", std::string(3000, 'a')));
  std::string nested = "a";
  for (int i = 0; i < 60; ++i)
    nested = "(" + nested + ")*";
  CHECK(matches(nested, "aaaa"));
}

TEST_CASE("regex_refuses_what_it_lacks_with_the_place") {
  for (const char *pattern :
       {"(a", "a)", "[a", "a**", "*a", "(?=a)", "\\1", "a{3,2}", "[b-a]", "\\", "(((a{999}){999}){9})"}) {
    Pattern compiled(pattern);
    INFO(pattern);
    CHECK(compiled.status == FIRN_CALL_UNSUPPORTED);
    CHECK_THAT(compiled.message, Catch::Contains("at byte"));
  }
}

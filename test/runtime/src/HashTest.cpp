#include "runtime/src/Hash.h"

#include <catch2/catch.hpp>
#include <cstdio>
#include <string>

using namespace firn::runtime;

static std::string hex(const uint8_t *bytes) {
  std::string text;
  char pair[3];
  for (int i = 0; i < 32; ++i) {
    std::snprintf(pair, sizeof pair, "%02x", bytes[i]);
    text += pair;
  }
  return text;
}

static std::string sha256(const std::string &data, size_t piece) {
  Sha256 hash;
  for (size_t at = 0; at < data.size(); at += piece)
    hash.update(data.data() + at, std::min(piece, data.size() - at));
  uint8_t digest[32];
  hash.finish(digest);
  return hex(digest);
}

// The values are those of the published test vectors.
TEST_CASE("xxh64 of known texts") {
  CHECK(xxh64("", 0) == 0xef46db3751d8e999u);
  CHECK(xxh64("a", 1) == 0xd24ec4f1a98c6e5bu);
  CHECK(xxh64("abc", 3) == 0x44bc2cf5ad770999u);
  std::string text = "Nobody inspects the spammish repetition";
  CHECK(xxh64(text.data(), text.size()) == 0xfbcea83c8a378bf1u);
}

TEST_CASE("xxh64 does not depend on how its data is cut") {
  std::string data;
  for (int i = 0; i < 1000; ++i)
    data += char(i * 7);
  for (size_t length : {0, 1, 31, 32, 33, 64, 100, 1000})
    for (size_t piece : {1, 3, 31, 32, 33, 200}) {
      Xxh64 hash;
      for (size_t at = 0; at < length; at += piece)
        hash.update(data.data() + at, std::min(piece, length - at));
      CHECK(hash.finish() == xxh64(data.data(), length));
    }
}

TEST_CASE("sha256 of known texts") {
  CHECK(sha256("", 1) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256("abc", 1) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 5) ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(sha256(std::string(1000000, 'a'), 4097) == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

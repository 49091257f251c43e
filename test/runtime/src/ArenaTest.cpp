#include "runtime/src/Arena.h"

#include <catch2/catch.hpp>
#include <random>
#include <vector>

using namespace firn::runtime;

static int64_t place(std::vector<Placement> &buffers) {
  std::vector<int32_t> order(buffers.size() + 1);
  return placeBuffers(buffers.data(), int32_t(buffers.size()), order.data());
}

TEST_CASE("buffers that live one after the other share their place") {
  std::vector<Placement> buffers = {{1000, 0, 1, 0}, {1000, 2, 3, 0}, {500, 4, 4, 0}};
  CHECK(place(buffers) == 1024);
  CHECK(buffers[0].offset == 0);
  CHECK(buffers[1].offset == 0);
}

TEST_CASE("a buffer goes into the smallest hole that holds it") {
  // Neighbours in time leave holes of 256 and 128 bytes; 100 bytes go into the smaller one.
  std::vector<Placement> buffers = {{1024, 0, 9, 0}, {512, 0, 1, 0}, {512, 0, 9, 0},
                                    {256, 0, 1, 0},  {256, 0, 9, 0}, {100, 5, 6, 0}};
  place(buffers);
  CHECK(buffers[5].offset == buffers[3].offset);
}

TEST_CASE("no two living buffers overlap, and the arena is not larger than all of them") {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    std::vector<Placement> buffers;
    int64_t sum = 0;
    for (int i = 0; i < 60; ++i) {
      int32_t first = int32_t(random() % 40);
      buffers.push_back({int64_t(random() % 5000), first, first + int32_t(random() % 10), 0});
      sum += buffers.back().bytes + 63;
    }
    int64_t total = place(buffers);
    CHECK(total <= sum);
    for (size_t a = 0; a < buffers.size(); ++a) {
      REQUIRE(buffers[a].offset % 64 == 0);
      REQUIRE(buffers[a].offset + buffers[a].bytes <= total);
      for (size_t b = 0; b < a; ++b) {
        bool meet = buffers[a].firstStep <= buffers[b].lastStep && buffers[b].firstStep <= buffers[a].lastStep;
        bool overlap = buffers[a].offset < buffers[b].offset + buffers[b].bytes &&
                       buffers[b].offset < buffers[a].offset + buffers[a].bytes;
        REQUIRE(!(meet && overlap));
      }
    }
  }
}

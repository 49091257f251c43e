#include "runtime/src/Arena.h"

#include <algorithm>
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

TEST_CASE("buffers of a row never live at once, and equal ones come together") {
  std::mt19937 random(11);
  const int32_t sizes[] = {0, 1, 2};
  std::vector<firn_buffer> buffers(80);
  for (firn_buffer &buffer : buffers) {
    buffer.kind = random() % 5 ? FIRN_BUFFER_ARENA : FIRN_BUFFER_LATE;
    buffer.dtype = FIRN_F32;
    buffer.rank = 1;
    buffer.dims = sizes + random() % 3;
    buffer.first_step = int32_t(random() % 40);
    buffer.last_step = buffer.first_step + int32_t(random() % 6);
  }
  int32_t count = int32_t(buffers.size());
  std::vector<int32_t> order(buffers.size()), rowOf(buffers.size());
  std::vector<Row> rows(buffers.size());
  int32_t rowCount = assignRows(buffers.data(), count, order.data(), rows.data(), rowOf.data());
  int32_t most = 0; // alive at once
  for (int32_t step = 0; step < 50; ++step) {
    int32_t alive = 0;
    for (const firn_buffer &buffer : buffers)
      alive += buffer.kind == FIRN_BUFFER_ARENA && buffer.first_step <= step && step <= buffer.last_step;
    most = std::max(most, alive);
  }
  CHECK(rowCount == most); // as few as there can be
  for (size_t i = 0; i < buffers.size(); ++i) {
    CHECK((rowOf[i] >= 0) == (buffers[i].kind == FIRN_BUFFER_ARENA));
    for (size_t j = 0; j < i; ++j)
      if (rowOf[i] >= 0 && rowOf[i] == rowOf[j])
        CHECK((buffers[i].last_step < buffers[j].first_step || buffers[j].last_step < buffers[i].first_step));
  }
}

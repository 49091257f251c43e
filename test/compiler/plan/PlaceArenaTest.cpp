// Placing of buffers whose sizes have bounds.
#include "compiler/plan/Program.h"

#include <catch2/catch.hpp>

using namespace firn;

namespace {

/// Values: 0 the batch (an input's dimension), 1 the constant 16, 2 batch * 16, 3 100 - batch, 4 batch / 4.
Program programOf(std::vector<std::vector<int32_t>> buffers) {
  Program program;
  program.values = {{FIRN_VALUE_INPUT_DIM, 0, 0, 0}, {FIRN_VALUE_CONSTANT, 0, 16, 0}, {FIRN_VALUE_MUL, 0, 0, 1}};
  program.values.push_back({FIRN_VALUE_CONSTANT, 0, 100, 0});
  program.values.push_back({FIRN_VALUE_SUB, 0, 3, 0});
  program.values.push_back({FIRN_VALUE_CONSTANT, 0, 4, 0});
  program.values.push_back({FIRN_VALUE_CEIL_DIV, 0, 0, 5});
  for (const std::vector<int32_t> &dims : buffers) {
    ProgramBuffer buffer;
    buffer.dtype = FIRN_F32;
    buffer.dims = dims;
    buffer.firstStep = 0;
    buffer.lastStep = 1;
    program.buffers.push_back(buffer);
  }
  return program;
}

} // namespace

TEST_CASE("an arena without bounds is placed at run time") {
  Program program = programOf({{0, 1}});
  placeArena(program);
  CHECK(program.arenaBytes == -1);
}

TEST_CASE("an arena has the bytes of the largest sizes in the range") {
  Program program = programOf({{0, 1}, {2}});
  program.constraints.push_back({0, 1, 32, ""});
  placeArena(program);
  CHECK(program.arenaBytes == 2 * 32 * 16 * 4);
  CHECK(program.buffers[0].offset != program.buffers[1].offset);
}

TEST_CASE("a size that falls where the dimension grows has the bytes of the smallest one") {
  Program program = programOf({{4}});
  program.constraints.push_back({0, 4, 32, ""});
  placeArena(program);
  CHECK(program.arenaBytes == 384); // 96 floats
}

TEST_CASE("quotients have bounds") {
  Program program = programOf({{6, 1}});
  program.constraints.push_back({0, 1, 30, ""});
  placeArena(program);
  CHECK(program.arenaBytes == 8 * 16 * 4);
}

TEST_CASE("what is made of a size without a bound has none either") {
  for (int32_t op : {FIRN_VALUE_ADD, FIRN_VALUE_SUB, FIRN_VALUE_MUL, FIRN_VALUE_FLOOR_DIV, FIRN_VALUE_CEIL_DIV}) {
    Program program = programOf({});
    program.values.push_back({op, 0, 0, 5});
    ProgramBuffer buffer;
    buffer.dtype = FIRN_F32;
    buffer.dims = {int32_t(program.values.size()) - 1};
    program.buffers.push_back(buffer);
    placeArena(program);
    CHECK(program.arenaBytes == -1);
  }
}

// Sequences, optionals and tensors of any rank, as inputs, outputs and between steps.
#include <catch2/catch.hpp>

#include "runtime/include/firn/firn.hpp"
#include "test/runtime/src/Artifacts.h"

using namespace firn::test;
using Catch::Matchers::Contains;

namespace {

struct Lists {
  std::string bytes = makeArtifact("Lists");
  firn::Model model{bytes.data(), bytes.size()};
  firn::Session session{model};
  std::vector<float> a{1, 2}, b{3, 4, 5};
  std::vector<firn_tensor> items{tensorOf(a, {2}, FIRN_F32), tensorOf(b, {3}, FIRN_F32)};
  int64_t times = 3, at = 1;
  std::vector<firn_tensor> inputs{list(items), firn::tensor(&times, {}), firn::tensor(&at, {}), firn_tensor{}};
  std::vector<firn_tensor> outputs = std::vector<firn_tensor>(6);

  static firn_tensor list(std::vector<firn_tensor> &tensors) {
    return tensorOf(tensors, {int64_t(tensors.size())}, FIRN_LIST);
  }
  firn_status run() { return firn_session_run(session.get(), inputs.data(), outputs.data()); }
  std::string message() const { return firn_session_message(session.get()); }
  const firn_tensor &grown(int64_t i) const { return static_cast<const firn_tensor *>(outputs[0].data)[i]; }
  static std::vector<float> floats(const firn_tensor &tensor) {
    const float *data = static_cast<const float *>(tensor.data);
    return {data, data + tensor.bytes / 4};
  }
};

} // namespace

TEST_CASE("a sequence is taken, grows in a loop and is handed out; a second run sees nothing of the first") {
  Lists lists;
  for (int64_t times : {3, 0, 1000, 3}) {
    lists.times = times;
    REQUIRE(lists.run() == FIRN_OK);
    CHECK(lists.outputs[0].dtype == FIRN_LIST);
    REQUIRE(lists.outputs[0].dims[0] == 2 + times);
    CHECK(lists.floats(lists.grown(0)) == lists.a);
    for (int64_t i = 1; i < 2 + times; ++i)
      REQUIRE(lists.floats(lists.grown(i)) == lists.b);
    CHECK(lists.floats(lists.outputs[1]) == lists.b);
    CHECK(*static_cast<int64_t *>(lists.outputs[3].data) == 2 + times);
  }
}

TEST_CASE("a tensor of any rank has the one that running gave it") {
  Lists lists;
  lists.items[1] = tensorOf(lists.a, {2, 1}, FIRN_F32);
  lists.inputs[0] = Lists::list(lists.items);
  lists.at = 0;
  REQUIRE(lists.run() == FIRN_OK);
  CHECK(lists.outputs[4].rank == 1);
  // The tensor that a step reads has a rank that the model was compiled for.
  lists.at = 1;
  CHECK(lists.run() == FIRN_FAILED);
  CHECK_THAT(lists.message(), Contains("node 'read'") && Contains("rank 2"));
}

TEST_CASE("an optional is its value or absent, on the way in and on the way out") {
  Lists lists;
  REQUIRE(lists.run() == FIRN_OK);
  CHECK(*static_cast<uint8_t *>(lists.outputs[2].data) == 0);
  CHECK(lists.outputs[5].dtype == FIRN_DTYPE_NONE);
  lists.inputs[3] = tensorOf(lists.a, {1, 2}, FIRN_F32);
  REQUIRE(lists.run() == FIRN_OK);
  CHECK(*static_cast<uint8_t *>(lists.outputs[2].data) == 1);
  CHECK(lists.outputs[5].rank == 2);
  CHECK(lists.floats(lists.outputs[5]) == lists.a);
}

TEST_CASE("a tensor of any rank goes into the caller's memory, which must be large enough") {
  Lists lists;
  std::vector<float> memory(3);
  lists.outputs[4] = tensorOf(memory, {3}, FIRN_F32);
  REQUIRE(lists.run() == FIRN_OK);
  CHECK(memory == lists.b);
  lists.outputs[4] = tensorOf(memory, {3}, FIRN_F32);
  lists.outputs[4].bytes = 8;
  CHECK(lists.run() == FIRN_SMALL_OUTPUT);
}

TEST_CASE("positions out of range stop the run by the node's name") {
  Lists lists;
  for (int64_t at : {int64_t(2), int64_t(-3), INT64_MIN, INT64_MAX}) {
    lists.at = at;
    CHECK(lists.run() == FIRN_FAILED);
    CHECK_THAT(lists.message(), Contains("node 'take'") && Contains("which has 2 tensors"));
  }
}

TEST_CASE("inputs that are no list of the right tensors are refused by name") {
  Lists lists;
  SECTION("missing") { lists.inputs[0] = {}; }
  SECTION("a tensor instead") { lists.inputs[0] = lists.items[0]; }
  SECTION("another element type") { lists.items[1].dtype = FIRN_I32; }
  SECTION("too few bytes") { lists.items[1].bytes = 8; }
  SECTION("no data") { lists.items[1].data = nullptr; }
  SECTION("a list in a list") { lists.items[1] = Lists::list(lists.items); }
  SECTION("a negative count") { lists.inputs[0].dims[0] = -1; }
  CHECK(lists.run() == FIRN_BAD_INPUT);
  CHECK_THAT(lists.message(), Contains("input 'sequence' must be sequence of f32"));
}

TEST_CASE("ports say what they hold") {
  Lists lists;
  firn_port_info port{};
  port.struct_size = sizeof port;
  REQUIRE(firn_model_input(lists.model.get(), 0, &port) == FIRN_OK);
  CHECK(port.form == FIRN_FORM_SEQUENCE);
  CHECK(port.dtype == FIRN_F32);
  REQUIRE(firn_model_input(lists.model.get(), 1, &port) == FIRN_OK);
  CHECK(port.form == FIRN_FORM_TENSOR);
  REQUIRE(firn_model_output(lists.model.get(), 4, &port) == FIRN_OK);
  CHECK(port.form == FIRN_FORM_UNRANKED);
}

TEST_CASE("C++ programs give and read lists") {
  Lists lists;
  firn::Results results = lists.session.run(
      {firn::list(lists.items), firn::tensor(&lists.times, {}), firn::tensor(&lists.at, {}), firn::absent()});
  firn::Results grown = results.items(0);
  REQUIRE(grown.size() == 5);
  CHECK(grown.dims(4) == std::vector<int64_t>{3});
  CHECK(grown.data<float>(4)[2] == 5);
  CHECK_THROWS_AS(results.items(1), firn::Error);
}

// Outputs that are the next run's inputs.
#include <algorithm>
#include <catch2/catch.hpp>

#include "runtime/include/firn/firn.hpp"
#include "test/runtime/src/Artifacts.h"

using namespace firn::test;
using Catch::Matchers::Contains;

namespace {

// y of ScaleAdd: x times w plus b, where x is [rows, 4].
struct Scaled {
  firn_model *model = nullptr;
  firn_session *session = nullptr;
  std::vector<float> x = {1, 2, 3, 4}, b = {5, 6, 7, 8};
  firn_tensor inputs[3] = {tensorOf(x, {1, 4}, FIRN_F32), tensorOf(b, {1, 4}, FIRN_F32), {}};
  firn_tensor output{};

  Scaled() {
    std::string bytes = makeArtifact("ScaleAdd", scaleAddWeights());
    REQUIRE(firn_model_open_memory(bytes.data(), bytes.size(), &model, nullptr) == FIRN_OK);
    REQUIRE(firn_session_create(model, nullptr, &session, nullptr) == FIRN_OK);
  }
  ~Scaled() {
    firn_session_destroy(session);
    firn_model_close(model);
  }
  std::vector<float> run() {
    INFO(firn_session_message(session));
    REQUIRE(firn_session_run(session, inputs, &output) == FIRN_OK);
    auto *data = static_cast<float *>(output.data);
    return std::vector<float>(data, data + 4);
  }
};

} // namespace

TEST_CASE("a bound output is the next run's input, as if the caller had copied it") {
  Scaled copied, bound;
  REQUIRE(firn_session_bind_state(bound.session, 0, 0) == FIRN_OK);
  for (int step = 0; step < 5; ++step) {
    std::vector<float> expected = copied.run();
    CHECK(bound.run() == expected);
    std::copy(expected.begin(), expected.end(), copied.x.begin()); // where its tensor points
    bound.inputs[0] = {};                                          // absent: the state
  }
}

TEST_CASE("a present tensor starts a state anew, and a binding can end") {
  Scaled bound;
  REQUIRE(firn_session_bind_state(bound.session, 0, 0) == FIRN_OK);
  firn_tensor first = bound.inputs[0];
  std::vector<float> once = bound.run();
  bound.inputs[0] = {};
  CHECK(bound.run() != once);
  bound.inputs[0] = first;
  CHECK(bound.run() == once);
  REQUIRE(firn_session_bind_state(bound.session, -1, 0) == FIRN_OK);
  bound.inputs[0] = {};
  CHECK(firn_session_run(bound.session, bound.inputs, &bound.output) == FIRN_BAD_INPUT);
}

TEST_CASE("a failed run leaves the state as it was") {
  Scaled copied, bound;
  REQUIRE(firn_session_bind_state(bound.session, 0, 0) == FIRN_OK);
  std::vector<float> once = copied.run();
  std::copy(once.begin(), once.end(), copied.x.begin()); // where its tensor points
  bound.run();
  bound.inputs[0] = {};
  firn_tensor good = bound.inputs[1];
  bound.inputs[1].dtype = FIRN_I32;
  CHECK(firn_session_run(bound.session, bound.inputs, &bound.output) == FIRN_BAD_INPUT);
  bound.inputs[1] = good;
  CHECK(bound.run() == copied.run());
}

TEST_CASE("states that cannot be are refused by name") {
  Scaled bound;
  CHECK(firn_session_bind_state(bound.session, 0, 9) == FIRN_BAD_ARGUMENT);
  CHECK(firn_session_bind_state(bound.session, 9, 0) == FIRN_BAD_ARGUMENT);
  REQUIRE(firn_session_bind_state(bound.session, 0, 0) == FIRN_OK);
  CHECK(firn_session_bind_state(bound.session, 0, 1) == FIRN_BAD_ARGUMENT);
  CHECK_THAT(firn_session_message(bound.session), Contains("is bound to input 'x' already"));
  bound.inputs[0] = {};
  CHECK(firn_session_run(bound.session, bound.inputs, &bound.output) == FIRN_BAD_INPUT);
  CHECK_THAT(firn_session_message(bound.session), Contains("give its first value"));
  bound.inputs[0] = tensorOf(bound.x, {1, 4}, FIRN_F32);
  std::vector<float> own(4);
  bound.output = tensorOf(own, {1, 4}, FIRN_F32);
  CHECK(firn_session_run(bound.session, bound.inputs, &bound.output) == FIRN_BAD_ARGUMENT);
  CHECK_THAT(firn_session_message(bound.session), Contains("its memory is the session's"));
}

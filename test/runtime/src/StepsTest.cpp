// Control flow, late sizes and reference kernels.
#include <catch2/catch.hpp>

#include "runtime/include/firn/firn.hpp"
#include "test/runtime/src/Artifacts.h"

using namespace firn::test;
using Catch::Matchers::Contains;

namespace {

firn::Model openModel(const std::string &name) {
  std::string bytes = makeArtifact(name);
  return firn::Model(bytes.data(), bytes.size());
}

std::vector<int64_t> integers(const firn::Results &results, size_t index) {
  const int64_t *data = results.data<int64_t>(index);
  return std::vector<int64_t>(data, data + results[index].bytes / 8);
}

firn::Results runControl(firn::Session &session, int64_t trips, int64_t limit, bool takeOne, bool fails = false) {
  return session.run(
      {firn::tensor(&trips, {}), firn::tensor(&limit, {}), firn::tensor(&takeOne, {}), firn::tensor(&fails, {})});
}

} // namespace

TEST_CASE("a loop carries a growing list, collects results and counts its iterations") {
  firn::Model model = openModel("Control");
  firn::Session session(model);
  for (int64_t trips : {3, 0, 5, 3}) {
    firn::Results results = runControl(session, trips, 100, false);
    std::vector<int64_t> list, squares;
    int64_t sum = 0;
    for (int64_t i = 0; i < trips; ++i) {
      list.push_back(i);
      squares.push_back(i * i);
      sum += i;
    }
    CHECK(integers(results, 0) == list);
    CHECK(results.dims(0) == std::vector<int64_t>{trips});
    CHECK(integers(results, 1) == squares);
    CHECK(integers(results, 2) == std::vector<int64_t>{trips});
    CHECK(integers(results, 3) == std::vector<int64_t>{sum});
  }
}

TEST_CASE("a loop ends where its condition becomes false, and a negative trip count runs it not at all") {
  firn::Model model = openModel("Control");
  firn::Session session(model);
  CHECK(integers(runControl(session, 1000, 4, false), 2) == std::vector<int64_t>{4});
  CHECK(integers(runControl(session, -3, 4, false), 2) == std::vector<int64_t>{0});
}

TEST_CASE("an if takes the branch that its condition says") {
  firn::Model model = openModel("Control");
  firn::Session session(model);
  CHECK(integers(runControl(session, 4, 100, true), 3) == std::vector<int64_t>{1});
  CHECK(integers(runControl(session, 4, 100, false), 3) == std::vector<int64_t>{6});
}

TEST_CASE("a model that fails stops with its message and runs again") {
  firn::Model model = openModel("Control");
  firn::Session session(model);
  CHECK_THROWS_WITH(runControl(session, 1, 1, true, true), "the model was told to fail");
  CHECK(integers(runControl(session, 4, 100, true), 3) == std::vector<int64_t>{1});
}

TEST_CASE("steps of loops and branches say how deep they lie") {
  firn::Model model = openModel("Control");
  firn_step_info step{};
  step.struct_size = sizeof step;
  REQUIRE(firn_model_step(model.get(), 5, &step) == FIRN_OK);
  CHECK(step.depth == 1);
  REQUIRE(firn_model_step(model.get(), 12, &step) == FIRN_OK);
  CHECK(step.depth == 0);
  CHECK(step.runs == FIRN_RUNS_INSIDE);
  CHECK(model.describe().has_late_sizes == 1);
}

TEST_CASE("sizes that depend on data are found by the reference kernel's shape function") {
  firn::Model model = openModel("Positive");
  firn::Session session(model, 2);
  int64_t shift = 0;
  for (auto x : std::vector<std::vector<float>>{{1, 0, 2, 0}, {0, 0}, {}, {3, 4, 5, 6, 7, 8, 9}, {1, 0, 2, 0}}) {
    std::vector<int64_t> positions;
    std::vector<float> values;
    for (size_t i = 0; i < x.size(); ++i)
      if (x[i] > 0.5f) {
        positions.push_back(int64_t(i));
        values.push_back(x[i]);
      }
    firn::Results results = session.run({firn::tensor(x.data(), {int64_t(x.size())}), firn::tensor(&shift, {})});
    CHECK(integers(results, 0) == positions);
    CHECK(results.dims(1) == std::vector<int64_t>{int64_t(positions.size())});
    CHECK(std::vector<float>(results.data<float>(1), results.data<float>(1) + values.size()) == values);
    CHECK(integers(results, 2)[0] == int64_t(positions.size()));
    if (!x.empty())
      CHECK(std::vector<float>(results.data<float>(3), results.data<float>(3) + x.size()) == x);
  }
}

TEST_CASE("outputs of late size go into the caller's memory if they fit") {
  firn::Model model = openModel("Positive");
  firn::Session session(model, 1);
  std::vector<float> x = {1, 2, 3};
  int64_t shift = 0;
  alignas(64) float picked[4] = {};
  alignas(64) int64_t positions[4] = {};
  std::vector<firn_tensor> outputs(4);
  outputs[0].data = positions;
  outputs[0].bytes = sizeof positions;
  outputs[1].data = picked;
  outputs[1].bytes = sizeof picked;
  session.run({firn::tensor(x.data(), {3}), firn::tensor(&shift, {})}, outputs);
  CHECK(picked[2] == 3);
  CHECK(positions[2] == 2);
  CHECK(outputs[1].dims[0] == 3);
  outputs[1].bytes = 8;
  CHECK_THROWS_WITH(session.run({firn::tensor(x.data(), {3}), firn::tensor(&shift, {})}, outputs),
                    Contains("output 'picked' needs 12 bytes, the caller gave 8"));
  CHECK(outputs[1].dims[0] == 3);
  outputs[1].bytes = 16;
  outputs[0].bytes = 16;
  CHECK_THROWS_WITH(session.run({firn::tensor(x.data(), {3}), firn::tensor(&shift, {})}, outputs),
                    Contains("output 'positions' needs 24 bytes"));
}

TEST_CASE("an index out of range is an error that names the node") {
  firn::Model model = openModel("Positive");
  firn::Session session(model, 2);
  std::vector<float> x = {1, 2, 3};
  int64_t shift = 5;
  CHECK_THROWS_WITH(session.run({firn::tensor(x.data(), {3}), firn::tensor(&shift, {})}),
                    "node 'pick': an index is out of range");
  shift = 0;
  session.run({firn::tensor(x.data(), {3}), firn::tensor(&shift, {})});
}

TEST_CASE("a reference kernel's refusal names the node and the operator") {
  firn::Model model = openModel("Positive");
  firn::Session session(model, 1);
  std::vector<float> x(1001);
  int64_t shift = 0;
  CHECK_THROWS_WITH(session.run({firn::tensor(x.data(), {1001}), firn::tensor(&shift, {})}),
                    "node 'find' (test::Positive): x is longer than 1000");
}

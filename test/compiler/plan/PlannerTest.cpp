// The planner: aliases, places taken over, lifetimes across branches and loops, outputs, constraints.
#include "runtime/abi/model.h"
#include "test/compiler/plan/PlannerHarness.h"

#include <catch2/catch.hpp>

namespace {

/// A chain of one-operation kernels over tensor<64xf32>.
std::string kernel(const std::string &result, const std::string &operand) {
  return "%" + result + " = firn.fused \"map\"(%" + operand +
         ") : (tensor<64xf32>) -> tensor<64xf32> { ^bb0(%k: tensor<64xf32>): %r = firn.relu %k : (tensor<64xf32>) -> "
         "tensor<64xf32> firn.yield %r : tensor<64xf32> }\n";
}
std::string unary(const std::string &result, const std::string &operand) {
  return "%" + result + " = firn.abs %" + operand + " : (tensor<64xf32>) -> tensor<64xf32>\n";
}
std::string function(const std::string &body, const std::string &returned = "o",
                     const std::string &types = "tensor<64xf32>") {
  return "func.func @main(%x: tensor<64xf32> {firn.name = \"x\"}, %c: tensor<i1> {firn.name = \"c\"}) -> (" + types +
         ") {\n" + body + "return %" + returned + " : " + types + "\n}\n";
}

int32_t root(const Planned &p, int32_t buffer) {
  while (p.buffers[buffer].kind == FIRN_BUFFER_ALIAS)
    buffer = int32_t(p.buffers[buffer].offset);
  return buffer;
}

/// Buffers that live at one time have bytes of their own.
void requireNoOverlap(const Planned &p) {
  for (size_t i = 0; i < p.buffers.size(); ++i)
    for (size_t j = i + 1; j < p.buffers.size(); ++j) {
      const PlannedBuffer &a = p.buffers[i], &b = p.buffers[j];
      if (a.kind != FIRN_BUFFER_ARENA || b.kind != FIRN_BUFFER_ARENA || a.firstStep < 0 || b.firstStep < 0)
        continue;
      bool together = a.firstStep <= b.lastStep && b.firstStep <= a.lastStep;
      bool apart = a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset;
      INFO("buffers " << i << " and " << j);
      CHECK((!together || apart));
    }
}

} // namespace

TEST_CASE("a_result_takes_the_place_of_an_operand_that_dies") {
  Planned p = plan(function(unary("a", "x") + kernel("b", "a") + unary("o", "b")));
  REQUIRE(p.steps.size() == 3);
  CHECK(root(p, p.steps[1].buffers[1]) == root(p, p.steps[0].buffers[1]));
  CHECK(p.arenaBytes == 256);
}

TEST_CASE("an_operand_that_is_read_later_keeps_its_place") {
  Planned p = plan(function(unary("a", "x") + kernel("b", "a") +
                            "%o = firn.add %a, %b : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>\n"));
  CHECK(root(p, p.steps[1].buffers[1]) != root(p, p.steps[0].buffers[1]));
  CHECK(p.arenaBytes == 512);
  requireNoOverlap(p);
}

TEST_CASE("an_input_is_never_overwritten") {
  Planned p = plan(function(kernel("b", "x") + unary("o", "b")));
  CHECK(p.buffers[root(p, p.steps[0].buffers[1])].kind == FIRN_BUFFER_ARENA);
}

TEST_CASE("a_view_keeps_its_source_alive") {
  Planned p = plan(function(unary("a", "x") + "%v = firn.reshape %a : (tensor<64xf32>) -> tensor<8x8xf32>\n" +
                                unary("b", "x") + unary("d", "b") +
                                "%o = firn.abs %v : (tensor<8x8xf32>) -> tensor<8x8xf32>\n"
                                "%e = firn.abs %d : (tensor<64xf32>) -> tensor<64xf32>\n",
                            "o, %e", "tensor<8x8xf32>, tensor<64xf32>"));
  CHECK(p.buffers[root(p, p.steps[0].buffers[1])].lastStep == 3);
  requireNoOverlap(p);
}

TEST_CASE("an_input_or_constant_that_is_an_output_is_copied") {
  Planned p = plan(function("", "x"));
  REQUIRE(p.steps.size() == 1);
  CHECK(p.steps[0].kind == FIRN_STEP_COPY);
  CHECK(p.buffers[p.outputs[0]].kind == FIRN_BUFFER_OUTPUT);
}

TEST_CASE("one_value_twice_among_the_outputs_has_two_buffers") {
  Planned p = plan(function(unary("o", "x"), "o, %o", "tensor<64xf32>, tensor<64xf32>"));
  CHECK(p.outputs[0] != p.outputs[1]);
  CHECK(p.steps.back().kind == FIRN_STEP_COPY);
}

TEST_CASE("branches_nest_and_copy_their_results") {
  Planned p = plan(function("%o = firn.if %c : (tensor<i1>) -> tensor<64xf32> then {\n" + unary("t", "x") +
                            "firn.yield %t : tensor<64xf32>\n} else {\nfirn.yield %x : tensor<64xf32>\n}\n"));
  REQUIRE(p.steps[0].kind == FIRN_STEP_IF);
  CHECK(p.steps[0].begin == 1);
  CHECK(p.steps[0].middle == 3);
  CHECK(p.steps[0].end == 4);
}

TEST_CASE("what_a_loop_reads_lives_until_its_end") {
  Planned p =
      plan(function(unary("a", "x") + unary("s", "x") +
                    "%n = firn.constant {value = dense<3> : tensor<i64>} : tensor<i64>\n%none = firn.absent : none\n"
                    "%o = firn.loop %n, %none, %s : (tensor<i64>, none, tensor<64xf32>) -> tensor<64xf32> {\n"
                    "^bb0(%i: tensor<i64>, %go: tensor<i1>, %carried: tensor<64xf32>):\n"
                    "%u = firn.add %carried, %a : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>\n" +
                    unary("w", "u") + "firn.yield %go, %w : tensor<i1>, tensor<64xf32>\n}\n"));
  int32_t loop = 0;
  while (p.steps[loop].kind != FIRN_STEP_LOOP)
    ++loop;
  const PlannedBuffer &outer = p.buffers[root(p, p.steps[0].buffers[1])];
  CHECK(outer.lastStep >= p.steps[loop].end - 1);
  requireNoOverlap(p);
}

TEST_CASE("values_that_a_loop_swaps_go_through_a_copy") {
  Planned p = plan(function(
      unary("a", "x") + unary("b", "a") +
          "%n = firn.constant {value = dense<3> : tensor<i64>} : tensor<i64>\n%none = firn.absent : none\n"
          "%o:2 = firn.loop %n, %none, %a, %b : (tensor<i64>, none, tensor<64xf32>, tensor<64xf32>) -> "
          "(tensor<64xf32>, "
          "tensor<64xf32>) {\n^bb0(%i: tensor<i64>, %go: tensor<i1>, %p: tensor<64xf32>, %q: tensor<64xf32>):\n"
          "firn.yield %go, %q, %p : tensor<i1>, tensor<64xf32>, tensor<64xf32>\n}\n",
      "o#0, %o#1", "tensor<64xf32>, tensor<64xf32>"));
  requireNoOverlap(p);
  // In the loop: both sources are copied away before either value is written.
  std::vector<int32_t> written;
  for (const PlannedStep &s : p.steps)
    if (s.kind == FIRN_STEP_LOOP)
      for (int32_t i = s.begin; i < s.end; ++i)
        if (p.steps[i].kind == FIRN_STEP_COPY) {
          for (int32_t earlier : written)
            CHECK(root(p, p.steps[i].buffers[0]) != earlier);
          bool isSpare = false;
          for (int32_t j = i + 1; j < s.end; ++j)
            isSpare |= root(p, p.steps[j].buffers[0]) == root(p, p.steps[i].buffers[1]);
          if (!isSpare)
            written.push_back(root(p, p.steps[i].buffers[1]));
        }
}

TEST_CASE("inputs_that_share_a_symbol_are_constrained") {
  Planned p = plan("func.func @main(%x: tensor<?xf32, #firn.dims<[\"n\"]>> {firn.name = \"x\"}, %y: tensor<?xf32, "
                   "#firn.dims<[\"n\"]>> {firn.name = \"y\"}) -> tensor<?xf32, #firn.dims<[\"n\"]>> {\n"
                   "%o = firn.add %x, %y : (tensor<?xf32, #firn.dims<[\"n\"]>>, tensor<?xf32, #firn.dims<[\"n\"]>>) -> "
                   "tensor<?xf32, #firn.dims<[\"n\"]>>\nreturn %o : tensor<?xf32, #firn.dims<[\"n\"]>>\n}\n");
  REQUIRE(p.constraints.size() == 1);
  CHECK(p.constraints[0] == "dimension 0 of input 'y' must equal dimension 0 of input 'x' (n)");
  CHECK(p.arenaBytes == 0);
}

TEST_CASE("equal_weights_are_stored_once") {
  std::string constant = " = firn.constant {value = dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>} : tensor<4xf32>\n";
  Planned p = plan(
      "func.func @main(%x: tensor<4xf32> {firn.name = \"x\"}) -> tensor<4xf32> {\n%a" + constant + "%b" + constant +
      "%s = firn.add %x, %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>\n"
      "%o = firn.mul %s, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>\nreturn %o : tensor<4xf32>\n}\n");
  CHECK(p.weightBytes == 64);
}

namespace {

/// A loop over a sequence of tensor<64xf32>, whose body is `body` and yields %after.
std::string appending(const std::string &body, const std::string &behind = "") {
  const std::string list = "!firn.sequence<tensor<64xf32>>";
  return "func.func @main(%x: tensor<64xf32> {firn.name = \"x\"}, %n: tensor<i64> {firn.name = \"n\"}) -> " + list +
         " {\n%none = firn.absent : none\n%e = firn.sequence_construct %x : (tensor<64xf32>) -> " + list +
         "\n%s = firn.loop %n, %none, %e : (tensor<i64>, none, " + list + ") -> " + list +
         " {\n^bb0(%i: tensor<i64>, %c: tensor<i1>, %before: " + list + "):\n" + body +
         "firn.yield %c, %after : tensor<i1>, " + list + "\n}\n" + behind + "return %s : " + list + "\n}\n";
}
std::string insertion(const std::string &result, const std::string &into) {
  return "%" + result + " = firn.sequence_insert %" + into +
         ", %x : (!firn.sequence<tensor<64xf32>>, tensor<64xf32>) -> !firn.sequence<tensor<64xf32>>\n";
}
int count(const Planned &p, int32_t operation) {
  int found = 0;
  for (const PlannedStep &step : p.steps)
    found += step.kind == FIRN_STEP_LIST && step.operation == operation;
  return found;
}

} // namespace

TEST_CASE("a_loop_appends_to_its_sequence_in_place_and_no_list_is_ever_copied") {
  Planned p = plan(appending(insertion("after", "before")));
  CHECK(count(p, FIRN_LIST_COPY) == 0);
  CHECK(count(p, FIRN_LIST_MOVE) == 2); // into the loop and out of it
  for (const PlannedStep &step : p.steps)
    if (step.kind == FIRN_STEP_LIST && step.operation == FIRN_LIST_INSERT)
      CHECK(root(p, step.buffers[0]) == root(p, step.buffers[3]));
}

TEST_CASE("an_append_in_one_branch_changes_the_sequence_that_the_other_branch_passes_on") {
  Planned p = plan(appending("%after = firn.if %c : (tensor<i1>) -> !firn.sequence<tensor<64xf32>> then {\n" +
                             insertion("longer", "before") +
                             "firn.yield %longer : !firn.sequence<tensor<64xf32>>\n} else {\nfirn.yield %before : "
                             "!firn.sequence<tensor<64xf32>>\n}\n"));
  CHECK(count(p, FIRN_LIST_COPY) == 0);
}

TEST_CASE("a_sequence_that_is_read_again_is_not_changed") {
  SECTION("behind the append") {
    Planned p = plan(appending(insertion("more", "before") +
                               "%after = firn.identity %before : (!firn.sequence<tensor<64xf32>>) -> "
                               "!firn.sequence<tensor<64xf32>>\n"));
    for (const PlannedStep &step : p.steps)
      if (step.kind == FIRN_STEP_LIST && step.operation == FIRN_LIST_INSERT)
        CHECK(root(p, step.buffers[0]) != root(p, step.buffers[3]));
  }
  SECTION("in the next iteration") {
    Planned p = plan(appending(insertion("after", "e")));
    for (const PlannedStep &step : p.steps)
      if (step.kind == FIRN_STEP_LIST && step.operation == FIRN_LIST_INSERT)
        CHECK(root(p, step.buffers[0]) != root(p, step.buffers[3]));
    CHECK(count(p, FIRN_LIST_COPY) == 1); // into the loop: it stays what it was
  }
}

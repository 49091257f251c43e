#include "test/runtime/kernels/KernelCall.h"

#include <cmath>

using namespace firn::kernels;
using Values = KernelCall::Values;
using Dims = KernelCall::Dims;
using Strings = std::vector<const char *>;
using Catch::Contains;

namespace {

/// One neuron that adds its input to its state.
KernelCall summingRnn(const Dims &x, const Values &values, int64_t directions) {
  KernelCall call("RNN");
  call.input(x, values).input({directions, 1, 1}, {1}).input({directions, 1, 1}, {1}).absent();
  return call;
}

} // namespace

TEST_CASE("rnn_reads_a_short_sequence_backwards_from_its_own_end") {
  KernelCall call = summingRnn({3, 2, 1}, {1, 10, 2, 20, 4, 40}, 1);
  call.input(FIRN_I32, {2}, {3, 2}).attribute("direction", "reverse").attribute("activations", Strings{"Affine"});
  REQUIRE(call.run(2) == FIRN_CALL_OK);
  CHECK(call.values(0) == Values{7, 30, 6, 20, 4, 0});
  CHECK(call.values(1) == Values{7, 30});
}

TEST_CASE("rnn_keeps_the_initial_state_of_an_empty_sequence") {
  KernelCall call = summingRnn({1, 1, 1}, {1}, 1);
  call.input(FIRN_I32, {1}, {0}).input({1, 1, 1}, {9});
  REQUIRE(call.run(2) == FIRN_CALL_OK);
  CHECK(call.values(0) == Values{0});
  CHECK(call.values(1) == Values{9});
}

TEST_CASE("rnn_batch_first_moves_the_batch_in_front_of_all_outputs") {
  KernelCall call = summingRnn({2, 3, 1}, {1, 2, 4, 10, 20, 40}, 2);
  call.attribute("layout", int64_t(1)).attribute("direction", "bidirectional");
  REQUIRE(call.attribute("activations", Strings{"Affine", "relu"}).run(2) == FIRN_CALL_OK);
  CHECK(call.dims(0) == Dims{2, 3, 2, 1});
  CHECK(call.values(0) == Values{1, 7, 3, 6, 7, 4, 10, 70, 30, 60, 70, 40});
  CHECK(call.values(1) == Values{7, 7, 70, 70});
}

TEST_CASE("rnn_refuses_lengths_and_functions_that_do_not_exist") {
  KernelCall longer = summingRnn({1, 1, 1}, {1}, 1), unknown = summingRnn({1, 1, 1}, {1}, 1);
  CHECK_THAT(longer.input(FIRN_I32, {1}, {2}).runRefusal(2), Contains("expected 0 to 1, found 2"));
  CHECK_THAT(unknown.attribute("activations", Strings{"Swish"}).refusal(), Contains("unknown function at position 0"));
}

TEST_CASE("gru_puts_the_recurrent_bias_inside_the_reset_product_on_request") {
  auto hidden = [](int64_t isLinear) {
    KernelCall call("GRU");
    call.input({1, 1, 1}, {0}).input({1, 3, 1}, {0}).input({1, 3, 1}, {0, 0, 2});
    call.input({1, 6}, {-1e9, 0, 0, 0, 0, 3}).absent().input({1, 1, 1}, {1}); // update 0, reset 1/2, recurrent bias 3
    call.attribute("activations", Strings{"Sigmoid", "Affine"}).attribute("linear_before_reset", isLinear);
    return call.result(2);
  };
  CHECK(hidden(0) == Values{4});   // 2 * (1/2 * 1) + 3
  CHECK(hidden(1) == Values{2.5}); // 1/2 * (2 * 1 + 3)
}

TEST_CASE("lstm_orders_gates_input_output_forget_cell") {
  auto last = [](const Values &bias) {
    KernelCall call("LSTM");
    call.input({1, 1, 1}, {0}).input({1, 4, 1}, {0}).input({1, 4, 1}, {0}).input({1, 8}, bias).absent();
    call.absent().input({1, 1, 1}, {0.5}).attribute("activations", Strings{"Relu", "Affine", "Affine"});
    call.run(3);
    return Values{call.values(1)[0], call.values(2)[0]};
  };
  // c = forget * 0.5 + input * cell, h = output * c
  CHECK(last({2, 10, 4, 3, 0, 0, 0, 0}) == Values{80, 8});
  CHECK(last({0, 1, 4, 3, 2, 0, 0, 0}) == Values{8, 8}); // both biases add up
}

TEST_CASE("lstm_lets_the_output_gate_peep_at_the_new_cell_state") {
  KernelCall call("LSTM");
  call.input({1, 1, 1}, {0}).input({1, 4, 1}, {0}).input({1, 4, 1}, {0}).input({1, 8}, {1, 0, 0, 5, 0, 0, 0, 0});
  call.absent().absent().input({1, 1, 1}, {1}).input({1, 3}, {1, 1, 3});
  call.attribute("activations", Strings{"Affine", "Affine", "Affine"});
  REQUIRE(call.run(3) == FIRN_CALL_OK);
  CHECK(call.values(2) == Values{13}); // (1 + 1) * 5 + 3 * 1
  CHECK(call.values(1) == Values{169});
}

TEST_CASE("lstm_clips_gates_and_couples_forget_to_input") {
  KernelCall call("LSTM");
  call.input({1, 1, 1}, {0}).input({1, 4, 1}, {0}).input({1, 4, 1}, {0}).input({1, 8}, {9, 9, 9, 9, 0, 0, 0, 0});
  call.absent().absent().input({1, 1, 1}, {8}).attribute("clip", 0.5f).attribute("input_forget", int64_t(1));
  call.attribute("activations", Strings{"Affine", "Affine", "Affine"});
  REQUIRE(call.run(3) == FIRN_CALL_OK);
  CHECK(call.values(2) == Values{4.25}); // (1 - 0.5) * 8 + 0.5 * 0.5
  CHECK(call.values(1) == Values{2.125});
}

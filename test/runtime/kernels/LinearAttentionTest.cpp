#include "test/runtime/kernels/KernelCall.h"

#include <cmath>

using namespace firn::kernels;
using Values = KernelCall::Values;

TEST_CASE("linear_attention_gated_delta_forgets_before_it_corrects") {
  KernelCall call("LinearAttention");
  call.input({1, 1, 1}, {1}).input({1, 1, 1}, {2}).input({1, 1, 1}, {10}).input({1, 1, 1, 1}, {4});
  call.input({1, 1, 1}, {std::log(0.5)}).input({1, 1, 1}, {0.5});
  call.attribute("q_num_heads", int64_t(1)).attribute("kv_num_heads", int64_t(1));
  CHECK(isNear(call.result(2), {8})); // 4 / 2 + 2 * 0.5 * (10 - 2 * 2)
  CHECK(isNear(call.values(1), {8}));
}

TEST_CASE("causal_conv_carries_the_last_taps_of_what_it_has_seen") {
  KernelCall call("CausalConvWithState");
  call.input({1, 1, 1}, {5}).input({1, 1, 3}, {1, 10, 100}).absent().input({1, 1, 2}, {3, 4});
  CHECK(call.result(2) == Values{543});
  CHECK(call.values(1) == Values{4, 5});
}

#include "test/runtime/kernels/KernelCall.h"

using namespace firn::kernels;
using Values = KernelCall::Values;
using Dims = KernelCall::Dims;
using Catch::Contains;

TEST_CASE("quantize_rounds_ties_to_even_and_saturates") {
  KernelCall call("QuantizeLinear");
  call.input({6}, {0.5, 1.5, 2.5, -0.5, 1000, -1000}).input({}, {1}).input(FIRN_I8, {}, {1});
  CHECK(call.result() == Values{1, 3, 3, 1, 127, -128});
}

TEST_CASE("quantize_divides_in_the_precision_of_the_scale") {
  // 0.35f / 0.1f is 3.5 in float32, a tie that goes to 4, and 3.49999996... in double.
  KernelCall call("QuantizeLinear");
  CHECK(call.input({1}, {0.35f}).input({}, {0.1f}).result() == Values{4});
  CHECK(call.dtype(0) == FIRN_U8);
}

TEST_CASE("quantize_per_axis_and_blocked_find_their_scales") {
  KernelCall axis("QuantizeLinear"), blocked("DequantizeLinear");
  axis.input({2, 2}, {8}).input({2}, {1, 2}).input(FIRN_U8, {2}, {0, 10});
  CHECK(axis.attribute("axis", int64_t(0)).result() == Values{8, 8, 14, 14});
  blocked.input(FIRN_I8, {1, 5}, {1, 1, 1, 1, 1}).input({1, 3}, {1, 2, 3}).input(FIRN_I8, {1, 3}, {0, 0, -1});
  CHECK(blocked.attribute("block_size", int64_t(2)).result() == Values{1, 1, 2, 2, 6});
}

TEST_CASE("quantize_packs_int4_and_zeroes_the_bits_behind_it") {
  KernelCall call("QuantizeLinear");
  call.input({3}, {-100, 3, 100}).input({}, {1}).attribute("output_dtype", int64_t(FIRN_I4));
  CHECK(call.result() == Values{-8, 3, 7});
}

TEST_CASE("quantize_to_float8_overflows_to_nan_without_saturation") {
  auto quantize = [](int64_t saturates) {
    KernelCall call("QuantizeLinear");
    call.input({1}, {1e6}).input({}, {1}).input(FIRN_F8E4M3FN, {}, {0});
    return call.attribute("saturate", saturates).result()[0];
  };
  CHECK(quantize(1) == 448);
  CHECK(quantize(0) != quantize(0)); // NaN
}

TEST_CASE("quantize_refuses_shapes_that_are_no_granularity") {
  KernelCall axis("QuantizeLinear"), blocked("QuantizeLinear"), zero("QuantizeLinear");
  axis.typeOnly(FIRN_F32, {2, 3}).typeOnly(FIRN_F32, {2});
  CHECK_THAT(axis.refusal(), Contains("for axis 1 of x [2, 3]: expected [3], found [2]"));
  blocked.typeOnly(FIRN_F32, {2, 3}).typeOnly(FIRN_F32, {2, 3}).attribute("block_size", int64_t(2));
  CHECK_THAT(blocked.refusal(), Contains("expected [2, 2], found [2, 3]"));
  zero.typeOnly(FIRN_F32, {2, 3}).typeOnly(FIRN_F32, {3}).typeOnly(FIRN_U8, {1});
  CHECK_THAT(zero.refusal(), Contains("y_zero_point has the wrong shape"));
}

TEST_CASE("dynamic_quantize_widens_the_range_to_include_zero") {
  KernelCall call("DynamicQuantizeLinear"), zeros("DynamicQuantizeLinear");
  CHECK(call.input({2}, {1, 3}).result(3) == Values{85, 255});
  CHECK(call.values(2) == Values{0});
  CHECK(zeros.input({2}, {0, 0}).result(3) == Values{0, 0});
}

TEST_CASE("qlinear_conv_pads_with_zero_points_and_requantises_once") {
  KernelCall call("QLinearConv");
  call.input(FIRN_U8, {1, 1, 2}, {12, 14}).input({}, {0.5}).input(FIRN_U8, {}, {10});
  call.input(FIRN_I8, {2, 1, 2}, {1, 1, 3, 3}).input({2}, {1, 2}).input(FIRN_I8, {2}, {0, 1});
  call.input({}, {0.5}).input(FIRN_U8, {}, {100}).input(FIRN_I32, {2}, {1, 0});
  CHECK(call.attribute("pads", Dims{1, 0}).result() == Values{103, 107, 108, 124});
}

TEST_CASE("qlinear_matmul_takes_scales_per_row_and_per_column") {
  KernelCall call("QLinearMatMul");
  call.input(FIRN_U8, {2, 1}, {3, 4}).input({2}, {1, 2}).input(FIRN_U8, {2}, {1, 1});
  call.input(FIRN_I8, {1, 2}, {5, -5}).input({2}, {1, 0.5}).input(FIRN_I8, {2}, {0, 0});
  call.input({}, {1}).input(FIRN_I8, {}, {-1});
  CHECK(call.result() == Values{9, -6, 29, -16});
}

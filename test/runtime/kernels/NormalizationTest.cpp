#include "test/runtime/kernels/KernelCall.h"

#include <cmath>

using namespace firn::kernels;
using Values = KernelCall::Values;
using Dims = KernelCall::Dims;
using Catch::Contains;

TEST_CASE("layer_norm_keeps_the_variance_under_a_large_offset") {
  KernelCall call("LayerNormalization");
  call.input({1, 2}, {1e6, 1e6 + 2}).input({2}, {1}).attribute("epsilon", 0.0f);
  CHECK(call.result(3) == Values{-1, 1});
  CHECK(call.values(1) == Values{1e6 + 1});
  CHECK(call.values(2) == Values{1});
}

TEST_CASE("layer_norm_broadcasts_scale_and_bias_along_leading_and_trailing_axes") {
  KernelCall call("LayerNormalization");
  call.input({2, 2}, {0, 2, 0, 4}).input({2, 1}, {1, 10}).input({1, 2}, {100, 200}).attribute("epsilon", 0.0f);
  CHECK(call.result() == Values{99, 201, 90, 210});
}

TEST_CASE("layer_norm_statistics_have_the_stash_type_and_ones_for_normalised_axes") {
  KernelCall call("LayerNormalization");
  call.typeOnly(FIRN_F16, {2, 3, 4}).typeOnly(FIRN_F16, {3, 4}).attribute("axis", int64_t(1));
  REQUIRE(call.infer(3) == FIRN_CALL_OK);
  CHECK(call.dtype(0) == FIRN_F16);
  CHECK(call.dtype(1) == FIRN_F32);
  CHECK(call.dims(2) == Dims{2, 1, 1});
}

TEST_CASE("batch_norm_in_training_returns_running_statistics_of_the_population") {
  KernelCall call("BatchNormalization");
  call.input({2, 1}, {1, 3}).input({1}, {1}).input({1}, {0}).input({1}, {10}).input({1}, {20});
  call.attribute("training_mode", int64_t(1)).attribute("momentum", 0.5f).attribute("epsilon", 0.0f);
  CHECK(call.result(3) == Values{-1, 1});
  CHECK(call.values(1) == Values{6});
  CHECK(call.values(2) == Values{10.5});
}

TEST_CASE("batch_norm_refuses_running_statistics_without_training") {
  KernelCall call("BatchNormalization");
  for (Dims dims : {Dims{2, 1}, Dims{1}, Dims{1}, Dims{1}, Dims{1}})
    call.typeOnly(FIRN_F32, dims);
  CHECK(call.refusal(1) == "");
  CHECK_THAT(call.refusal(3), Contains("training_mode=1 only"));
}

TEST_CASE("group_norm_scales_each_channel_for_itself") {
  KernelCall call("GroupNormalization");
  call.input({1, 2, 1}, {0, 2}).input({2}, {1, 10}).input({2}, {0, 5});
  CHECK(isNear(call.attribute("num_groups", int64_t(1)).attribute("epsilon", 0.0f).result(), {-1, 15}));
}

TEST_CASE("instance_norm_of_one_element_is_its_bias") {
  KernelCall call("InstanceNormalization");
  CHECK(call.input({1, 2, 1}, {3, 4}).input({2}, {1}).input({2}, {5, 6}).result() == Values{5, 6});
}

TEST_CASE("lrn_of_even_size_looks_one_channel_further_ahead_than_back") {
  KernelCall call("LRN");
  call.input({1, 3, 1}, {1, 2, 4}).attribute("size", int64_t(2)).attribute("alpha", 2.0f);
  CHECK(call.attribute("beta", 1.0f).attribute("bias", 0.0f).result() == Values{1 / 5.0f, 2 / 20.0f, 4 / 16.0f});
}

TEST_CASE("lp_norm_of_zeros_is_zero") {
  KernelCall call("LpNormalization");
  CHECK(call.input({2, 2}, {0, 0, 3, 4}).result() == Values{0, 0, 0.6f, 0.8f});
}

TEST_CASE("rms_norm_has_the_type_of_its_scale") {
  KernelCall call("RMSNormalization");
  call.input(FIRN_F16, {1, 2}, {3, 3}).input(FIRN_F32, {2}, {1, 2}).attribute("epsilon", 0.0f);
  CHECK(call.result() == Values{1, 2});
  CHECK(call.dtype(0) == FIRN_F32);
}

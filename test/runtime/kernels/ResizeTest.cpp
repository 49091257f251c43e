#include "test/runtime/kernels/KernelCall.h"

using namespace firn::kernels;
using Values = KernelCall::Values;
using Dims = KernelCall::Dims;
using Catch::Contains;

namespace {

/// Resizes one axis; `length` is 0 where `scale` counts.
KernelCall resize(const Values &values, int64_t length, double scale, const char *mode, const char *transformation) {
  KernelCall call("Resize");
  call.input({int64_t(values.size())}, values).absent();
  if (length)
    call.absent().input(FIRN_I64, {1}, {double(length)});
  else
    call.input({1}, {scale});
  call.attribute("mode", mode).attribute("coordinate_transformation_mode", transformation);
  return call;
}

} // namespace

TEST_CASE("resize_nearest_settles_ties_by_its_mode") {
  auto nearest = [](const char *mode) {
    return resize({1, 2, 3, 4}, 2, 0, "nearest", "half_pixel").attribute("nearest_mode", mode).result();
  };
  CHECK(nearest("round_prefer_floor") == Values{1, 3}); // the sources are 0.5 and 2.5
  CHECK(nearest("round_prefer_ceil") == Values{2, 4});
  CHECK(nearest("floor") == Values{1, 3});
  CHECK(nearest("ceil") == Values{2, 4});
}

TEST_CASE("resize_to_one_element_samples_the_centre_or_element_0") {
  CHECK(resize({1, 2, 3}, 1, 0, "linear", "half_pixel").result() == Values{2});
  CHECK(resize({1, 2, 3}, 1, 0, "linear", "pytorch_half_pixel").result() == Values{1});
  CHECK(resize({1, 2, 3}, 1, 0, "linear", "align_corners").result() == Values{1});
}

TEST_CASE("resize_computes_extents_in_float32") {
  KernelCall call = resize({1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 0, 0.7f, "nearest", "asymmetric");
  REQUIRE(call.run() == FIRN_CALL_OK);
  CHECK(call.dims(0) == Dims{7}); // 0.7f is a little less than 0.7
}

TEST_CASE("resize_linear_keeps_a_nan_out_of_elements_that_do_not_read_it") {
  Values y = resize({1, NAN, 3}, 3, 0, "linear", "align_corners").result();
  CHECK(y[0] == 1);
  CHECK(y[2] == 3);
}

TEST_CASE("resize_of_integers_rounds_and_saturates") {
  KernelCall call("Resize");
  call.input(FIRN_U8, {4}, {0, 255, 255, 0}).absent().input({1}, {2}).attribute("mode", "cubic");
  Values y = call.result();
  CHECK(y[0] == 0);
  CHECK(y[3] == 255); // the cubic overshoots
}

TEST_CASE("resize_copies_int64_and_complex_exactly") {
  KernelCall integers("Resize");
  integers.input(FIRN_I64, {1}, {9007199254740992.0}).absent().input({1}, {2});
  CHECK(integers.result() == Values{9007199254740992.0, 9007199254740992.0});
  KernelCall complex("Resize");
  complex.input(FIRN_C64, {2}, {1, 2}).absent().input({1}, {2}).attribute("mode", "linear");
  CHECK(complex.attribute("coordinate_transformation_mode", "align_corners").result()[3] == 2);
}

TEST_CASE("resize_crop_multiplies_the_cropped_extent_and_fills_what_lies_outside") {
  KernelCall call("Resize");
  call.input({4}, {1, 2, 3, 4}).input({2}, {0.5, 1.5}).input({1}, {1});
  call.attribute("mode", "linear").attribute("coordinate_transformation_mode", "tf_crop_and_resize");
  CHECK(call.attribute("extrapolation_value", -1.0f).result() == Values{2.5, 3.5, -1, -1});
}

TEST_CASE("resize_keeps_the_aspect_ratio_by_policy") {
  auto dims = [](const char *policy) {
    KernelCall call("Resize");
    call.typeOnly(FIRN_F32, {2, 4}).absent().absent().input(FIRN_I64, {2}, {4, 6});
    call.attribute("keep_aspect_ratio_policy", policy);
    CHECK(call.infer() == FIRN_CALL_OK);
    return call.dims(0);
  };
  CHECK(dims("stretch") == Dims{4, 6});
  CHECK(dims("not_larger") == Dims{3, 6});
  CHECK(dims("not_smaller") == Dims{4, 8});
}

TEST_CASE("resize_asks_for_scales_and_refuses_bad_ones") {
  KernelCall unknown("Resize"), neither("Resize"), negative("Resize");
  CHECK(unknown.typeOnly(FIRN_F32, {2}).absent().typeOnly(FIRN_F32, {1}).infer() == FIRN_CALL_NEEDS_VALUE);
  CHECK(unknown.needed() == 2);
  CHECK_THAT(neither.typeOnly(FIRN_F32, {2}).absent().typeOnly(FIRN_F32, {0}).refusal(), Contains("found neither"));
  CHECK_THAT(negative.typeOnly(FIRN_F32, {2}).absent().input({1}, {-1}).refusal(), Contains("must be positive"));
}

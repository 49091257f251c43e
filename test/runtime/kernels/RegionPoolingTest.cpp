#include "test/runtime/kernels/KernelCall.h"

using namespace firn::kernels;
using Values = KernelCall::Values;
using Dims = KernelCall::Dims;
using Catch::Contains;

TEST_CASE("max_roi_pool_rounds_corners_and_splits_a_region_into_overlapping_bins") {
  KernelCall call("MaxRoiPool");
  call.input({1, 1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9}).input({2, 5}, {0, 0.4, 0, 2, 2, 0, 1, 1, 1, 1});
  CHECK(call.attribute("pooled_shape", Dims{2, 2}).result() == Values{5, 6, 8, 9, 5, 5, 5, 5});
}

TEST_CASE("max_roi_pool_yields_zero_for_a_region_outside_of_the_image") {
  KernelCall call("MaxRoiPool");
  call.input({1, 1, 2, 2}, {-1}).input({1, 5}, {0, 5, 5, 6, 6});
  CHECK(call.attribute("pooled_shape", Dims{1, 1}).result() == Values{0});
}

TEST_CASE("regions_name_images_that_exist") {
  KernelCall pool("MaxRoiPool"), align("RoiAlign");
  pool.input({1, 1, 2, 2}, {1}).input({1, 5}, {1, 0, 0, 1, 1});
  CHECK_THAT(pool.attribute("pooled_shape", Dims{1, 1}).runRefusal(), Contains("expected 0 to 0, found 1"));
  align.input({1, 1, 2, 2}, {1}).input({1, 4}, {0, 0, 1, 1}).input(FIRN_I64, {1}, {-1});
  CHECK_THAT(align.runRefusal(), Contains("expected 0 to 0, found -1"));
}

TEST_CASE("roi_align_samples_between_cells_with_and_without_the_half_pixel") {
  auto align = [](const char *transformation) {
    KernelCall call("RoiAlign");
    call.input({1, 1, 2, 2}, {0, 1, 2, 3}).input({1, 4}, {0, 0, 1, 1}).input(FIRN_I64, {1}, {0});
    call.attribute("sampling_ratio", int64_t(1)).attribute("coordinate_transformation_mode", transformation);
    return call.result();
  };
  CHECK(align("half_pixel") == Values{0});          // the sample lies at (0, 0)
  CHECK(align("output_half_pixel") == Values{1.5}); // at (0.5, 0.5)
}

TEST_CASE("deform_conv_reads_moved_taps_between_elements_and_zero_outside") {
  KernelCall call("DeformConv");
  call.input({1, 1, 1, 3}, {10, 20, 30}).input({1, 1, 1, 1}, {1}).input({1, 2, 1, 3}, {0, 0, 0, 0.5, 0, -9});
  call.absent().input({1, 1, 1, 3}, {1, 0.5, 1});
  CHECK(call.result() == Values{15, 10, 0});
}

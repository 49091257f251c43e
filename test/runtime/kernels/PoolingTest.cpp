#include "test/runtime/kernels/KernelCall.h"

#include <cmath>

using namespace firn::kernels;
using Values = KernelCall::Values;
using Dims = KernelCall::Dims;
using Catch::Contains;

TEST_CASE("average_pool_divides_by_cells_of_the_padded_input_not_by_what_ceil_mode_adds") {
  auto pool = [](int64_t includesPadding) {
    KernelCall call("AveragePool");
    call.input({1, 1, 4}, {6, 6, 6, 6}).attribute("kernel_shape", Dims{3}).attribute("strides", Dims{2});
    call.attribute("pads", Dims{0, 1}).attribute("ceil_mode", int64_t(1));
    return call.attribute("count_include_pad", includesPadding).result();
  };
  CHECK(pool(0) == Values{6, 6});
  CHECK(pool(1) == Values{6, 4}); // two cells and one of padding

  KernelCall call("AveragePool");
  call.input({1, 1, 4}, {6, 6, 6, 6}).attribute("kernel_shape", Dims{3}).attribute("strides", Dims{2});
  call.attribute("ceil_mode", int64_t(1)).attribute("count_include_pad", int64_t(1));
  CHECK(call.result() == Values{6, 6}); // the third cell of the last window is no padding
}

TEST_CASE("ceil_mode_drops_a_window_that_would_start_in_the_padding_at_the_end") {
  KernelCall call("MaxPool");
  call.input({1, 1, 2}, {1, 2}).attribute("kernel_shape", Dims{1}).attribute("strides", Dims{2});
  call.attribute("pads", Dims{0, 1}).attribute("ceil_mode", int64_t(1));
  CHECK(call.result() == Values{1});
}

TEST_CASE("max_pool_indices_ignore_padding_and_name_the_first_of_equals") {
  KernelCall call("MaxPool");
  call.input({1, 2, 2, 2}, {1, 1, 1, 1, 5, 6, 7, 7}).attribute("kernel_shape", Dims{2, 2});
  call.attribute("pads", Dims{1, 1, 0, 0});
  REQUIRE(call.run(2) == FIRN_CALL_OK);
  CHECK(call.values(0) == Values{1, 1, 1, 1, 5, 6, 7, 7});
  CHECK(call.values(1) == Values{0, 0, 0, 0, 4, 5, 6, 6});
}

TEST_CASE("max_pool_counts_columns_first_on_request") {
  KernelCall call("MaxPool");
  call.input({1, 1, 2, 3}, {0, 0, 9, 0, 0, 0}).attribute("kernel_shape", Dims{2, 3});
  call.attribute("storage_order", int64_t(1));
  REQUIRE(call.run(2) == FIRN_CALL_OK);
  CHECK(call.values(1) == Values{4});
}

TEST_CASE("max_pool_passes_nan_on_and_takes_the_lowest_int8") {
  KernelCall call("MaxPool"), bytes("MaxPool");
  CHECK(std::isnan(call.input({1, 1, 3}, {1, NAN, 2}).attribute("kernel_shape", Dims{3}).result()[0]));
  CHECK(bytes.input(FIRN_I8, {1, 1, 2}, {-128, -128}).attribute("kernel_shape", Dims{2}).result() == Values{-128});
}

TEST_CASE("lp_pool_with_p_1_sums_absolute_values") {
  KernelCall call("LpPool");
  call.input({1, 1, 3}, {1, -2, 3}).attribute("kernel_shape", Dims{2}).attribute("p", int64_t(1));
  CHECK(call.result() == Values{3, 5});
}

TEST_CASE("max_unpool_needs_the_value_of_output_shape_and_checks_indices") {
  KernelCall call("MaxUnpool"), wrong("MaxUnpool");
  call.typeOnly(FIRN_F32, {1, 1, 1}).typeOnly(FIRN_I64, {1, 1, 1}).typeOnly(FIRN_I64, {3});
  CHECK(call.attribute("kernel_shape", Dims{2}).infer() == FIRN_CALL_NEEDS_VALUE);
  CHECK(call.needed() == 2);
  wrong.input({1, 1, 1}, {1}).input(FIRN_I64, {1, 1, 1}, {2}).attribute("kernel_shape", Dims{2});
  CHECK_THAT(wrong.runRefusal(), Contains("expected 0 to 1, found 2"));
}

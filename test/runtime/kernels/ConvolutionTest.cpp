#include "test/runtime/kernels/KernelCall.h"

using namespace firn::kernels;
using Values = KernelCall::Values;
using Dims = KernelCall::Dims;
using Catch::Contains;

namespace {

Values counting(int64_t count) {
  Values result;
  for (int64_t i = 0; i < count; ++i)
    result.push_back(double(i + 1));
  return result;
}

/// A convolution by its definition, one output at a time: what the tables of tap rows must agree with.
Values convolveDirectly(const Values &x, const Dims &xDims, const Values &w, const Dims &wDims, int64_t group,
                        const Dims &stride, const Dims &dilation, const Dims &pads, Dims *yDims) {
  int64_t h = xDims[2], v = xDims[3];
  *yDims = {xDims[0], wDims[0], 0, 0};
  for (size_t k = 0; k < 2; ++k)
    (*yDims)[k + 2] = (xDims[k + 2] + pads[k] + pads[k + 2] - (wDims[k + 2] - 1) * dilation[k] - 1) / stride[k] + 1;
  Values y;
  for (int64_t n = 0; n < xDims[0]; ++n)
    for (int64_t m = 0; m < wDims[0]; ++m)
      for (int64_t i = 0; i < (*yDims)[2]; ++i)
        for (int64_t j = 0; j < (*yDims)[3]; ++j) {
          double sum = 0;
          for (int64_t c = 0; c < wDims[1]; ++c)
            for (int64_t p = 0; p < wDims[2]; ++p)
              for (int64_t q = 0; q < wDims[3]; ++q) {
                int64_t row = i * stride[0] - pads[0] + p * dilation[0],
                        column = j * stride[1] - pads[1] + q * dilation[1];
                int64_t channel = m / (wDims[0] / group) * wDims[1] + c;
                if (row >= 0 && row < h && column >= 0 && column < v)
                  sum += x[size_t(((n * xDims[1] + channel) * h + row) * v + column)] *
                         w[size_t(((m * wDims[1] + c) * wDims[2] + p) * wDims[3] + q)];
              }
          y.push_back(sum);
        }
  return y;
}

} // namespace

TEST_CASE("conv_equals_its_definition_for_all_small_windows") {
  const Dims xDims = {2, 4, 5, 4}, wDims = {2, 2, 3, 2};
  Values x = counting(160), w = counting(24);
  for (int64_t choice = 0; choice < 64; ++choice) {
    auto pick = [&](int64_t bit) { return (choice >> bit) & 1; };
    Dims stride = {1 + pick(0), 1 + 2 * pick(1)}, dilation = {1 + pick(2), 1 + pick(3)};
    Dims pads = {pick(4), 2 * pick(5), 2 * pick(1), pick(0)}, yDims;
    Values want = convolveDirectly(x, xDims, w, wDims, 2, stride, dilation, pads, &yDims);
    KernelCall call("Conv");
    call.input(xDims, x).input(wDims, w).attribute("group", int64_t(2)).attribute("pads", pads);
    CAPTURE(choice);
    CHECK(call.attribute("strides", stride).attribute("dilations", dilation).result() == want);
    CHECK(call.dims(0) == yDims);
  }
}

TEST_CASE("conv_same_upper_puts_the_odd_padding_at_the_end") {
  KernelCall upper("Conv"), lower("Conv");
  upper.input({1, 1, 3}, {1, 2, 3}).input({1, 1, 2}, {1, 10}).attribute("auto_pad", "SAME_UPPER");
  lower.input({1, 1, 3}, {1, 2, 3}).input({1, 1, 2}, {1, 10}).attribute("auto_pad", "SAME_LOWER");
  CHECK(upper.result() == Values{21, 32, 3});
  CHECK(lower.result() == Values{10, 21, 32});
}

TEST_CASE("conv_of_an_empty_batch_is_empty") {
  KernelCall call("Conv");
  REQUIRE(call.input({0, 1, 4, 4}, {}).input({2, 1, 3, 3}, {1}).run() == FIRN_CALL_OK);
  CHECK(call.dims(0) == Dims{0, 2, 2, 2});
}

TEST_CASE("conv_refuses_windows_that_do_not_fit") {
  auto refusal = [](const Dims &w, const char *name, const Dims &value) {
    KernelCall call("Conv");
    call.typeOnly(FIRN_F32, {1, 4, 5, 5}).typeOnly(FIRN_F32, w);
    return call.attribute(name, value).refusal();
  };
  CHECK(refusal({2, 4, 3, 3}, "strides", {1, 1}) == "");
  CHECK_THAT(refusal({2, 3, 3, 3}, "strides", {1, 1}), Contains("expected 3 channels, found 4"));
  CHECK_THAT(refusal({2, 4, 6, 3}, "strides", {1, 1}), Contains("expected at most 5, found 6"));
  CHECK_THAT(refusal({2, 4, 3, 3}, "strides", {0, 1}), Contains("strides is out of range at position 0"));
  CHECK_THAT(refusal({2, 4, 3, 3}, "dilations", {1, 3}), Contains("expected at most 5, found 7"));
  CHECK_THAT(refusal({2, 4, 3, 3}, "pads", {1, 1}), Contains("expected 4, found 2"));
  CHECK_THAT(refusal({2, 4, 3, 3}, "pads", {0, 0, 0, -1}), Contains("pads is out of range at position 3"));
  CHECK_THAT(refusal({2, 4, 3, 3}, "kernel_shape", {3, 2}),
             Contains("disagrees with W: expected [3, 3], found [3, 2]"));
  CHECK_THAT(refusal({2, 4, 0, 3}, "strides", {1, 1}), Contains("expected 1 to"));
}

TEST_CASE("conv_integer_pads_with_the_zero_point") {
  KernelCall call("ConvInteger");
  call.input(FIRN_U8, {1, 1, 2}, {5, 6}).input(FIRN_U8, {1, 1, 3}, {1, 1, 1}).input(FIRN_U8, {}, {4});
  CHECK(call.attribute("pads", Dims{1, 1}).result() == Values{3, 3});
}

TEST_CASE("conv_transpose_scatters_what_conv_gathers") {
  // <conv(a), b> = <a, conv_transpose(b)> for every a and b.
  Values a = counting(2 * 5 * 4), w = counting(3 * 2 * 3 * 2);
  KernelCall conv("Conv");
  conv.input({1, 2, 5, 4}, a).input({3, 2, 3, 2}, w).attribute("strides", Dims{2, 1});
  Values gathered = conv.attribute("pads", Dims{1, 1, 1, 0}).result();
  Values b = counting(int64_t(gathered.size()));
  KernelCall transpose("ConvTranspose");
  transpose.input(conv.dims(0), b).input({3, 2, 3, 2}, w).attribute("strides", Dims{2, 1});
  Values scattered = transpose.attribute("pads", Dims{1, 1, 1, 0}).result();
  REQUIRE(transpose.dims(0) == Dims{1, 2, 5, 4});
  double left = 0, right = 0;
  for (size_t i = 0; i < b.size(); ++i)
    left += gathered[i] * b[i];
  for (size_t i = 0; i < a.size(); ++i)
    right += a[i] * scattered[i];
  CHECK(left == right);
}

TEST_CASE("conv_transpose_shares_total_padding_by_auto_pad_and_output_padding") {
  auto extent = [](const char *autoPad, const Dims &wanted) {
    KernelCall call("ConvTranspose");
    call.input({1, 1, 2}, {1, 1}).input({1, 1, 3}, {1, 2, 4}).attribute("strides", Dims{2});
    call.attribute("auto_pad", autoPad);
    if (!wanted.empty())
      call.attribute("output_shape", wanted);
    return call.result();
  };
  CHECK(extent("NOTSET", {}) == Values{1, 2, 5, 2, 4});
  CHECK(extent("SAME_UPPER", {}) == Values{1, 2, 5, 2});
  CHECK(extent("SAME_LOWER", {}) == Values{2, 5, 2, 4});
  CHECK(extent("NOTSET", {3}) == Values{2, 5, 2});
  CHECK(extent("VALID", {}) == Values{1, 2, 5, 2, 4});
}

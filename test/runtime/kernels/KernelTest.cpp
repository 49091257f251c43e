#include "runtime/kernels/Kernel.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "runtime/kernels/Elementwise.h"
#include "runtime/kernels/Sort.h"
#include "runtime/kernels/Table.h"

using namespace firn::kernels;

namespace {

firn_view viewOf(int32_t dtype, void *data, std::vector<int64_t> dims) {
  firn_view view = {};
  view.data = data;
  view.dtype = dtype;
  view.rank = int32_t(dims.size());
  std::copy(dims.begin(), dims.end(), view.dims);
  return view;
}

/// A call of an operator on given inputs, with memory for everything around it.
struct TestCall {
  std::vector<firn_view> inputs;
  firn_view output = {};
  char message[256] = "";
  firn_call call = {};

  explicit TestCall(std::vector<firn_view> given) : inputs(std::move(given)) {
    call.inputs = inputs.data();
    call.input_count = int32_t(inputs.size());
    call.outputs = &output;
    call.output_count = 1;
    call.message = message;
    call.message_capacity = sizeof message;
    call.scratch = [](firn_call *, int64_t) -> void * { return nullptr; };
  }
};

double roundTrip(int32_t dtype, double value) {
  uint64_t storage = 0;
  firn_view view = viewOf(dtype, &storage, {1});
  setDouble(view, 0, value);
  return getDouble(view, 0);
}

} // namespace

TEST_CASE("every_f16_pattern_survives_the_way_to_double_and_back") {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    float value = f16ToFloat(uint16_t(bits));
    if (std::isnan(value))
      REQUIRE((doubleToF16(value) & 0x7fff) > 0x7c00);
    else
      REQUIRE(doubleToF16(value) == bits);
  }
}

#if defined(__x86_64__)
__attribute__((target("f16c"))) static uint16_t convertByProcessor(float value) {
  return uint16_t(_mm_extract_epi16(_mm_cvtps_ph(_mm_set_ss(value), _MM_FROUND_TO_NEAREST_INT), 0));
}

TEST_CASE("f16_agrees_with_the_processors_own_conversion") {
  if (!__builtin_cpu_supports("f16c"))
    return;
  uint32_t bits = 0;
  for (uint64_t k = 0; k < 300000; ++k, bits += 14321) { // covers all exponents
    float value;
    std::memcpy(&value, &bits, sizeof value);
    if (!std::isnan(value))
      REQUIRE(floatToF16(value) == convertByProcessor(value));
  }
}
#endif

TEST_CASE("f16_rounds_once_from_double_with_ties_to_even") {
  CHECK(roundTrip(FIRN_F16, 2049) == 2048);
  CHECK(roundTrip(FIRN_F16, 2051) == 2052);
  CHECK(roundTrip(FIRN_F16, 2049 + std::ldexp(1, -40)) == 2050); // would be a tie after rounding to float first
  CHECK(roundTrip(FIRN_F16, 65519) == 65504);
  CHECK(roundTrip(FIRN_F16, 65520) == std::numeric_limits<double>::infinity());
  CHECK(roundTrip(FIRN_F16, std::ldexp(1, -24)) == std::ldexp(1, -24));
  CHECK(roundTrip(FIRN_F16, std::ldexp(1, -25)) == 0);
  CHECK(std::signbit(roundTrip(FIRN_F16, -std::ldexp(1, -30))));
}

TEST_CASE("bf16_rounds_to_even_and_keeps_nan") {
  CHECK(roundTrip(FIRN_BF16, 257) == 256);
  CHECK(roundTrip(FIRN_BF16, 259) == 260);
  CHECK(roundTrip(FIRN_BF16, 3.4e38) == std::numeric_limits<double>::infinity());
  CHECK(std::isnan(roundTrip(FIRN_BF16, std::numeric_limits<double>::quiet_NaN())));
}

TEST_CASE("every_float8_pattern_survives_the_way_to_double_and_back") {
  for (int32_t dtype : {FIRN_F8E4M3FN, FIRN_F8E4M3FNUZ, FIRN_F8E5M2, FIRN_F8E5M2FNUZ, FIRN_F8E8M0})
    for (uint32_t bits = 0; bits < 256; ++bits) {
      uint8_t byte = uint8_t(bits);
      double value = getDouble(viewOf(dtype, &byte, {1}), 0);
      if (!std::isnan(value))
        REQUIRE(encodeFloat(dtype, value, false, 1) == bits);
    }
}

TEST_CASE("float8_out_of_range_saturates_or_becomes_special") {
  CHECK(encodeFloat(FIRN_F8E4M3FN, 1e6, true, 1) == 0x7e);
  CHECK(encodeFloat(FIRN_F8E4M3FN, 1e6, false, 1) == 0x7f);
  CHECK(encodeFloat(FIRN_F8E5M2, -1e6, true, 1) == 0xfb);
  CHECK(encodeFloat(FIRN_F8E5M2, -1e6, false, 1) == 0xfc);
  CHECK(encodeFloat(FIRN_F8E4M3FNUZ, -0.0, true, 1) == 0);
  CHECK(encodeFloat(FIRN_F8E4M3FNUZ, 1e6, false, 1) == 0x80);
  CHECK(encodeFloat(FIRN_F4E2M1, 100, true, 1) == 7);
}

TEST_CASE("e8m0_rounds_in_the_direction_asked_for") {
  CHECK(encodeFloat(FIRN_F8E8M0, 5, true, 1) == 127 + 3);
  CHECK(encodeFloat(FIRN_F8E8M0, 5, true, -1) == 127 + 2);
  CHECK(encodeFloat(FIRN_F8E8M0, 5, true, 0) == 127 + 2);
  CHECK(encodeFloat(FIRN_F8E8M0, 6, true, 0) == 127 + 3);
}

TEST_CASE("doubles_saturate_into_integers_and_nan_is_zero") {
  CHECK(roundTrip(FIRN_I8, 300) == 127);
  CHECK(roundTrip(FIRN_I8, -300) == -128);
  CHECK(roundTrip(FIRN_U8, -1) == 0);
  CHECK(roundTrip(FIRN_U32, 1e20) == 4294967295.0);
  CHECK(roundTrip(FIRN_I32, -2147483649.0) == -2147483648.0);
  CHECK(roundTrip(FIRN_I32, std::numeric_limits<double>::quiet_NaN()) == 0);
  CHECK(roundTrip(FIRN_I4, 100) == 7);
  CHECK(roundTrip(FIRN_U2, 100) == 3);
  uint64_t storage;
  firn_view view = viewOf(FIRN_U64, &storage, {1});
  setDouble(view, 0, 1e30);
  CHECK(storage == UINT64_MAX);
  int64_t wide;
  view = viewOf(FIRN_I64, &wide, {1});
  setDouble(view, 0, 9.3e18);
  CHECK(wide == INT64_MAX);
  setDouble(view, 0, -9.3e18);
  CHECK(wide == INT64_MIN);
}

TEST_CASE("integers_wrap_into_narrower_ones") {
  uint8_t storage = 0;
  firn_view view = viewOf(FIRN_I8, &storage, {1});
  setInt(view, 0, 200);
  CHECK(getInt(view, 0) == -56);
  view.dtype = FIRN_BOOL;
  setInt(view, 0, 256);
  CHECK(getInt(view, 0) == 1);
}

TEST_CASE("int64_rounds_once_to_narrow_floats") {
  // 2^60 + 2^36 + 1: a tie for float once the last bit is lost.
  int64_t value = (int64_t(1) << 60) + (int64_t(1) << 36) + 1;
  float narrow = 0;
  setInt(viewOf(FIRN_F32, &narrow, {1}), 0, value);
  CHECK(narrow == float(value));
  uint16_t bits = 0;
  firn_view view = viewOf(FIRN_BF16, &bits, {1});
  setInt(view, 0, (int64_t(1) << 60) + (int64_t(1) << 52) + 1);
  CHECK(getDouble(view, 0) == std::ldexp(1, 60) + std::ldexp(1, 53));
}

TEST_CASE("packed_elements_do_not_touch_their_neighbours") {
  uint8_t bytes[2] = {0xff, 0xff};
  firn_view view = viewOf(FIRN_I4, bytes, {3});
  setInt(view, 1, 3);
  CHECK(bytes[0] == 0x3f);
  CHECK(getInt(view, 0) == -1);
  CHECK(getInt(view, 1) == 3);
  view.dtype = FIRN_U2;
  setInt(view, 2, 0);
  CHECK(bytes[0] == 0x0f);
}

TEST_CASE("a_bool_of_any_byte_is_true") {
  uint8_t bytes[2] = {2, 0};
  firn_view view = viewOf(FIRN_BOOL, bytes, {2});
  CHECK(getInt(view, 0) == 1);
  CHECK(getDouble(view, 0) == 1);
  CHECK(getInt(view, 1) == 0);
}

TEST_CASE("blocks_convert_as_single_elements_do") {
  float from[6] = {0, 1.5f, -2.5f, 1e10f, NAN, 7};
  firn_view view = viewOf(FIRN_F32, from, {6});
  double doubles[3];
  loadDoubles(view, 1, 2, 3, doubles);
  CHECK(doubles[0] == 1.5);
  CHECK(doubles[1] == 1e10);
  CHECK(doubles[2] == 7);
  int64_t repeated[2];
  loadInts(view, 5, 0, 2, repeated);
  CHECK(repeated[0] == 7);
  CHECK(repeated[1] == 7);
}

TEST_CASE("broadcast_fits_as_numpy_does") {
  int64_t a[] = {3, 1}, b[] = {2, 1, 4}, c[] = {2}, dims[FIRN_MAX_RANK];
  int32_t rank;
  REQUIRE(broadcastDims(a, 2, b, 3, dims, &rank));
  CHECK(std::vector<int64_t>(dims, dims + rank) == std::vector<int64_t>{2, 3, 4});
  CHECK_FALSE(broadcastDims(dims, rank, c, 1, dims, &rank));
  int64_t empty[] = {0}, one[] = {1};
  REQUIRE(broadcastDims(empty, 1, one, 1, dims, &rank));
  CHECK(dims[0] == 0);
}

TEST_CASE("broadcast_strides_are_zero_where_an_axis_repeats") {
  int64_t dims[] = {2, 3, 4}, strides[3];
  broadcastStrides(viewOf(FIRN_F32, nullptr, {3, 1}), dims, 3, strides);
  CHECK(std::vector<int64_t>(strides, strides + 3) == std::vector<int64_t>{0, 1, 0});
}

TEST_CASE("a_broadcast_loop_visits_every_element_once_in_order") {
  firn_view result = viewOf(FIRN_F32, nullptr, {2, 300, 1, 3}), row = viewOf(FIRN_F32, nullptr, {3});
  Operand operands[2] = {{&result, 0, 0, {}}, {&row, 0, 0, {}}};
  int64_t visited = 0;
  BroadcastLoop(result, operands, 2).run([&](int64_t first, int64_t count) {
    REQUIRE(first == visited);
    for (int64_t i = 0; i < count; ++i) {
      REQUIRE(operands[0].offset + i * operands[0].step == first + i);
      REQUIRE(operands[1].offset + i * operands[1].step == (first + i) % 3);
    }
    visited += count;
  });
  CHECK(visited == 1800);
}

TEST_CASE("set_checked_refuses_what_no_process_can_hold") {
  TestCall test({});
  int64_t huge[] = {int64_t(1) << 32, int64_t(1) << 32}, negative[] = {2, -1};
  CHECK(setChecked(&test.call, 0, FIRN_F32, huge, 2) == FIRN_CALL_INVALID);
  CHECK(setChecked(&test.call, 0, FIRN_F32, negative, 2) == FIRN_CALL_INVALID);
  int64_t empty[] = {int64_t(1) << 62, 0};
  CHECK(setChecked(&test.call, 0, FIRN_F32, empty, 2) == FIRN_CALL_OK);
}

TEST_CASE("infer_names_what_does_not_broadcast") {
  const firn_operator *add = find("ai.onnx::Add");
  REQUIRE(add);
  TestCall test({viewOf(FIRN_F32, nullptr, {2}), viewOf(FIRN_F32, nullptr, {3})});
  CHECK(add->infer(&test.call) == FIRN_CALL_INVALID);
  CHECK(std::string(test.message) == "input 1 does not broadcast: expected a shape that fits [2], found [3]");
}

TEST_CASE("infer_asks_for_the_value_that_a_shape_needs") {
  const firn_operator *expand = find("ai.onnx::Expand");
  REQUIRE(expand);
  int64_t shape[] = {4, 2};
  TestCall test({viewOf(FIRN_F32, nullptr, {2}), viewOf(FIRN_I64, nullptr, {2})});
  REQUIRE(expand->infer(&test.call) == FIRN_CALL_NEEDS_VALUE);
  CHECK(test.call.needed == 1);
  test.inputs[1].data = shape;
  REQUIRE(expand->infer(&test.call) == FIRN_CALL_OK);
  CHECK(test.output.rank == 2);
  CHECK(test.output.dims[0] == 4);
}

TEST_CASE("the_table_is_sorted_and_names_symbols") {
  size_t count;
  const firn_operator *const *all = operators(&count);
  REQUIRE(count > 100);
  for (size_t i = 1; i < count; ++i)
    REQUIRE(std::strcmp(all[i - 1]->name, all[i]->name) < 0);
  for (size_t i = 0; i < count; ++i)
    REQUIRE(find(all[i]->name) == all[i]);
  CHECK(find("ai.onnx::Frobnicate") == nullptr);
  CHECK(symbolName("ai.onnx.ml::Scaler") == "firn_op_ai_onnx_ml_Scaler");
}

TEST_CASE("merge_sort_keeps_equals_in_order") {
  for (int64_t count : {0, 1, 2, 7, 100}) {
    std::vector<int64_t> items(count), space(count);
    for (int64_t i = 0; i < count; ++i)
      items[i] = i;
    auto key = [](int64_t i) { return i * 37 % 10; };
    mergeSort(items.data(), space.data(), count, [&](int64_t a, int64_t b) { return key(a) < key(b); });
    for (int64_t i = 1; i < count; ++i)
      REQUIRE((key(items[i - 1]) < key(items[i]) || (key(items[i - 1]) == key(items[i]) && items[i - 1] < items[i])));
  }
}

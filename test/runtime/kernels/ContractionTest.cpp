#include "test/runtime/kernels/KernelCall.h"

using namespace firn::kernels;
using Values = KernelCall::Values;
using Dims = KernelCall::Dims;
using Catch::Contains;

TEST_CASE("matmul_of_a_vector_with_a_batch_drops_the_prepended_axis") {
  KernelCall call("MatMul");
  call.input({2}, {1, 10}).input({2, 2, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  CHECK(call.result() == Values{41, 52, 63, 107, 118, 129});
  CHECK(call.dims(0) == Dims{2, 3});
}

TEST_CASE("matmul_over_an_empty_inner_dimension_is_zero") {
  KernelCall call("MatMul");
  CHECK(call.input({2, 0}, {}).input({0, 2}, {}).result() == Values{0, 0, 0, 0});
}

TEST_CASE("matmul_of_float16_rounds_its_sum_once") {
  // In float16 2048 + 1 is 2048, so that rounding at each step would lose every one.
  KernelCall call("MatMul");
  call.input(FIRN_F16, {1, 5}, {2048, 1, 1, 1, 1}).input(FIRN_F16, {5, 1}, {1});
  CHECK(call.result() == Values{2052});
}

TEST_CASE("matmul_of_int64_wraps_and_stays_exact_beyond_2_53") {
  KernelCall call("MatMul");
  call.input(FIRN_I64, {1, 2}, {9007199254740992.0, 1}).input(FIRN_I64, {2, 1}, {1, 1});
  REQUIRE(call.run() == FIRN_CALL_OK);
  CHECK(call.values(0)[0] == double(9007199254740993LL));
}

TEST_CASE("matmul_names_both_inner_dimensions_that_differ") {
  KernelCall call("MatMul");
  CHECK_THAT(call.typeOnly(FIRN_F32, {2, 3}).typeOnly(FIRN_F32, {4, 5}).refusal(),
             Contains("expected 3 rows of B, found 4"));
}

TEST_CASE("matmul_integer_subtracts_a_zero_point_a_row_and_one_a_column") {
  KernelCall call("MatMulInteger");
  call.input(FIRN_U8, {2, 2}, {1, 2, 3, 4}).input(FIRN_I8, {2, 2}, {-128, 127, 1, -1});
  call.input(FIRN_U8, {2}, {1, 3}).input(FIRN_I8, {2}, {0, 1});
  CHECK(call.result() == Values{1, -2, 1, -2});
  CHECK(call.dtype(0) == FIRN_I32);
}

TEST_CASE("gemm_takes_a_bias_per_row_with_both_transposes") {
  KernelCall call("Gemm");
  call.input({2, 3}, {1, 2, 3, 4, 5, 6}).input({2, 2}, {1, 0, 0, 1}).input({3, 1}, {10, 20, 30});
  call.attribute("transA", int64_t(1)).attribute("transB", int64_t(1)).attribute("alpha", 2.0f);
  CHECK(call.result() == Values{12, 18, 24, 30, 36, 42});
}

TEST_CASE("gemm_refuses_a_bias_that_would_enlarge_the_result") {
  KernelCall call("Gemm");
  call.typeOnly(FIRN_F32, {2, 3}).typeOnly(FIRN_F32, {3, 4}).typeOnly(FIRN_F32, {5, 2, 4});
  CHECK_THAT(call.refusal(), Contains("C must broadcast to the result"));
}

TEST_CASE("einsum_contracts_three_operands") {
  KernelCall call("Einsum");
  call.input({2, 2}, {1, 2, 3, 4}).input({2, 2}, {0, 1, 1, 0}).input({2}, {10, 100});
  CHECK(call.attribute("equation", "ij,jk,k->i").result() == Values{120, 340});
}

TEST_CASE("einsum_takes_the_diagonal_and_the_trace") {
  KernelCall diagonal("Einsum"), trace("Einsum");
  CHECK(diagonal.input({2, 2}, {1, 2, 3, 4}).attribute("equation", "ii->i").result() == Values{1, 4});
  CHECK(trace.input({2, 2}, {1, 2, 3, 4}).attribute("equation", "ii").result() == Values{5});
}

TEST_CASE("einsum_without_arrow_sorts_the_output_and_puts_the_ellipsis_first") {
  KernelCall call("Einsum");
  call.input({2, 3, 4}, {1}).attribute("equation", "b...a");
  REQUIRE(call.run() == FIRN_CALL_OK);
  CHECK(call.dims(0) == Dims{3, 4, 2});
}

TEST_CASE("einsum_refuses_what_is_malformed") {
  auto refusal = [](const char *equation) {
    KernelCall call("Einsum");
    call.typeOnly(FIRN_F32, {2, 3}).typeOnly(FIRN_F32, {3, 4});
    return call.attribute("equation", equation).refusal();
  };
  CHECK(refusal("ij,jk->ik") == "");
  CHECK_THAT(refusal("ij,jk,kl"), Contains("more terms than operands"));
  CHECK_THAT(refusal("ij"), Contains("one term for each operand"));
  CHECK_THAT(refusal("ijk,jk"), Contains("more letters than its shape [2, 3] has axes"));
  CHECK_THAT(refusal("i,jk"), Contains("expected 2 for shape [2, 3], found 1"));
  CHECK_THAT(refusal("ij,ik"), Contains("differ in size: expected 2, found 3"));
  CHECK_THAT(refusal("ij,jk->im"), Contains("no operand has"));
  CHECK_THAT(refusal("ij,jk->ii"), Contains("occurs twice in the output"));
  CHECK_THAT(refusal("ij,jk-ik"), Contains("expected '->'"));
  CHECK_THAT(refusal("i.j,jk"), Contains("expected '...'"));
  CHECK_THAT(refusal("...ij,...j->i"), Contains("expected 0, found 1"));
  CHECK_THAT(refusal("i...,jk->i"), Contains("lacks the ellipsis"));
  CHECK_THAT(refusal("i1,jk"), Contains("malformed at character 1"));
}

TEST_CASE("attention_gives_zeros_to_a_query_that_sees_no_key") {
  KernelCall call("Attention");
  call.input({1, 1, 2, 1}, {1}).input({1, 1, 2, 1}, {1}).input({1, 1, 2, 1}, {3, 5});
  call.input(FIRN_BOOL, {2, 2}, {0, 0, 1, 1});
  CHECK(call.result(4) == Values{0, 4});
}

TEST_CASE("attention_masks_keys_behind_a_shorter_mask") {
  KernelCall call("Attention");
  call.input({1, 1, 1, 1}, {1}).input({1, 1, 2, 1}, {1}).input({1, 1, 2, 1}, {3, 5}).input({1, 1}, {0});
  CHECK(call.result() == Values{3});
}

TEST_CASE("attention_shares_key_heads_among_neighbouring_query_heads") {
  KernelCall call("Attention");
  call.input({1, 4, 1, 1}, {1}).input({1, 2, 1, 1}, {1}).input({1, 2, 1, 1}, {7, 9});
  CHECK(call.result() == Values{7, 7, 9, 9});
}

TEST_CASE("attention_counts_causal_positions_behind_the_cache") {
  KernelCall call("Attention");
  call.input({1, 1, 1, 1}, {1}).input({1, 1, 1, 1}, {1}).input({1, 1, 1, 1}, {4}).absent();
  call.input({1, 1, 1, 1}, {1}).input({1, 1, 1, 1}, {2}).attribute("is_causal", int64_t(1));
  CHECK(call.result(3) == Values{3});
  CHECK(call.values(2) == Values{2, 4});
}

TEST_CASE("rotary_embedding_refuses_a_position_outside_of_its_table") {
  KernelCall call("RotaryEmbedding");
  call.input({1, 1, 1, 2}, {1, 2}).input({3, 1}, {1}).input({3, 1}, {0}).input(FIRN_I64, {1, 1}, {3});
  CHECK_THAT(call.runRefusal(), Contains("expected 0 to 2, found 3"));
}

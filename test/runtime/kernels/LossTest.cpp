#include "test/runtime/kernels/KernelCall.h"

#include <cmath>

using namespace firn::kernels;
using Values = KernelCall::Values;
using Dims = KernelCall::Dims;
using Catch::Contains;

TEST_CASE("loss_means_over_the_weights_of_labels_that_count") {
  KernelCall call("NegativeLogLikelihoodLoss");
  call.input({3, 2}, {-1, -2, -3, -4, -5, -6}).input(FIRN_I64, {3}, {0, 1, -7}).input({2}, {1, 3});
  CHECK(call.attribute("ignore_index", int64_t(-7)).result() == Values{13 / 4.0});
  CHECK(call.dims(0) == Dims{});
}

TEST_CASE("softmax_cross_entropy_survives_large_scores_and_returns_log_probabilities") {
  KernelCall call("SoftmaxCrossEntropyLoss");
  call.input({1, 2, 1}, {1000, 1000}).input(FIRN_I32, {1, 1}, {1}).attribute("reduction", "none");
  CHECK(isNear(call.result(2), {std::log(2.0)}));
  CHECK(call.dims(0) == Dims{1, 1});
  CHECK(isNear(call.values(1), {-std::log(2.0), -std::log(2.0)}));
}

TEST_CASE("loss_refuses_a_label_that_is_no_class") {
  KernelCall call("NegativeLogLikelihoodLoss");
  call.input({1, 2}, {0, 0}).input(FIRN_I64, {1}, {2});
  CHECK_THAT(call.runRefusal(), Contains("expected 0 to 1, found 2"));
}

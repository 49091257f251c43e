// RUN: firn-mlir-opt %s -firn-infer-shapes -split-input-file -verify-diagnostics | FileCheck %s

// CHECK-LABEL: @symbols_flow_through
// CHECK: firn.matmul {{.*}} -> tensor<?x16xf32, #firn.dims<["batch", ""]>>
func.func @symbols_flow_through(%x: tensor<?x8xf32, #firn.dims<["batch", ""]>>, %w: tensor<8x16xf32>) -> tensor<*x!firn.unknown> {
  %0 = firn.matmul %x, %w : (tensor<?x8xf32, #firn.dims<["batch", ""]>>, tensor<8x16xf32>) -> tensor<*x!firn.unknown>
  return %0 : tensor<*x!firn.unknown>
}

// -----

// CHECK-LABEL: @reshape_by_its_own_shape
// CHECK: firn.reshape {{.*}} -> tensor<?x4x2xf32, #firn.dims<["n", "", ""]>>
func.func @reshape_by_its_own_shape(%x: tensor<?x8xf32, #firn.dims<["n", ""]>>) -> tensor<*x!firn.unknown> {
  %zero = firn.constant {value = dense<0> : tensor<1xi64>} : tensor<1xi64>
  %tail = firn.constant {value = dense<[4, -1]> : tensor<2xi64>} : tensor<2xi64>
  %shape = firn.shape %x : (tensor<?x8xf32, #firn.dims<["n", ""]>>) -> tensor<*x!firn.unknown>
  %n = firn.gather %shape, %zero : (tensor<*x!firn.unknown>, tensor<1xi64>) -> tensor<*x!firn.unknown>
  %to = firn.concat %n, %tail {axis = 0 : i64} : (tensor<*x!firn.unknown>, tensor<2xi64>) -> tensor<*x!firn.unknown>
  %0 = firn.reshape %x, %to : (tensor<?x8xf32, #firn.dims<["n", ""]>>, tensor<*x!firn.unknown>) -> tensor<*x!firn.unknown>
  return %0 : tensor<*x!firn.unknown>
}

// -----

// CHECK-LABEL: @count_is_found_while_running
// CHECK: firn.non_zero {{.*}} -> tensor<2x?xi64, #firn.dims<["", "u0.0.1"]>>
func.func @count_is_found_while_running(%x: tensor<3x4xf32>) -> tensor<*x!firn.unknown> {
  %0 = firn.non_zero %x : (tensor<3x4xf32>) -> tensor<*x!firn.unknown>
  return %0 : tensor<*x!firn.unknown>
}

// -----

func.func @every_problem_is_reported(%x: tensor<3x4xf32>, %y: tensor<5xf32>) -> tensor<*x!firn.unknown> {
  // expected-error@+1 {{expected shapes that broadcast}}
  %0 = firn.add %x, %y : (tensor<3x4xf32>, tensor<5xf32>) -> tensor<*x!firn.unknown>
  // expected-error@+1 {{expected an axis in [-2, 1], found 7}}
  %1 = firn.softmax %x {axis = 7 : i64} : (tensor<3x4xf32>) -> tensor<*x!firn.unknown>
  return %1 : tensor<*x!firn.unknown>
}

// -----

// A branch that is wrong fails only if it is taken.
// CHECK-LABEL: @wrong_branch_becomes_a_failure
// CHECK: firn.fail "{{.*}}expected shapes that broadcast
func.func @wrong_branch_becomes_a_failure(%c: tensor<i1>, %x: tensor<3xf32>, %y: tensor<5xf32>) -> tensor<*x!firn.unknown> {
  %0 = firn.if %c : (tensor<i1>) -> tensor<*x!firn.unknown> then {
    // expected-warning@+1 {{this branch fails if it is ever taken}}
    %1 = firn.add %x, %y : (tensor<3xf32>, tensor<5xf32>) -> tensor<*x!firn.unknown>
    firn.yield %1 : tensor<*x!firn.unknown>
  } else {
    firn.yield %x : tensor<3xf32>
  }
  return %0 : tensor<*x!firn.unknown>
}

// -----

// CHECK-LABEL: @result_that_waits_for_data_keeps_its_rank
// CHECK: firn.call {{.*}} -> tensor<?x8xf32
func.func @result_that_waits_for_data_keeps_its_rank(%x: tensor<4x8xf32>, %c: tensor<4xi1>) -> tensor<*x!firn.unknown> {
  %0 = firn.call "ai.onnx::Compress"(%x, %c) {axis = 0 : i64} : (tensor<4x8xf32>, tensor<4xi1>) -> tensor<*x!firn.unknown>
  return %0 : tensor<*x!firn.unknown>
}

// -----

// Sizes that must agree are different symbols: the shape function refuses each guess but tells the rank.
// CHECK-LABEL: @symbols_that_a_rule_ties_keep_the_rank
// CHECK: firn.call {{.*}} -> tensor<?x?x?x?xf32
func.func @symbols_that_a_rule_ties_keep_the_rank(%x: tensor<?x3x?x?xf32, #firn.dims<["n", "", "h", "w"]>>, %g: tensor<?x?x?x2xf32, #firn.dims<["m", "p", "q", ""]>>) -> tensor<*x!firn.unknown> {
  %0 = firn.call "ai.onnx::GridSample"(%x, %g) : (tensor<?x3x?x?xf32, #firn.dims<["n", "", "h", "w"]>>, tensor<?x?x?x2xf32, #firn.dims<["m", "p", "q", ""]>>) -> tensor<*x!firn.unknown>
  return %0 : tensor<*x!firn.unknown>
}

// -----

// CHECK-LABEL: @squeeze_by_axes_from_data_keeps_its_rank
// CHECK: firn.squeeze {{.*}} -> tensor<?x?xf32
func.func @squeeze_by_axes_from_data_keeps_its_rank(%x: tensor<4x1x8xf32>, %a: tensor<1xi64>) -> tensor<*x!firn.unknown> {
  %0 = firn.squeeze %x, %a : (tensor<4x1x8xf32>, tensor<1xi64>) -> tensor<*x!firn.unknown>
  return %0 : tensor<*x!firn.unknown>
}

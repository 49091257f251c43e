// RUN: firn-mlir-opt %s --firn-eliminate-common | FileCheck %s
// RUN: firn-mlir-opt %s --firn-eliminate-common --firn-eliminate-common | FileCheck %s

// CHECK-LABEL: @merges_equal_operations_and_constants
// CHECK: %[[C:.+]] = firn.constant
// CHECK-NOT: firn.constant
// CHECK: %[[A:.+]] = firn.add %arg0, %[[C]]
// CHECK-NEXT: %[[M:.+]] = firn.mul %[[A]], %[[A]]
// CHECK-NEXT: return %[[M]]
func.func @merges_equal_operations_and_constants(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = firn.constant {value = dense<3.0> : tensor<f32>} : tensor<f32>
  %1 = firn.constant {value = dense<3.0> : tensor<f32>} : tensor<f32>
  %2 = firn.add %x, %0 : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %3 = firn.add %x, %1 : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %4 = firn.mul %2, %3 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %4 : tensor<2xf32>
}

// CHECK-LABEL: @two_outputs_stay_two_values
// CHECK: %[[A:.+]] = firn.exp
// CHECK: %[[B:.+]] = firn.identity %[[A]]
// CHECK: return %[[A]], %[[B]]
func.func @two_outputs_stay_two_values(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %0 = firn.exp %x : (tensor<2xf32>) -> tensor<2xf32>
  %1 = firn.exp %x : (tensor<2xf32>) -> tensor<2xf32>
  return %0, %1 : tensor<2xf32>, tensor<2xf32>
}

// CHECK-LABEL: @takes_values_from_outside_but_not_from_the_other_branch
// CHECK: %[[E:.+]] = firn.exp
// CHECK: then
// CHECK-NEXT: %[[T:.+]] = firn.tanh
// CHECK-NEXT: firn.add %[[E]], %[[T]]
// CHECK: else
// CHECK-NEXT: firn.tanh
func.func @takes_values_from_outside_but_not_from_the_other_branch(%c: tensor<i1>, %x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %e = firn.exp %x : (tensor<2xf32>) -> tensor<2xf32>
  %0 = firn.if %c : (tensor<i1>) -> tensor<2xf32> then {
    %1 = firn.exp %x : (tensor<2xf32>) -> tensor<2xf32>
    %2 = firn.tanh %x : (tensor<2xf32>) -> tensor<2xf32>
    %3 = firn.add %1, %2 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    firn.yield %3 : tensor<2xf32>
  } else {
    %1 = firn.tanh %x : (tensor<2xf32>) -> tensor<2xf32>
    firn.yield %1 : tensor<2xf32>
  }
  return %e, %0 : tensor<2xf32>, tensor<2xf32>
}

// CHECK-LABEL: @random_values_stay_apart
// CHECK-COUNT-2: firn.call "ai.onnx::RandomUniform"
func.func @random_values_stay_apart() -> (tensor<2xf32>, tensor<2xf32>) {
  %0 = firn.call "ai.onnx::RandomUniform"() {shape = array<i64: 2>} : () -> tensor<2xf32>
  %1 = firn.call "ai.onnx::RandomUniform"() {shape = array<i64: 2>} : () -> tensor<2xf32>
  return %0, %1 : tensor<2xf32>, tensor<2xf32>
}

// RUN: firn-mlir-opt %s --firn-move-transposes --firn-eliminate-dead | FileCheck %s
// RUN: firn-mlir-opt %s --firn-move-transposes --firn-eliminate-dead --firn-move-transposes --firn-eliminate-dead | FileCheck %s

// CHECK-LABEL: @meets_through_elementwise_operations
// CHECK-NOT: firn.transpose
// CHECK: %[[A:.+]] = firn.relu %arg0
// CHECK: %[[B:.+]] = firn.add %[[A]], %{{.+}} : (tensor<1x3x4x5xf32>, tensor<1x3x1x1xf32>)
// CHECK: return %[[B]]
func.func @meets_through_elementwise_operations(%x: tensor<1x3x4x5xf32>) -> tensor<1x3x4x5xf32> {
  %c = firn.constant {value = dense<[1.0, 2.0, 3.0]> : tensor<3xf32>} : tensor<3xf32>
  %0 = firn.transpose %x {perm = array<i64: 0, 2, 3, 1>} : (tensor<1x3x4x5xf32>) -> tensor<1x4x5x3xf32>
  %1 = firn.relu %0 : (tensor<1x4x5x3xf32>) -> tensor<1x4x5x3xf32>
  %2 = firn.add %1, %c : (tensor<1x4x5x3xf32>, tensor<3xf32>) -> tensor<1x4x5x3xf32>
  %3 = firn.transpose %2 {perm = array<i64: 0, 3, 1, 2>} : (tensor<1x4x5x3xf32>) -> tensor<1x3x4x5xf32>
  return %3 : tensor<1x3x4x5xf32>
}

// Two become one behind the sum; its softmax runs along another axis.
// CHECK-LABEL: @two_operands_share_one
// CHECK: %[[S:.+]] = firn.add %arg0, %arg1
// CHECK: %[[P:.+]] = firn.softmax %[[S]] {axis = 0 : i64}
// CHECK: %[[T:.+]] = firn.transpose %[[P]]
// CHECK: return %[[T]]
func.func @two_operands_share_one(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) -> tensor<3x2xf32> {
  %0 = firn.transpose %x {perm = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %1 = firn.transpose %y {perm = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %2 = firn.add %0, %1 : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
  %3 = firn.softmax %2 {axis = 1 : i64} : (tensor<3x2xf32>) -> tensor<3x2xf32>
  return %3 : tensor<3x2xf32>
}

// A residual: the sum is read in both orders, one transpose is left.
// CHECK-LABEL: @residual
// CHECK: %[[R:.+]] = firn.relu %arg0
// CHECK: %[[E:.+]] = firn.exp %[[R]]
// CHECK: %[[S:.+]] = firn.add %[[R]], %[[E]]
// CHECK-COUNT-1: firn.transpose
// CHECK-NOT: firn.transpose
// CHECK: return
func.func @residual(%x: tensor<1x3x4xf32>) -> (tensor<1x3x4xf32>, tensor<1x4x3xf32>) {
  %0 = firn.transpose %x {perm = array<i64: 0, 2, 1>} : (tensor<1x3x4xf32>) -> tensor<1x4x3xf32>
  %1 = firn.relu %0 : (tensor<1x4x3xf32>) -> tensor<1x4x3xf32>
  %2 = firn.exp %1 : (tensor<1x4x3xf32>) -> tensor<1x4x3xf32>
  %3 = firn.add %1, %2 : (tensor<1x4x3xf32>, tensor<1x4x3xf32>) -> tensor<1x4x3xf32>
  %4 = firn.transpose %3 {perm = array<i64: 0, 2, 1>} : (tensor<1x4x3xf32>) -> tensor<1x3x4xf32>
  return %4, %3 : tensor<1x3x4xf32>, tensor<1x4x3xf32>
}

// CHECK-LABEL: @one_transpose_with_nothing_to_meet_stays
// CHECK: %[[T:.+]] = firn.transpose %arg0
// CHECK: firn.add %[[T]], %arg1
func.func @one_transpose_with_nothing_to_meet_stays(%x: tensor<2x3xf32>, %y: tensor<3x2xf32>) -> tensor<3x2xf32> {
  %0 = firn.transpose %x {perm = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %1 = firn.add %0, %y : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
  return %1 : tensor<3x2xf32>
}

// A reduction depends on the order of axes in a way that is not written for both.
// CHECK-LABEL: @operations_bound_to_an_order_stay
// CHECK-COUNT-2: firn.transpose
func.func @operations_bound_to_an_order_stay(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %axis = firn.constant {value = dense<0> : tensor<i64>} : tensor<i64>
  %0 = firn.transpose %x {perm = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %1 = firn.cumsum %0, %axis : (tensor<3x2xf32>, tensor<i64>) -> tensor<3x2xf32>
  %2 = firn.transpose %1 {perm = array<i64: 1, 0>} : (tensor<3x2xf32>) -> tensor<2x3xf32>
  return %2 : tensor<2x3xf32>
}

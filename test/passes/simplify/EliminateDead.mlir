// RUN: firn-mlir-opt %s --firn-eliminate-dead | FileCheck %s
// RUN: firn-mlir-opt %s --firn-eliminate-dead --firn-eliminate-dead | FileCheck %s

// CHECK-LABEL: @drops_chains
// CHECK-NEXT: %[[Y:.+]] = firn.relu
// CHECK-NEXT: return %[[Y]]
func.func @drops_chains(%x: tensor<2xf32>) -> tensor<2xf32> {
  %c = firn.constant {value = dense<3.0> : tensor<f32>} : tensor<f32>
  %0 = firn.exp %x : (tensor<2xf32>) -> tensor<2xf32>
  %1 = firn.add %0, %c : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %2 = firn.call "ai.onnx.ml::Scaler"(%1) : (tensor<2xf32>) -> tensor<2xf32>
  %3 = firn.relu %x : (tensor<2xf32>) -> tensor<2xf32>
  return %3 : tensor<2xf32>
}

// CHECK-LABEL: @narrows_if
// CHECK: %[[Y:.+]] = firn.if %arg0 : (tensor<i1>) -> tensor<2xf32> then
// CHECK-NOT: firn.exp
// CHECK: return %[[Y]]
func.func @narrows_if(%c: tensor<i1>, %x: tensor<2xf32>) -> tensor<2xf32> {
  %0:2 = firn.if %c : (tensor<i1>) -> (tensor<2xf32>, tensor<2xf32>) then {
    %1 = firn.exp %x : (tensor<2xf32>) -> tensor<2xf32>
    firn.yield %1, %x : tensor<2xf32>, tensor<2xf32>
  } else {
    %1 = firn.exp %x : (tensor<2xf32>) -> tensor<2xf32>
    %2 = firn.tanh %x : (tensor<2xf32>) -> tensor<2xf32>
    firn.yield %1, %2 : tensor<2xf32>, tensor<2xf32>
  }
  return %0#1 : tensor<2xf32>
}

// CHECK-LABEL: @narrows_loop
// CHECK: firn.loop %arg0, %arg1, %arg2 : (tensor<i64>, tensor<i1>, tensor<2xf32>) -> tensor<2xf32>
// CHECK-NEXT: ^bb0(%{{.+}}: tensor<i64>, %[[C:.+]]: tensor<i1>, %[[V:.+]]: tensor<2xf32>):
// CHECK-NEXT: %[[W:.+]] = firn.exp %[[V]]
// CHECK-NEXT: firn.yield %[[C]], %[[W]] : tensor<i1>, tensor<2xf32>
func.func @narrows_loop(%n: tensor<i64>, %s: tensor<i1>, %x: tensor<2xf32>) -> tensor<2xf32> {
  %0:3 = firn.loop %n, %s, %x, %x : (tensor<i64>, tensor<i1>, tensor<2xf32>, tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<?x2xf32>) {
  ^bb0(%i: tensor<i64>, %c: tensor<i1>, %v: tensor<2xf32>, %unused: tensor<2xf32>):
    %1 = firn.exp %v : (tensor<2xf32>) -> tensor<2xf32>
    %2 = firn.tanh %v : (tensor<2xf32>) -> tensor<2xf32>
    firn.yield %c, %1, %2, %2 : tensor<i1>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
  }
  return %0#0 : tensor<2xf32>
}

// CHECK-LABEL: @keeps_what_finds_a_size
// CHECK: firn.non_zero
func.func @keeps_what_finds_a_size(%x: tensor<2xf32>) -> tensor<1xi64> {
  %0 = firn.non_zero %x {firn.id = 4 : i64} : (tensor<2xf32>) -> tensor<1x?xi64, #firn.dims<["", "u4.0.1"]>>
  %1 = firn.dim_values ["2*u4.0.1"] : tensor<1xi64>
  return %1 : tensor<1xi64>
}

// CHECK-LABEL: @keeps_what_may_fail
// CHECK: firn.if
func.func @keeps_what_may_fail(%c: tensor<i1>, %x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = firn.if %c : (tensor<i1>) -> tensor<2xf32> then {
    %1 = firn.fail "no such shape" : tensor<2xf32>
    firn.yield %1 : tensor<2xf32>
  } else {
    firn.yield %x : tensor<2xf32>
  }
  return %x : tensor<2xf32>
}

// What is left of a loop keeps the names of its unknown sizes, and a result that nobody reads stays if its size is
// read.
// CHECK-LABEL: @narrows_loop_with_unknown_sizes
// CHECK: firn.loop %arg0, %arg1, %arg2 {firn.id = 7 : i64, firn.result_ids = array<i64: 0, 2, 3>}
// CHECK-SAME: -> (tensor<2xf32>, tensor<?x2xf32, #firn.dims<["u7.2.0", ""]>>, tensor<?x2xf32, #firn.dims<["u7.3.0", ""]>>)
func.func @narrows_loop_with_unknown_sizes(%n: tensor<i64>, %s: tensor<i1>, %x: tensor<2xf32>) -> (tensor<?x2xf32, #firn.dims<["u7.2.0", ""]>>, tensor<2xi64>) {
  %0:4 = firn.loop %n, %s, %x {firn.id = 7 : i64} : (tensor<i64>, tensor<i1>, tensor<2xf32>) -> (tensor<2xf32>, tensor<?x2xf32, #firn.dims<["u7.1.0", ""]>>, tensor<?x2xf32, #firn.dims<["u7.2.0", ""]>>, tensor<?x2xf32, #firn.dims<["u7.3.0", ""]>>) {
  ^bb0(%i: tensor<i64>, %c: tensor<i1>, %v: tensor<2xf32>):
    %2 = firn.tanh %x : (tensor<2xf32>) -> tensor<2xf32>
    firn.yield %c, %v, %x, %2, %x : tensor<i1>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
  }
  %1 = firn.dim_values ["u7.2.0", "u7.3.0"] : tensor<2xi64>
  return %0#2, %1 : tensor<?x2xf32, #firn.dims<["u7.2.0", ""]>>, tensor<2xi64>
}

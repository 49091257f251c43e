// RUN: firn-mlir-opt %s --firn-relax-algebra --firn-eliminate-dead | FileCheck %s
// RUN: firn-mlir-opt %s --firn-relax-algebra --firn-relax-algebra --firn-eliminate-dead | FileCheck %s

// CHECK-LABEL: @steps_become_one
// CHECK: %[[C:.+]] = firn.constant {value = dense<5.000000e-01> : tensor<f32>}
// CHECK: %[[Y:.+]] = firn.mul %arg0, %[[C]]
// CHECK: return %[[Y]]
func.func @steps_become_one(%x: tensor<2xf32>) -> tensor<2xf32> {
  %two = firn.constant {value = dense<2.0> : tensor<f32>} : tensor<f32>
  %four = firn.constant {value = dense<4.0> : tensor<f32>} : tensor<f32>
  %0 = firn.mul %x, %two : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %1 = firn.div %0, %four : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}

// A sum does not join a product; a value that others read stays; infinity is no constant.
// CHECK-LABEL: @steps_of_two_kinds_stay
// CHECK: firn.mul
// CHECK: firn.add
// CHECK: firn.add
// CHECK: firn.mul
// CHECK: firn.mul
func.func @steps_of_two_kinds_stay(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
  %two = firn.constant {value = dense<2.0> : tensor<f32>} : tensor<f32>
  %most = firn.constant {value = dense<3.0e38> : tensor<f32>} : tensor<f32>
  %0 = firn.mul %x, %two : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %1 = firn.add %0, %two : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %2 = firn.add %1, %two : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %3 = firn.mul %2, %most : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %4 = firn.mul %3, %most : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  return %1, %2, %4 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}

// CHECK-LABEL: @clip_above_zero
// CHECK-NOT: firn.relu
// CHECK: firn.clip %arg0
func.func @clip_above_zero(%x: tensor<2xf32>) -> tensor<2xf32> {
  %zero = firn.constant {value = dense<0.0> : tensor<f32>} : tensor<f32>
  %six = firn.constant {value = dense<6.0> : tensor<f32>} : tensor<f32>
  %0 = firn.relu %x : (tensor<2xf32>) -> tensor<2xf32>
  %1 = firn.clip %0, %zero, %six : (tensor<2xf32>, tensor<f32>, tensor<f32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}

// CHECK-LABEL: @clip_below_zero_stays
// CHECK: firn.relu
func.func @clip_below_zero_stays(%x: tensor<2xf32>) -> tensor<2xf32> {
  %least = firn.constant {value = dense<-1.0> : tensor<f32>} : tensor<f32>
  %0 = firn.relu %x : (tensor<2xf32>) -> tensor<2xf32>
  %1 = firn.clip %0, %least : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}

// CHECK-LABEL: @negated_comparison
// CHECK: %[[Y:.+]] = firn.greater_or_equal %arg0, %arg1
// CHECK: return %[[Y]]
func.func @negated_comparison(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xi1> {
  %0 = firn.less %x, %y : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>
  %1 = firn.not %0 : (tensor<2xi1>) -> tensor<2xi1>
  return %1 : tensor<2xi1>
}

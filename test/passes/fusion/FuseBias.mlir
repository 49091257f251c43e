// RUN: firn-mlir-opt %s --firn-fuse-bias | FileCheck %s
// RUN: firn-mlir-opt %s --firn-fuse-bias --firn-fuse-bias | FileCheck %s

// CHECK-LABEL: @fuses_bias_per_channel
// CHECK: %[[B:.+]] = firn.constant {value = dense<[-1.000000e+00, -2.000000e+00]> : tensor<2xf32>}
// CHECK: %[[Y:.+]] = firn.conv %arg0, %{{.+}}, %[[B]]
// CHECK-NEXT: return %[[Y]]
func.func @fuses_bias_per_channel(%x: tensor<1x1x4xf32>) -> tensor<1x2x4xf32> {
  %w = firn.constant {value = dense<3.0> : tensor<2x1x1xf32>} : tensor<2x1x1xf32>
  %c = firn.constant {value = dense<[[1.0], [2.0]]> : tensor<2x1xf32>} : tensor<2x1xf32>
  %0 = firn.conv %x, %w : (tensor<1x1x4xf32>, tensor<2x1x1xf32>) -> tensor<1x2x4xf32>
  %1 = firn.sub %0, %c : (tensor<1x2x4xf32>, tensor<2x1xf32>) -> tensor<1x2x4xf32>
  return %1 : tensor<1x2x4xf32>
}

// CHECK-LABEL: @adds_to_the_bias_of_gemm
// CHECK: %[[B:.+]] = firn.constant {value = dense<7.000000e+00> : tensor<2xf32>}
// CHECK: firn.gemm %arg0, %{{.+}}, %[[B]] : (tensor<3x1xf32>
func.func @adds_to_the_bias_of_gemm(%x: tensor<3x1xf32>) -> tensor<3x2xf32> {
  %w = firn.constant {value = dense<3.0> : tensor<1x2xf32>} : tensor<1x2xf32>
  %c = firn.constant {value = dense<2.0> : tensor<1x2xf32>} : tensor<1x2xf32>
  %d = firn.constant {value = dense<3.0> : tensor<f32>} : tensor<f32>
  %0 = firn.gemm %x, %w, %c {beta = 2.0 : f32} : (tensor<3x1xf32>, tensor<1x2xf32>, tensor<1x2xf32>) -> tensor<3x2xf32>
  %1 = firn.add %d, %0 : (tensor<f32>, tensor<3x2xf32>) -> tensor<3x2xf32>
  return %1 : tensor<3x2xf32>
}

// CHECK-LABEL: @keeps_add_that_enlarges_the_batch
// CHECK: firn.add
func.func @keeps_add_that_enlarges_the_batch(%x: tensor<1x1x4xf32>) -> tensor<3x2x4xf32> {
  %w = firn.constant {value = dense<3.0> : tensor<2x1x1xf32>} : tensor<2x1x1xf32>
  %c = firn.constant {value = dense<1.0> : tensor<3x2x1xf32>} : tensor<3x2x1xf32>
  %0 = firn.conv %x, %w : (tensor<1x1x4xf32>, tensor<2x1x1xf32>) -> tensor<1x2x4xf32>
  %1 = firn.add %0, %c : (tensor<1x2x4xf32>, tensor<3x2x1xf32>) -> tensor<3x2x4xf32>
  return %1 : tensor<3x2x4xf32>
}

// CHECK-LABEL: @keeps_add_when_the_sum_is_also_returned
// CHECK: firn.add
func.func @keeps_add_when_the_sum_is_also_returned(%x: tensor<1x1x4xf32>) -> (tensor<1x1x4xf32>, tensor<1x1x4xf32>) {
  %w = firn.constant {value = dense<3.0> : tensor<1x1x1xf32>} : tensor<1x1x1xf32>
  %c = firn.constant {value = dense<1.0> : tensor<f32>} : tensor<f32>
  %0 = firn.conv %x, %w : (tensor<1x1x4xf32>, tensor<1x1x1xf32>) -> tensor<1x1x4xf32>
  %1 = firn.add %0, %c : (tensor<1x1x4xf32>, tensor<f32>) -> tensor<1x1x4xf32>
  return %0, %1 : tensor<1x1x4xf32>, tensor<1x1x4xf32>
}

// CHECK-LABEL: @keeps_addend_per_position
// CHECK: firn.add
func.func @keeps_addend_per_position(%x: tensor<1x1x4xf32>) -> tensor<1x2x4xf32> {
  %w = firn.constant {value = dense<3.0> : tensor<2x1x1xf32>} : tensor<2x1x1xf32>
  %c = firn.constant {value = dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>} : tensor<4xf32>
  %0 = firn.conv %x, %w : (tensor<1x1x4xf32>, tensor<2x1x1xf32>) -> tensor<1x2x4xf32>
  %1 = firn.add %0, %c : (tensor<1x2x4xf32>, tensor<4xf32>) -> tensor<1x2x4xf32>
  return %1 : tensor<1x2x4xf32>
}

// CHECK-LABEL: @keeps_add_in_another_region
// CHECK: firn.conv
// CHECK: firn.add
func.func @keeps_add_in_another_region(%p: tensor<i1>, %x: tensor<1x1x4xf32>) -> tensor<1x1x4xf32> {
  %w = firn.constant {value = dense<3.0> : tensor<1x1x1xf32>} : tensor<1x1x1xf32>
  %c = firn.constant {value = dense<1.0> : tensor<f32>} : tensor<f32>
  %0 = firn.conv %x, %w : (tensor<1x1x4xf32>, tensor<1x1x1xf32>) -> tensor<1x1x4xf32>
  %2 = firn.if %p : (tensor<i1>) -> tensor<1x1x4xf32> then {
    %1 = firn.add %0, %c : (tensor<1x1x4xf32>, tensor<f32>) -> tensor<1x1x4xf32>
    firn.yield %1 : tensor<1x1x4xf32>
  } else {
    firn.yield %x : tensor<1x1x4xf32>
  }
  return %2 : tensor<1x1x4xf32>
}

// CHECK-LABEL: @keeps_bias_that_is_no_constant
// CHECK: firn.add
func.func @keeps_bias_that_is_no_constant(%x: tensor<1x1x4xf32>, %b: tensor<1xf32>) -> tensor<1x1x4xf32> {
  %w = firn.constant {value = dense<3.0> : tensor<1x1x1xf32>} : tensor<1x1x1xf32>
  %c = firn.constant {value = dense<1.0> : tensor<f32>} : tensor<f32>
  %0 = firn.conv %x, %w, %b : (tensor<1x1x4xf32>, tensor<1x1x1xf32>, tensor<1xf32>) -> tensor<1x1x4xf32>
  %1 = firn.add %0, %c : (tensor<1x1x4xf32>, tensor<f32>) -> tensor<1x1x4xf32>
  return %1 : tensor<1x1x4xf32>
}

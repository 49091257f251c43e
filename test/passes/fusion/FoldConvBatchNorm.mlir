// RUN: firn-mlir-opt %s --firn-fold-conv-batch-norm | FileCheck %s
// RUN: firn-mlir-opt %s --firn-fold-conv-batch-norm --firn-fold-conv-batch-norm | FileCheck %s

// scale / sqrt(variance + epsilon) = [1, 2]; the weight was 3, the bias 1: (1 - 7) * [1, 2] + 5 = [-1, -7].
// CHECK-LABEL: @folds_into_conv
// CHECK-DAG: %[[W:.+]] = firn.constant {value = dense<{{\[\[\[\[}}3.000000e+00]]], {{\[\[\[}}6.000000e+00]]]]> : tensor<2x1x1x1xf32>}
// CHECK-DAG: %[[B:.+]] = firn.constant {value = dense<[-1.000000e+00, -7.000000e+00]> : tensor<2xf32>}
// CHECK: %[[Y:.+]] = firn.conv %arg0, %[[W]], %[[B]]
// CHECK-NOT: firn.batch_normalization
// CHECK: return %[[Y]]
func.func @folds_into_conv(%x: tensor<1x1x4x4xf32>) -> tensor<1x2x4x4xf32> {
  %w = firn.constant {value = dense<3.0> : tensor<2x1x1x1xf32>} : tensor<2x1x1x1xf32>
  %one = firn.constant {value = dense<1.0> : tensor<2xf32>} : tensor<2xf32>
  %s = firn.constant {value = dense<[2.0, 4.0]> : tensor<2xf32>} : tensor<2xf32>
  %b = firn.constant {value = dense<5.0> : tensor<2xf32>} : tensor<2xf32>
  %m = firn.constant {value = dense<7.0> : tensor<2xf32>} : tensor<2xf32>
  %v = firn.constant {value = dense<3.0> : tensor<2xf32>} : tensor<2xf32>
  %0 = firn.conv %x, %w, %one : (tensor<1x1x4x4xf32>, tensor<2x1x1x1xf32>, tensor<2xf32>) -> tensor<1x2x4x4xf32>
  %1 = firn.batch_normalization %0, %s, %b, %m, %v {epsilon = 1.0 : f32} : (tensor<1x2x4x4xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<1x2x4x4xf32>
  return %1 : tensor<1x2x4x4xf32>
}

// The second axis of the weight counts channels within a group: channels 0, 1 of input 0, channels 2, 3 of input 1.
// CHECK-LABEL: @folds_into_grouped_conv_transpose
// CHECK: firn.constant {value = dense<{{\[\[\[}}1.000000e+00], [2.000000e+00]], {{\[\[}}3.000000e+00], [4.000000e+00]]]> : tensor<2x2x1xf32>}
// CHECK: firn.conv_transpose
// CHECK-NOT: firn.batch_normalization
func.func @folds_into_grouped_conv_transpose(%x: tensor<1x2x4xf32>) -> tensor<1x4x4xf32> {
  %w = firn.constant {value = dense<1.0> : tensor<2x2x1xf32>} : tensor<2x2x1xf32>
  %s = firn.constant {value = dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>} : tensor<4xf32>
  %z = firn.constant {value = dense<0.0> : tensor<4xf32>} : tensor<4xf32>
  %0 = firn.conv_transpose %x, %w {group = 2 : i64} : (tensor<1x2x4xf32>, tensor<2x2x1xf32>) -> tensor<1x4x4xf32>
  %1 = firn.batch_normalization %0, %s, %z, %z, %z {epsilon = 1.0 : f32} : (tensor<1x4x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<1x4x4xf32>
  return %1 : tensor<1x4x4xf32>
}

// CHECK-LABEL: @keeps_conv_that_is_an_output
// CHECK: firn.batch_normalization
func.func @keeps_conv_that_is_an_output(%x: tensor<1x1x4xf32>) -> (tensor<1x1x4xf32>, tensor<1x1x4xf32>) {
  %w = firn.constant {value = dense<3.0> : tensor<1x1x1xf32>} : tensor<1x1x1xf32>
  %s = firn.constant {value = dense<2.0> : tensor<1xf32>} : tensor<1xf32>
  %0 = firn.conv %x, %w : (tensor<1x1x4xf32>, tensor<1x1x1xf32>) -> tensor<1x1x4xf32>
  %1 = firn.batch_normalization %0, %s, %s, %s, %s : (tensor<1x1x4xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x1x4xf32>
  return %0, %1 : tensor<1x1x4xf32>, tensor<1x1x4xf32>
}

// CHECK-LABEL: @shared_weight_stays_for_the_other
// CHECK: %[[W:.+]] = firn.constant {value = dense<3.000000e+00> : tensor<1x1x1xf32>}
// CHECK: firn.conv %arg0, %[[W]] :
func.func @shared_weight_stays_for_the_other(%x: tensor<1x1x4xf32>) -> (tensor<1x1x4xf32>, tensor<1x1x4xf32>) {
  %w = firn.constant {value = dense<3.0> : tensor<1x1x1xf32>} : tensor<1x1x1xf32>
  %s = firn.constant {value = dense<2.0> : tensor<1xf32>} : tensor<1xf32>
  %0 = firn.conv %x, %w : (tensor<1x1x4xf32>, tensor<1x1x1xf32>) -> tensor<1x1x4xf32>
  %1 = firn.conv %x, %w {pads = array<i64: 0, 0>} : (tensor<1x1x4xf32>, tensor<1x1x1xf32>) -> tensor<1x1x4xf32>
  %2 = firn.batch_normalization %1, %s, %s, %s, %s : (tensor<1x1x4xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x1x4xf32>
  return %0, %2 : tensor<1x1x4xf32>, tensor<1x1x4xf32>
}

// CHECK-LABEL: @shift_before_padding_stays
// CHECK: firn.batch_normalization
// CHECK: firn.conv
func.func @shift_before_padding_stays(%x: tensor<1x1x4xf32>) -> tensor<1x1x6xf32> {
  %w = firn.constant {value = dense<3.0> : tensor<1x1x1xf32>} : tensor<1x1x1xf32>
  %s = firn.constant {value = dense<2.0> : tensor<1xf32>} : tensor<1xf32>
  %1 = firn.batch_normalization %x, %s, %s, %s, %s : (tensor<1x1x4xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x1x4xf32>
  %2 = firn.conv %1, %w {pads = array<i64: 1, 1>} : (tensor<1x1x4xf32>, tensor<1x1x1xf32>) -> tensor<1x1x6xf32>
  return %2 : tensor<1x1x6xf32>
}

// CHECK-LABEL: @normalization_before_unpadded_conv
// CHECK-NOT: firn.batch_normalization
// CHECK: firn.conv %arg0, %{{.+}}, %{{.+}}
func.func @normalization_before_unpadded_conv(%x: tensor<1x1x4xf32>) -> tensor<1x1x4xf32> {
  %w = firn.constant {value = dense<3.0> : tensor<1x1x1xf32>} : tensor<1x1x1xf32>
  %s = firn.constant {value = dense<2.0> : tensor<1xf32>} : tensor<1xf32>
  %1 = firn.batch_normalization %x, %s, %s, %s, %s : (tensor<1x1x4xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x1x4xf32>
  %2 = firn.conv %1, %w : (tensor<1x1x4xf32>, tensor<1x1x1xf32>) -> tensor<1x1x4xf32>
  return %2 : tensor<1x1x4xf32>
}

// CHECK-LABEL: @scale_of_the_columns_of_a_matmul
// CHECK: %[[W:.+]] = firn.constant {value = dense<{{\[\[}}1.000000e+00, 2.000000e+00]]> : tensor<1x2xf32>}
// CHECK: %[[Y:.+]] = firn.matmul %arg0, %[[W]]
// CHECK: return %[[Y]]
func.func @scale_of_the_columns_of_a_matmul(%x: tensor<5x3x1xf32>) -> tensor<5x3x2xf32> {
  %w = firn.constant {value = dense<1.0> : tensor<1x2xf32>} : tensor<1x2xf32>
  %s = firn.constant {value = dense<[1.0, 2.0]> : tensor<2xf32>} : tensor<2xf32>
  %0 = firn.matmul %x, %w : (tensor<5x3x1xf32>, tensor<1x2xf32>) -> tensor<5x3x2xf32>
  %1 = firn.mul %0, %s : (tensor<5x3x2xf32>, tensor<2xf32>) -> tensor<5x3x2xf32>
  return %1 : tensor<5x3x2xf32>
}

// CHECK-LABEL: @scale_of_rows_stays
// CHECK: firn.mul
func.func @scale_of_rows_stays(%x: tensor<2x1xf32>) -> tensor<2x2xf32> {
  %w = firn.constant {value = dense<1.0> : tensor<1x2xf32>} : tensor<1x2xf32>
  %s = firn.constant {value = dense<[[1.0], [2.0]]> : tensor<2x1xf32>} : tensor<2x1xf32>
  %0 = firn.matmul %x, %w : (tensor<2x1xf32>, tensor<1x2xf32>) -> tensor<2x2xf32>
  %1 = firn.mul %0, %s : (tensor<2x2xf32>, tensor<2x1xf32>) -> tensor<2x2xf32>
  return %1 : tensor<2x2xf32>
}

// CHECK-LABEL: @infinite_weight_stays
// CHECK: firn.mul
func.func @infinite_weight_stays(%x: tensor<2x1xf32>) -> tensor<2x2xf32> {
  %w = firn.constant {value = dense<1.0e+30> : tensor<1x2xf32>} : tensor<1x2xf32>
  %s = firn.constant {value = dense<1.0e+30> : tensor<f32>} : tensor<f32>
  %0 = firn.matmul %x, %w : (tensor<2x1xf32>, tensor<1x2xf32>) -> tensor<2x2xf32>
  %1 = firn.mul %0, %s : (tensor<2x2xf32>, tensor<f32>) -> tensor<2x2xf32>
  return %1 : tensor<2x2xf32>
}

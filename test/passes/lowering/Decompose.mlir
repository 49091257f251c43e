// RUN: firn-mlir-opt %s --firn-decompose | FileCheck %s
// RUN: firn-mlir-opt %s --firn-decompose --firn-decompose | FileCheck %s

// CHECK-LABEL: @gemm_with_everything
// CHECK: %[[A:.+]] = firn.transpose %arg0
// CHECK: %[[B:.+]] = firn.transpose %arg1
// CHECK: %[[M:.+]] = firn.matmul %[[A]], %[[B]]
// CHECK: %[[S:.+]] = firn.mul %[[M]],
// CHECK: %[[C:.+]] = firn.mul %arg2,
// CHECK: firn.add %[[S]], %[[C]]
func.func @gemm_with_everything(%a: tensor<3x2xf32>, %b: tensor<4x3xf32>, %c: tensor<2x1xf32>) -> tensor<2x4xf32> {
  %0 = firn.gemm %a, %b, %c {transA = 1 : i64, transB = 1 : i64, alpha = 2.0 : f32, beta = 3.0 : f32} : (tensor<3x2xf32>, tensor<4x3xf32>, tensor<2x1xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// CHECK-LABEL: @keeps_gemm_of_16_bits
// CHECK: firn.gemm
func.func @keeps_gemm_of_16_bits(%a: tensor<2x3xf16>, %b: tensor<3x4xf16>, %c: tensor<4xf16>) -> tensor<2x4xf16> {
  %0 = firn.gemm %a, %b, %c : (tensor<2x3xf16>, tensor<3x4xf16>, tensor<4xf16>) -> tensor<2x4xf16>
  return %0 : tensor<2x4xf16>
}

// scale 2 / sqrt(3 + 1) = 1, shift 5 - 7 * 1 = -2.
// CHECK-LABEL: @batch_normalization_with_constants
// CHECK-DAG: %[[F:.+]] = firn.constant {value = dense<1.000000e+00> : tensor<2xf32>}
// CHECK-DAG: %[[G:.+]] = firn.constant {value = dense<-2.000000e+00> : tensor<2xf32>}
// CHECK-DAG: %[[S:.+]] = firn.reshape %[[F]] : (tensor<2xf32>) -> tensor<2x1x1xf32>
// CHECK-DAG: %[[T:.+]] = firn.reshape %[[G]] : (tensor<2xf32>) -> tensor<2x1x1xf32>
// CHECK: %[[M:.+]] = firn.mul %arg0, %[[S]]
// CHECK: firn.add %[[M]], %[[T]]
func.func @batch_normalization_with_constants(%x: tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32> {
  %s = firn.constant {value = dense<2.0> : tensor<2xf32>} : tensor<2xf32>
  %b = firn.constant {value = dense<5.0> : tensor<2xf32>} : tensor<2xf32>
  %m = firn.constant {value = dense<7.0> : tensor<2xf32>} : tensor<2xf32>
  %v = firn.constant {value = dense<3.0> : tensor<2xf32>} : tensor<2xf32>
  %0 = firn.batch_normalization %x, %s, %b, %m, %v {epsilon = 1.0 : f32} : (tensor<1x2x3x3xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<1x2x3x3xf32>
  return %0 : tensor<1x2x3x3xf32>
}

// CHECK-LABEL: @batch_normalization_in_training_stays
// CHECK: firn.batch_normalization
func.func @batch_normalization_in_training_stays(%x: tensor<1x2x3x3xf32>, %s: tensor<2xf32>) -> tensor<1x2x3x3xf32> {
  %0:3 = firn.batch_normalization %x, %s, %s, %s, %s {training_mode = 1 : i64} : (tensor<1x2x3x3xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<1x2x3x3xf32>, tensor<2xf32>, tensor<2xf32>)
  return %0#0 : tensor<1x2x3x3xf32>
}

// CHECK-LABEL: @sum_of_squares_without_axes
// CHECK: %[[S:.+]] = firn.mul %arg0, %arg0
// CHECK: firn.reduce_sum %[[S]] {noop_with_empty_axes = 1 : i64}
func.func @sum_of_squares_without_axes(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = firn.reduce_sum_square %x {noop_with_empty_axes = 1 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// CHECK-LABEL: @log_sum_exp_is_stable
// CHECK: %[[M:.+]] = firn.reduce_max
// CHECK: firn.is_inf %[[M]]
// CHECK: firn.reduce_sum
// CHECK: firn.reshape %{{.+}} : (tensor<2x1xf32>) -> tensor<2xf32>
func.func @log_sum_exp_is_stable(%x: tensor<2x3xf32>) -> tensor<2xf32> {
  %axes = firn.constant {value = dense<-1> : tensor<1xi64>} : tensor<1xi64>
  %0 = firn.reduce_log_sum_exp %x, %axes {keepdims = 0 : i64} : (tensor<2x3xf32>, tensor<1xi64>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// CHECK-LABEL: @mean_of_three
// CHECK: firn.add %arg0, %arg1 : (tensor<2xf32>, tensor<1xf32>) -> tensor<2xf32>
// CHECK: firn.add
// CHECK: firn.div
func.func @mean_of_three(%x: tensor<2xf32>, %y: tensor<1xf32>, %z: tensor<3x1xf32>) -> tensor<3x2xf32> {
  %0 = firn.mean %x, %y, %z : (tensor<2xf32>, tensor<1xf32>, tensor<3x1xf32>) -> tensor<3x2xf32>
  return %0 : tensor<3x2xf32>
}

// CHECK-LABEL: @split_becomes_slices
// CHECK: firn.slice %arg0{{.*}} -> tensor<2x3xf32>
// CHECK: firn.slice %arg0{{.*}} -> tensor<2x2xf32>
func.func @split_becomes_slices(%x: tensor<2x5xf32>) -> (tensor<2x3xf32>, tensor<2x2xf32>) {
  %0:2 = firn.split %x {axis = -1 : i64, num_outputs = 2 : i64} : (tensor<2x5xf32>) -> (tensor<2x3xf32>, tensor<2x2xf32>)
  return %0#0, %0#1 : tensor<2x3xf32>, tensor<2x2xf32>
}

// CHECK-LABEL: @depth_to_space_with_symbols
// CHECK: firn.reshape %arg0 : {{.+}} -> tensor<1x2x2x3x?x5xf32, #firn.dims<["", "", "", "", "h", ""]>>
// CHECK: firn.transpose %{{.+}} {perm = array<i64: 0, 3, 4, 1, 5, 2>}
// CHECK: firn.reshape %{{.+}} -> tensor<1x3x?x10xf32, #firn.dims<["", "", "2*h", ""]>>
func.func @depth_to_space_with_symbols(%x: tensor<1x12x?x5xf32, #firn.dims<["", "", "h", ""]>>) -> tensor<1x3x?x10xf32, #firn.dims<["", "", "2*h", ""]>> {
  %0 = firn.depth_to_space %x {blocksize = 2 : i64} : (tensor<1x12x?x5xf32, #firn.dims<["", "", "h", ""]>>) -> tensor<1x3x?x10xf32, #firn.dims<["", "", "2*h", ""]>>
  return %0 : tensor<1x3x?x10xf32, #firn.dims<["", "", "2*h", ""]>>
}

// CHECK-LABEL: @views_become_reshapes
// CHECK-NEXT: firn.reshape %arg0 : (tensor<1x6xf32>) -> tensor<6xf32>
func.func @views_become_reshapes(%x: tensor<1x6xf32>) -> tensor<6xf32> {
  %0 = firn.squeeze %x : (tensor<1x6xf32>) -> tensor<6xf32>
  return %0 : tensor<6xf32>
}

// CHECK-LABEL: @transpose_of_unit_axes_is_a_view
// CHECK-NEXT: firn.reshape %arg0 : (tensor<1x6x1x5xf32>) -> tensor<6x1x5x1xf32>
// CHECK-NEXT: firn.transpose %arg0 {perm = array<i64: 3, 0, 1, 2>}
func.func @transpose_of_unit_axes_is_a_view(%x: tensor<1x6x1x5xf32>) -> (tensor<6x1x5x1xf32>, tensor<5x1x6x1xf32>) {
  %0 = firn.transpose %x {perm = array<i64: 1, 0, 3, 2>} : (tensor<1x6x1x5xf32>) -> tensor<6x1x5x1xf32>
  %1 = firn.transpose %x {perm = array<i64: 3, 0, 1, 2>} : (tensor<1x6x1x5xf32>) -> tensor<5x1x6x1xf32>
  return %0, %1 : tensor<6x1x5x1xf32>, tensor<5x1x6x1xf32>
}

// RUN: firn-mlir-opt %s --firn-absorb-movement --firn-eliminate-dead | FileCheck %s
// RUN: firn-mlir-opt %s --firn-absorb-movement --firn-absorb-movement --firn-eliminate-dead | FileCheck %s

// CHECK-LABEL: @zeros_around_become_pads_of_the_convolution
// CHECK-NOT: firn.pad
// CHECK: firn.conv %arg0, %{{.+}} {{.*}}pads = array<i64: 1, 2, 0, 1>
func.func @zeros_around_become_pads_of_the_convolution(%x: tensor<1x1x3x3xf32>) -> tensor<1x2x4x6xf32> {
  %w = firn.constant {value = dense<1.0> : tensor<2x1x1x1xf32>} : tensor<2x1x1x1xf32>
  %pads = firn.constant {value = dense<[0, 0, 0, 1, 0, 0, 0, 1]> : tensor<8xi64>} : tensor<8xi64>
  %0 = firn.pad %x, %pads : (tensor<1x1x3x3xf32>, tensor<8xi64>) -> tensor<1x1x3x5xf32>
  %1 = firn.conv %0, %w {pads = array<i64: 1, 1, 0, 0>} : (tensor<1x1x3x5xf32>, tensor<2x1x1x1xf32>) -> tensor<1x2x4x6xf32>
  return %1 : tensor<1x2x4x6xf32>
}

// CHECK-LABEL: @other_pads_stay
// CHECK-COUNT-3: firn.pad
func.func @other_pads_stay(%x: tensor<1x1x3x3xf32>) -> (tensor<1x2x3x5xf32>, tensor<1x2x3x5xf32>, tensor<1x1x3x4xf32>) {
  %w = firn.constant {value = dense<1.0> : tensor<2x1x1x1xf32>} : tensor<2x1x1x1xf32>
  %one = firn.constant {value = dense<1.0> : tensor<f32>} : tensor<f32>
  %pads = firn.constant {value = dense<[0, 0, 0, 1, 0, 0, 0, 1]> : tensor<8xi64>} : tensor<8xi64>
  %0 = firn.pad %x, %pads, %one : (tensor<1x1x3x3xf32>, tensor<8xi64>, tensor<f32>) -> tensor<1x1x3x5xf32>
  %1 = firn.conv %0, %w : (tensor<1x1x3x5xf32>, tensor<2x1x1x1xf32>) -> tensor<1x2x3x5xf32>
  %2 = firn.pad %x, %pads {mode = "reflect"} : (tensor<1x1x3x3xf32>, tensor<8xi64>) -> tensor<1x1x3x5xf32>
  %3 = firn.conv %2, %w : (tensor<1x1x3x5xf32>, tensor<2x1x1x1xf32>) -> tensor<1x2x3x5xf32>
  %4 = firn.pad %x, %pads : (tensor<1x1x3x3xf32>, tensor<8xi64>) -> tensor<1x1x3x5xf32>
  %5 = firn.max_pool %4 {kernel_shape = array<i64: 1, 2>} : (tensor<1x1x3x5xf32>) -> tensor<1x1x3x4xf32>
  return %1, %3, %5 : tensor<1x2x3x5xf32>, tensor<1x2x3x5xf32>, tensor<1x1x3x4xf32>
}

// The pool's own pads do not count in its means, those in front of it do.
// CHECK-LABEL: @pads_that_count_otherwise_stay
// CHECK: firn.pad
func.func @pads_that_count_otherwise_stay(%x: tensor<1x1x3x3xf32>) -> tensor<1x1x3x6xf32> {
  %pads = firn.constant {value = dense<[0, 0, 0, 1, 0, 0, 0, 1]> : tensor<8xi64>} : tensor<8xi64>
  %0 = firn.pad %x, %pads : (tensor<1x1x3x3xf32>, tensor<8xi64>) -> tensor<1x1x3x5xf32>
  %1 = firn.average_pool %0 {kernel_shape = array<i64: 1, 2>, pads = array<i64: 0, 1, 0, 1>} : (tensor<1x1x3x5xf32>) -> tensor<1x1x3x6xf32>
  return %1 : tensor<1x1x3x6xf32>
}

// CHECK-LABEL: @a_pool_counts_the_zeros
// CHECK: firn.average_pool %arg0 {count_include_pad = 1 : i64, {{.*}}pads = array<i64: 0, 1, 0, 1>
func.func @a_pool_counts_the_zeros(%x: tensor<1x1x3x3xf32>) -> tensor<1x1x3x4xf32> {
  %pads = firn.constant {value = dense<[0, 0, 0, 1, 0, 0, 0, 1]> : tensor<8xi64>} : tensor<8xi64>
  %0 = firn.pad %x, %pads : (tensor<1x1x3x3xf32>, tensor<8xi64>) -> tensor<1x1x3x5xf32>
  %1 = firn.average_pool %0 {kernel_shape = array<i64: 1, 2>} : (tensor<1x1x3x5xf32>) -> tensor<1x1x3x4xf32>
  return %1 : tensor<1x1x3x4xf32>
}

// CHECK-LABEL: @a_reduction_drops_its_axes
// CHECK: %[[M:.+]] = firn.reduce_mean %arg0, %{{.+}} {keepdims = 0 : i64} : (tensor<?x1x5xf32, #firn.dims<["n", "", ""]>>, tensor<1xi64>) -> tensor<?x1xf32, #firn.dims<["n", ""]>>
// CHECK: return %[[M]]
func.func @a_reduction_drops_its_axes(%x: tensor<?x1x5xf32, #firn.dims<["n", "", ""]>>) -> tensor<?x1xf32, #firn.dims<["n", ""]>> {
  %axes = firn.constant {value = dense<-1> : tensor<1xi64>} : tensor<1xi64>
  %0 = firn.reduce_mean %x, %axes : (tensor<?x1x5xf32, #firn.dims<["n", "", ""]>>, tensor<1xi64>) -> tensor<?x1x1xf32, #firn.dims<["n", "", ""]>>
  %1 = firn.squeeze %0, %axes : (tensor<?x1x1xf32, #firn.dims<["n", "", ""]>>, tensor<1xi64>) -> tensor<?x1xf32, #firn.dims<["n", ""]>>
  return %1 : tensor<?x1xf32, #firn.dims<["n", ""]>>
}

// All axes of length 1 go, not only the reduced one.
// CHECK-LABEL: @a_squeeze_of_more_axes_stays
// CHECK: firn.squeeze
func.func @a_squeeze_of_more_axes_stays(%x: tensor<4x1x5xf32>) -> tensor<4xf32> {
  %axes = firn.constant {value = dense<-1> : tensor<1xi64>} : tensor<1xi64>
  %0 = firn.reduce_max %x, %axes : (tensor<4x1x5xf32>, tensor<1xi64>) -> tensor<4x1x1xf32>
  %1 = firn.squeeze %0 : (tensor<4x1x1xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// CHECK-LABEL: @gemm_reads_transposed
// CHECK: firn.gemm %arg0, %arg1 {transA = 1 : i64}
func.func @gemm_reads_transposed(%a: tensor<3x2xf32>, %b: tensor<3x4xf32>) -> tensor<2x4xf32> {
  %0 = firn.transpose %a : (tensor<3x2xf32>) -> tensor<2x3xf32>
  %1 = firn.transpose %b : (tensor<3x4xf32>) -> tensor<4x3xf32>
  %2 = firn.gemm %0, %1 {transB = 1 : i64} : (tensor<2x3xf32>, tensor<4x3xf32>) -> tensor<2x4xf32>
  return %2 : tensor<2x4xf32>
}

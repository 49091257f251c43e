// RUN: firn-mlir-opt %s --firn-recognize-normalizations --firn-eliminate-dead | FileCheck %s
// RUN: firn-mlir-opt %s --firn-recognize-normalizations --firn-recognize-normalizations --firn-eliminate-dead | FileCheck %s

// CHECK-LABEL: @layer_normalization
// CHECK: firn.layer_normalization %arg0, %arg1, %arg2 {axis = 1 : i64, epsilon = 9.99999996E-13 : f32}
// CHECK-NEXT: return
func.func @layer_normalization(%x: tensor<2x4xf32>, %s: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<2x4xf32> {
  %axes = firn.constant {value = dense<-1> : tensor<1xi64>} : tensor<1xi64>
  %two = firn.constant {value = dense<2.0> : tensor<f32>} : tensor<f32>
  %e = firn.constant {value = dense<1.0e-12> : tensor<f32>} : tensor<f32>
  %0 = firn.reduce_mean %x, %axes : (tensor<2x4xf32>, tensor<1xi64>) -> tensor<2x1xf32>
  %1 = firn.sub %x, %0 : (tensor<2x4xf32>, tensor<2x1xf32>) -> tensor<2x4xf32>
  %2 = firn.pow %1, %two : (tensor<2x4xf32>, tensor<f32>) -> tensor<2x4xf32>
  %3 = firn.reduce_mean %2, %axes : (tensor<2x4xf32>, tensor<1xi64>) -> tensor<2x1xf32>
  %4 = firn.add %3, %e : (tensor<2x1xf32>, tensor<f32>) -> tensor<2x1xf32>
  %5 = firn.sqrt %4 : (tensor<2x1xf32>) -> tensor<2x1xf32>
  %6 = firn.div %1, %5 : (tensor<2x4xf32>, tensor<2x1xf32>) -> tensor<2x4xf32>
  %7 = firn.mul %6, %s : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  %8 = firn.add %b, %7 : (tensor<4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  return %8 : tensor<2x4xf32>
}

// CHECK-LABEL: @layer_normalization_by_reciprocal_of_a_square
// CHECK: %[[S:.+]] = firn.constant {value = dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>}
// CHECK: firn.layer_normalization %arg0, %[[S]]
// CHECK-NEXT: return
func.func @layer_normalization_by_reciprocal_of_a_square(%x: tensor<3x2xf32>) -> tensor<3x2xf32> {
  %axes = firn.constant {value = dense<1> : tensor<1xi64>} : tensor<1xi64>
  %e = firn.constant {value = dense<1.0e-5> : tensor<1xf32>} : tensor<1xf32>
  %s = firn.constant {value = dense<[[1.0, 2.0]]> : tensor<1x2xf32>} : tensor<1x2xf32>
  %0 = firn.reduce_mean %x, %axes : (tensor<3x2xf32>, tensor<1xi64>) -> tensor<3x1xf32>
  %1 = firn.sub %x, %0 : (tensor<3x2xf32>, tensor<3x1xf32>) -> tensor<3x2xf32>
  %2 = firn.mul %1, %1 : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
  %3 = firn.reduce_mean %2, %axes : (tensor<3x2xf32>, tensor<1xi64>) -> tensor<3x1xf32>
  %4 = firn.add %e, %3 : (tensor<1xf32>, tensor<3x1xf32>) -> tensor<3x1xf32>
  %5 = firn.sqrt %4 : (tensor<3x1xf32>) -> tensor<3x1xf32>
  %6 = firn.reciprocal %5 : (tensor<3x1xf32>) -> tensor<3x1xf32>
  %7 = firn.mul %1, %6 : (tensor<3x2xf32>, tensor<3x1xf32>) -> tensor<3x2xf32>
  %8 = firn.mul %7, %s : (tensor<3x2xf32>, tensor<1x2xf32>) -> tensor<3x2xf32>
  return %8 : tensor<3x2xf32>
}

// CHECK-LABEL: @scale_per_row_stays_outside
// CHECK: %[[N:.+]] = firn.layer_normalization %arg0,
// CHECK: firn.mul %[[N]], %arg1
func.func @scale_per_row_stays_outside(%x: tensor<2x2xf32>, %s: tensor<2x1xf32>) -> tensor<2x2xf32> {
  %axes = firn.constant {value = dense<-1> : tensor<1xi64>} : tensor<1xi64>
  %e = firn.constant {value = dense<1.0e-5> : tensor<f32>} : tensor<f32>
  %0 = firn.reduce_mean %x, %axes : (tensor<2x2xf32>, tensor<1xi64>) -> tensor<2x1xf32>
  %1 = firn.sub %x, %0 : (tensor<2x2xf32>, tensor<2x1xf32>) -> tensor<2x2xf32>
  %2 = firn.mul %1, %1 : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %3 = firn.reduce_mean %2, %axes : (tensor<2x2xf32>, tensor<1xi64>) -> tensor<2x1xf32>
  %4 = firn.add %3, %e : (tensor<2x1xf32>, tensor<f32>) -> tensor<2x1xf32>
  %5 = firn.sqrt %4 : (tensor<2x1xf32>) -> tensor<2x1xf32>
  %6 = firn.div %1, %5 : (tensor<2x2xf32>, tensor<2x1xf32>) -> tensor<2x2xf32>
  %7 = firn.mul %6, %s : (tensor<2x2xf32>, tensor<2x1xf32>) -> tensor<2x2xf32>
  return %7 : tensor<2x2xf32>
}

// x - mean over the root of the mean of squares of x is neither of the two.
// CHECK-LABEL: @mean_of_squares_is_no_variance
// CHECK-NOT: normalization
// CHECK: return
func.func @mean_of_squares_is_no_variance(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %axes = firn.constant {value = dense<-1> : tensor<1xi64>} : tensor<1xi64>
  %e = firn.constant {value = dense<1.0e-5> : tensor<f32>} : tensor<f32>
  %0 = firn.reduce_mean %x, %axes : (tensor<2x4xf32>, tensor<1xi64>) -> tensor<2x1xf32>
  %1 = firn.sub %x, %0 : (tensor<2x4xf32>, tensor<2x1xf32>) -> tensor<2x4xf32>
  %2 = firn.mul %x, %x : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %3 = firn.reduce_mean %2, %axes : (tensor<2x4xf32>, tensor<1xi64>) -> tensor<2x1xf32>
  %4 = firn.add %3, %e : (tensor<2x1xf32>, tensor<f32>) -> tensor<2x1xf32>
  %5 = firn.sqrt %4 : (tensor<2x1xf32>) -> tensor<2x1xf32>
  %6 = firn.div %1, %5 : (tensor<2x4xf32>, tensor<2x1xf32>) -> tensor<2x4xf32>
  return %6 : tensor<2x4xf32>
}

// CHECK-LABEL: @rms_normalization
// CHECK: firn.rms_normalization %arg0, %arg1 {axis = 1 : i64
// CHECK-NEXT: return
func.func @rms_normalization(%x: tensor<2x4xf32>, %s: tensor<4xf32>) -> tensor<2x4xf32> {
  %axes = firn.constant {value = dense<-1> : tensor<1xi64>} : tensor<1xi64>
  %e = firn.constant {value = dense<1.0e-5> : tensor<f32>} : tensor<f32>
  %h = firn.constant {value = dense<-0.5> : tensor<f32>} : tensor<f32>
  %2 = firn.mul %x, %x : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %3 = firn.reduce_mean %2, %axes : (tensor<2x4xf32>, tensor<1xi64>) -> tensor<2x1xf32>
  %4 = firn.add %3, %e : (tensor<2x1xf32>, tensor<f32>) -> tensor<2x1xf32>
  %5 = firn.pow %4, %h : (tensor<2x1xf32>, tensor<f32>) -> tensor<2x1xf32>
  %6 = firn.mul %x, %5 : (tensor<2x4xf32>, tensor<2x1xf32>) -> tensor<2x4xf32>
  %7 = firn.mul %s, %6 : (tensor<4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  return %7 : tensor<2x4xf32>
}

// CHECK-LABEL: @first_axis_is_not_normalised_by_either
// CHECK-NOT: normalization
// CHECK: return
func.func @first_axis_is_not_normalised_by_either(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %axes = firn.constant {value = dense<0> : tensor<1xi64>} : tensor<1xi64>
  %e = firn.constant {value = dense<1.0e-5> : tensor<f32>} : tensor<f32>
  %0 = firn.reduce_mean %x, %axes : (tensor<2x4xf32>, tensor<1xi64>) -> tensor<1x4xf32>
  %1 = firn.sub %x, %0 : (tensor<2x4xf32>, tensor<1x4xf32>) -> tensor<2x4xf32>
  %2 = firn.mul %1, %1 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %3 = firn.reduce_mean %2, %axes : (tensor<2x4xf32>, tensor<1xi64>) -> tensor<1x4xf32>
  %4 = firn.add %3, %e : (tensor<1x4xf32>, tensor<f32>) -> tensor<1x4xf32>
  %5 = firn.sqrt %4 : (tensor<1x4xf32>) -> tensor<1x4xf32>
  %6 = firn.div %1, %5 : (tensor<2x4xf32>, tensor<1x4xf32>) -> tensor<2x4xf32>
  return %6 : tensor<2x4xf32>
}

// CHECK-LABEL: @doubles_stay
// CHECK-NOT: normalization
// CHECK: return
func.func @doubles_stay(%x: tensor<2x4xf64>, %s: tensor<4xf64>) -> tensor<2x4xf64> {
  %axes = firn.constant {value = dense<-1> : tensor<1xi64>} : tensor<1xi64>
  %e = firn.constant {value = dense<1.0e-5> : tensor<f64>} : tensor<f64>
  %2 = firn.mul %x, %x : (tensor<2x4xf64>, tensor<2x4xf64>) -> tensor<2x4xf64>
  %3 = firn.reduce_mean %2, %axes : (tensor<2x4xf64>, tensor<1xi64>) -> tensor<2x1xf64>
  %4 = firn.add %3, %e : (tensor<2x1xf64>, tensor<f64>) -> tensor<2x1xf64>
  %5 = firn.sqrt %4 : (tensor<2x1xf64>) -> tensor<2x1xf64>
  %6 = firn.div %x, %5 : (tensor<2x4xf64>, tensor<2x1xf64>) -> tensor<2x4xf64>
  %7 = firn.mul %6, %s : (tensor<2x4xf64>, tensor<4xf64>) -> tensor<2x4xf64>
  return %7 : tensor<2x4xf64>
}

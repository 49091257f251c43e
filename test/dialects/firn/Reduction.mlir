// RUN: firn-mlir-opt %s -split-input-file -verify-diagnostics | FileCheck %s

// CHECK-LABEL: @keeps_axes
// CHECK: firn.reduce_mean
func.func @keeps_axes(%x: tensor<2x3x4xf32>) -> tensor<2x1x4xf32> {
  %axes = firn.constant {value = dense<-2> : tensor<1xi64>} : tensor<1xi64>
  %0 = firn.reduce_mean %x, %axes : (tensor<2x3x4xf32>, tensor<1xi64>) -> tensor<2x1x4xf32>
  return %0 : tensor<2x1x4xf32>
}

// -----

func.func @reduce_c1(%x: tensor<2x3xf32>) -> tensor<2x1xf32> {
  %axes = firn.constant {value = dense<2> : tensor<1xi64>} : tensor<1xi64>
  // expected-error@+1 {{expected an axis in [-2, 1], found 2}}
  %0 = firn.reduce_sum %x, %axes : (tensor<2x3xf32>, tensor<1xi64>) -> tensor<2x1xf32>
  return %0 : tensor<2x1xf32>
}

// -----

func.func @layer_normalization_c2(%x: tensor<2x8xf32>, %s: tensor<16xf32>) -> tensor<2x8xf32> {
  // expected-error@+1 {{expected shapes that broadcast, found [2, 8] and [16]}}
  %0 = firn.layer_normalization %x, %s : (tensor<2x8xf32>, tensor<16xf32>) -> tensor<2x8xf32>
  return %0 : tensor<2x8xf32>
}

// -----

func.func @batch_normalization_c1(%x: tensor<2x8x4xf32>, %s: tensor<8xf32>, %v: tensor<4xf32>) -> tensor<2x8x4xf32> {
  // expected-error@+1 {{expected variance of shape [8], found [4]}}
  %0 = firn.batch_normalization %x, %s, %s, %s, %v : (tensor<2x8x4xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<4xf32>) -> tensor<2x8x4xf32>
  return %0 : tensor<2x8x4xf32>
}

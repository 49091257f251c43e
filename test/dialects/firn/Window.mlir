// RUN: firn-mlir-opt %s -split-input-file -verify-diagnostics | FileCheck %s

// CHECK-LABEL: @strided
// CHECK: firn.conv
func.func @strided(%x: tensor<1x3x9x9xf32>, %w: tensor<8x3x3x3xf32>) -> tensor<1x8x4x4xf32> {
  %0 = firn.conv %x, %w {strides = array<i64: 2, 2>} : (tensor<1x3x9x9xf32>, tensor<8x3x3x3xf32>) -> tensor<1x8x4x4xf32>
  return %0 : tensor<1x8x4x4xf32>
}

// -----

func.func @conv_c1(%x: tensor<1x3xf32>, %w: tensor<8x3x3x3xf32>) -> tensor<1x8xf32> {
  // expected-error@+1 {{expected input and weight of one rank >= 3, found shapes [1, 3] and [8, 3, 3, 3]}}
  %0 = firn.conv %x, %w : (tensor<1x3xf32>, tensor<8x3x3x3xf32>) -> tensor<1x8xf32>
  return %0 : tensor<1x8xf32>
}

// -----

func.func @conv_c2(%x: tensor<1x4x9x9xf32>, %w: tensor<8x3x3x3xf32>) -> tensor<1x8x7x7xf32> {
  // expected-error@+1 {{expected 3 input channels (weight's 3 x group 1), found 4}}
  %0 = firn.conv %x, %w : (tensor<1x4x9x9xf32>, tensor<8x3x3x3xf32>) -> tensor<1x8x7x7xf32>
  return %0 : tensor<1x8x7x7xf32>
}

// -----

func.func @conv_c3(%x: tensor<1x6x9x9xf32>, %w: tensor<8x2x3x3xf32>) -> tensor<1x8x7x7xf32> {
  // expected-error@+1 {{expected a multiple of group 3 output channels, found 8}}
  %0 = firn.conv %x, %w {group = 3 : i64} : (tensor<1x6x9x9xf32>, tensor<8x2x3x3xf32>) -> tensor<1x8x7x7xf32>
  return %0 : tensor<1x8x7x7xf32>
}

// -----

func.func @conv_c4(%x: tensor<1x3x9x9xf32>, %w: tensor<8x3x3x3xf32>) -> tensor<1x8x7x7xf32> {
  // expected-error@+1 {{expected values >= 1 in 'strides', found 0}}
  %0 = firn.conv %x, %w {strides = array<i64: 0, 1>} : (tensor<1x3x9x9xf32>, tensor<8x3x3x3xf32>) -> tensor<1x8x7x7xf32>
  return %0 : tensor<1x8x7x7xf32>
}

// -----

func.func @conv_c5(%x: tensor<1x3x2x9xf32>, %w: tensor<8x3x3x3xf32>) -> tensor<1x8x1x7xf32> {
  // expected-error@+1 {{expected a kernel that fits the padded input, found a reach of 3 over a padded size of 2}}
  %0 = firn.conv %x, %w : (tensor<1x3x2x9xf32>, tensor<8x3x3x3xf32>) -> tensor<1x8x1x7xf32>
  return %0 : tensor<1x8x1x7xf32>
}

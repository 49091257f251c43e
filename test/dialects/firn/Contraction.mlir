// RUN: firn-mlir-opt %s -split-input-file -verify-diagnostics | FileCheck %s

// CHECK-LABEL: @batched
// CHECK: firn.matmul
func.func @batched(%a: tensor<2x1x4x5xf32>, %b: tensor<3x5x6xf32>) -> tensor<2x3x4x6xf32> {
  %0 = firn.matmul %a, %b : (tensor<2x1x4x5xf32>, tensor<3x5x6xf32>) -> tensor<2x3x4x6xf32>
  return %0 : tensor<2x3x4x6xf32>
}

// -----

func.func @matmul_c1(%a: tensor<4x5xf32>, %b: tensor<6x7xf32>) -> tensor<4x7xf32> {
  // expected-error@+1 {{expected equal inner dimensions, found 5 and 6 in shapes [4, 5] and [6, 7]}}
  %0 = firn.matmul %a, %b : (tensor<4x5xf32>, tensor<6x7xf32>) -> tensor<4x7xf32>
  return %0 : tensor<4x7xf32>
}

// -----

func.func @gemm_c2(%a: tensor<4x5xf32>, %b: tensor<5x7xf32>, %c: tensor<3xf32>) -> tensor<4x7xf32> {
  // expected-error@+1 {{expected shapes that broadcast, found [4, 7] and [3]}}
  %0 = firn.gemm %a, %b, %c : (tensor<4x5xf32>, tensor<5x7xf32>, tensor<3xf32>) -> tensor<4x7xf32>
  return %0 : tensor<4x7xf32>
}

// -----

func.func @einsum_c1(%a: tensor<4x5xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{to name the 2 axes of input 0}}
  %0 = firn.einsum %a {equation = "ijk->i"} : (tensor<4x5xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// RUN: firn-mlir-opt %s --firn-decompose-einsum | FileCheck %s

// CHECK-LABEL: @matrix_product
// CHECK-NEXT: %[[Y:.+]] = firn.matmul %arg0, %arg1
// CHECK-NEXT: return %[[Y]]
func.func @matrix_product(%a: tensor<5x2x3xf32>, %b: tensor<5x3x4xf32>) -> tensor<5x2x4xf32> {
  %0 = firn.einsum %a, %b {equation = "bij,bjk->bik"} : (tensor<5x2x3xf32>, tensor<5x3x4xf32>) -> tensor<5x2x4xf32>
  return %0 : tensor<5x2x4xf32>
}

// CHECK-LABEL: @attention_scores
// CHECK: %[[Q:.+]] = firn.transpose %arg0 {perm = array<i64: 0, 2, 1, 3>}
// CHECK: %[[K:.+]] = firn.transpose %arg1 {perm = array<i64: 0, 2, 3, 1>}
// CHECK: firn.matmul %[[Q]], %[[K]] : (tensor<2x4x3x8xf32>, tensor<2x4x8x5xf32>) -> tensor<2x4x3x5xf32>
func.func @attention_scores(%q: tensor<2x3x4x8xf32>, %k: tensor<2x5x4x8xf32>) -> tensor<2x4x3x5xf32> {
  %0 = firn.einsum %q, %k {equation = "bqhd,bkhd->bhqk"} : (tensor<2x3x4x8xf32>, tensor<2x5x4x8xf32>) -> tensor<2x4x3x5xf32>
  return %0 : tensor<2x4x3x5xf32>
}

// CHECK-LABEL: @outer_product_is_no_matrix_product
// CHECK-NOT: firn.matmul
// CHECK: firn.mul
func.func @outer_product_is_no_matrix_product(%a: tensor<2xf32>, %b: tensor<3xf32>) -> tensor<3x2xf32> {
  %0 = firn.einsum %a, %b {equation = "i,j->ji"} : (tensor<2xf32>, tensor<3xf32>) -> tensor<3x2xf32>
  return %0 : tensor<3x2xf32>
}

// CHECK-LABEL: @implicit_result_in_alphabetic_order
// CHECK: firn.matmul {{.+}} -> tensor<2x4xf32>
// CHECK: return
func.func @implicit_result_in_alphabetic_order(%a: tensor<2x3xf32>, %b: tensor<3x4xf32>) -> tensor<2x4xf32> {
  %0 = firn.einsum %a, %b {equation = "ij,jk"} : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// CHECK-LABEL: @three_operands_from_the_left
// CHECK: firn.matmul
// CHECK: firn.matmul
func.func @three_operands_from_the_left(%a: tensor<2x3xf32>, %b: tensor<3x4xf32>, %c: tensor<4x5xf32>) -> tensor<2x5xf32> {
  %0 = firn.einsum %a, %b, %c {equation = "ij,jk,kl->il"} : (tensor<2x3xf32>, tensor<3x4xf32>, tensor<4x5xf32>) -> tensor<2x5xf32>
  return %0 : tensor<2x5xf32>
}

// CHECK-LABEL: @ellipsis_and_a_sum
// CHECK: firn.reduce_sum %arg0
// CHECK: firn.transpose
func.func @ellipsis_and_a_sum(%a: tensor<2x3x4xf32>) -> tensor<4x2xf32> {
  %0 = firn.einsum %a {equation = "...ij->j..."} : (tensor<2x3x4xf32>) -> tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}

// CHECK-LABEL: @keeps_a_diagonal
// CHECK: firn.einsum
func.func @keeps_a_diagonal(%a: tensor<3x3xf32>) -> tensor<3xf32> {
  %0 = firn.einsum %a {equation = "ii->i"} : (tensor<3x3xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// CHECK-LABEL: @keeps_three_operands_of_16_bits
// CHECK: firn.einsum
func.func @keeps_three_operands_of_16_bits(%a: tensor<2x3xf16>, %b: tensor<3x4xf16>, %c: tensor<4x5xf16>) -> tensor<2x5xf16> {
  %0 = firn.einsum %a, %b, %c {equation = "ij,jk,kl->il"} : (tensor<2x3xf16>, tensor<3x4xf16>, tensor<4x5xf16>) -> tensor<2x5xf16>
  return %0 : tensor<2x5xf16>
}

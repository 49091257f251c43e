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

// -----

// CHECK-LABEL: @attention_of_rows
// CHECK: firn.attention
func.func @attention_of_rows(%q: tensor<2x?x12xf32, #firn.dims<["", "n", ""]>>, %k: tensor<2x5x4xf32>, %m: tensor<3xi1>) -> tensor<2x?x12xf32, #firn.dims<["", "n", ""]>> {
  %0 = firn.attention %q, %k, %k, %m {q_num_heads = 6 : i64, kv_num_heads = 2 : i64, scale = 1.0 : f32} : (tensor<2x?x12xf32, #firn.dims<["", "n", ""]>>, tensor<2x5x4xf32>, tensor<2x5x4xf32>, tensor<3xi1>) -> tensor<2x?x12xf32, #firn.dims<["", "n", ""]>>
  return %0 : tensor<2x?x12xf32, #firn.dims<["", "n", ""]>>
}

// -----

func.func @attention_c2_c4(%q: tensor<2x3x5x4xf32>, %k: tensor<2x2x5x8xf32>) -> tensor<2x3x5x8xf32> {
  // expected-error@+2 {{expected heads of Q and K of one size, found 4 and 8}}
  // expected-error@+1 {{expected the heads of Q to be a multiple of those of K, found 3 and 2}}
  %0 = firn.attention %q, %k, %k : (tensor<2x3x5x4xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x8xf32>) -> tensor<2x3x5x8xf32>
  return %0 : tensor<2x3x5x8xf32>
}

// -----

func.func @attention_c5(%q: tensor<2x5x12xf32>) -> tensor<2x5x12xf32> {
  // expected-error@+3 {{expected a positive q_num_heads where Q has 3 axes, found 0}}
  // expected-error@+2 {{expected a positive kv_num_heads where K has 3 axes, found 0}}
  // expected-error@+1 {{expected a positive kv_num_heads where V has 3 axes, found 0}}
  %0 = firn.attention %q, %q, %q : (tensor<2x5x12xf32>, tensor<2x5x12xf32>, tensor<2x5x12xf32>) -> tensor<2x5x12xf32>
  return %0 : tensor<2x5x12xf32>
}

// -----

func.func @attention_c6(%q: tensor<2x3x5x4xf32>, %m: tensor<4x5xf32>) -> tensor<2x3x5x4xf32> {
  // expected-error@+1 {{expected attn_mask to broadcast to [2, 3, 5, 5], found [4, 5]}}
  %0 = firn.attention %q, %q, %q, %m : (tensor<2x3x5x4xf32>, tensor<2x3x5x4xf32>, tensor<2x3x5x4xf32>, tensor<4x5xf32>) -> tensor<2x3x5x4xf32>
  return %0 : tensor<2x3x5x4xf32>
}

// -----

func.func @rotary_embedding_c2(%x: tensor<2x5x12xf32>, %c: tensor<2x5x2xf32>) -> tensor<2x5x12xf32> {
  // expected-error@+1 {{expected a positive num_heads where X has 3 axes, found 0}}
  %0 = firn.rotary_embedding %x, %c, %c : (tensor<2x5x12xf32>, tensor<2x5x2xf32>, tensor<2x5x2xf32>) -> tensor<2x5x12xf32>
  return %0 : tensor<2x5x12xf32>
}

// RUN: firn-mlir-opt %s --firn-merge-qkv --firn-eliminate-dead | FileCheck %s
// RUN: firn-mlir-opt %s --firn-merge-qkv --firn-merge-qkv --firn-eliminate-dead | FileCheck %s

// CHECK-LABEL: @three_projections_are_one_product
// CHECK: %[[W:.+]] = firn.constant {value = dense<{{\[\[}}1.000000e+00, 2.000000e+00, 5.000000e+00, 5.000000e+00, 7.000000e+00, 8.000000e+00], [3.000000e+00, 4.000000e+00, 5.000000e+00, 5.000000e+00, 9.000000e+00, 1.000000e+00]]>
// CHECK: %[[B:.+]] = firn.constant {value = dense<[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00, 5.000000e+00, 6.000000e+00]>
// CHECK: %[[Y:.+]] = firn.matmul %arg0, %[[W]]
// CHECK: %[[S:.+]] = firn.add %[[Y]], %[[B]]
// CHECK: %[[Q:.+]] = firn.slice %[[S]],
// CHECK: %[[K:.+]] = firn.slice %[[S]],
// CHECK: %[[V:.+]] = firn.slice %[[S]],
// CHECK: firn.attention %[[Q]], %[[K]], %[[V]]
func.func @three_projections_are_one_product(%x: tensor<1x3x2xf32>) -> tensor<1x3x2xf32> {
  %wq = firn.constant {value = dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>} : tensor<2x2xf32>
  %wk = firn.constant {value = dense<5.0> : tensor<2x2xf32>} : tensor<2x2xf32>
  %wv = firn.constant {value = dense<[[7.0, 8.0], [9.0, 1.0]]> : tensor<2x2xf32>} : tensor<2x2xf32>
  %bq = firn.constant {value = dense<[1.0, 2.0]> : tensor<2xf32>} : tensor<2xf32>
  %bk = firn.constant {value = dense<[3.0, 4.0]> : tensor<2xf32>} : tensor<2xf32>
  %bv = firn.constant {value = dense<[5.0, 6.0]> : tensor<2xf32>} : tensor<2xf32>
  %0 = firn.matmul %x, %wq : (tensor<1x3x2xf32>, tensor<2x2xf32>) -> tensor<1x3x2xf32>
  %1 = firn.add %0, %bq : (tensor<1x3x2xf32>, tensor<2xf32>) -> tensor<1x3x2xf32>
  %2 = firn.matmul %x, %wk : (tensor<1x3x2xf32>, tensor<2x2xf32>) -> tensor<1x3x2xf32>
  %3 = firn.add %bk, %2 : (tensor<2xf32>, tensor<1x3x2xf32>) -> tensor<1x3x2xf32>
  %4 = firn.matmul %x, %wv : (tensor<1x3x2xf32>, tensor<2x2xf32>) -> tensor<1x3x2xf32>
  %5 = firn.add %4, %bv : (tensor<1x3x2xf32>, tensor<2xf32>) -> tensor<1x3x2xf32>
  %6 = firn.attention %1, %3, %5 {q_num_heads = 1 : i64, kv_num_heads = 1 : i64} : (tensor<1x3x2xf32>, tensor<1x3x2xf32>, tensor<1x3x2xf32>) -> tensor<1x3x2xf32>
  return %6 : tensor<1x3x2xf32>
}

// CHECK-LABEL: @keys_and_values_of_another_input_are_one_product
// CHECK: firn.matmul %arg0,
// CHECK: %[[Y:.+]] = firn.matmul %arg1,
// CHECK: %[[K:.+]] = firn.slice %[[Y]],
// CHECK: %[[V:.+]] = firn.slice %[[Y]],
// CHECK: firn.attention {{.+}}, %[[K]], %[[V]]
func.func @keys_and_values_of_another_input_are_one_product(%x: tensor<1x3x2xf32>, %z: tensor<1x5x2xf32>) -> tensor<1x3x2xf32> {
  %w = firn.constant {value = dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>} : tensor<2x2xf32>
  %0 = firn.matmul %x, %w : (tensor<1x3x2xf32>, tensor<2x2xf32>) -> tensor<1x3x2xf32>
  %1 = firn.matmul %z, %w : (tensor<1x5x2xf32>, tensor<2x2xf32>) -> tensor<1x5x2xf32>
  %2 = firn.matmul %z, %w : (tensor<1x5x2xf32>, tensor<2x2xf32>) -> tensor<1x5x2xf32>
  %3 = firn.attention %0, %1, %2 {q_num_heads = 1 : i64, kv_num_heads = 1 : i64} : (tensor<1x3x2xf32>, tensor<1x5x2xf32>, tensor<1x5x2xf32>) -> tensor<1x3x2xf32>
  return %3 : tensor<1x3x2xf32>
}

// CHECK-LABEL: @keeps_projections_that_are_returned
// CHECK: firn.matmul
// CHECK: firn.matmul
// CHECK-NOT: firn.slice
// CHECK: return
func.func @keeps_projections_that_are_returned(%x: tensor<1x3x2xf32>, %q: tensor<1x3x2xf32>) -> (tensor<1x3x2xf32>, tensor<1x3x2xf32>) {
  %w = firn.constant {value = dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>} : tensor<2x2xf32>
  %0 = firn.matmul %x, %w : (tensor<1x3x2xf32>, tensor<2x2xf32>) -> tensor<1x3x2xf32>
  %1 = firn.matmul %x, %w : (tensor<1x3x2xf32>, tensor<2x2xf32>) -> tensor<1x3x2xf32>
  %2 = firn.attention %q, %0, %1 {q_num_heads = 1 : i64, kv_num_heads = 1 : i64} : (tensor<1x3x2xf32>, tensor<1x3x2xf32>, tensor<1x3x2xf32>) -> tensor<1x3x2xf32>
  return %2, %0 : tensor<1x3x2xf32>, tensor<1x3x2xf32>
}

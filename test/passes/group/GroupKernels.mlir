// RUN: firn-mlir-opt %s -firn-group | FileCheck %s
// RUN: firn-mlir-opt %s -firn-group=single | FileCheck %s --check-prefix=SINGLE

// CHECK-LABEL: @elementwise_chain_is_one_kernel
// CHECK: firn.fused "map"
// CHECK: firn.relu
// CHECK: firn.mul
// CHECK-NOT: firn.fused
// CHECK: return
// SINGLE-LABEL: @elementwise_chain_is_one_kernel
// SINGLE: firn.fused "map"
// SINGLE: firn.fused "map"
func.func @elementwise_chain_is_one_kernel(%x: tensor<4x8xf32>, %y: tensor<8xf32>) -> tensor<4x8xf32> {
  %0 = firn.relu %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = firn.mul %0, %y : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}

// CHECK-LABEL: @bias_and_activation_join_the_contraction
// CHECK: firn.fused "contraction"
// CHECK: firn.matmul
// CHECK: firn.add
// CHECK: firn.gelu
// CHECK-NOT: firn.fused
// CHECK: return
func.func @bias_and_activation_join_the_contraction(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>, %b: tensor<16xf32>) -> tensor<4x16xf32> {
  %0 = firn.matmul %x, %w : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  %1 = firn.add %0, %b : (tensor<4x16xf32>, tensor<16xf32>) -> tensor<4x16xf32>
  %2 = firn.gelu %1 : (tensor<4x16xf32>) -> tensor<4x16xf32>
  return %2 : tensor<4x16xf32>
}

// CHECK-LABEL: @a_value_read_elsewhere_ends_the_group
// CHECK: firn.fused "contraction"
// CHECK: firn.fused "map"
func.func @a_value_read_elsewhere_ends_the_group(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>) -> (tensor<4x16xf32>, tensor<4x16xf32>) {
  %0 = firn.matmul %x, %w : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  %1 = firn.relu %0 : (tensor<4x16xf32>) -> tensor<4x16xf32>
  return %0, %1 : tensor<4x16xf32>, tensor<4x16xf32>
}

// CHECK-LABEL: @an_epilogue_that_broadcasts_the_product_stays_outside
// CHECK: firn.fused "contraction"
// CHECK: firn.fused "map"
func.func @an_epilogue_that_broadcasts_the_product_stays_outside(%x: tensor<1x8xf32>, %w: tensor<8x16xf32>, %y: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %0 = firn.matmul %x, %w : (tensor<1x8xf32>, tensor<8x16xf32>) -> tensor<1x16xf32>
  %1 = firn.add %0, %y : (tensor<1x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
  return %1 : tensor<4x16xf32>
}

// CHECK-LABEL: @bytes_of_weights_join_each_product_that_reads_them
// CHECK: firn.fused "contraction"
// CHECK: firn.dequantize_linear
// CHECK: firn.matmul
// CHECK: firn.fused "contraction"
// CHECK: firn.dequantize_linear
// CHECK: firn.gemm
// CHECK-NOT: firn.fused
// CHECK: return
func.func @bytes_of_weights_join_each_product_that_reads_them(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %q = firn.constant {value = dense<3> : tensor<4x4xi8>} : tensor<4x4xi8>
  %s = firn.constant {value = dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>} : tensor<4xf32>
  %w = firn.dequantize_linear %q, %s {axis = 1 : i64} : (tensor<4x4xi8>, tensor<4xf32>) -> tensor<4x4xf32>
  %0 = firn.matmul %x, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = firn.gemm %0, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %1 : tensor<4x4xf32>
}

// CHECK-LABEL: @bytes_with_scales_per_row_stay_outside
// CHECK: firn.fused "map"
// CHECK: firn.fused "contraction"
func.func @bytes_with_scales_per_row_stay_outside(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %q = firn.constant {value = dense<3> : tensor<4x4xi8>} : tensor<4x4xi8>
  %s = firn.constant {value = dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>} : tensor<4xf32>
  %w = firn.dequantize_linear %q, %s {axis = 0 : i64} : (tensor<4x4xi8>, tensor<4xf32>) -> tensor<4x4xf32>
  %0 = firn.matmul %x, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// CHECK-LABEL: @attention_reads_views_of_its_operands
// CHECK: firn.fused "attention"(%arg0, %arg1)
// CHECK: firn.slice
// CHECK: firn.transpose
// CHECK: firn.attention
// CHECK-NOT: firn.fused
// CHECK: return
func.func @attention_reads_views_of_its_operands(%x: tensor<2x5x3x8xf32>, %k: tensor<2x3x7x4xf32>) -> tensor<2x3x5x4xf32> {
  %b = firn.constant {value = dense<4> : tensor<1xi64>} : tensor<1xi64>
  %e = firn.constant {value = dense<8> : tensor<1xi64>} : tensor<1xi64>
  %a = firn.constant {value = dense<3> : tensor<1xi64>} : tensor<1xi64>
  %0 = firn.slice %x, %b, %e, %a : (tensor<2x5x3x8xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<2x5x3x4xf32>
  %1 = firn.transpose %0 {perm = array<i64: 0, 2, 1, 3>} : (tensor<2x5x3x4xf32>) -> tensor<2x3x5x4xf32>
  %2 = firn.attention %1, %k, %k : (tensor<2x3x5x4xf32>, tensor<2x3x7x4xf32>, tensor<2x3x7x4xf32>) -> tensor<2x3x5x4xf32>
  return %2 : tensor<2x3x5x4xf32>
}

// CHECK-LABEL: @a_size_found_in_data_is_counted_first
// CHECK: firn.reduce_sum
// CHECK: %[[SIZE:.+]] = firn.constant_of_shape {{.*}} -> tensor<?x0xf32, #firn.dims<["u3.0", ""]>>
// CHECK: firn.fused "search"(%arg0, %[[SIZE]])
// CHECK: firn.non_zero
func.func @a_size_found_in_data_is_counted_first(%x: tensor<4x5xf32>) -> tensor<2x?xi64, #firn.dims<["", "u3.0"]>> {
  %0 = firn.non_zero %x {firn.id = 3 : i64} : (tensor<4x5xf32>) -> tensor<2x?xi64, #firn.dims<["", "u3.0"]>>
  return %0 : tensor<2x?xi64, #firn.dims<["", "u3.0"]>>
}

// CHECK-LABEL: @a_condition_longer_than_its_axis_stays_on_the_reference_kernel
// CHECK-NOT: firn.fused
// CHECK: firn.call "ai.onnx::Compress"
func.func @a_condition_longer_than_its_axis_stays_on_the_reference_kernel(%x: tensor<4xf32>, %c: tensor<5xi1>) -> tensor<?xf32, #firn.dims<["u4.0"]>> {
  %0 = firn.call "ai.onnx::Compress"(%x, %c) {firn.id = 4 : i64} : (tensor<4xf32>, tensor<5xi1>) -> tensor<?xf32, #firn.dims<["u4.0"]>>
  return %0 : tensor<?xf32, #firn.dims<["u4.0"]>>
}

// CHECK-LABEL: @scatters_and_searches_are_kernels_of_their_own
// CHECK: firn.fused "scatter"
// CHECK: firn.fused "scan"
// CHECK: firn.fused "search"
func.func @scatters_and_searches_are_kernels_of_their_own(%x: tensor<4xf32>, %i: tensor<2xi64>, %u: tensor<2xf32>) -> tensor<3xf32> {
  %a = firn.constant {value = dense<0> : tensor<i64>} : tensor<i64>
  %k = firn.constant {value = dense<3> : tensor<1xi64>} : tensor<1xi64>
  %0 = firn.scatter_elements %x, %i, %u : (tensor<4xf32>, tensor<2xi64>, tensor<2xf32>) -> tensor<4xf32>
  %1 = firn.cumsum %0, %a : (tensor<4xf32>, tensor<i64>) -> tensor<4xf32>
  %2:2 = firn.topk %1, %k : (tensor<4xf32>, tensor<1xi64>) -> (tensor<3xf32>, tensor<3xi64>)
  return %2#0 : tensor<3xf32>
}

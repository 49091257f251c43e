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

// CHECK-LABEL: @attention_with_a_cache_reads_what_it_returns
// CHECK: %[[S:.+]] = firn.reshape %arg1
// CHECK: %[[T:.+]] = firn.transpose %[[S]] {perm = array<i64: 0, 2, 1, 3>}
// CHECK: %[[K:.+]] = firn.concat %arg3, %[[T]] {axis = 2 : i64} : {{.*}} -> tensor<2x3x?x4xf32, #firn.dims<["", "", "n+past", ""]>>
// CHECK: %[[V:.+]] = firn.concat %arg4,
// CHECK: %[[Y:.+]] = firn.attention %arg0, %[[K]], %[[V]], {{.*}}, %arg3, %arg4 {is_causal = 1 : i64, joined = 1 : i64
// CHECK: return %[[Y]], %[[K]], %[[V]]
func.func @attention_with_a_cache_reads_what_it_returns(%q: tensor<2x?x12xf32, #firn.dims<["", "n", ""]>>, %k: tensor<2x?x12xf32, #firn.dims<["", "n", ""]>>, %v: tensor<2x?x12xf32, #firn.dims<["", "n", ""]>>, %pk: tensor<2x3x?x4xf32, #firn.dims<["", "", "past", ""]>>, %pv: tensor<2x3x?x4xf32, #firn.dims<["", "", "past", ""]>>) -> (tensor<2x?x12xf32, #firn.dims<["", "n", ""]>>, tensor<2x3x?x4xf32, #firn.dims<["", "", "n+past", ""]>>, tensor<2x3x?x4xf32, #firn.dims<["", "", "n+past", ""]>>) {
  %none = firn.absent : none
  %0:3 = firn.attention %q, %k, %v, %none, %pk, %pv {q_num_heads = 3 : i64, kv_num_heads = 3 : i64, is_causal = 1 : i64} : (tensor<2x?x12xf32, #firn.dims<["", "n", ""]>>, tensor<2x?x12xf32, #firn.dims<["", "n", ""]>>, tensor<2x?x12xf32, #firn.dims<["", "n", ""]>>, none, tensor<2x3x?x4xf32, #firn.dims<["", "", "past", ""]>>, tensor<2x3x?x4xf32, #firn.dims<["", "", "past", ""]>>) -> (tensor<2x?x12xf32, #firn.dims<["", "n", ""]>>, tensor<2x3x?x4xf32, #firn.dims<["", "", "n+past", ""]>>, tensor<2x3x?x4xf32, #firn.dims<["", "", "n+past", ""]>>)
  return %0#0, %0#1, %0#2 : tensor<2x?x12xf32, #firn.dims<["", "n", ""]>>, tensor<2x3x?x4xf32, #firn.dims<["", "", "n+past", ""]>>, tensor<2x3x?x4xf32, #firn.dims<["", "", "n+past", ""]>>
}

// CHECK-LABEL: @keeps_attention_without_a_cache
// CHECK-NEXT: firn.attention %arg0, %arg0, %arg0 :
func.func @keeps_attention_without_a_cache(%q: tensor<2x3x5x4xf32>) -> tensor<2x3x5x4xf32> {
  %0 = firn.attention %q, %q, %q : (tensor<2x3x5x4xf32>, tensor<2x3x5x4xf32>, tensor<2x3x5x4xf32>) -> tensor<2x3x5x4xf32>
  return %0 : tensor<2x3x5x4xf32>
}

// CHECK-LABEL: @keeps_attention_whose_scores_are_read
// CHECK: firn.attention
// CHECK-NOT: joined
// CHECK: return
func.func @keeps_attention_whose_scores_are_read(%q: tensor<2x3x5x4xf32>, %p: tensor<2x3x2x4xf32>) -> tensor<2x3x5x7xf32> {
  %none = firn.absent : none
  %0:4 = firn.attention %q, %q, %q, %none, %p, %p : (tensor<2x3x5x4xf32>, tensor<2x3x5x4xf32>, tensor<2x3x5x4xf32>, none, tensor<2x3x2x4xf32>, tensor<2x3x2x4xf32>) -> (tensor<2x3x5x4xf32>, tensor<2x3x7x4xf32>, tensor<2x3x7x4xf32>, tensor<2x3x5x7xf32>)
  return %0#3 : tensor<2x3x5x7xf32>
}

// CHECK-LABEL: @rotary_embedding_of_half_a_head_in_16_bits
// CHECK-NOT: firn.rotary_embedding
// CHECK: firn.gather
// CHECK: firn.cast
// CHECK: firn.sub
// CHECK: firn.add
// CHECK: firn.concat
// CHECK: return
func.func @rotary_embedding_of_half_a_head_in_16_bits(%x: tensor<2x5x24xf16>, %c: tensor<9x2xf16>, %s: tensor<9x2xf16>, %p: tensor<2x5xi64>) -> tensor<2x5x24xf16> {
  %0 = firn.rotary_embedding %x, %c, %s, %p {num_heads = 3 : i64, rotary_embedding_dim = 4 : i64} : (tensor<2x5x24xf16>, tensor<9x2xf16>, tensor<9x2xf16>, tensor<2x5xi64>) -> tensor<2x5x24xf16>
  return %0 : tensor<2x5x24xf16>
}

// CHECK-LABEL: @quantised_product_is_one_of_integers
// CHECK: %[[SUMS:.+]] = firn.matmul_integer %arg0, %arg1, {{.*}} -> tensor<2x3xi32>
// CHECK: %[[REAL:.+]] = firn.cast %[[SUMS]]
// CHECK: %[[SCALED:.+]] = firn.mul %[[REAL]]
// CHECK: firn.quantize_linear %[[SCALED]], {{.*}} -> tensor<2x3xui8>
func.func @quantised_product_is_one_of_integers(%a: tensor<2x4xui8>, %b: tensor<4x3xi8>, %s: tensor<f32>, %z: tensor<ui8>,
                                                %sb: tensor<3xf32>, %zb: tensor<3xi8>) -> tensor<2x3xui8> {
  %0 = firn.q_linear_matmul %a, %s, %z, %b, %sb, %zb, %s, %z : (tensor<2x4xui8>, tensor<f32>, tensor<ui8>, tensor<4x3xi8>, tensor<3xf32>, tensor<3xi8>, tensor<f32>, tensor<ui8>) -> tensor<2x3xui8>
  return %0 : tensor<2x3xui8>
}

// CHECK-LABEL: @keeps_a_quantised_product_with_scales_per_row
// CHECK: firn.q_linear_matmul
func.func @keeps_a_quantised_product_with_scales_per_row(%a: tensor<2x4xui8>, %b: tensor<4x3xi8>, %s: tensor<2xf32>, %z: tensor<2xui8>,
                                                         %sb: tensor<f32>, %zb: tensor<i8>, %sy: tensor<f32>, %zy: tensor<ui8>) -> tensor<2x3xui8> {
  %0 = firn.q_linear_matmul %a, %s, %z, %b, %sb, %zb, %sy, %zy : (tensor<2x4xui8>, tensor<2xf32>, tensor<2xui8>, tensor<4x3xi8>, tensor<f32>, tensor<i8>, tensor<f32>, tensor<ui8>) -> tensor<2x3xui8>
  return %0 : tensor<2x3xui8>
}

// CHECK-LABEL: @quantised_convolution_is_one_of_integers
// CHECK: %[[SUMS:.+]] = firn.conv_integer %arg0, {{.*}}pads = array<i64: 1, 1, 1, 1>{{.*}} -> tensor<1x2x4x4xi32>
// CHECK: firn.add %[[SUMS]]
// CHECK: firn.quantize_linear
func.func @quantised_convolution_is_one_of_integers(%x: tensor<1x1x4x4xi8>, %s: tensor<f32>, %z: tensor<i8>) -> tensor<1x2x4x4xi8> {
  %w = firn.constant {value = dense<3> : tensor<2x1x3x3xi8>} : tensor<2x1x3x3xi8>
  %sw = firn.constant {value = dense<[1.0, 2.0]> : tensor<2xf32>} : tensor<2xf32>
  %zw = firn.constant {value = dense<0> : tensor<2xi8>} : tensor<2xi8>
  %b = firn.constant {value = dense<[1, 2]> : tensor<2xi32>} : tensor<2xi32>
  %0 = firn.q_linear_conv %x, %s, %z, %w, %sw, %zw, %s, %z, %b {pads = array<i64: 1, 1, 1, 1>} : (tensor<1x1x4x4xi8>, tensor<f32>, tensor<i8>, tensor<2x1x3x3xi8>, tensor<2xf32>, tensor<2xi8>, tensor<f32>, tensor<i8>, tensor<2xi32>) -> tensor<1x2x4x4xi8>
  return %0 : tensor<1x2x4x4xi8>
}

// CHECK-LABEL: @keeps_a_quantised_convolution_whose_outputs_are_not_known
// CHECK: firn.q_linear_conv
func.func @keeps_a_quantised_convolution_whose_outputs_are_not_known(%x: tensor<1x1x4x4xi8>, %w: tensor<?x1x3x3xi8>, %s: tensor<f32>, %z: tensor<i8>) -> tensor<1x2x2x2xi8> {
  %0 = firn.q_linear_conv %x, %s, %z, %w, %s, %z, %s, %z : (tensor<1x1x4x4xi8>, tensor<f32>, tensor<i8>, tensor<?x1x3x3xi8>, tensor<f32>, tensor<i8>, tensor<f32>, tensor<i8>) -> tensor<1x2x2x2xi8>
  return %0 : tensor<1x2x2x2xi8>
}

// CHECK-LABEL: @product_of_two_conversions_is_one_of_integers
// CHECK: firn.matmul_integer %arg0, %arg1, {{.*}} -> tensor<2x3xi32>
// CHECK-NOT: firn.matmul
func.func @product_of_two_conversions_is_one_of_integers(%a: tensor<2x4xui8>, %b: tensor<4x3xi8>, %s: tensor<f32>, %z: tensor<ui8>, %sb: tensor<3xf32>) -> tensor<2x3xf32> {
  %0 = firn.dequantize_linear %a, %s, %z : (tensor<2x4xui8>, tensor<f32>, tensor<ui8>) -> tensor<2x4xf32>
  %1 = firn.dequantize_linear %b, %sb : (tensor<4x3xi8>, tensor<3xf32>) -> tensor<4x3xf32>
  %2 = firn.matmul %0, %1 : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
  return %2 : tensor<2x3xf32>
}

// CHECK-LABEL: @keeps_a_product_of_one_conversion
// CHECK: firn.matmul %arg0
func.func @keeps_a_product_of_one_conversion(%a: tensor<2x4xf32>, %b: tensor<4x3xi8>, %sb: tensor<3xf32>) -> tensor<2x3xf32> {
  %1 = firn.dequantize_linear %b, %sb : (tensor<4x3xi8>, tensor<3xf32>) -> tensor<4x3xf32>
  %2 = firn.matmul %a, %1 : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
  return %2 : tensor<2x3xf32>
}

// CHECK-LABEL: @keeps_a_product_with_scales_along_its_depth
// CHECK: firn.matmul %
func.func @keeps_a_product_with_scales_along_its_depth(%a: tensor<2x4xui8>, %b: tensor<4x3xi8>, %s: tensor<f32>, %sb: tensor<4xf32>) -> tensor<2x3xf32> {
  %0 = firn.dequantize_linear %a, %s : (tensor<2x4xui8>, tensor<f32>) -> tensor<2x4xf32>
  %1 = firn.dequantize_linear %b, %sb {axis = 0 : i64} : (tensor<4x3xi8>, tensor<4xf32>) -> tensor<4x3xf32>
  %2 = firn.matmul %0, %1 : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
  return %2 : tensor<2x3xf32>
}

// CHECK-LABEL: @convolution_of_conversions_is_one_of_integers
// CHECK: firn.conv_integer %arg0, {{.*}} -> tensor<1x2x4x4xi32>
// CHECK: firn.mul
// CHECK: firn.add
func.func @convolution_of_conversions_is_one_of_integers(%x: tensor<1x1x4x4xui8>, %s: tensor<f32>, %z: tensor<ui8>, %b: tensor<2xf32>) -> tensor<1x2x4x4xf32> {
  %w = firn.constant {value = dense<3> : tensor<2x1x1x1xi8>} : tensor<2x1x1x1xi8>
  %sw = firn.constant {value = dense<[1.0, 2.0]> : tensor<2xf32>} : tensor<2xf32>
  %0 = firn.dequantize_linear %x, %s, %z : (tensor<1x1x4x4xui8>, tensor<f32>, tensor<ui8>) -> tensor<1x1x4x4xf32>
  %1 = firn.dequantize_linear %w, %sw {axis = 0 : i64} : (tensor<2x1x1x1xi8>, tensor<2xf32>) -> tensor<2x1x1x1xf32>
  %2 = firn.conv %0, %1, %b : (tensor<1x1x4x4xf32>, tensor<2x1x1x1xf32>, tensor<2xf32>) -> tensor<1x2x4x4xf32>
  return %2 : tensor<1x2x4x4xf32>
}

// CHECK-LABEL: @dynamic_quantisation_is_ranges_and_a_static_one
// CHECK: firn.reduce_min
// CHECK: firn.reduce_max
// CHECK: firn.quantize_linear %arg0
func.func @dynamic_quantisation_is_ranges_and_a_static_one(%x: tensor<2x4xf32>) -> (tensor<2x4xui8>, tensor<f32>, tensor<ui8>) {
  %0:3 = firn.dynamic_quantize_linear %x : (tensor<2x4xf32>) -> (tensor<2x4xui8>, tensor<f32>, tensor<ui8>)
  return %0#0, %0#1, %0#2 : tensor<2x4xui8>, tensor<f32>, tensor<ui8>
}

// CHECK-LABEL: @constants_of_four_bits_become_bytes
// CHECK: %[[Q:.+]] = firn.cast %{{.+}} {to = 3 : i64} : (tensor<2x2xi4>) -> tensor<2x2xi8>
// CHECK: firn.dequantize_linear %[[Q]], {{.*}} -> tensor<2x2xf32>
func.func @constants_of_four_bits_become_bytes(%s: tensor<f32>) -> tensor<2x2xf32> {
  %q = firn.constant {value = dense<[[1, 2], [3, -4]]> : tensor<2x2xi4>} : tensor<2x2xi4>
  %0 = firn.dequantize_linear %q, %s : (tensor<2x2xi4>, tensor<f32>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}

// CHECK-LABEL: @rows_of_four_bits_are_picked_as_bytes
// CHECK: %[[Q:.+]] = firn.cast %{{.+}} {to = 2 : i64} : (tensor<2x2xui4>) -> tensor<2x2xui8>
// CHECK: %[[G:.+]] = firn.gather %[[Q]], %arg0 {{.*}} -> tensor<3x2xui8>
// CHECK: firn.cast %[[G]] {{.*}} -> tensor<3x2xf32>
func.func @rows_of_four_bits_are_picked_as_bytes(%i: tensor<3xi64>) -> tensor<3x2xf32> {
  %q = firn.constant {value = dense<[[1, 2], [3, 4]]> : tensor<2x2xui4>} : tensor<2x2xui4>
  %0 = firn.gather %q, %i : (tensor<2x2xui4>, tensor<3xi64>) -> tensor<3x2xui4>
  %1 = firn.cast %0 {to = 1 : i64} : (tensor<3x2xui4>) -> tensor<3x2xf32>
  return %1 : tensor<3x2xf32>
}

// CHECK-LABEL: @cubic_resize_is_one_axis_after_the_other
// CHECK: %[[W:.+]] = firn.resize %arg0, {{.*}}axes = array<i64: 3>{{.*}}firn.sampled{{.*}} -> tensor<1x2x5x12xf32>
// CHECK: firn.resize %[[W]], {{.*}}axes = array<i64: 2>{{.*}}firn.sampled{{.*}} -> tensor<1x2x10x12xf32>
func.func @cubic_resize_is_one_axis_after_the_other(%x: tensor<1x2x5x6xf32>) -> tensor<1x2x10x12xf32> {
  %none = firn.absent : none
  %s = firn.constant {value = dense<[1.0, 1.0, 2.0, 2.0]> : tensor<4xf32>} : tensor<4xf32>
  %0 = firn.resize %x, %none, %s {mode = "cubic"} : (tensor<1x2x5x6xf32>, none, tensor<4xf32>) -> tensor<1x2x10x12xf32>
  return %0 : tensor<1x2x10x12xf32>
}

// CHECK-LABEL: @linear_resize_stays_for_the_map_emitter
// CHECK-NOT: firn.sampled
// CHECK: return
func.func @linear_resize_stays_for_the_map_emitter(%x: tensor<1x2x5x6xf32>) -> tensor<1x2x10x12xf32> {
  %none = firn.absent : none
  %s = firn.constant {value = dense<[1.0, 1.0, 2.0, 2.0]> : tensor<4xf32>} : tensor<4xf32>
  %0 = firn.resize %x, %none, %s {mode = "linear"} : (tensor<1x2x5x6xf32>, none, tensor<4xf32>) -> tensor<1x2x10x12xf32>
  return %0 : tensor<1x2x10x12xf32>
}

// CHECK-LABEL: @resize_of_bytes_interpolates_float32
// CHECK: firn.cast %arg0 {to = 1 : i64}
// CHECK: firn.resize
// CHECK: firn.round
// CHECK: firn.cast
func.func @resize_of_bytes_interpolates_float32(%x: tensor<5x6xui8>) -> tensor<5x12xui8> {
  %none = firn.absent : none
  %s = firn.constant {value = dense<[1.0, 2.0]> : tensor<2xf32>} : tensor<2xf32>
  %0 = firn.resize %x, %none, %s {mode = "linear"} : (tensor<5x6xui8>, none, tensor<2xf32>) -> tensor<5x12xui8>
  return %0 : tensor<5x12xui8>
}

// CHECK-LABEL: @lrn_sums_shifted_squares
// CHECK: %[[P:.+]] = firn.pad {{.*}} -> tensor<1x10x4x4xf32>
// CHECK-COUNT-3: firn.slice %[[P]]
// CHECK: firn.pow
// CHECK: firn.div %arg0
func.func @lrn_sums_shifted_squares(%x: tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32> {
  %0 = firn.lrn %x {size = 3 : i64} : (tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32>
  return %0 : tensor<1x8x4x4xf32>
}

// CHECK-LABEL: @hardmax_compares_positions
// CHECK: firn.range
// CHECK: firn.arg_max %arg0 {axis = 1 : i64}
// CHECK: firn.equal
// CHECK: firn.cast
func.func @hardmax_compares_positions(%x: tensor<2x5xf32>) -> tensor<2x5xf32> {
  %0 = firn.hardmax %x : (tensor<2x5xf32>) -> tensor<2x5xf32>
  return %0 : tensor<2x5xf32>
}

// CHECK-LABEL: @reverse_sequence_is_a_gather
// CHECK: firn.gather {{.*}} -> tensor<4x3x2xf32>
// CHECK-NOT: firn.call
// CHECK: return
func.func @reverse_sequence_is_a_gather(%x: tensor<4x3x2xf32>, %n: tensor<3xi64>) -> tensor<4x3x2xf32> {
  %0 = firn.call "ai.onnx::ReverseSequence"(%x, %n) : (tensor<4x3x2xf32>, tensor<3xi64>) -> tensor<4x3x2xf32>
  return %0 : tensor<4x3x2xf32>
}

// CHECK-LABEL: @dropout_keeps_all_where_it_does_not_train
// CHECK: firn.constant_of_shape
// CHECK-NOT: firn.dropout
// CHECK: return
func.func @dropout_keeps_all_where_it_does_not_train(%x: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xi1>) {
  %0:2 = firn.dropout %x : (tensor<3xf32>) -> (tensor<3xf32>, tensor<3xi1>)
  return %0#0, %0#1 : tensor<3xf32>, tensor<3xi1>
}

// CHECK-LABEL: @a_gather_of_one_constant_index_is_a_slice
// CHECK: %[[S:.+]] = firn.slice %arg0, {{.*}} -> tensor<1x5xf32>
// CHECK: firn.reshape %[[S]] : {{.*}} -> tensor<5xf32>
func.func @a_gather_of_one_constant_index_is_a_slice(%x: tensor<3x5xf32>) -> tensor<5xf32> {
  %i = firn.constant {value = dense<-1> : tensor<i64>} : tensor<i64>
  %0 = firn.gather %x, %i : (tensor<3x5xf32>, tensor<i64>) -> tensor<5xf32>
  return %0 : tensor<5xf32>
}

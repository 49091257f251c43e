// RUN: firn-mlir-opt %s -firn-infer-shapes -firn-simplify-quantization | FileCheck %s
// RUN: firn-mlir-opt %s -firn-infer-shapes -firn-simplify-quantization -firn-simplify-quantization | FileCheck %s
// RUN: firn-mlir-opt %s -firn-infer-shapes -firn-simplify-quantization=limit=0 | FileCheck %s --check-prefix=NONE

// CHECK-LABEL: @cast_times_scale_per_column_is_a_conversion
// CHECK: %[[Q:.+]] = firn.constant {{.*}} : tensor<2x3xi8>
// CHECK: %[[S:.+]] = firn.constant {value = dense<[1.000000e+00, 2.000000e+00, 4.000000e+00]> : tensor<3xf32>}
// CHECK: firn.dequantize_linear %[[Q]], %[[S]] : (tensor<2x3xi8>, tensor<3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT: return
// NONE-LABEL: @cast_times_scale_per_column_is_a_conversion
// NONE: firn.mul
func.func @cast_times_scale_per_column_is_a_conversion() -> tensor<2x3xf32> {
  %q = firn.constant {value = dense<[[1, 2, 3], [4, 5, -6]]> : tensor<2x3xi8>} : tensor<2x3xi8>
  %s = firn.constant {value = dense<[[1.0, 2.0, 4.0]]> : tensor<1x3xf32>} : tensor<1x3xf32>
  %0 = firn.cast %q {to = 1 : i64} : (tensor<2x3xi8>) -> tensor<2x3xf32>
  %1 = firn.mul %s, %0 : (tensor<1x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %1 : tensor<2x3xf32>
}

// CHECK-LABEL: @a_zero_point_that_is_subtracted_joins
// CHECK-DAG: firn.constant {value = dense<1.280000e+02> : tensor<1x1xf32>}
// CHECK-DAG: %[[Z:.+]] = firn.constant {value = dense<128> : tensor<2xui8>}
// CHECK: firn.dequantize_linear %{{.+}}, %{{.+}}, %[[Z]] {axis = 0 : i64}
func.func @a_zero_point_that_is_subtracted_joins() -> tensor<2x3xf32> {
  %q = firn.constant {value = dense<[[1, 2, 3], [4, 5, 250]]> : tensor<2x3xui8>} : tensor<2x3xui8>
  %s = firn.constant {value = dense<[[1.0], [2.0]]> : tensor<2x1xf32>} : tensor<2x1xf32>
  %z = firn.constant {value = dense<128.0> : tensor<1x1xf32>} : tensor<1x1xf32>
  %0 = firn.cast %q {to = 1 : i64} : (tensor<2x3xui8>) -> tensor<2x3xf32>
  %1 = firn.sub %0, %z : (tensor<2x3xf32>, tensor<1x1xf32>) -> tensor<2x3xf32>
  %2 = firn.mul %1, %s : (tensor<2x3xf32>, tensor<2x1xf32>) -> tensor<2x3xf32>
  return %2 : tensor<2x3xf32>
}

// CHECK-LABEL: @keeps_a_zero_point_that_is_no_byte
// CHECK: firn.sub
// CHECK: firn.mul
func.func @keeps_a_zero_point_that_is_no_byte() -> tensor<2x3xf32> {
  %q = firn.constant {value = dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi8>} : tensor<2x3xi8>
  %s = firn.constant {value = dense<2.0> : tensor<f32>} : tensor<f32>
  %z = firn.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %0 = firn.cast %q {to = 1 : i64} : (tensor<2x3xi8>) -> tensor<2x3xf32>
  %1 = firn.sub %0, %z : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %2 = firn.mul %1, %s : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  return %2 : tensor<2x3xf32>
}

// CHECK-LABEL: @keeps_a_zero_point_along_another_axis
// CHECK: firn.mul
func.func @keeps_a_zero_point_along_another_axis() -> tensor<2x3xf32> {
  %q = firn.constant {value = dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi8>} : tensor<2x3xi8>
  %s = firn.constant {value = dense<[2.0, 3.0, 4.0]> : tensor<3xf32>} : tensor<3xf32>
  %z = firn.constant {value = dense<[[1.0], [2.0]]> : tensor<2x1xf32>} : tensor<2x1xf32>
  %0 = firn.cast %q {to = 1 : i64} : (tensor<2x3xi8>) -> tensor<2x3xf32>
  %1 = firn.sub %0, %z : (tensor<2x3xf32>, tensor<2x1xf32>) -> tensor<2x3xf32>
  %2 = firn.mul %1, %s : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  return %2 : tensor<2x3xf32>
}

// CHECK-LABEL: @keeps_a_scale_per_element
// CHECK: firn.mul
func.func @keeps_a_scale_per_element() -> tensor<1x2x2xf32> {
  %q = firn.constant {value = dense<[[[1, 2], [4, 5]]]> : tensor<1x2x2xi8>} : tensor<1x2x2xi8>
  %s = firn.constant {value = dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>} : tensor<2x2xf32>
  %0 = firn.cast %q {to = 1 : i64} : (tensor<1x2x2xi8>) -> tensor<1x2x2xf32>
  %1 = firn.mul %0, %s : (tensor<1x2x2xf32>, tensor<2x2xf32>) -> tensor<1x2x2xf32>
  return %1 : tensor<1x2x2xf32>
}

// CHECK-LABEL: @keeps_a_scale_that_widens_the_integers
// CHECK: firn.mul
func.func @keeps_a_scale_that_widens_the_integers() -> tensor<2x3xf32> {
  %q = firn.constant {value = dense<[[1, 2, 3]]> : tensor<1x3xi8>} : tensor<1x3xi8>
  %s = firn.constant {value = dense<[[1.0], [2.0]]> : tensor<2x1xf32>} : tensor<2x1xf32>
  %0 = firn.cast %q {to = 1 : i64} : (tensor<1x3xi8>) -> tensor<1x3xf32>
  %1 = firn.mul %0, %s : (tensor<1x3xf32>, tensor<2x1xf32>) -> tensor<2x3xf32>
  return %1 : tensor<2x3xf32>
}

// CHECK-LABEL: @keeps_a_zero_point_of_four_bits
// CHECK: firn.mul
func.func @keeps_a_zero_point_of_four_bits() -> tensor<2xf32> {
  %q = firn.constant {value = dense<[1, 2]> : tensor<2xi4>} : tensor<2xi4>
  %s = firn.constant {value = dense<2.0> : tensor<f32>} : tensor<f32>
  %0 = firn.cast %q {to = 1 : i64} : (tensor<2xi4>) -> tensor<2xf32>
  %1 = firn.sub %0, %s : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %2 = firn.mul %1, %s : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  return %2 : tensor<2xf32>
}

// CHECK-LABEL: @rows_are_picked_as_integers
// CHECK: %[[G:.+]] = firn.gather %{{.+}}, %arg0 {{.*}} -> tensor<2x3xi8>
// CHECK: firn.dequantize_linear %[[G]], %{{.+}} : (tensor<2x3xi8>, tensor<3xf32>)
func.func @rows_are_picked_as_integers(%i: tensor<2xi64>) -> tensor<2x3xf32> {
  %q = firn.constant {value = dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi8>} : tensor<2x3xi8>
  %s = firn.constant {value = dense<[2.0, 3.0, 4.0]> : tensor<3xf32>} : tensor<3xf32>
  %0 = firn.dequantize_linear %q, %s {axis = 1 : i64} : (tensor<2x3xi8>, tensor<3xf32>) -> tensor<2x3xf32>
  %1 = firn.gather %0, %i {axis = 0 : i64} : (tensor<2x3xf32>, tensor<2xi64>) -> tensor<2x3xf32>
  return %1 : tensor<2x3xf32>
}

// CHECK-LABEL: @rows_with_a_scale_each_bring_it_along
// CHECK: firn.gather %{{.+}}, %arg0 : {{.*}} -> tensor<?x?x3xui8
// CHECK: firn.sub
// CHECK: %[[S:.+]] = firn.gather %{{.+}}, %arg0 : {{.*}} -> tensor<?x?xf32
// CHECK: %[[R:.+]] = firn.reshape %[[S]] : {{.*}} -> tensor<?x?x1xf32
// CHECK: firn.mul %{{.+}}, %[[R]]
func.func @rows_with_a_scale_each_bring_it_along(%i: tensor<?x?xi64, #firn.dims<["b", "s"]>>)
    -> tensor<?x?x3xf32, #firn.dims<["b", "s", ""]>> {
  %q = firn.constant {value = dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xui8>} : tensor<2x3xui8>
  %s = firn.constant {value = dense<[2.0, 3.0]> : tensor<2xf32>} : tensor<2xf32>
  %z = firn.constant {value = dense<[2, 3]> : tensor<2xui8>} : tensor<2xui8>
  %0 = firn.dequantize_linear %q, %s, %z {axis = 0 : i64} : (tensor<2x3xui8>, tensor<2xf32>, tensor<2xui8>) -> tensor<2x3xf32>
  %1 = firn.gather %0, %i {axis = 0 : i64} : (tensor<2x3xf32>, tensor<?x?xi64, #firn.dims<["b", "s"]>>) -> tensor<?x?x3xf32, #firn.dims<["b", "s", ""]>>
  return %1 : tensor<?x?x3xf32, #firn.dims<["b", "s", ""]>>
}

// CHECK-LABEL: @keeps_rows_in_blocks_along_the_indices
// CHECK: firn.dequantize_linear
// CHECK: firn.gather {{.*}} -> tensor<1x2xf32>
func.func @keeps_rows_in_blocks_along_the_indices(%i: tensor<1xi64>) -> tensor<1x2xf32> {
  %q = firn.constant {value = dense<[[1, 2], [4, 5], [1, 2], [4, 5]]> : tensor<4x2xi8>} : tensor<4x2xi8>
  %s = firn.constant {value = dense<[[2.0, 3.0], [2.0, 4.0]]> : tensor<2x2xf32>} : tensor<2x2xf32>
  %0 = firn.dequantize_linear %q, %s {axis = 0 : i64, block_size = 2 : i64} : (tensor<4x2xi8>, tensor<2x2xf32>) -> tensor<4x2xf32>
  %1 = firn.gather %0, %i {axis = 0 : i64} : (tensor<4x2xf32>, tensor<1xi64>) -> tensor<1x2xf32>
  return %1 : tensor<1x2xf32>
}

// CHECK-LABEL: @transposes_integers
// CHECK: %[[T:.+]] = firn.transpose %{{.+}} -> tensor<3x2xi8>
// CHECK: firn.dequantize_linear %[[T]], %{{.+}} : (tensor<3x2xi8>, tensor<2xf32>)
func.func @transposes_integers() -> tensor<3x2xf32> {
  %q = firn.constant {value = dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi8>} : tensor<2x3xi8>
  %s = firn.constant {value = dense<[2.0, 3.0]> : tensor<2xf32>} : tensor<2xf32>
  %0 = firn.dequantize_linear %q, %s {axis = 0 : i64} : (tensor<2x3xi8>, tensor<2xf32>) -> tensor<2x3xf32>
  %1 = firn.transpose %0 {perm = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return %1 : tensor<3x2xf32>
}

// CHECK-LABEL: @reshapes_integers_of_one_scale
// CHECK: %[[R:.+]] = firn.reshape %{{.+}} -> tensor<6xi8>
// CHECK: firn.dequantize_linear %[[R]]
func.func @reshapes_integers_of_one_scale() -> tensor<6xf32> {
  %q = firn.constant {value = dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi8>} : tensor<2x3xi8>
  %s = firn.constant {value = dense<2.0> : tensor<f32>} : tensor<f32>
  %n = firn.constant {value = dense<6> : tensor<1xi64>} : tensor<1xi64>
  %0 = firn.dequantize_linear %q, %s : (tensor<2x3xi8>, tensor<f32>) -> tensor<2x3xf32>
  %1 = firn.reshape %0, %n : (tensor<2x3xf32>, tensor<1xi64>) -> tensor<6xf32>
  return %1 : tensor<6xf32>
}

// CHECK-LABEL: @transposes_16_bit_floats
// CHECK: %[[T:.+]] = firn.transpose %{{.+}} -> tensor<3x2xf16>
// CHECK: firn.cast %[[T]] {{.*}} -> tensor<3x2xf32>
func.func @transposes_16_bit_floats(%x: tensor<1x3xf32>) -> tensor<1x2xf32> {
  %q = firn.constant {value = dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf16>} : tensor<2x3xf16>
  %0 = firn.cast %q {to = 1 : i64} : (tensor<2x3xf16>) -> tensor<2x3xf32>
  %1 = firn.transpose %0 {perm = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %2 = firn.matmul %x, %1 : (tensor<1x3xf32>, tensor<3x2xf32>) -> tensor<1x2xf32>
  return %2 : tensor<1x2xf32>
}

// CHECK-LABEL: @picks_rows_of_16_bit_floats
// CHECK: %[[G:.+]] = firn.gather %{{.+}}, %arg0 : {{.*}} -> tensor<1x3xbf16>
// CHECK: firn.cast %[[G]] {{.*}} -> tensor<1x3xf32>
func.func @picks_rows_of_16_bit_floats(%i: tensor<1xi64>) -> tensor<1x3xf32> {
  %q = firn.constant {value = dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xbf16>} : tensor<2x3xbf16>
  %0 = firn.cast %q {to = 1 : i64} : (tensor<2x3xbf16>) -> tensor<2x3xf32>
  %1 = firn.gather %0, %i : (tensor<2x3xf32>, tensor<1xi64>) -> tensor<1x3xf32>
  return %1 : tensor<1x3xf32>
}

// CHECK-LABEL: @quantised_again_is_what_it_was
// CHECK: %[[T:.+]] = firn.transpose %arg0 : (tensor<2x3xui8>) -> tensor<3x2xui8>
// CHECK: return %[[T]]
func.func @quantised_again_is_what_it_was(%x: tensor<2x3xui8>) -> tensor<3x2xui8> {
  %s = firn.constant {value = dense<0.1> : tensor<f32>} : tensor<f32>
  %z = firn.constant {value = dense<7> : tensor<ui8>} : tensor<ui8>
  %0 = firn.dequantize_linear %x, %s, %z : (tensor<2x3xui8>, tensor<f32>, tensor<ui8>) -> tensor<2x3xf32>
  %1 = firn.transpose %0 : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %2 = firn.quantize_linear %1, %s, %z : (tensor<3x2xf32>, tensor<f32>, tensor<ui8>) -> tensor<3x2xui8>
  return %2 : tensor<3x2xui8>
}

// Another scale, another zero point; 32-bit integers do not come back through f32.
// CHECK-LABEL: @quantised_otherwise_stays
// CHECK-COUNT-3: firn.quantize_linear
func.func @quantised_otherwise_stays(%x: tensor<3xui8>, %y: tensor<3xi16>) -> (tensor<3xui8>, tensor<3xui8>, tensor<3xi16>) {
  %s = firn.constant {value = dense<0.1> : tensor<f32>} : tensor<f32>
  %t = firn.constant {value = dense<0.2> : tensor<f32>} : tensor<f32>
  %tiny = firn.constant {value = dense<1.0e-40> : tensor<f32>} : tensor<f32>
  %z = firn.constant {value = dense<7> : tensor<ui8>} : tensor<ui8>
  %u = firn.constant {value = dense<8> : tensor<ui8>} : tensor<ui8>
  %w = firn.constant {value = dense<0> : tensor<i16>} : tensor<i16>
  %0 = firn.dequantize_linear %x, %s, %z : (tensor<3xui8>, tensor<f32>, tensor<ui8>) -> tensor<3xf32>
  %1 = firn.quantize_linear %0, %t, %z : (tensor<3xf32>, tensor<f32>, tensor<ui8>) -> tensor<3xui8>
  %2 = firn.quantize_linear %0, %s, %u : (tensor<3xf32>, tensor<f32>, tensor<ui8>) -> tensor<3xui8>
  %3 = firn.dequantize_linear %y, %tiny, %w : (tensor<3xi16>, tensor<f32>, tensor<i16>) -> tensor<3xf32>
  %4 = firn.quantize_linear %3, %tiny, %w : (tensor<3xf32>, tensor<f32>, tensor<i16>) -> tensor<3xi16>
  return %1, %2, %4 : tensor<3xui8>, tensor<3xui8>, tensor<3xi16>
}

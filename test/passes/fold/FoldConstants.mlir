// RUN: firn-mlir-opt %s -firn-infer-shapes -firn-fold-constants | FileCheck %s
// RUN: firn-mlir-opt %s -firn-infer-shapes -firn-fold-constants=max-growth=8 | FileCheck %s --check-prefix=SMALL
// RUN: firn-mlir-opt %s -firn-infer-shapes -firn-fold-constants=limit=0 | FileCheck %s --check-prefix=NONE
// RUN: firn-mlir-opt %s -firn-infer-shapes -firn-fold-constants | FileCheck %s --check-prefix=QUANTIZED
// RUN: firn-mlir-opt %s -firn-infer-shapes -firn-fold-constants=quantized=read | FileCheck %s --check-prefix=READ
// RUN: firn-mlir-opt %s -firn-infer-shapes -firn-fold-constants=quantized=none | FileCheck %s --check-prefix=NEVER

// CHECK-LABEL: @computes_sums
// CHECK: firn.constant {value = dense<[4.000000e+00, 6.000000e+00]>
// CHECK-NOT: firn.add
// NONE-LABEL: @computes_sums
// NONE: firn.add
func.func @computes_sums() -> tensor<2xf32> {
  %a = firn.constant {value = dense<[1.0, 2.0]> : tensor<2xf32>} : tensor<2xf32>
  %b = firn.constant {value = dense<[3.0, 4.0]> : tensor<2xf32>} : tensor<2xf32>
  %0 = firn.add %a, %b : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// SMALL-LABEL: @keeps_what_would_grow
// SMALL: firn.tile
func.func @keeps_what_would_grow() -> tensor<64xf32> {
  %a = firn.constant {value = dense<[1.0, 2.0]> : tensor<2xf32>} : tensor<2xf32>
  %n = firn.constant {value = dense<32> : tensor<1xi64>} : tensor<1xi64>
  %0 = firn.tile %a, %n : (tensor<2xf32>, tensor<1xi64>) -> tensor<64xf32>
  return %0 : tensor<64xf32>
}

// CHECK-LABEL: @keeps_random
// CHECK: firn.call "ai.onnx::RandomUniform"
func.func @keeps_random() -> tensor<2xf32> {
  %0 = firn.call "ai.onnx::RandomUniform"() {shape = array<i64: 2>} : () -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// CHECK-LABEL: @keeps_what_depends_on_inputs
// CHECK: firn.mul
func.func @keeps_what_depends_on_inputs(%x: tensor<2xf32>) -> tensor<2xf32> {
  %a = firn.constant {value = dense<[1.0, 2.0]> : tensor<2xf32>} : tensor<2xf32>
  %0 = firn.mul %x, %a : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// READ-LABEL: @keeps_bytes_that_a_product_reads
// READ: firn.dequantize_linear
// QUANTIZED-LABEL: @keeps_bytes_that_a_product_reads
// QUANTIZED: firn.dequantize_linear
// NEVER-LABEL: @keeps_bytes_that_a_product_reads
// NEVER-NOT: firn.dequantize_linear
// NEVER: return
func.func @keeps_bytes_that_a_product_reads(%x: tensor<2x64xf32>) -> tensor<2x64xf32> {
  %q = firn.constant {value = dense<3> : tensor<64x64xi8>} : tensor<64x64xi8>
  %s = firn.constant {value = dense<2.0> : tensor<64xf32>} : tensor<64xf32>
  %w = firn.dequantize_linear %q, %s {axis = 1 : i64} : (tensor<64x64xi8>, tensor<64xf32>) -> tensor<64x64xf32>
  %0 = firn.matmul %x, %w : (tensor<2x64xf32>, tensor<64x64xf32>) -> tensor<2x64xf32>
  return %0 : tensor<2x64xf32>
}

// READ-LABEL: @converts_bytes_that_no_kernel_reads
// READ-NOT: firn.dequantize_linear
// READ: firn.add
// QUANTIZED-LABEL: @converts_bytes_that_no_kernel_reads
// QUANTIZED: firn.dequantize_linear
func.func @converts_bytes_that_no_kernel_reads(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %q = firn.constant {value = dense<3> : tensor<64x64xi8>} : tensor<64x64xi8>
  %s = firn.constant {value = dense<2.0> : tensor<64xf32>} : tensor<64xf32>
  %w = firn.dequantize_linear %q, %s {axis = 1 : i64} : (tensor<64x64xi8>, tensor<64xf32>) -> tensor<64x64xf32>
  %0 = firn.add %x, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}

// READ-LABEL: @converts_bytes_with_scales_per_row
// READ-NOT: firn.dequantize_linear
// READ: firn.matmul
func.func @converts_bytes_with_scales_per_row(%x: tensor<2x64xf32>) -> tensor<2x64xf32> {
  %q = firn.constant {value = dense<3> : tensor<64x64xi8>} : tensor<64x64xi8>
  %s = firn.constant {value = dense<2.0> : tensor<64xf32>} : tensor<64xf32>
  %w = firn.dequantize_linear %q, %s {axis = 0 : i64} : (tensor<64x64xi8>, tensor<64xf32>) -> tensor<64x64xf32>
  %0 = firn.matmul %x, %w : (tensor<2x64xf32>, tensor<64x64xf32>) -> tensor<2x64xf32>
  return %0 : tensor<2x64xf32>
}

// QUANTIZED-LABEL: @keeps_the_first_step_of_a_spelt_out_conversion
// QUANTIZED: firn.cast
// READ-LABEL: @keeps_the_first_step_of_a_spelt_out_conversion
// READ-NOT: firn.cast
func.func @keeps_the_first_step_of_a_spelt_out_conversion(%x: tensor<2x64xf32>) -> tensor<2x64xf32> {
  %q = firn.constant {value = dense<3> : tensor<64x64xi8>} : tensor<64x64xi8>
  %s = firn.constant {value = dense<2.0> : tensor<f32>} : tensor<f32>
  %c = firn.cast %q {to = 1 : i64} : (tensor<64x64xi8>) -> tensor<64x64xf32>
  %w = firn.mul %c, %s : (tensor<64x64xf32>, tensor<f32>) -> tensor<64x64xf32>
  %0 = firn.matmul %x, %w : (tensor<2x64xf32>, tensor<64x64xf32>) -> tensor<2x64xf32>
  return %0 : tensor<2x64xf32>
}

// QUANTIZED-LABEL: @converts_the_weight_of_a_convolution_of_real_numbers
// QUANTIZED-NOT: firn.dequantize_linear
// QUANTIZED: firn.conv
func.func @converts_the_weight_of_a_convolution_of_real_numbers(%x: tensor<1x64x4x4xf32>) -> tensor<1x64x4x4xf32> {
  %q = firn.constant {value = dense<3> : tensor<64x64x1x1xi8>} : tensor<64x64x1x1xi8>
  %s = firn.constant {value = dense<2.0> : tensor<64xf32>} : tensor<64xf32>
  %w = firn.dequantize_linear %q, %s {axis = 0 : i64} : (tensor<64x64x1x1xi8>, tensor<64xf32>) -> tensor<64x64x1x1xf32>
  %0 = firn.conv %x, %w : (tensor<1x64x4x4xf32>, tensor<64x64x1x1xf32>) -> tensor<1x64x4x4xf32>
  return %0 : tensor<1x64x4x4xf32>
}

// QUANTIZED-LABEL: @keeps_small_bytes_that_meet_converted_ones
// QUANTIZED: firn.dequantize_linear
// QUANTIZED: firn.dequantize_linear
func.func @keeps_small_bytes_that_meet_converted_ones(%x: tensor<1x1x4x4xui8>) -> tensor<1x1x4x4xf32> {
  %q = firn.constant {value = dense<3> : tensor<1x1x1x1xi8>} : tensor<1x1x1x1xi8>
  %s = firn.constant {value = dense<2.0> : tensor<f32>} : tensor<f32>
  %0 = firn.dequantize_linear %x, %s : (tensor<1x1x4x4xui8>, tensor<f32>) -> tensor<1x1x4x4xf32>
  %w = firn.dequantize_linear %q, %s : (tensor<1x1x1x1xi8>, tensor<f32>) -> tensor<1x1x1x1xf32>
  %1 = firn.conv %0, %w : (tensor<1x1x4x4xf32>, tensor<1x1x1x1xf32>) -> tensor<1x1x4x4xf32>
  return %1 : tensor<1x1x4x4xf32>
}

// QUANTIZED-LABEL: @keeps_16_bit_floats_that_products_read
// QUANTIZED: firn.cast
// READ-LABEL: @keeps_16_bit_floats_that_products_read
// READ: firn.cast
func.func @keeps_16_bit_floats_that_products_read(%x: tensor<2x64xf32>) -> tensor<2x64xf32> {
  %q = firn.constant {value = dense<3.0> : tensor<64x64xf16>} : tensor<64x64xf16>
  %w = firn.cast %q {to = 1 : i64} : (tensor<64x64xf16>) -> tensor<64x64xf32>
  %0 = firn.matmul %x, %w : (tensor<2x64xf32>, tensor<64x64xf32>) -> tensor<2x64xf32>
  return %0 : tensor<2x64xf32>
}

// QUANTIZED-LABEL: @widens_16_bit_floats_that_others_read
// QUANTIZED-NOT: firn.cast
// QUANTIZED: firn.add
func.func @widens_16_bit_floats_that_others_read(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %q = firn.constant {value = dense<3.0> : tensor<64x64xf16>} : tensor<64x64xf16>
  %w = firn.cast %q {to = 1 : i64} : (tensor<64x64xf16>) -> tensor<64x64xf32>
  %0 = firn.add %x, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}

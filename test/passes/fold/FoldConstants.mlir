// RUN: firn-mlir-opt %s -firn-infer-shapes -firn-fold-constants | FileCheck %s
// RUN: firn-mlir-opt %s -firn-infer-shapes -firn-fold-constants=max-growth=8 | FileCheck %s --check-prefix=SMALL
// RUN: firn-mlir-opt %s -firn-infer-shapes -firn-fold-constants=limit=0 | FileCheck %s --check-prefix=NONE

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

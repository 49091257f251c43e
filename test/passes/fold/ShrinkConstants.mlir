// RUN: firn-mlir-opt %s --firn-shrink-constants | FileCheck %s
// RUN: firn-mlir-opt %s --firn-shrink-constants --firn-shrink-constants | FileCheck %s

// CHECK-LABEL: @a_large_constant_of_one_number
// CHECK: %[[S:.+]] = firn.constant {value = dense<64> : tensor<2xi64>}
// CHECK: firn.constant_of_shape %[[S]] {value = dense<3.000000e+00> : tensor<1xf32>} : (tensor<2xi64>) -> tensor<64x64xf32>
func.func @a_large_constant_of_one_number() -> tensor<64x64xf32> {
  %0 = firn.constant {value = dense<3.0> : tensor<64x64xf32>} : tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}

// Small ones, and types that the operator has not in old opsets, stay.
// CHECK-LABEL: @other_constants_stay
// CHECK-NOT: firn.constant_of_shape
func.func @other_constants_stay() -> (tensor<8x8xf32>, tensor<128x128xbf16>, tensor<2x2xf32>) {
  %0 = firn.constant {value = dense<3.0> : tensor<8x8xf32>} : tensor<8x8xf32>
  %1 = firn.constant {value = dense<3.0> : tensor<128x128xbf16>} : tensor<128x128xbf16>
  %2 = firn.constant {value = dense<[[1.0, 2.0], [1.0, 2.0]]> : tensor<2x2xf32>} : tensor<2x2xf32>
  return %0, %1, %2 : tensor<8x8xf32>, tensor<128x128xbf16>, tensor<2x2xf32>
}

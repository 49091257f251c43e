// RUN: firn-mlir-opt %s -firn-infer-shapes -firn-fold-shapes | FileCheck %s

// CHECK-LABEL: @shape_arithmetic_becomes_expressions
// CHECK: firn.dim_values ["2*n"] : tensor<1xi64>
// CHECK-NOT: firn.shape
func.func @shape_arithmetic_becomes_expressions(%x: tensor<?x8xf32, #firn.dims<["n", ""]>>) -> tensor<*x!firn.unknown> {
  %zero = firn.constant {value = dense<0> : tensor<1xi64>} : tensor<1xi64>
  %two = firn.constant {value = dense<2> : tensor<1xi64>} : tensor<1xi64>
  %shape = firn.shape %x : (tensor<?x8xf32, #firn.dims<["n", ""]>>) -> tensor<*x!firn.unknown>
  %n = firn.gather %shape, %zero : (tensor<*x!firn.unknown>, tensor<1xi64>) -> tensor<*x!firn.unknown>
  %0 = firn.mul %n, %two : (tensor<*x!firn.unknown>, tensor<1xi64>) -> tensor<*x!firn.unknown>
  return %0 : tensor<*x!firn.unknown>
}

// CHECK-LABEL: @known_sizes_become_constants
// CHECK: firn.constant {value = dense<[3, 8]>
func.func @known_sizes_become_constants(%x: tensor<3x8xf32>) -> tensor<*x!firn.unknown> {
  %shape = firn.shape %x : (tensor<3x8xf32>) -> tensor<*x!firn.unknown>
  return %shape : tensor<*x!firn.unknown>
}

// CHECK-LABEL: @data_stays
// CHECK: firn.non_zero
func.func @data_stays(%x: tensor<3xf32>) -> tensor<*x!firn.unknown> {
  %0 = firn.non_zero %x : (tensor<3xf32>) -> tensor<*x!firn.unknown>
  return %0 : tensor<*x!firn.unknown>
}

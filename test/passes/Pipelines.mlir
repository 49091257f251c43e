// RUN: firn-mlir-opt %s --firn-optimise > %t.once
// RUN: FileCheck %s < %t.once
// RUN: firn-mlir-opt %t.once --firn-optimise > %t.twice
// RUN: diff %t.once %t.twice
// RUN: firn-mlir-opt %s --firn-optimise="rounding=false" | FileCheck %s --check-prefix=STRICT

// CHECK-LABEL: func.func @main(%arg0: tensor<?x1x4x4xf32, #firn.dims<["n", "", "", ""]>> {firn.name = "x"}) -> (tensor<?x2x4x4xf32, #firn.dims<["n", "", "", ""]>> {firn.name = "y"}, tensor<?x1x4x4xf32, #firn.dims<["n", "", "", ""]>> {firn.name = "z"})
// CHECK: %[[C:.+]] = firn.conv %arg0, %{{.+}}, %{{.+}} :
// CHECK-NEXT: %[[G:.+]] = firn.gelu %[[C]]
// CHECK-NEXT: %[[Z:.+]] = firn.identity %arg0
// CHECK-NEXT: return %[[G]], %[[Z]]

// What changes no rounding is done in any case: identities, the branch, equal and dead operations.
// STRICT-LABEL: func.func @main
// STRICT-NOT: firn.if
// STRICT-NOT: firn.dropout
// STRICT: firn.batch_normalization
// STRICT: firn.erf
// STRICT-NOT: firn.erf
// STRICT: return
func.func @main(%x: tensor<?x1x4x4xf32, #firn.dims<["n", "", "", ""]>> {firn.name = "x"}) -> (tensor<*x!firn.unknown> {firn.name = "y"}, tensor<*x!firn.unknown> {firn.name = "z"}) {
  %w = firn.constant {value = dense<3.0> : tensor<2x1x1x1xf32>} : tensor<2x1x1x1xf32>
  %s = firn.constant {value = dense<[2.0, 4.0]> : tensor<2xf32>} : tensor<2xf32>
  %one = firn.constant {value = dense<1.0> : tensor<f32>} : tensor<f32>
  %half = firn.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %two = firn.constant {value = dense<2.0> : tensor<f32>} : tensor<f32>
  %true = firn.constant {value = dense<true> : tensor<i1>} : tensor<i1>
  %0 = firn.conv %x, %w : (tensor<?x1x4x4xf32, #firn.dims<["n", "", "", ""]>>, tensor<2x1x1x1xf32>) -> tensor<*x!firn.unknown>
  %1 = firn.batch_normalization %0, %s, %s, %s, %s : (tensor<*x!firn.unknown>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<*x!firn.unknown>
  %2 = firn.if %true : (tensor<i1>) -> tensor<*x!firn.unknown> then {
    %root = firn.sqrt %two : (tensor<f32>) -> tensor<*x!firn.unknown>
    %3 = firn.div %1, %root : (tensor<*x!firn.unknown>, tensor<*x!firn.unknown>) -> tensor<*x!firn.unknown>
    %4 = firn.erf %3 : (tensor<*x!firn.unknown>) -> tensor<*x!firn.unknown>
    %5 = firn.erf %3 : (tensor<*x!firn.unknown>) -> tensor<*x!firn.unknown>
    %6 = firn.max %4, %5 : (tensor<*x!firn.unknown>, tensor<*x!firn.unknown>) -> tensor<*x!firn.unknown>
    %7 = firn.add %6, %one : (tensor<*x!firn.unknown>, tensor<f32>) -> tensor<*x!firn.unknown>
    firn.yield %7 : tensor<*x!firn.unknown>
  } else {
    firn.yield %one : tensor<f32>
  }
  %8 = firn.mul %1, %2 : (tensor<*x!firn.unknown>, tensor<*x!firn.unknown>) -> tensor<*x!firn.unknown>
  %9 = firn.mul %8, %half : (tensor<*x!firn.unknown>, tensor<f32>) -> tensor<*x!firn.unknown>
  %10 = firn.dropout %9 : (tensor<*x!firn.unknown>) -> tensor<*x!firn.unknown>
  %11 = firn.mul %x, %one : (tensor<?x1x4x4xf32, #firn.dims<["n", "", "", ""]>>, tensor<f32>) -> tensor<*x!firn.unknown>
  return %10, %11 : tensor<*x!firn.unknown>, tensor<*x!firn.unknown>
}

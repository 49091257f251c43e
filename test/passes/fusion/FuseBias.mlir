// RUN: firn-mlir-opt %s --split-input-file --firn-fuse-bias | FileCheck %s
// RUN: firn-mlir-opt %s --split-input-file --firn-fuse-bias --firn-fuse-bias | FileCheck %s

// CHECK-LABEL: @fuses_bias_per_channel
// CHECK: %[[B:.+]] = firn.constant {value = dense<[-1.000000e+00, -2.000000e+00]> : tensor<2xf32>}
// CHECK: %[[Y:.+]] = firn.conv %arg0, %{{.+}}, %[[B]]
// CHECK-NEXT: return %[[Y]]
func.func @fuses_bias_per_channel(%x: tensor<1x1x4xf32>) -> tensor<1x2x4xf32> {
  %w = firn.constant {value = dense<3.0> : tensor<2x1x1xf32>} : tensor<2x1x1xf32>
  %c = firn.constant {value = dense<[[1.0], [2.0]]> : tensor<2x1xf32>} : tensor<2x1xf32>
  %0 = firn.conv %x, %w : (tensor<1x1x4xf32>, tensor<2x1x1xf32>) -> tensor<1x2x4xf32>
  %1 = firn.sub %0, %c : (tensor<1x2x4xf32>, tensor<2x1xf32>) -> tensor<1x2x4xf32>
  return %1 : tensor<1x2x4xf32>
}

// CHECK-LABEL: @adds_to_the_bias_of_gemm
// CHECK: %[[B:.+]] = firn.constant {value = dense<7.000000e+00> : tensor<2xf32>}
// CHECK: firn.gemm %arg0, %{{.+}}, %[[B]] : (tensor<3x1xf32>
func.func @adds_to_the_bias_of_gemm(%x: tensor<3x1xf32>) -> tensor<3x2xf32> {
  %w = firn.constant {value = dense<3.0> : tensor<1x2xf32>} : tensor<1x2xf32>
  %c = firn.constant {value = dense<2.0> : tensor<1x2xf32>} : tensor<1x2xf32>
  %d = firn.constant {value = dense<3.0> : tensor<f32>} : tensor<f32>
  %0 = firn.gemm %x, %w, %c {beta = 2.0 : f32} : (tensor<3x1xf32>, tensor<1x2xf32>, tensor<1x2xf32>) -> tensor<3x2xf32>
  %1 = firn.add %d, %0 : (tensor<f32>, tensor<3x2xf32>) -> tensor<3x2xf32>
  return %1 : tensor<3x2xf32>
}

// CHECK-LABEL: @keeps_add_that_enlarges_the_batch
// CHECK: firn.add
func.func @keeps_add_that_enlarges_the_batch(%x: tensor<1x1x4xf32>) -> tensor<3x2x4xf32> {
  %w = firn.constant {value = dense<3.0> : tensor<2x1x1xf32>} : tensor<2x1x1xf32>
  %c = firn.constant {value = dense<1.0> : tensor<3x2x1xf32>} : tensor<3x2x1xf32>
  %0 = firn.conv %x, %w : (tensor<1x1x4xf32>, tensor<2x1x1xf32>) -> tensor<1x2x4xf32>
  %1 = firn.add %0, %c : (tensor<1x2x4xf32>, tensor<3x2x1xf32>) -> tensor<3x2x4xf32>
  return %1 : tensor<3x2x4xf32>
}

// CHECK-LABEL: @keeps_add_when_the_sum_is_also_returned
// CHECK: firn.add
func.func @keeps_add_when_the_sum_is_also_returned(%x: tensor<1x1x4xf32>) -> (tensor<1x1x4xf32>, tensor<1x1x4xf32>) {
  %w = firn.constant {value = dense<3.0> : tensor<1x1x1xf32>} : tensor<1x1x1xf32>
  %c = firn.constant {value = dense<1.0> : tensor<f32>} : tensor<f32>
  %0 = firn.conv %x, %w : (tensor<1x1x4xf32>, tensor<1x1x1xf32>) -> tensor<1x1x4xf32>
  %1 = firn.add %0, %c : (tensor<1x1x4xf32>, tensor<f32>) -> tensor<1x1x4xf32>
  return %0, %1 : tensor<1x1x4xf32>, tensor<1x1x4xf32>
}

// CHECK-LABEL: @keeps_addend_per_position
// CHECK: firn.add
func.func @keeps_addend_per_position(%x: tensor<1x1x4xf32>) -> tensor<1x2x4xf32> {
  %w = firn.constant {value = dense<3.0> : tensor<2x1x1xf32>} : tensor<2x1x1xf32>
  %c = firn.constant {value = dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>} : tensor<4xf32>
  %0 = firn.conv %x, %w : (tensor<1x1x4xf32>, tensor<2x1x1xf32>) -> tensor<1x2x4xf32>
  %1 = firn.add %0, %c : (tensor<1x2x4xf32>, tensor<4xf32>) -> tensor<1x2x4xf32>
  return %1 : tensor<1x2x4xf32>
}

// CHECK-LABEL: @keeps_add_in_another_region
// CHECK: firn.conv
// CHECK: firn.add
func.func @keeps_add_in_another_region(%p: tensor<i1>, %x: tensor<1x1x4xf32>) -> tensor<1x1x4xf32> {
  %w = firn.constant {value = dense<3.0> : tensor<1x1x1xf32>} : tensor<1x1x1xf32>
  %c = firn.constant {value = dense<1.0> : tensor<f32>} : tensor<f32>
  %0 = firn.conv %x, %w : (tensor<1x1x4xf32>, tensor<1x1x1xf32>) -> tensor<1x1x4xf32>
  %2 = firn.if %p : (tensor<i1>) -> tensor<1x1x4xf32> then {
    %1 = firn.add %0, %c : (tensor<1x1x4xf32>, tensor<f32>) -> tensor<1x1x4xf32>
    firn.yield %1 : tensor<1x1x4xf32>
  } else {
    firn.yield %x : tensor<1x1x4xf32>
  }
  return %2 : tensor<1x1x4xf32>
}

// CHECK-LABEL: @keeps_bias_that_is_no_constant
// CHECK: firn.add
func.func @keeps_bias_that_is_no_constant(%x: tensor<1x1x4xf32>, %b: tensor<1xf32>) -> tensor<1x1x4xf32> {
  %w = firn.constant {value = dense<3.0> : tensor<1x1x1xf32>} : tensor<1x1x1xf32>
  %c = firn.constant {value = dense<1.0> : tensor<f32>} : tensor<f32>
  %0 = firn.conv %x, %w, %b : (tensor<1x1x4xf32>, tensor<1x1x1xf32>, tensor<1xf32>) -> tensor<1x1x4xf32>
  %1 = firn.add %0, %c : (tensor<1x1x4xf32>, tensor<f32>) -> tensor<1x1x4xf32>
  return %1 : tensor<1x1x4xf32>
}

// -----

module attributes {firn.stays_graph} {

// CHECK-LABEL: @a_product_and_a_sum_are_a_gemm
// CHECK: %[[Y:.+]] = firn.gemm %arg0, %arg1, %arg2
// CHECK: return %[[Y]]
func.func @a_product_and_a_sum_are_a_gemm(%a: tensor<?x3xf32, #firn.dims<["n", ""]>>, %b: tensor<3x4xf32>, %c: tensor<4xf32>) -> tensor<?x4xf32, #firn.dims<["n", ""]>> {
  %0 = firn.matmul %a, %b : (tensor<?x3xf32, #firn.dims<["n", ""]>>, tensor<3x4xf32>) -> tensor<?x4xf32, #firn.dims<["n", ""]>>
  %1 = firn.add %c, %0 : (tensor<4xf32>, tensor<?x4xf32, #firn.dims<["n", ""]>>) -> tensor<?x4xf32, #firn.dims<["n", ""]>>
  return %1 : tensor<?x4xf32, #firn.dims<["n", ""]>>
}

// Products of more than two matrices, sums that enlarge, integers.
// CHECK-LABEL: @other_products_stay
// CHECK-NOT: firn.gemm
// CHECK: return
func.func @other_products_stay(%a: tensor<2x1x3xf32>, %b: tensor<3x4xf32>, %c: tensor<2x2x4xf32>, %i: tensor<2x3xi32>, %j: tensor<3x4xi32>, %k: tensor<4xi32>) -> (tensor<2x2x4xf32>, tensor<2x4xi32>) {
  %0 = firn.matmul %a, %b : (tensor<2x1x3xf32>, tensor<3x4xf32>) -> tensor<2x1x4xf32>
  %1 = firn.add %0, %c : (tensor<2x1x4xf32>, tensor<2x2x4xf32>) -> tensor<2x2x4xf32>
  %2 = firn.matmul %i, %j : (tensor<2x3xi32>, tensor<3x4xi32>) -> tensor<2x4xi32>
  %3 = firn.add %2, %k : (tensor<2x4xi32>, tensor<4xi32>) -> tensor<2x4xi32>
  return %1, %3 : tensor<2x2x4xf32>, tensor<2x4xi32>
}

// CHECK-LABEL: @a_sum_that_enlarges_stays
// CHECK: firn.matmul
// CHECK: firn.add
func.func @a_sum_that_enlarges_stays(%a: tensor<1x3xf32>, %b: tensor<3x4xf32>, %c: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %0 = firn.matmul %a, %b : (tensor<1x3xf32>, tensor<3x4xf32>) -> tensor<1x4xf32>
  %1 = firn.add %0, %c : (tensor<1x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  return %1 : tensor<2x4xf32>
}

}

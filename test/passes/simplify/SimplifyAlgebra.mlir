// RUN: firn-mlir-opt %s --firn-simplify-algebra | FileCheck %s
// RUN: firn-mlir-opt %s --firn-simplify-algebra --firn-simplify-algebra | FileCheck %s

// CHECK-LABEL: @drops_identity
// CHECK: %[[Y:.+]] = firn.relu
// CHECK-NEXT: return %[[Y]]
func.func @drops_identity(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = firn.relu %x : (tensor<2xf32>) -> tensor<2xf32>
  %1 = firn.identity %0 : (tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}

// CHECK-LABEL: @keeps_identity_of_an_input_that_is_an_output
// CHECK: %[[Y:.+]] = firn.identity %arg0
// CHECK-NEXT: return %[[Y]]
func.func @keeps_identity_of_an_input_that_is_an_output(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = firn.identity %x : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// CHECK-LABEL: @output_that_becomes_an_input_gets_an_identity
// CHECK: %[[Y:.+]] = firn.identity %arg0
// CHECK-NEXT: return %[[Y]]
func.func @output_that_becomes_an_input_gets_an_identity(%x: tensor<2xf32>) -> tensor<2xf32> {
  %one = firn.constant {value = dense<1.0> : tensor<f32>} : tensor<f32>
  %0 = firn.mul %x, %one : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// CHECK-LABEL: @drops_dropout_in_inference
// CHECK: firn.relu
// CHECK-NOT: firn.dropout
// CHECK: %[[MASK:.+]] = firn.constant {value = dense<true> : tensor<2xi1>}
// CHECK: %[[OWN:.+]] = firn.identity %[[MASK]]
// CHECK: return %{{.+}}, %[[OWN]]
func.func @drops_dropout_in_inference(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xi1>) {
  %0 = firn.relu %x : (tensor<2xf32>) -> tensor<2xf32>
  %1:2 = firn.dropout %0 : (tensor<2xf32>) -> (tensor<2xf32>, tensor<2xi1>)
  return %1#0, %1#1 : tensor<2xf32>, tensor<2xi1>
}

// CHECK-LABEL: @keeps_dropout_with_a_flag_from_outside
// CHECK: firn.dropout
func.func @keeps_dropout_with_a_flag_from_outside(%x: tensor<2xf32>, %t: tensor<i1>) -> tensor<2xf32> {
  %ratio = firn.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %0 = firn.dropout %x, %ratio, %t : (tensor<2xf32>, tensor<f32>, tensor<i1>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// CHECK-LABEL: @drops_neutral_operands
// CHECK: %[[X:.+]] = firn.relu
// CHECK-NEXT: %[[Y:.+]] = firn.exp %[[X]]
// CHECK-NEXT: return %[[Y]]
func.func @drops_neutral_operands(%x: tensor<2xf32>) -> tensor<2xf32> {
  %one = firn.constant {value = dense<1.0> : tensor<f32>} : tensor<f32>
  %zero = firn.constant {value = dense<0.0> : tensor<f32>} : tensor<f32>
  %minus = firn.constant {value = dense<-0.0> : tensor<2xf32>} : tensor<2xf32>
  %r = firn.relu %x : (tensor<2xf32>) -> tensor<2xf32>
  %0 = firn.mul %one, %r : (tensor<f32>, tensor<2xf32>) -> tensor<2xf32>
  %1 = firn.div %0, %one : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %2 = firn.sub %1, %zero : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %3 = firn.add %2, %minus : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %4 = firn.exp %3 : (tensor<2xf32>) -> tensor<2xf32>
  return %4 : tensor<2xf32>
}

// CHECK-LABEL: @keeps_what_changes_minus_zero
// CHECK: firn.add
// CHECK: firn.sub
func.func @keeps_what_changes_minus_zero(%x: tensor<2xf32>) -> tensor<2xf32> {
  %zero = firn.constant {value = dense<0.0> : tensor<f32>} : tensor<f32>
  %minus = firn.constant {value = dense<-0.0> : tensor<f32>} : tensor<f32>
  %0 = firn.add %x, %zero : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %1 = firn.sub %0, %minus : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}

// CHECK-LABEL: @keeps_a_one_that_broadcasts
// CHECK: firn.mul
func.func @keeps_a_one_that_broadcasts(%x: tensor<2xf32>) -> tensor<3x2xf32> {
  %one = firn.constant {value = dense<1.0> : tensor<3x1xf32>} : tensor<3x1xf32>
  %0 = firn.mul %x, %one : (tensor<2xf32>, tensor<3x1xf32>) -> tensor<3x2xf32>
  return %0 : tensor<3x2xf32>
}

// CHECK-LABEL: @divides_by_a_power_of_two_by_multiplying
// CHECK: %[[C:.+]] = firn.constant {value = dense<1.250000e-01> : tensor<f32>}
// CHECK: firn.mul %arg0, %[[C]]
func.func @divides_by_a_power_of_two_by_multiplying(%x: tensor<2xf32>) -> tensor<2xf32> {
  %c = firn.constant {value = dense<8.0> : tensor<f32>} : tensor<f32>
  %0 = firn.div %x, %c : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// CHECK-LABEL: @keeps_division_by_forty_nine
// CHECK: firn.div
func.func @keeps_division_by_forty_nine(%x: tensor<2xf32>) -> tensor<2xf32> {
  %c = firn.constant {value = dense<49.0> : tensor<f32>} : tensor<f32>
  %0 = firn.div %x, %c : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// CHECK-LABEL: @cast_chain_that_keeps_values
// CHECK: %[[Y:.+]] = firn.cast %arg0 {to = 11 : i64}
// CHECK-NEXT: return %[[Y]]
func.func @cast_chain_that_keeps_values(%x: tensor<2xf16>) -> tensor<2xf64> {
  %0 = firn.cast %x {to = 1 : i64} : (tensor<2xf16>) -> tensor<2xf32>
  %1 = firn.cast %0 {to = 11 : i64} : (tensor<2xf32>) -> tensor<2xf64>
  return %1 : tensor<2xf64>
}

// CHECK-LABEL: @cast_through_int32_stays
// CHECK: firn.cast %arg0 {to = 6 : i64}
// CHECK: firn.cast %{{.+}} {to = 1 : i64}
func.func @cast_through_int32_stays(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = firn.cast %x {to = 6 : i64} : (tensor<2xf32>) -> tensor<2xi32>
  %1 = firn.cast %0 {to = 1 : i64} : (tensor<2xi32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}

// CHECK-LABEL: @cast_that_saturates_in_between_stays
// CHECK: firn.cast %arg0 {to = 11 : i64}
// CHECK: firn.cast %{{.+}} {to = 3 : i64}
func.func @cast_that_saturates_in_between_stays(%x: tensor<2xi32>) -> tensor<2xi8> {
  %0 = firn.cast %x {to = 11 : i64} : (tensor<2xi32>) -> tensor<2xf64>
  %1 = firn.cast %0 {to = 3 : i64} : (tensor<2xf64>) -> tensor<2xi8>
  return %1 : tensor<2xi8>
}

// CHECK-LABEL: @where_with_a_constant_condition
// CHECK: %[[Y:.+]] = firn.exp %arg1
// CHECK: return %[[Y]]
func.func @where_with_a_constant_condition(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  %c = firn.constant {value = dense<false> : tensor<2xi1>} : tensor<2xi1>
  %0 = firn.where %c, %x, %y : (tensor<2xi1>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %1 = firn.exp %0 : (tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}

// CHECK-LABEL: @shortens_chains
// CHECK: %[[A:.+]] = firn.relu %arg0
// CHECK-NEXT: return %[[A]]
func.func @shortens_chains(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = firn.neg %x : (tensor<2xf32>) -> tensor<2xf32>
  %1 = firn.neg %0 : (tensor<2xf32>) -> tensor<2xf32>
  %2 = firn.relu %1 : (tensor<2xf32>) -> tensor<2xf32>
  %3 = firn.relu %2 : (tensor<2xf32>) -> tensor<2xf32>
  %4 = firn.max %3, %3 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %5 = firn.sum %4 : (tensor<2xf32>) -> tensor<2xf32>
  return %5 : tensor<2xf32>
}

// CHECK-LABEL: @works_inside_branches
// CHECK: then
// CHECK-NEXT: firn.yield %arg1
func.func @works_inside_branches(%c: tensor<i1>, %x: tensor<2xf32>) -> tensor<2xf32> {
  %one = firn.constant {value = dense<1.0> : tensor<f32>} : tensor<f32>
  %0 = firn.if %c : (tensor<i1>) -> tensor<2xf32> then {
    %1 = firn.mul %x, %one : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
    firn.yield %1 : tensor<2xf32>
  } else {
    %1 = firn.exp %x : (tensor<2xf32>) -> tensor<2xf32>
    firn.yield %1 : tensor<2xf32>
  }
  return %0 : tensor<2xf32>
}

// CHECK-LABEL: @ones_of_an_open_shape_are_neutral
// CHECK: %[[Y:.+]] = firn.relu %arg0
// CHECK: return %[[Y]]
func.func @ones_of_an_open_shape_are_neutral(%x: tensor<?xf32, #firn.dims<["n"]>>) -> tensor<?xf32, #firn.dims<["n"]>> {
  %shape = firn.shape %x : (tensor<?xf32, #firn.dims<["n"]>>) -> tensor<1xi64>
  %ones = firn.constant_of_shape %shape {value = dense<1.0> : tensor<1xf32>} : (tensor<1xi64>) -> tensor<?xf32, #firn.dims<["n"]>>
  %0 = firn.mul %x, %ones : (tensor<?xf32, #firn.dims<["n"]>>, tensor<?xf32, #firn.dims<["n"]>>) -> tensor<?xf32, #firn.dims<["n"]>>
  %1 = firn.relu %0 : (tensor<?xf32, #firn.dims<["n"]>>) -> tensor<?xf32, #firn.dims<["n"]>>
  return %1 : tensor<?xf32, #firn.dims<["n"]>>
}

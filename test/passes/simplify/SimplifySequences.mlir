// RUN: firn-mlir-opt %s --firn-simplify-sequences --firn-eliminate-dead | FileCheck %s
// RUN: firn-mlir-opt %s --firn-simplify-sequences --firn-simplify-sequences --firn-eliminate-dead | FileCheck %s

// CHECK-LABEL: @takes_a_tensor_that_was_put_in
// CHECK-NEXT: %[[Y:.+]] = firn.identity %arg1
// CHECK-NEXT: return %[[Y]]
func.func @takes_a_tensor_that_was_put_in(%a: tensor<2xf32>, %b: tensor<3xf32>) -> tensor<3xf32> {
  %i = firn.constant {value = dense<-1> : tensor<i64>} : tensor<i64>
  %s = firn.sequence_construct %a, %b : (tensor<2xf32>, tensor<3xf32>) -> !firn.sequence<tensor<?xf32>>
  %0 = firn.sequence_at %s, %i : (!firn.sequence<tensor<?xf32>>, tensor<i64>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// CHECK-LABEL: @follows_insertions_and_erasures
// CHECK-NEXT: firn.concat %arg1, %arg0 {axis = 0 : i64}
func.func @follows_insertions_and_erasures(%a: tensor<2xf32>, %b: tensor<3xf32>) -> tensor<5xf32> {
  %z = firn.constant {value = dense<0> : tensor<i64>} : tensor<i64>
  %e = firn.sequence_empty : () -> !firn.sequence<f32>
  %s = firn.sequence_insert %e, %a : (!firn.sequence<f32>, tensor<2xf32>) -> !firn.sequence<tensor<?xf32>>
  %t = firn.sequence_insert %s, %b, %z : (!firn.sequence<tensor<?xf32>>, tensor<3xf32>, tensor<i64>) -> !firn.sequence<tensor<?xf32>>
  %u = firn.sequence_insert %t, %b : (!firn.sequence<tensor<?xf32>>, tensor<3xf32>) -> !firn.sequence<tensor<?xf32>>
  %v = firn.sequence_erase %u : (!firn.sequence<tensor<?xf32>>) -> !firn.sequence<tensor<?xf32>>
  %0 = firn.concat_from_sequence %v {axis = 0} : (!firn.sequence<tensor<?xf32>>) -> tensor<5xf32>
  return %0 : tensor<5xf32>
}

// CHECK-LABEL: @stacks_along_a_new_axis
// CHECK: %[[A:.+]] = firn.unsqueeze %arg0
// CHECK: %[[B:.+]] = firn.unsqueeze %arg1
// CHECK: firn.concat %[[A]], %[[B]] {axis = 1 : i64}
func.func @stacks_along_a_new_axis(%a: tensor<2xf32>, %b: tensor<2xf32>) -> tensor<2x2xf32> {
  %s = firn.sequence_construct %a, %b : (tensor<2xf32>, tensor<2xf32>) -> !firn.sequence<tensor<2xf32>>
  %0 = firn.concat_from_sequence %s {axis = -1, new_axis = 1} : (!firn.sequence<tensor<2xf32>>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}

// CHECK-LABEL: @splits_where_pieces_are_read_one_by_one
// CHECK: %[[P:.+]]:2 = firn.split %arg0
// CHECK: return %[[P]]#1
func.func @splits_where_pieces_are_read_one_by_one(%x: tensor<5x2xf32>) -> tensor<2x2xf32> {
  %n = firn.constant {value = dense<3> : tensor<i64>} : tensor<i64>
  %i = firn.constant {value = dense<1> : tensor<i64>} : tensor<i64>
  %s = firn.split_to_sequence %x, %n : (tensor<5x2xf32>, tensor<i64>) -> !firn.sequence<tensor<?x2xf32>>
  %0 = firn.sequence_at %s, %i : (!firn.sequence<tensor<?x2xf32>>, tensor<i64>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}

// CHECK-LABEL: @knows_the_length
// CHECK: firn.constant {value = dense<2> : tensor<i64>}
// CHECK-NOT: firn.sequence
func.func @knows_the_length(%a: tensor<2xf32>) -> tensor<i64> {
  %s = firn.sequence_construct %a, %a : (tensor<2xf32>, tensor<2xf32>) -> !firn.sequence<tensor<2xf32>>
  %0 = firn.sequence_length %s : (!firn.sequence<tensor<2xf32>>) -> tensor<i64>
  return %0 : tensor<i64>
}

// CHECK-LABEL: @opens_an_optional_that_was_made_here
// CHECK-NOT: firn.optional
// CHECK-DAG: firn.constant {value = dense<true> : tensor<i1>}
// CHECK-DAG: firn.identity %arg0
// CHECK: return
func.func @opens_an_optional_that_was_made_here(%a: tensor<2xf32>) -> (tensor<2xf32>, tensor<i1>) {
  %o = firn.optional %a : (tensor<2xf32>) -> !firn.optional<tensor<2xf32>>
  %0 = firn.optional_get_element %o : (!firn.optional<tensor<2xf32>>) -> tensor<2xf32>
  %1 = firn.optional_has_element %o : (!firn.optional<tensor<2xf32>>) -> tensor<i1>
  return %0, %1 : tensor<2xf32>, tensor<i1>
}

// "only running tells what is in the sequence"
// CHECK-LABEL: @keeps_what_an_input_holds
// CHECK: firn.sequence_at
func.func @keeps_what_an_input_holds(%s: !firn.sequence<tensor<2xf32>>) -> tensor<2xf32> {
  %i = firn.constant {value = dense<0> : tensor<i64>} : tensor<i64>
  %0 = firn.sequence_at %s, %i : (!firn.sequence<tensor<2xf32>>, tensor<i64>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// "the position is not constant or out of range"
// CHECK-LABEL: @keeps_a_position_out_of_range
// CHECK: firn.sequence_at
func.func @keeps_a_position_out_of_range(%a: tensor<2xf32>) -> tensor<2xf32> {
  %i = firn.constant {value = dense<1> : tensor<i64>} : tensor<i64>
  %s = firn.sequence_construct %a : (tensor<2xf32>) -> !firn.sequence<tensor<2xf32>>
  %0 = firn.sequence_at %s, %i : (!firn.sequence<tensor<2xf32>>, tensor<i64>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// "the sequence itself is used"
// CHECK-LABEL: @keeps_a_split_that_is_returned
// CHECK: firn.split_to_sequence
func.func @keeps_a_split_that_is_returned(%x: tensor<4xf32>) -> !firn.sequence<tensor<1xf32>> {
  %s = firn.split_to_sequence %x : (tensor<4xf32>) -> !firn.sequence<tensor<1xf32>>
  return %s : !firn.sequence<tensor<1xf32>>
}

// "other values are measured in dimensions that it finds"
// CHECK-LABEL: @keeps_what_others_are_measured_by
// CHECK: firn.sequence_at
func.func @keeps_what_others_are_measured_by(%a: tensor<?xf32, #firn.dims<["n"]>>) -> (tensor<?xf32, #firn.dims<["u7.0.0"]>>, tensor<1xi64>) {
  %i = firn.constant {value = dense<0> : tensor<i64>} : tensor<i64>
  %s = firn.sequence_construct %a : (tensor<?xf32, #firn.dims<["n"]>>) -> !firn.sequence<tensor<?xf32>>
  %0 = firn.sequence_at %s, %i {firn.id = 7 : i64} : (!firn.sequence<tensor<?xf32>>, tensor<i64>) -> tensor<?xf32, #firn.dims<["u7.0.0"]>>
  %1 = firn.dim_values ["u7.0.0"] : tensor<1xi64>
  return %0, %1 : tensor<?xf32, #firn.dims<["u7.0.0"]>>, tensor<1xi64>
}

// RUN: firn-mlir-opt %s -firn-infer-shapes -split-input-file -verify-diagnostics | FileCheck %s

// CHECK-LABEL: @symbols_flow_through
// CHECK: firn.matmul {{.*}} -> tensor<?x16xf32, #firn.dims<["batch", ""]>>
func.func @symbols_flow_through(%x: tensor<?x8xf32, #firn.dims<["batch", ""]>>, %w: tensor<8x16xf32>) -> tensor<*x!firn.unknown> {
  %0 = firn.matmul %x, %w : (tensor<?x8xf32, #firn.dims<["batch", ""]>>, tensor<8x16xf32>) -> tensor<*x!firn.unknown>
  return %0 : tensor<*x!firn.unknown>
}

// -----

// CHECK-LABEL: @reshape_by_its_own_shape
// CHECK: firn.reshape {{.*}} -> tensor<?x4x2xf32, #firn.dims<["n", "", ""]>>
func.func @reshape_by_its_own_shape(%x: tensor<?x8xf32, #firn.dims<["n", ""]>>) -> tensor<*x!firn.unknown> {
  %zero = firn.constant {value = dense<0> : tensor<1xi64>} : tensor<1xi64>
  %tail = firn.constant {value = dense<[4, -1]> : tensor<2xi64>} : tensor<2xi64>
  %shape = firn.shape %x : (tensor<?x8xf32, #firn.dims<["n", ""]>>) -> tensor<*x!firn.unknown>
  %n = firn.gather %shape, %zero : (tensor<*x!firn.unknown>, tensor<1xi64>) -> tensor<*x!firn.unknown>
  %to = firn.concat %n, %tail {axis = 0 : i64} : (tensor<*x!firn.unknown>, tensor<2xi64>) -> tensor<*x!firn.unknown>
  %0 = firn.reshape %x, %to : (tensor<?x8xf32, #firn.dims<["n", ""]>>, tensor<*x!firn.unknown>) -> tensor<*x!firn.unknown>
  return %0 : tensor<*x!firn.unknown>
}

// -----

// CHECK-LABEL: @count_is_found_while_running
// CHECK: firn.non_zero {{.*}} -> tensor<2x?xi64, #firn.dims<["", "u0.0.1"]>>
func.func @count_is_found_while_running(%x: tensor<3x4xf32>) -> tensor<*x!firn.unknown> {
  %0 = firn.non_zero %x : (tensor<3x4xf32>) -> tensor<*x!firn.unknown>
  return %0 : tensor<*x!firn.unknown>
}

// -----

func.func @every_problem_is_reported(%x: tensor<3x4xf32>, %y: tensor<5xf32>) -> tensor<*x!firn.unknown> {
  // expected-error@+1 {{expected shapes that broadcast}}
  %0 = firn.add %x, %y : (tensor<3x4xf32>, tensor<5xf32>) -> tensor<*x!firn.unknown>
  // expected-error@+1 {{expected an axis in [-2, 1], found 7}}
  %1 = firn.softmax %x {axis = 7 : i64} : (tensor<3x4xf32>) -> tensor<*x!firn.unknown>
  return %1 : tensor<*x!firn.unknown>
}

// -----

// A branch that is wrong fails only if it is taken.
// CHECK-LABEL: @wrong_branch_becomes_a_failure
// CHECK: firn.fail "{{.*}}expected shapes that broadcast
func.func @wrong_branch_becomes_a_failure(%c: tensor<i1>, %x: tensor<3xf32>, %y: tensor<5xf32>) -> tensor<*x!firn.unknown> {
  %0 = firn.if %c : (tensor<i1>) -> tensor<*x!firn.unknown> then {
    // expected-warning@+1 {{this branch fails if it is ever taken}}
    %1 = firn.add %x, %y : (tensor<3xf32>, tensor<5xf32>) -> tensor<*x!firn.unknown>
    firn.yield %1 : tensor<*x!firn.unknown>
  } else {
    firn.yield %x : tensor<3xf32>
  }
  return %0 : tensor<*x!firn.unknown>
}

// -----

// CHECK-LABEL: @result_that_waits_for_data_keeps_its_rank
// CHECK: firn.call {{.*}} -> tensor<?x8xf32
func.func @result_that_waits_for_data_keeps_its_rank(%x: tensor<4x8xf32>, %c: tensor<4xi1>) -> tensor<*x!firn.unknown> {
  %0 = firn.call "ai.onnx::Compress"(%x, %c) {axis = 0 : i64} : (tensor<4x8xf32>, tensor<4xi1>) -> tensor<*x!firn.unknown>
  return %0 : tensor<*x!firn.unknown>
}

// -----

// Sizes that must agree are different symbols: guesses that meet the rule tell what the result follows.
// CHECK-LABEL: @symbols_that_a_rule_ties_keep_the_rank
// CHECK: firn.call {{.*}} -> tensor<?x3x?x?xf32, #firn.dims<["n", "", "p", "q"]>>
func.func @symbols_that_a_rule_ties_keep_the_rank(%x: tensor<?x3x?x?xf32, #firn.dims<["n", "", "h", "w"]>>, %g: tensor<?x?x?x2xf32, #firn.dims<["m", "p", "q", ""]>>) -> tensor<*x!firn.unknown> {
  %0 = firn.call "ai.onnx::GridSample"(%x, %g) : (tensor<?x3x?x?xf32, #firn.dims<["n", "", "h", "w"]>>, tensor<?x?x?x2xf32, #firn.dims<["m", "p", "q", ""]>>) -> tensor<*x!firn.unknown>
  return %0 : tensor<*x!firn.unknown>
}

// -----

// CHECK-LABEL: @squeeze_by_axes_from_data_keeps_its_rank
// CHECK: firn.squeeze {{.*}} -> tensor<?x?xf32
func.func @squeeze_by_axes_from_data_keeps_its_rank(%x: tensor<4x1x8xf32>, %a: tensor<1xi64>) -> tensor<*x!firn.unknown> {
  %0 = firn.squeeze %x, %a : (tensor<4x1x8xf32>, tensor<1xi64>) -> tensor<*x!firn.unknown>
  return %0 : tensor<*x!firn.unknown>
}

// -----

// CHECK-LABEL: @one_unknown_size_leaves_the_others_known
// CHECK: firn.concat {{.*}}firn.elements = ["n", "?", "4"]
// CHECK: firn.reshape {{.*}} -> tensor<?x?x4xf32, #firn.dims<["n", "u{{[0-9]+}}.0.1", ""]>>
func.func @one_unknown_size_leaves_the_others_known(%x: tensor<?x8xf32, #firn.dims<["n", ""]>>, %k: tensor<1xi64>) -> tensor<*x!firn.unknown> {
  %zero = firn.constant {value = dense<0> : tensor<1xi64>} : tensor<1xi64>
  %four = firn.constant {value = dense<4> : tensor<1xi64>} : tensor<1xi64>
  %shape = firn.shape %x : (tensor<?x8xf32, #firn.dims<["n", ""]>>) -> tensor<*x!firn.unknown>
  %n = firn.gather %shape, %zero : (tensor<*x!firn.unknown>, tensor<1xi64>) -> tensor<*x!firn.unknown>
  %to = firn.concat %n, %k, %four {axis = 0 : i64} : (tensor<*x!firn.unknown>, tensor<1xi64>, tensor<1xi64>) -> tensor<*x!firn.unknown>
  %0 = firn.reshape %x, %to : (tensor<?x8xf32, #firn.dims<["n", ""]>>, tensor<*x!firn.unknown>) -> tensor<*x!firn.unknown>
  return %0 : tensor<*x!firn.unknown>
}

// -----

// Sizes pass through real numbers: half of it, rounded up.
// CHECK-LABEL: @half_of_a_size
// CHECK: firn.cast {{.*}}firn.elements = ["floordiv(n+1, 2)"]
func.func @half_of_a_size(%x: tensor<?x8xf32, #firn.dims<["n", ""]>>) -> tensor<*x!firn.unknown> {
  %half = firn.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %shape = firn.shape %x {end = 1 : i64} : (tensor<?x8xf32, #firn.dims<["n", ""]>>) -> tensor<*x!firn.unknown>
  %f = firn.cast %shape {to = 1 : i64} : (tensor<*x!firn.unknown>) -> tensor<*x!firn.unknown>
  %h = firn.mul %f, %half : (tensor<*x!firn.unknown>, tensor<f32>) -> tensor<*x!firn.unknown>
  %c = firn.ceil %h : (tensor<*x!firn.unknown>) -> tensor<*x!firn.unknown>
  %0 = firn.cast %c {to = 7 : i64} : (tensor<*x!firn.unknown>) -> tensor<*x!firn.unknown>
  return %0 : tensor<*x!firn.unknown>
}

// -----

// What exporters write for an Expand by a shape with -1 in it.
// CHECK-LABEL: @minus_one_is_replaced
// CHECK: firn.where {{.*}}firn.elements = ["n", "1"]
func.func @minus_one_is_replaced(%x: tensor<?x8xf32, #firn.dims<["n", ""]>>) -> tensor<*x!firn.unknown> {
  %minus = firn.constant {value = dense<-1> : tensor<1xi64>} : tensor<1xi64>
  %two = firn.constant {value = dense<2> : tensor<1xi64>} : tensor<1xi64>
  %shape = firn.shape %x {end = 1 : i64} : (tensor<?x8xf32, #firn.dims<["n", ""]>>) -> tensor<*x!firn.unknown>
  %s = firn.concat %shape, %minus {axis = 0 : i64} : (tensor<*x!firn.unknown>, tensor<1xi64>) -> tensor<*x!firn.unknown>
  %ones = firn.constant_of_shape %two {value = dense<1> : tensor<1xi64>} : (tensor<1xi64>) -> tensor<*x!firn.unknown>
  %is = firn.equal %s, %minus : (tensor<*x!firn.unknown>, tensor<1xi64>) -> tensor<*x!firn.unknown>
  %0 = firn.where %is, %ones, %s : (tensor<*x!firn.unknown>, tensor<*x!firn.unknown>, tensor<*x!firn.unknown>) -> tensor<*x!firn.unknown>
  return %0 : tensor<*x!firn.unknown>
}

// -----

// CHECK-LABEL: @each_part_of_a_split_shape_is_known
// CHECK: firn.split {{.*}}firn.elements = {{\[}}["n"], ["8"]]
func.func @each_part_of_a_split_shape_is_known(%x: tensor<?x8xf32, #firn.dims<["n", ""]>>) -> (tensor<*x!firn.unknown>, tensor<*x!firn.unknown>) {
  %shape = firn.shape %x : (tensor<?x8xf32, #firn.dims<["n", ""]>>) -> tensor<*x!firn.unknown>
  %0:2 = firn.split %shape {axis = 0 : i64, num_outputs = 2 : i64} : (tensor<*x!firn.unknown>) -> (tensor<*x!firn.unknown>, tensor<*x!firn.unknown>)
  return %0#0, %0#1 : tensor<*x!firn.unknown>, tensor<*x!firn.unknown>
}

// -----

// How exporters turn the pads of PyTorch, last axis first, into those of ONNX.
// CHECK-LABEL: @pads_through_a_matrix
// CHECK: firn.pad {{.*}} -> tensor<?x?xf32, #firn.dims<["n", "m+n"]>>
func.func @pads_through_a_matrix(%x: tensor<?x?xf32, #firn.dims<["n", "m"]>>) -> tensor<*x!firn.unknown> {
  %zeros = firn.constant {value = dense<0> : tensor<3xi64>} : tensor<3xi64>
  %pairs = firn.constant {value = dense<[-1, 2]> : tensor<2xi64>} : tensor<2xi64>
  %flat = firn.constant {value = dense<-1> : tensor<1xi64>} : tensor<1xi64>
  %start = firn.constant {value = dense<-1> : tensor<1xi64>} : tensor<1xi64>
  %end = firn.constant {value = dense<-9223372036854775807> : tensor<1xi64>} : tensor<1xi64>
  %axis = firn.constant {value = dense<0> : tensor<1xi64>} : tensor<1xi64>
  %n = firn.shape %x {end = 1 : i64} : (tensor<?x?xf32, #firn.dims<["n", "m"]>>) -> tensor<*x!firn.unknown>
  %all = firn.concat %n, %zeros {axis = 0 : i64} : (tensor<*x!firn.unknown>, tensor<3xi64>) -> tensor<*x!firn.unknown>
  %rows = firn.reshape %all, %pairs : (tensor<*x!firn.unknown>, tensor<2xi64>) -> tensor<*x!firn.unknown>
  %back = firn.slice %rows, %start, %end, %axis, %start : (tensor<*x!firn.unknown>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<*x!firn.unknown>
  %turned = firn.transpose %back {perm = array<i64: 1, 0>} : (tensor<*x!firn.unknown>) -> tensor<*x!firn.unknown>
  %pads = firn.reshape %turned, %flat : (tensor<*x!firn.unknown>, tensor<1xi64>) -> tensor<*x!firn.unknown>
  %0 = firn.pad %x, %pads : (tensor<?x?xf32, #firn.dims<["n", "m"]>>, tensor<*x!firn.unknown>) -> tensor<*x!firn.unknown>
  return %0 : tensor<*x!firn.unknown>
}

// -----

// A squeeze without axes keeps a symbolic axis, which then must not have length 1.
// CHECK-LABEL: @squeeze_without_axes
// CHECK-SAME: firn.assumptions = {{\[\[}}"batch", "node '{{.*}}' (Squeeze without axes) would drop axis 0 of its input, length batch, where it is 1: fix the dimension (firnc --dim)"]]
// CHECK: -> tensor<?x3xf32, #firn.dims<["batch", ""]>>
func.func @squeeze_without_axes(%x: tensor<?x1x3xf32, #firn.dims<["batch", "", ""]>>) -> tensor<*xf32> {
  %axes = firn.absent : none
  %0 = firn.squeeze %x, %axes : (tensor<?x1x3xf32, #firn.dims<["batch", "", ""]>>, none) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// -----

// CHECK-LABEL: @loop_fills_an_empty_sequence
// CHECK: firn.loop {{.*}} -> !firn.sequence<tensor<2xf32>>
// CHECK: firn.sequence_at {{.*}} -> tensor<2xf32>
func.func @loop_fills_an_empty_sequence(%n: tensor<i64>, %x: tensor<2xf32>) -> tensor<*x!firn.unknown> {
  %none = firn.absent : none
  %e = firn.sequence_empty : () -> tensor<*x!firn.unknown>
  %s = firn.loop %n, %none, %e : (tensor<i64>, none, tensor<*x!firn.unknown>) -> tensor<*x!firn.unknown> {
  ^bb0(%i: tensor<i64>, %c: tensor<i1>, %before: tensor<*x!firn.unknown>):
    %after = firn.sequence_insert %before, %x : (tensor<*x!firn.unknown>, tensor<2xf32>) -> tensor<*x!firn.unknown>
    firn.yield %c, %after : tensor<i1>, tensor<*x!firn.unknown>
  }
  %0 = firn.sequence_at %s, %n : (tensor<*x!firn.unknown>, tensor<i64>) -> tensor<*x!firn.unknown>
  return %0 : tensor<*x!firn.unknown>
}

// -----

// What only a run tells of the inputs' sizes is kept, with the node that needs it.
// CHECK: module attributes {{.*}}firn.requires = {{\[\[}}"k", "l", "node 'product' (MatMul): expected the inner sizes of [n, k] and [l, 3] to be equal"]]
// CHECK-LABEL: @sizes_that_must_agree_are_required
func.func @sizes_that_must_agree_are_required(%x: tensor<?x?xf32, #firn.dims<["n", "k"]>>, %w: tensor<?x3xf32, #firn.dims<["l", ""]>>) -> tensor<*x!firn.unknown> {
  %0 = firn.matmul %x, %w : (tensor<?x?xf32, #firn.dims<["n", "k"]>>, tensor<?x3xf32, #firn.dims<["l", ""]>>) -> tensor<*x!firn.unknown> loc("product")
  return %0 : tensor<*x!firn.unknown>
}

// -----

// CHECK-LABEL: @branches_of_different_rank_that_all_readers_take_both_stay
// CHECK: firn.if {{.*}} -> tensor<*xf32>
// CHECK: firn.relu {{.*}} -> tensor<*xf32>
// CHECK: firn.size {{.*}} -> tensor<i64>
func.func @branches_of_different_rank_that_all_readers_take_both_stay(%c: tensor<i1>, %a: tensor<2xf32>, %b: tensor<2x2xf32>) -> tensor<*x!firn.unknown> {
  %0 = firn.if %c : (tensor<i1>) -> tensor<*x!firn.unknown> then {
    firn.yield %a : tensor<2xf32>
  } else {
    firn.yield %b : tensor<2x2xf32>
  }
  %1 = firn.relu %0 : (tensor<*x!firn.unknown>) -> tensor<*x!firn.unknown>
  %2 = firn.size %1 : (tensor<*x!firn.unknown>) -> tensor<*x!firn.unknown>
  return %2 : tensor<*x!firn.unknown>
}

// -----

func.func @a_tensor_operator_takes_no_sequence(%s: !firn.sequence<tensor<2xf32>>) -> tensor<*x!firn.unknown> {
  // expected-error@+1 {{expected a tensor as input 0, found sequence of float32[2]}}
  %0 = firn.relu %s : (!firn.sequence<tensor<2xf32>>) -> tensor<*x!firn.unknown>
  return %0 : tensor<*x!firn.unknown>
}

// -----

// A size that may be 1 broadcasts.
// CHECK: module attributes {{.*}}firn.requires = {{\[\[}}"n", "{{[^"]*}}min(1, max({{[^"]*}}", "node 'sum' (Add): expected the sizes on axis 0 of [n] and [3] to be equal, or one of them 1"]]
// CHECK-LABEL: @broadcast_sizes_are_required
func.func @broadcast_sizes_are_required(%x: tensor<?xf32, #firn.dims<["n"]>>, %y: tensor<3xf32>) -> tensor<*x!firn.unknown> {
  %0 = firn.add %x, %y : (tensor<?xf32, #firn.dims<["n"]>>, tensor<3xf32>) -> tensor<*x!firn.unknown> loc("sum")
  return %0 : tensor<*x!firn.unknown>
}

// -----

// A branch whose result was of a size that only running told has a known one now; a view that says it itself follows.
// CHECK-LABEL: @a_size_that_became_known
// CHECK: firn.if {{.*}} -> tensor<2x3xf32>
// CHECK: firn.reshape {{.*}} -> tensor<6xf32>
func.func @a_size_that_became_known(%c: tensor<i1>, %x: tensor<2x3xf32>) -> tensor<?xf32, #firn.dims<["3*u1.0.0"]>> {
  %0 = firn.if %c {firn.id = 1 : i64} : (tensor<i1>) -> tensor<?x3xf32, #firn.dims<["u1.0.0", ""]>> then {
    %2 = firn.relu %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
    firn.yield %2 : tensor<2x3xf32>
  } else {
    firn.yield %x : tensor<2x3xf32>
  }
  %1 = firn.reshape %0 : (tensor<?x3xf32, #firn.dims<["u1.0.0", ""]>>) -> tensor<?xf32, #firn.dims<["3*u1.0.0"]>>
  return %1 : tensor<?xf32, #firn.dims<["3*u1.0.0"]>>
}

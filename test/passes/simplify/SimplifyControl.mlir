// RUN: firn-mlir-opt %s --firn-simplify-control | FileCheck %s
// RUN: firn-mlir-opt %s --firn-simplify-control --firn-simplify-control | FileCheck %s

// CHECK-LABEL: @takes_the_branch
// CHECK-NOT: firn.if
// CHECK: %[[Y:.+]] = firn.reshape %arg0
// CHECK-NOT: firn.exp
// CHECK: return %[[Y]] : tensor<2xf32>
func.func @takes_the_branch(%x: tensor<1x2xf32>) -> tensor<*xf32> {
  %c = firn.constant {value = dense<false> : tensor<i1>} : tensor<i1>
  %0 = firn.if %c : (tensor<i1>) -> tensor<*xf32> then {
    %1 = firn.exp %x : (tensor<1x2xf32>) -> tensor<1x2xf32>
    firn.yield %1 : tensor<1x2xf32>
  } else {
    %1 = firn.reshape %x : (tensor<1x2xf32>) -> tensor<2xf32>
    firn.yield %1 : tensor<2xf32>
  }
  return %0 : tensor<*xf32>
}

// CHECK-LABEL: @takes_branches_within_branches
// CHECK-NOT: firn.if
// CHECK: %[[Y:.+]] = firn.exp %arg0
// CHECK: return %[[Y]]
func.func @takes_branches_within_branches(%x: tensor<2xf32>) -> tensor<2xf32> {
  %t = firn.constant {value = dense<true> : tensor<i1>} : tensor<i1>
  %0 = firn.if %t : (tensor<i1>) -> tensor<2xf32> then {
    %1 = firn.if %t : (tensor<i1>) -> tensor<2xf32> then {
      %2 = firn.exp %x : (tensor<2xf32>) -> tensor<2xf32>
      firn.yield %2 : tensor<2xf32>
    } else {
      firn.yield %x : tensor<2xf32>
    }
    firn.yield %1 : tensor<2xf32>
  } else {
    firn.yield %x : tensor<2xf32>
  }
  return %0 : tensor<2xf32>
}

// CHECK-LABEL: @keeps_a_condition_from_outside
// CHECK: firn.if
func.func @keeps_a_condition_from_outside(%c: tensor<i1>, %x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = firn.if %c : (tensor<i1>) -> tensor<2xf32> then {
    firn.yield %x : tensor<2xf32>
  } else {
    firn.yield %x : tensor<2xf32>
  }
  return %0 : tensor<2xf32>
}

// CHECK-LABEL: @loop_of_zero_trips
// CHECK-NOT: firn.loop
// CHECK: %[[E:.+]] = firn.constant {value = {{.*}}tensor<0x2xf32>}
// CHECK: %[[Y:.+]] = firn.identity %arg0
// CHECK: %[[Z:.+]] = firn.identity %[[E]]
// CHECK: return %[[Y]], %[[Z]]
func.func @loop_of_zero_trips(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<?x2xf32>) {
  %n = firn.constant {value = dense<0> : tensor<i64>} : tensor<i64>
  %none = firn.absent : none
  %0:2 = firn.loop %n, %none, %x : (tensor<i64>, none, tensor<2xf32>) -> (tensor<2xf32>, tensor<?x2xf32>) {
  ^bb0(%i: tensor<i64>, %c: tensor<i1>, %v: tensor<2xf32>):
    %1 = firn.exp %v : (tensor<2xf32>) -> tensor<2xf32>
    firn.yield %c, %1, %1 : tensor<i1>, tensor<2xf32>, tensor<2xf32>
  }
  return %0#0, %0#1 : tensor<2xf32>, tensor<?x2xf32>
}

// CHECK-LABEL: @loop_of_one_trip
// CHECK-NOT: firn.loop
// CHECK: %[[Y:.+]] = firn.exp %arg0
// CHECK: %[[S:.+]] = firn.unsqueeze %[[Y]]
// CHECK: return %[[Y]], %[[S]] : tensor<2xf32>, tensor<1x2xf32>
func.func @loop_of_one_trip(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<?x2xf32>) {
  %n = firn.constant {value = dense<1> : tensor<i64>} : tensor<i64>
  %none = firn.absent : none
  %0:2 = firn.loop %n, %none, %x : (tensor<i64>, none, tensor<2xf32>) -> (tensor<2xf32>, tensor<?x2xf32>) {
  ^bb0(%i: tensor<i64>, %c: tensor<i1>, %v: tensor<2xf32>):
    %1 = firn.exp %v : (tensor<2xf32>) -> tensor<2xf32>
    firn.yield %c, %1, %1 : tensor<i1>, tensor<2xf32>, tensor<2xf32>
  }
  return %0#0, %0#1 : tensor<2xf32>, tensor<?x2xf32>
}

// CHECK-LABEL: @writes_out_a_loop_of_two_trips
// CHECK: %[[E:.+]] = firn.exp %arg0
// CHECK: %[[F:.+]] = firn.exp %[[E]]
// CHECK: return %[[F]]
func.func @writes_out_a_loop_of_two_trips(%x: tensor<2xf32>) -> tensor<2xf32> {
  %n = firn.constant {value = dense<2> : tensor<i64>} : tensor<i64>
  %none = firn.absent : none
  %0 = firn.loop %n, %none, %x : (tensor<i64>, none, tensor<2xf32>) -> tensor<2xf32> {
  ^bb0(%i: tensor<i64>, %c: tensor<i1>, %v: tensor<2xf32>):
    %1 = firn.exp %v : (tensor<2xf32>) -> tensor<2xf32>
    firn.yield %c, %1 : tensor<i1>, tensor<2xf32>
  }
  return %0 : tensor<2xf32>
}

// CHECK-LABEL: @keeps_a_loop_whose_length_others_are_measured_in
// CHECK: firn.loop
func.func @keeps_a_loop_whose_length_others_are_measured_in(%x: tensor<2xf32>) -> (tensor<?x2xf32, #firn.dims<["u3.0.0", ""]>>, tensor<1xi64>) {
  %n = firn.constant {value = dense<1> : tensor<i64>} : tensor<i64>
  %none = firn.absent : none
  %0 = firn.loop %n, %none {firn.id = 3 : i64} : (tensor<i64>, none) -> tensor<?x2xf32, #firn.dims<["u3.0.0", ""]>> {
  ^bb0(%i: tensor<i64>, %c: tensor<i1>):
    %1 = firn.exp %x : (tensor<2xf32>) -> tensor<2xf32>
    firn.yield %c, %1 : tensor<i1>, tensor<2xf32>
  }
  %d = firn.dim_values ["u3.0.0"] : tensor<1xi64>
  return %0, %d : tensor<?x2xf32, #firn.dims<["u3.0.0", ""]>>, tensor<1xi64>
}

// CHECK-LABEL: @writes_out_a_short_loop
// CHECK-NOT: firn.loop
// CHECK: %[[A:.+]] = firn.add %arg0, %arg0
// CHECK: %[[B:.+]] = firn.add %[[A]], %[[A]]
// CHECK: %[[S:.+]] = firn.concat
// CHECK: return %[[B]], %[[S]]
func.func @writes_out_a_short_loop(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2x2xf32>) {
  %trips = firn.constant {value = dense<2> : tensor<i64>} : tensor<i64>
  %true = firn.constant {value = dense<true> : tensor<i1>} : tensor<i1>
  %0:2 = firn.loop %trips, %true, %x : (tensor<i64>, tensor<i1>, tensor<2xf32>) -> (tensor<2xf32>, tensor<2x2xf32>) {
  ^bb0(%i: tensor<i64>, %go: tensor<i1>, %c: tensor<2xf32>):
    %1 = firn.add %c, %c : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    firn.yield %go, %1, %c : tensor<i1>, tensor<2xf32>, tensor<2xf32>
  }
  return %0#0, %0#1 : tensor<2xf32>, tensor<2x2xf32>
}

// CHECK-LABEL: @a_long_loop_stays
// CHECK: firn.loop
func.func @a_long_loop_stays(%x: tensor<2xf32>) -> tensor<2xf32> {
  %trips = firn.constant {value = dense<100> : tensor<i64>} : tensor<i64>
  %true = firn.constant {value = dense<true> : tensor<i1>} : tensor<i1>
  %0 = firn.loop %trips, %true, %x : (tensor<i64>, tensor<i1>, tensor<2xf32>) -> tensor<2xf32> {
  ^bb0(%i: tensor<i64>, %go: tensor<i1>, %c: tensor<2xf32>):
    %1 = firn.add %c, %c : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    firn.yield %go, %1 : tensor<i1>, tensor<2xf32>
  }
  return %0 : tensor<2xf32>
}

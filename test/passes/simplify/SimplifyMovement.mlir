// RUN: firn-mlir-opt %s --firn-simplify-movement | FileCheck %s
// RUN: firn-mlir-opt %s --firn-simplify-movement --firn-simplify-movement | FileCheck %s

// CHECK-LABEL: @cancels_transposes_whose_middle_is_an_output
// CHECK: %[[T:.+]] = firn.transpose %arg0
// CHECK: %[[Y:.+]] = firn.exp %arg0
// CHECK: return %[[T]], %[[Y]]
func.func @cancels_transposes_whose_middle_is_an_output(%x: tensor<2x3xf32>) -> (tensor<3x2xf32>, tensor<2x3xf32>) {
  %0 = firn.transpose %x {perm = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %1 = firn.transpose %0 : (tensor<3x2xf32>) -> tensor<2x3xf32>
  %2 = firn.exp %1 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0, %2 : tensor<3x2xf32>, tensor<2x3xf32>
}

// CHECK-LABEL: @composes_transposes
// CHECK: %[[T:.+]] = firn.transpose %arg0 {perm = array<i64: 2, 0, 1>} : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
// CHECK: return %[[T]]
func.func @composes_transposes(%x: tensor<2x3x4xf32>) -> tensor<4x2x3xf32> {
  %0 = firn.transpose %x {perm = array<i64: 1, 0, 2>} : (tensor<2x3x4xf32>) -> tensor<3x2x4xf32>
  %1 = firn.transpose %0 {perm = array<i64: 2, 1, 0>} : (tensor<3x2x4xf32>) -> tensor<4x2x3xf32>
  return %1 : tensor<4x2x3xf32>
}

// CHECK-LABEL: @merges_views
// CHECK: %[[R:.+]] = firn.reshape %arg0 : (tensor<2x3x4xf32>) -> tensor<6x4x1xf32>
// CHECK: return %[[R]]
func.func @merges_views(%x: tensor<2x3x4xf32>) -> tensor<6x4x1xf32> {
  %axes = firn.constant {value = dense<0> : tensor<1xi64>} : tensor<1xi64>
  %shape = firn.constant {value = dense<[6, -1, 1]> : tensor<3xi64>} : tensor<3xi64>
  %0 = firn.flatten %x {axis = 2 : i64} : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
  %1 = firn.unsqueeze %0, %axes : (tensor<6x4xf32>, tensor<1xi64>) -> tensor<1x6x4xf32>
  %2 = firn.reshape %1, %shape : (tensor<1x6x4xf32>, tensor<3xi64>) -> tensor<6x4x1xf32>
  return %2 : tensor<6x4x1xf32>
}

// CHECK-LABEL: @merges_views_with_symbols
// CHECK: firn.reshape %arg0 : (tensor<?x3x4xf32, #firn.dims<["n", "", ""]>>) -> tensor<?x4xf32, #firn.dims<["3*n", ""]>>
func.func @merges_views_with_symbols(%x: tensor<?x3x4xf32, #firn.dims<["n", "", ""]>>) -> tensor<?x4xf32, #firn.dims<["3*n", ""]>> {
  %shape = firn.constant {value = dense<[-1, 4]> : tensor<2xi64>} : tensor<2xi64>
  %0 = firn.flatten %x {axis = 1 : i64} : (tensor<?x3x4xf32, #firn.dims<["n", "", ""]>>) -> tensor<?x12xf32, #firn.dims<["n", ""]>>
  %1 = firn.reshape %0, %shape : (tensor<?x12xf32, #firn.dims<["n", ""]>>, tensor<2xi64>) -> tensor<?x4xf32, #firn.dims<["3*n", ""]>>
  return %1 : tensor<?x4xf32, #firn.dims<["3*n", ""]>>
}

// CHECK-LABEL: @keeps_views_whose_size_only_running_finds
// CHECK: firn.flatten
// CHECK: firn.reshape %{{.+}}, %arg1
func.func @keeps_views_whose_size_only_running_finds(%x: tensor<2x3x4xf32>, %s: tensor<2xi64>) -> tensor<?x?xf32, #firn.dims<["u7.0.0", "u7.0.1"]>> {
  %0 = firn.flatten %x {axis = 1 : i64} : (tensor<2x3x4xf32>) -> tensor<2x12xf32>
  %1 = firn.reshape %0, %s {firn.id = 7 : i64} : (tensor<2x12xf32>, tensor<2xi64>) -> tensor<?x?xf32, #firn.dims<["u7.0.0", "u7.0.1"]>>
  return %1 : tensor<?x?xf32, #firn.dims<["u7.0.0", "u7.0.1"]>>
}

// CHECK-LABEL: @drops_expand_before_broadcast
// CHECK: firn.add %arg0, %arg1
func.func @drops_expand_before_broadcast(%x: tensor<1x3xf32>, %y: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %shape = firn.constant {value = dense<[2, 3]> : tensor<2xi64>} : tensor<2xi64>
  %0 = firn.expand %x, %shape : (tensor<1x3xf32>, tensor<2xi64>) -> tensor<2x3xf32>
  %1 = firn.add %0, %y : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %1 : tensor<2x3xf32>
}

// CHECK-LABEL: @keeps_expand_that_gives_the_shape
// CHECK: firn.expand
func.func @keeps_expand_that_gives_the_shape(%x: tensor<1x3xf32>, %y: tensor<3xf32>) -> tensor<2x3xf32> {
  %shape = firn.constant {value = dense<[2, 3]> : tensor<2xi64>} : tensor<2xi64>
  %0 = firn.expand %x, %shape : (tensor<1x3xf32>, tensor<2xi64>) -> tensor<2x3xf32>
  %1 = firn.add %0, %y : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  return %1 : tensor<2x3xf32>
}

// All axes behind the first as one, but only one of them is longer than 1.
// CHECK-LABEL: @drops_movements_of_nothing
// CHECK: %[[R:.+]] = firn.relu %arg0
// CHECK-NEXT: return %[[R]]
func.func @drops_movements_of_nothing(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %pads = firn.constant {value = dense<0> : tensor<4xi64>} : tensor<4xi64>
  %ones = firn.constant {value = dense<1> : tensor<2xi64>} : tensor<2xi64>
  %shape = firn.constant {value = dense<[2, 1]> : tensor<2xi64>} : tensor<2xi64>
  %scales = firn.constant {value = dense<1.0> : tensor<2xf32>} : tensor<2xf32>
  %none = firn.absent : none
  %r = firn.relu %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %0 = firn.pad %r, %pads : (tensor<2x3xf32>, tensor<4xi64>) -> tensor<2x3xf32>
  %1 = firn.tile %0, %ones : (tensor<2x3xf32>, tensor<2xi64>) -> tensor<2x3xf32>
  %2 = firn.expand %1, %shape : (tensor<2x3xf32>, tensor<2xi64>) -> tensor<2x3xf32>
  %6 = firn.resize %2, %none, %scales : (tensor<2x3xf32>, none, tensor<2xf32>) -> tensor<2x3xf32>
  return %6 : tensor<2x3xf32>
}

// CHECK-LABEL: @softmax_between_views_is_one_of_an_axis
// CHECK: %[[S:.+]] = firn.softmax %arg0 {axis = 1 : i64}
// CHECK: return %[[S]]
func.func @softmax_between_views_is_one_of_an_axis(%x: tensor<?x10x1x1xf32, #firn.dims<["n", "", "", ""]>>) -> tensor<?x10x1x1xf32, #firn.dims<["n", "", "", ""]>> {
  %0 = firn.flatten %x {axis = 1 : i64} : (tensor<?x10x1x1xf32, #firn.dims<["n", "", "", ""]>>) -> tensor<?x10xf32, #firn.dims<["n", ""]>>
  %1 = firn.softmax %0 {axis = -1 : i64} : (tensor<?x10xf32, #firn.dims<["n", ""]>>) -> tensor<?x10xf32, #firn.dims<["n", ""]>>
  %2 = firn.reshape %1 : (tensor<?x10xf32, #firn.dims<["n", ""]>>) -> tensor<?x10x1x1xf32, #firn.dims<["n", "", "", ""]>>
  return %2 : tensor<?x10x1x1xf32, #firn.dims<["n", "", "", ""]>>
}

// CHECK-LABEL: @softmax_of_two_axes_stays_between_views
// CHECK: firn.flatten
// CHECK: firn.softmax
// CHECK: firn.reshape
func.func @softmax_of_two_axes_stays_between_views(%x: tensor<2x10x3xf32>) -> tensor<2x10x3xf32> {
  %0 = firn.flatten %x {axis = 1 : i64} : (tensor<2x10x3xf32>) -> tensor<2x30xf32>
  %1 = firn.softmax %0 {axis = -1 : i64} : (tensor<2x30xf32>) -> tensor<2x30xf32>
  %2 = firn.reshape %1 : (tensor<2x30xf32>) -> tensor<2x10x3xf32>
  return %2 : tensor<2x10x3xf32>
}

// RUN: firn-mlir-opt %s --split-input-file --firn-assign-layout | FileCheck %s
// RUN: firn-mlir-opt %s --split-input-file --firn-assign-layout --firn-assign-layout | FileCheck %s

// CHECK-LABEL: @elementwise_between_convolutions_follows
// CHECK: %[[X:.+]] = firn.transpose %arg0 {perm = array<i64: 0, 2, 3, 1>}
// CHECK: %[[A:.+]] = firn.conv %[[X]], %{{.+}} {kernel_shape = array<i64: 1, 1>, layout = "nhwc"} : {{.+}} -> tensor<1x5x6x4xf32>
// CHECK-NOT: firn.transpose
// CHECK: %[[R:.+]] = firn.relu %[[A]] : (tensor<1x5x6x4xf32>) -> tensor<1x5x6x4xf32>
// CHECK: %[[B:.+]] = firn.conv %[[R]]
// CHECK: %[[S:.+]] = firn.add %[[B]], %[[A]]
// CHECK: %[[Y:.+]] = firn.transpose %[[S]] {perm = array<i64: 0, 3, 1, 2>} : (tensor<1x5x6x4xf32>) -> tensor<1x4x5x6xf32>
// CHECK: return %[[Y]]
func.func @elementwise_between_convolutions_follows(%x: tensor<1x3x5x6xf32>) -> tensor<1x4x5x6xf32> {
  %w = firn.constant {value = dense<1.0> : tensor<4x3x1x1xf32>} : tensor<4x3x1x1xf32>
  %v = firn.constant {value = dense<1.0> : tensor<4x4x1x1xf32>} : tensor<4x4x1x1xf32>
  %0 = firn.conv %x, %w : (tensor<1x3x5x6xf32>, tensor<4x3x1x1xf32>) -> tensor<1x4x5x6xf32>
  %1 = firn.relu %0 : (tensor<1x4x5x6xf32>) -> tensor<1x4x5x6xf32>
  %2 = firn.conv %1, %v : (tensor<1x4x5x6xf32>, tensor<4x4x1x1xf32>) -> tensor<1x4x5x6xf32>
  %3 = firn.add %2, %0 : (tensor<1x4x5x6xf32>, tensor<1x4x5x6xf32>) -> tensor<1x4x5x6xf32>
  return %3 : tensor<1x4x5x6xf32>
}

// -----

// CHECK-LABEL: @constants_scalars_and_gates_broadcast
// CHECK: %[[G:.+]] = firn.reshape %arg1 : (tensor<1x2x1x1xf32>) -> tensor<1x1x1x2xf32>
// CHECK: %[[C:.+]] = firn.conv
// CHECK: %[[S:.+]] = firn.constant {value = dense<{{\[\[\[\[}}1.000000e+00, 2.000000e+00]]]]> : tensor<1x1x1x2xf32>}
// CHECK: %[[M:.+]] = firn.mul %[[C]], %[[S]] : (tensor<1x5x6x2xf32>, tensor<1x1x1x2xf32>)
// CHECK: %[[N:.+]] = firn.mul %[[M]], %[[G]]
// CHECK: firn.clip %[[N]], %{{.+}} : (tensor<1x5x6x2xf32>, tensor<f32>)
func.func @constants_scalars_and_gates_broadcast(%x: tensor<1x3x5x6xf32>, %g: tensor<1x2x1x1xf32>) -> tensor<1x2x5x6xf32> {
  %w = firn.constant {value = dense<1.0> : tensor<2x3x1x1xf32>} : tensor<2x3x1x1xf32>
  %s = firn.constant {value = dense<[[[1.0]], [[2.0]]]> : tensor<2x1x1xf32>} : tensor<2x1x1xf32>
  %z = firn.constant {value = dense<0.0> : tensor<f32>} : tensor<f32>
  %0 = firn.conv %x, %w : (tensor<1x3x5x6xf32>, tensor<2x3x1x1xf32>) -> tensor<1x2x5x6xf32>
  %1 = firn.mul %0, %s : (tensor<1x2x5x6xf32>, tensor<2x1x1xf32>) -> tensor<1x2x5x6xf32>
  %2 = firn.mul %1, %g : (tensor<1x2x5x6xf32>, tensor<1x2x1x1xf32>) -> tensor<1x2x5x6xf32>
  %3 = firn.clip %2, %z : (tensor<1x2x5x6xf32>, tensor<f32>) -> tensor<1x2x5x6xf32>
  return %3 : tensor<1x2x5x6xf32>
}

// -----

// CHECK-LABEL: @axes_are_renumbered
// CHECK: %[[C:.+]] = firn.conv
// CHECK: %[[J:.+]] = firn.concat %[[C]], %[[C]] {axis = 3 : i64} : {{.+}} -> tensor<1x5x6x4xf32>
// CHECK: firn.pad %[[J]], {{.+}} -> tensor<1x7x6x4xf32>
// CHECK: firn.resize {{.+}}axes = array<i64: 0, 3, 1, 2>{{.+}} -> tensor<1x14x12x4xf32>
// CHECK: firn.max_pool {{.+}}layout = "nhwc"{{.+}} -> tensor<1x7x6x4xf32>
// CHECK: %[[A:.+]] = firn.constant {value = dense<[1, 2]> : tensor<2xi64>}
// CHECK: %[[M:.+]] = firn.reduce_mean %{{.+}}, %[[A]] {keepdims = 0 : i64} : {{.+}} -> tensor<1x4xf32>
// CHECK-NOT: firn.transpose
// CHECK: return %[[M]]
func.func @axes_are_renumbered(%x: tensor<1x1x5x6xf32>) -> tensor<1x4xf32> {
  %w = firn.constant {value = dense<1.0> : tensor<2x1x1x1xf32>} : tensor<2x1x1x1xf32>
  %pads = firn.constant {value = dense<[0, 0, 1, 0, 0, 0, 1, 0]> : tensor<8xi64>} : tensor<8xi64>
  %scales = firn.constant {value = dense<[1.0, 1.0, 2.0, 2.0]> : tensor<4xf32>} : tensor<4xf32>
  %axes = firn.constant {value = dense<[2, 3]> : tensor<2xi64>} : tensor<2xi64>
  %none = firn.absent : none
  %0 = firn.conv %x, %w : (tensor<1x1x5x6xf32>, tensor<2x1x1x1xf32>) -> tensor<1x2x5x6xf32>
  %1 = firn.concat %0, %0 {axis = 1 : i64} : (tensor<1x2x5x6xf32>, tensor<1x2x5x6xf32>) -> tensor<1x4x5x6xf32>
  %2 = firn.pad %1, %pads : (tensor<1x4x5x6xf32>, tensor<8xi64>) -> tensor<1x4x7x6xf32>
  %3 = firn.resize %2, %none, %scales : (tensor<1x4x7x6xf32>, none, tensor<4xf32>) -> tensor<1x4x14x12xf32>
  %4 = firn.max_pool %3 {kernel_shape = array<i64: 2, 2>, strides = array<i64: 2, 2>} : (tensor<1x4x14x12xf32>) -> tensor<1x4x7x6xf32>
  %5 = firn.reduce_mean %4, %axes {keepdims = 0 : i64} : (tensor<1x4x7x6xf32>, tensor<2xi64>) -> tensor<1x4xf32>
  return %5 : tensor<1x4xf32>
}

// -----

// A model that has its channels last around the convolution: its own transposes cancel.
// CHECK-LABEL: @transposes_of_the_model_cancel
// CHECK-NOT: firn.transpose
// CHECK: firn.conv %arg0
// CHECK-NOT: firn.transpose
// CHECK: return
func.func @transposes_of_the_model_cancel(%x: tensor<1x5x6x3xf32>) -> tensor<1x5x6x2xf32> {
  %w = firn.constant {value = dense<1.0> : tensor<2x3x1x1xf32>} : tensor<2x3x1x1xf32>
  %0 = firn.transpose %x {perm = array<i64: 0, 3, 1, 2>} : (tensor<1x5x6x3xf32>) -> tensor<1x3x5x6xf32>
  %1 = firn.conv %0, %w : (tensor<1x3x5x6xf32>, tensor<2x3x1x1xf32>) -> tensor<1x2x5x6xf32>
  %2 = firn.relu %1 : (tensor<1x2x5x6xf32>) -> tensor<1x2x5x6xf32>
  %3 = firn.transpose %2 {perm = array<i64: 0, 2, 3, 1>} : (tensor<1x2x5x6xf32>) -> tensor<1x5x6x2xf32>
  return %3 : tensor<1x5x6x2xf32>
}

// -----

// Along one spatial axis the two orders are one permutation.
// CHECK-LABEL: @one_spatial_axis
// CHECK-NOT: firn.transpose
// CHECK: firn.conv %arg0
// CHECK: firn.layer_normalization
// CHECK: firn.conv
// CHECK-NOT: firn.transpose
// CHECK: return
func.func @one_spatial_axis(%x: tensor<1x7x4xf32>) -> tensor<1x7x4xf32> {
  %w = firn.constant {value = dense<1.0> : tensor<4x4x1xf32>} : tensor<4x4x1xf32>
  %s = firn.constant {value = dense<1.0> : tensor<4xf32>} : tensor<4xf32>
  %0 = firn.transpose %x {perm = array<i64: 0, 2, 1>} : (tensor<1x7x4xf32>) -> tensor<1x4x7xf32>
  %1 = firn.conv %0, %w : (tensor<1x4x7xf32>, tensor<4x4x1xf32>) -> tensor<1x4x7xf32>
  %2 = firn.transpose %1 {perm = array<i64: 0, 2, 1>} : (tensor<1x4x7xf32>) -> tensor<1x7x4xf32>
  %3 = firn.layer_normalization %2, %s : (tensor<1x7x4xf32>, tensor<4xf32>) -> tensor<1x7x4xf32>
  %4 = firn.transpose %3 {perm = array<i64: 0, 2, 1>} : (tensor<1x7x4xf32>) -> tensor<1x4x7xf32>
  %5 = firn.conv %4, %w : (tensor<1x4x7xf32>, tensor<4x4x1xf32>) -> tensor<1x4x7xf32>
  %6 = firn.transpose %5 {perm = array<i64: 0, 2, 1>} : (tensor<1x4x7xf32>) -> tensor<1x7x4xf32>
  return %6 : tensor<1x7x4xf32>
}

// -----

// What reads all axes in order reads them as they were; one transpose serves both readers.
// CHECK-LABEL: @readers_of_the_old_order_share_a_transpose
// CHECK: %[[C:.+]] = firn.conv
// CHECK: %[[T:.+]] = firn.transpose %[[C]] {perm = array<i64: 0, 3, 1, 2>}
// CHECK-NOT: firn.transpose
// CHECK: firn.reshape %[[T]]
// CHECK: firn.matmul %[[T]]
func.func @readers_of_the_old_order_share_a_transpose(%x: tensor<1x1x5x6xf32>, %m: tensor<6x2xf32>) -> (tensor<1x60xf32>, tensor<1x2x5x2xf32>) {
  %w = firn.constant {value = dense<1.0> : tensor<2x1x1x1xf32>} : tensor<2x1x1x1xf32>
  %0 = firn.conv %x, %w : (tensor<1x1x5x6xf32>, tensor<2x1x1x1xf32>) -> tensor<1x2x5x6xf32>
  %1 = firn.reshape %0 : (tensor<1x2x5x6xf32>) -> tensor<1x60xf32>
  %2 = firn.matmul %0, %m : (tensor<1x2x5x6xf32>, tensor<6x2xf32>) -> tensor<1x2x5x2xf32>
  return %1, %2 : tensor<1x60xf32>, tensor<1x2x5x2xf32>
}

// -----

// CHECK-LABEL: @works_across_branches
// CHECK: %[[C:.+]] = firn.conv
// CHECK: then
// CHECK-NEXT: %[[R:.+]] = firn.relu %[[C]]
// CHECK: firn.conv %[[R]]
// CHECK: firn.transpose
// CHECK-NEXT: firn.yield
func.func @works_across_branches(%p: tensor<i1>, %x: tensor<1x2x5x6xf32>) -> tensor<1x2x5x6xf32> {
  %w = firn.constant {value = dense<1.0> : tensor<2x2x1x1xf32>} : tensor<2x2x1x1xf32>
  %0 = firn.conv %x, %w : (tensor<1x2x5x6xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x5x6xf32>
  %1 = firn.if %p : (tensor<i1>) -> tensor<1x2x5x6xf32> then {
    %2 = firn.relu %0 : (tensor<1x2x5x6xf32>) -> tensor<1x2x5x6xf32>
    %3 = firn.conv %2, %w : (tensor<1x2x5x6xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x5x6xf32>
    firn.yield %3 : tensor<1x2x5x6xf32>
  } else {
    firn.yield %x : tensor<1x2x5x6xf32>
  }
  return %1 : tensor<1x2x5x6xf32>
}

// -----

// CHECK-LABEL: @weight_that_is_no_constant_stays
// CHECK: firn.conv %arg0, %arg1 :
func.func @weight_that_is_no_constant_stays(%x: tensor<1x2x5xf32>, %w: tensor<2x2x1xf32>) -> tensor<1x2x5xf32> {
  %0 = firn.conv %x, %w : (tensor<1x2x5xf32>, tensor<2x2x1xf32>) -> tensor<1x2x5xf32>
  return %0 : tensor<1x2x5xf32>
}

// -----

// CHECK-LABEL: @nothing_moves_without_a_convolution
// CHECK-NEXT: firn.max_pool %arg0 {kernel_shape
// CHECK-NEXT: firn.relu
// CHECK-NEXT: return
func.func @nothing_moves_without_a_convolution(%x: tensor<1x2x5x6xf32>) -> tensor<1x2x4x5xf32> {
  %0 = firn.max_pool %x {kernel_shape = array<i64: 2, 2>} : (tensor<1x2x5x6xf32>) -> tensor<1x2x4x5xf32>
  %1 = firn.relu %0 : (tensor<1x2x4x5xf32>) -> tensor<1x2x4x5xf32>
  return %1 : tensor<1x2x4x5xf32>
}

// -----

// CHECK-LABEL: @symbols_stay_with_their_axes
// CHECK: firn.conv {{.+}} -> tensor<?x?x6x4xf32, #firn.dims<["n", "h", "", ""]>>
func.func @symbols_stay_with_their_axes(%x: tensor<?x3x?x6xf32, #firn.dims<["n", "", "h", ""]>>) -> tensor<?x4x?x6xf32, #firn.dims<["n", "", "h", ""]>> {
  %w = firn.constant {value = dense<1.0> : tensor<4x3x1x1xf32>} : tensor<4x3x1x1xf32>
  %0 = firn.conv %x, %w : (tensor<?x3x?x6xf32, #firn.dims<["n", "", "h", ""]>>, tensor<4x3x1x1xf32>) -> tensor<?x4x?x6xf32, #firn.dims<["n", "", "h", ""]>>
  return %0 : tensor<?x4x?x6xf32, #firn.dims<["n", "", "h", ""]>>
}

// -----

// Pixels become tokens: a reshape of the spatial axes alone is one for both orders.
// CHECK-LABEL: @reshape_of_spatial_axes_follows
// CHECK: firn.conv
// CHECK-NOT: firn.transpose
// CHECK: %[[R:.+]] = firn.reshape %{{.+}} : (tensor<1x5x6x2xf32>) -> tensor<1x30x2xf32>
// CHECK-NOT: firn.transpose
// CHECK: firn.softmax %[[R]]
// CHECK-NOT: firn.transpose
// CHECK: firn.reshape %{{.+}} : (tensor<1x30x2xf32>) -> tensor<1x5x6x2xf32>
// CHECK-NEXT: firn.conv
func.func @reshape_of_spatial_axes_follows(%x: tensor<1x1x5x6xf32>) -> tensor<1x1x5x6xf32> {
  %w = firn.constant {value = dense<1.0> : tensor<2x1x1x1xf32>} : tensor<2x1x1x1xf32>
  %v = firn.constant {value = dense<1.0> : tensor<1x2x1x1xf32>} : tensor<1x2x1x1xf32>
  %0 = firn.conv %x, %w : (tensor<1x1x5x6xf32>, tensor<2x1x1x1xf32>) -> tensor<1x2x5x6xf32>
  %1 = firn.reshape %0 : (tensor<1x2x5x6xf32>) -> tensor<1x2x30xf32>
  %2 = firn.transpose %1 {perm = array<i64: 0, 2, 1>} : (tensor<1x2x30xf32>) -> tensor<1x30x2xf32>
  %3 = firn.softmax %2 {axis = 2 : i64} : (tensor<1x30x2xf32>) -> tensor<1x30x2xf32>
  %4 = firn.transpose %3 {perm = array<i64: 0, 2, 1>} : (tensor<1x30x2xf32>) -> tensor<1x2x30xf32>
  %5 = firn.reshape %4 : (tensor<1x2x30xf32>) -> tensor<1x2x5x6xf32>
  %6 = firn.conv %5, %v : (tensor<1x2x5x6xf32>, tensor<1x2x1x1xf32>) -> tensor<1x1x5x6xf32>
  return %6 : tensor<1x1x5x6xf32>
}

// -----

// CHECK-LABEL: @convolution_of_bytes_takes_its_channels_last
// CHECK: firn.conv_integer {{.*}}layout = "nhwc"
func.func @convolution_of_bytes_takes_its_channels_last(%x: tensor<1x3x4x4xui8>) -> tensor<1x2x4x4xi32> {
  %w = firn.constant {value = dense<3> : tensor<2x3x1x1xi8>} : tensor<2x3x1x1xi8>
  %0 = firn.conv_integer %x, %w : (tensor<1x3x4x4xui8>, tensor<2x3x1x1xi8>) -> tensor<1x2x4x4xi32>
  return %0 : tensor<1x2x4x4xi32>
}

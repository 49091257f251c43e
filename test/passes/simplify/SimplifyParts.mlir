// RUN: firn-mlir-opt %s --firn-simplify-parts | FileCheck %s
// RUN: firn-mlir-opt %s --firn-simplify-parts --firn-simplify-parts | FileCheck %s

// CHECK-LABEL: @drops_parts_that_are_the_whole
// CHECK: %[[R:.+]] = firn.relu %arg0
// CHECK-NEXT: return %[[R]]
func.func @drops_parts_that_are_the_whole(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %starts = firn.constant {value = dense<0> : tensor<1xi64>} : tensor<1xi64>
  %ends = firn.constant {value = dense<9> : tensor<1xi64>} : tensor<1xi64>
  %r = firn.relu %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %3 = firn.slice %r, %starts, %ends : (tensor<2x3xf32>, tensor<1xi64>, tensor<1xi64>) -> tensor<2x3xf32>
  %4 = firn.concat %3 {axis = -1 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %5 = firn.split %4 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %5 : tensor<2x3xf32>
}

// CHECK-LABEL: @reversal_is_no_whole_slice
// CHECK: firn.slice
func.func @reversal_is_no_whole_slice(%x: tensor<3xf32>) -> tensor<3xf32> {
  %starts = firn.constant {value = dense<-1> : tensor<1xi64>} : tensor<1xi64>
  %ends = firn.constant {value = dense<-9223372036854775808> : tensor<1xi64>} : tensor<1xi64>
  %axes = firn.constant {value = dense<0> : tensor<1xi64>} : tensor<1xi64>
  %steps = firn.constant {value = dense<-1> : tensor<1xi64>} : tensor<1xi64>
  %0 = firn.slice %x, %starts, %ends, %axes, %steps : (tensor<3xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// Elements 2, 3, ..., 7 in reverse, every second one: 7, 5, 3.
// CHECK-LABEL: @merges_slices
// CHECK: %[[S:.+]] = firn.constant {value = dense<[7, 1]> : tensor<2xi64>}
// CHECK-NEXT: %[[E:.+]] = firn.constant {value = dense<[1, 2]> : tensor<2xi64>}
// CHECK-NEXT: %[[A:.+]] = firn.constant {value = dense<[0, 1]> : tensor<2xi64>}
// CHECK-NEXT: %[[P:.+]] = firn.constant {value = dense<[-2, 1]> : tensor<2xi64>}
// CHECK: firn.slice %arg0, %[[S]], %[[E]], %[[A]], %[[P]]
func.func @merges_slices(%x: tensor<9x4xf32>) -> tensor<3x1xf32> {
  %two = firn.constant {value = dense<2> : tensor<1xi64>} : tensor<1xi64>
  %eight = firn.constant {value = dense<8> : tensor<1xi64>} : tensor<1xi64>
  %starts = firn.constant {value = dense<[-1, 1]> : tensor<2xi64>} : tensor<2xi64>
  %ends = firn.constant {value = dense<[-100, 2]> : tensor<2xi64>} : tensor<2xi64>
  %axes = firn.constant {value = dense<[0, -1]> : tensor<2xi64>} : tensor<2xi64>
  %steps = firn.constant {value = dense<[-2, 1]> : tensor<2xi64>} : tensor<2xi64>
  %0 = firn.slice %x, %two, %eight : (tensor<9x4xf32>, tensor<1xi64>, tensor<1xi64>) -> tensor<6x4xf32>
  %1 = firn.slice %0, %starts, %ends, %axes, %steps : (tensor<6x4xf32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<3x1xf32>
  return %1 : tensor<3x1xf32>
}

// CHECK-LABEL: @joins_concats
// CHECK: firn.concat %arg0, %arg1, %arg0 {axis = 0 : i64}
func.func @joins_concats(%x: tensor<2xf32>, %y: tensor<3xf32>, %z: tensor<0xf32>) -> tensor<7xf32> {
  %0 = firn.concat %x, %y {axis = 0 : i64} : (tensor<2xf32>, tensor<3xf32>) -> tensor<5xf32>
  %1 = firn.concat %0, %z, %x {axis = -1 : i64} : (tensor<5xf32>, tensor<0xf32>, tensor<2xf32>) -> tensor<7xf32>
  return %1 : tensor<7xf32>
}

// CHECK-LABEL: @merges_slices_of_open_dimensions
// CHECK: %[[S:.+]] = firn.slice %arg0, %{{.+}}, %{{.+}}, %{{.+}}, %{{.+}} :
// CHECK: return %[[S]]
func.func @merges_slices_of_open_dimensions(%x: tensor<?x?xf32, #firn.dims<["n", "m"]>>) -> tensor<?x?xf32, #firn.dims<["min(4, n)", "max(m-min(1, m)-1, 0)"]>> {
  %zero = firn.constant {value = dense<0> : tensor<1xi64>} : tensor<1xi64>
  %one = firn.constant {value = dense<1> : tensor<1xi64>} : tensor<1xi64>
  %four = firn.constant {value = dense<4> : tensor<1xi64>} : tensor<1xi64>
  %last = firn.constant {value = dense<-1> : tensor<1xi64>} : tensor<1xi64>
  %0 = firn.slice %x, %zero, %four, %zero : (tensor<?x?xf32, #firn.dims<["n", "m"]>>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x?xf32, #firn.dims<["min(4, n)", "m"]>>
  %1 = firn.slice %0, %one, %last, %one : (tensor<?x?xf32, #firn.dims<["min(4, n)", "m"]>>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x?xf32, #firn.dims<["min(4, n)", "max(m-min(1, m)-1, 0)"]>>
  return %1 : tensor<?x?xf32, #firn.dims<["min(4, n)", "max(m-min(1, m)-1, 0)"]>>
}

// The end of the first slice is counted from the end, that of the second from the start: the size decides.
// CHECK-LABEL: @leaves_slices_whose_merged_bounds_depend_on_the_size
// CHECK-COUNT-2: firn.slice
func.func @leaves_slices_whose_merged_bounds_depend_on_the_size(%x: tensor<?xf32, #firn.dims<["n"]>>) -> tensor<?xf32, #firn.dims<["k"]>> {
  %zero = firn.constant {value = dense<0> : tensor<1xi64>} : tensor<1xi64>
  %four = firn.constant {value = dense<4> : tensor<1xi64>} : tensor<1xi64>
  %last = firn.constant {value = dense<-1> : tensor<1xi64>} : tensor<1xi64>
  %0 = firn.slice %x, %zero, %last, %zero : (tensor<?xf32, #firn.dims<["n"]>>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?xf32, #firn.dims<["l"]>>
  %1 = firn.slice %0, %zero, %four, %zero : (tensor<?xf32, #firn.dims<["l"]>>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?xf32, #firn.dims<["k"]>>
  return %1 : tensor<?xf32, #firn.dims<["k"]>>
}

// CHECK-LABEL: @a_split_joined_again_is_nothing
// CHECK: firn.identity %arg0
func.func @a_split_joined_again_is_nothing(%x: tensor<4x3xf32>) -> tensor<4x3xf32> {
  %0:2 = firn.split %x {axis = 0 : i64, num_outputs = 2 : i64} : (tensor<4x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>)
  %1 = firn.concat %0#0, %0#1 {axis = 0 : i64} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  return %1 : tensor<4x3xf32>
}

// CHECK-LABEL: @a_split_joined_in_another_order_stays
// CHECK: firn.split
// CHECK: firn.concat
func.func @a_split_joined_in_another_order_stays(%x: tensor<4x3xf32>) -> tensor<4x3xf32> {
  %0:2 = firn.split %x {axis = 0 : i64, num_outputs = 2 : i64} : (tensor<4x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>)
  %1 = firn.concat %0#1, %0#0 {axis = 0 : i64} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  return %1 : tensor<4x3xf32>
}

// CHECK-LABEL: @a_slice_of_joined_tensors_reads_one
// CHECK: %[[S:.+]] = firn.slice %arg1
// CHECK: return %[[S]]
func.func @a_slice_of_joined_tensors_reads_one(%x: tensor<4xf32>, %y: tensor<5xf32>) -> tensor<2xf32> {
  %zero = firn.constant {value = dense<0> : tensor<1xi64>} : tensor<1xi64>
  %six = firn.constant {value = dense<6> : tensor<1xi64>} : tensor<1xi64>
  %eight = firn.constant {value = dense<8> : tensor<1xi64>} : tensor<1xi64>
  %0 = firn.concat %x, %y {axis = 0 : i64} : (tensor<4xf32>, tensor<5xf32>) -> tensor<9xf32>
  %1 = firn.slice %0, %six, %eight, %zero : (tensor<9xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}

// CHECK-LABEL: @adjacent_slices_joined_are_the_whole
// CHECK: firn.identity %arg0
func.func @adjacent_slices_joined_are_the_whole(%x: tensor<8xf32>) -> tensor<8xf32> {
  %zero = firn.constant {value = dense<0> : tensor<1xi64>} : tensor<1xi64>
  %four = firn.constant {value = dense<4> : tensor<1xi64>} : tensor<1xi64>
  %end = firn.constant {value = dense<8> : tensor<1xi64>} : tensor<1xi64>
  %0 = firn.slice %x, %zero, %four, %zero : (tensor<8xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<4xf32>
  %1 = firn.slice %x, %four, %end, %zero : (tensor<8xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<4xf32>
  %2 = firn.concat %0, %1 {axis = 0 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  return %2 : tensor<8xf32>
}

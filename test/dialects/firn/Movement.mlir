// RUN: firn-mlir-opt %s -split-input-file -verify-diagnostics | FileCheck %s

// CHECK-LABEL: @transposes
// CHECK: firn.transpose
func.func @transposes(%x: tensor<2x3x4xf32>) -> tensor<4x2x3xf32> {
  %0 = firn.transpose %x {perm = array<i64: 2, 0, 1>} : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
  return %0 : tensor<4x2x3xf32>
}

// -----

func.func @transpose_c1(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // expected-error@+1 {{expected perm to be a permutation of 2 axes, found [0, 0]}}
  %0 = firn.transpose %x {perm = array<i64: 0, 0>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----

func.func @reshape_c1(%x: tensor<2x3xf32>) -> tensor<4x2xf32> {
  %shape = firn.constant {value = dense<[4, 2]> : tensor<2xi64>} : tensor<2xi64>
  // expected-error@+1 {{expected a shape for the input's 6 elements [2, 3], found [4, 2] with 8}}
  %0 = firn.reshape %x, %shape : (tensor<2x3xf32>, tensor<2xi64>) -> tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}

// -----

func.func @reshape_c2(%x: tensor<2x3xf32>) -> tensor<6x1xf32> {
  %shape = firn.constant {value = dense<[-1, -1]> : tensor<2xi64>} : tensor<2xi64>
  // expected-error@+1 {{expected at most one -1 in shape, found [-1, -1]}}
  %0 = firn.reshape %x, %shape : (tensor<2x3xf32>, tensor<2xi64>) -> tensor<6x1xf32>
  return %0 : tensor<6x1xf32>
}

// -----

func.func @concat_c2(%a: tensor<2x3xf32>, %b: tensor<2x4xf32>) -> tensor<4x3xf32> {
  // expected-error@+1 {{expected equal dimensions off axis 0, found 3 and 4 on axis 1}}
  %0 = firn.concat %a, %b {axis = 0 : i64} : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<4x3xf32>
  return %0 : tensor<4x3xf32>
}

// -----

func.func @split_c1(%x: tensor<6xf32>) -> tensor<2xf32> {
  %sizes = firn.constant {value = dense<[2, 3]> : tensor<2xi64>} : tensor<2xi64>
  // expected-error@+1 {{expected 2 split sizes that add up to 6, found [2, 3]}}
  %0:2 = firn.split %x, %sizes : (tensor<6xf32>, tensor<2xi64>) -> (tensor<2xf32>, tensor<3xf32>)
  return %0#0 : tensor<2xf32>
}

// -----

func.func @slice_c1(%x: tensor<6xf32>) -> tensor<6xf32> {
  %zero = firn.constant {value = dense<0> : tensor<1xi64>} : tensor<1xi64>
  %six = firn.constant {value = dense<6> : tensor<1xi64>} : tensor<1xi64>
  // expected-error@+1 {{expected steps other than 0}}
  %0 = firn.slice %x, %zero, %six, %zero, %zero : (tensor<6xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<6xf32>
  return %0 : tensor<6xf32>
}

// -----

func.func @squeeze_c1(%x: tensor<2x3xf32>) -> tensor<3xf32> {
  %axes = firn.constant {value = dense<0> : tensor<1xi64>} : tensor<1xi64>
  // expected-error@+1 {{expected length 1 on squeezed axis 0, found 2 in shape [2, 3]}}
  %0 = firn.squeeze %x, %axes : (tensor<2x3xf32>, tensor<1xi64>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----

func.func @gather_index_out_of_range(%x: tensor<3xf32>) -> tensor<1xf32> {
  %index = firn.constant {value = dense<3> : tensor<1xi64>} : tensor<1xi64>
  // expected-error@+1 {{expected indices in [-3, 2], found 3}}
  %0 = firn.gather %x, %index : (tensor<3xf32>, tensor<1xi64>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----

func.func @scatter_elements_shapes(%x: tensor<2x3xf32>, %i: tensor<2x2xi64>, %u: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // expected-error@+1 {{expected the sizes of indices and updates on axis 1 to be equal, found 2 and 3}}
  %0 = firn.scatter_elements %x, %i, %u : (tensor<2x3xf32>, tensor<2x2xi64>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----

func.func @scatter_nd_shapes(%x: tensor<2x3xf32>, %i: tensor<4x1xi64>, %u: tensor<4x2xf32>) -> tensor<2x3xf32> {
  // expected-error@+1 {{expected updates of shape [4, 2] and the wanted [4, 3] on axis 1 to be equal, found 2 and 3}}
  %0 = firn.scatter_nd %x, %i, %u : (tensor<2x3xf32>, tensor<4x1xi64>, tensor<4x2xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

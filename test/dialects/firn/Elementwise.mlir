// RUN: firn-mlir-opt %s -split-input-file -verify-diagnostics | firn-mlir-opt | FileCheck %s

// CHECK-LABEL: @round_trip
// CHECK: firn.add %arg0, %arg1 : (tensor<?x4xf32, #firn.dims<["n", ""]>>, tensor<4xf32>)
// CHECK: firn.leaky_relu %{{.*}} {alpha = 1.000000e-01 : f32}
// CHECK: firn.cast %{{.*}} {to = 7 : i64}
func.func @round_trip(%a: tensor<?x4xf32, #firn.dims<["n", ""]>>, %b: tensor<4xf32>) -> tensor<?x4xi64, #firn.dims<["n", ""]>> {
  %0 = firn.add %a, %b : (tensor<?x4xf32, #firn.dims<["n", ""]>>, tensor<4xf32>) -> tensor<?x4xf32, #firn.dims<["n", ""]>>
  %1 = firn.leaky_relu %0 {alpha = 0.1 : f32} : (tensor<?x4xf32, #firn.dims<["n", ""]>>) -> tensor<?x4xf32, #firn.dims<["n", ""]>>
  %2 = firn.cast %1 {to = 7} : (tensor<?x4xf32, #firn.dims<["n", ""]>>) -> tensor<?x4xi64, #firn.dims<["n", ""]>>
  return %2 : tensor<?x4xi64, #firn.dims<["n", ""]>>
}

// -----

func.func @binary_c1(%a: tensor<3xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{expected shapes that broadcast, found [3] and [4]}}
  %0 = firn.mul %a, %b : (tensor<3xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @binary_c2(%a: tensor<4xf32>, %b: tensor<4xi32>) -> tensor<4xf32> {
  // expected-error@+1 {{expected inputs of one element type, found float32 and int32}}
  %0 = firn.sub %a, %b : (tensor<4xf32>, tensor<4xi32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @result_contradicts(%a: tensor<4xf32>) -> tensor<5xf32> {
  // expected-error@+1 {{expected result type 'tensor<4xf32>', found 'tensor<5xf32>'}}
  %0 = firn.relu %a : (tensor<4xf32>) -> tensor<5xf32>
  return %0 : tensor<5xf32>
}

// -----

func.func @cast_c1(%a: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{expected an element type of TensorProto.DataType in 'to', found 99}}
  %0 = firn.cast %a {to = 99} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @where_condition_is_bool(%c: tensor<4xf32>, %a: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{expected a bool condition, found float32}}
  %0 = firn.where %c, %a, %a : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// RUN: firn-mlir-opt %s -split-input-file -verify-diagnostics | firn-mlir-opt | FileCheck %s

// CHECK-LABEL: @round_trip
// CHECK-SAME: !firn.sequence<tensor<?x3xf32>>, %{{.+}}: !firn.optional<!firn.sequence<tensor<*xf32>>>, %{{.+}}: !firn.map<i64, f32>
// CHECK: firn.sequence_empty {dtype = 7 : i64} : () -> !firn.sequence<i64>
// CHECK: firn.sequence_insert %arg0, %{{.+}} : (!firn.sequence<tensor<?x3xf32>>, tensor<2x3xf32>)
// CHECK: firn.optional_get_element %arg1
func.func @round_trip(%s: !firn.sequence<tensor<?x3xf32>>, %o: !firn.optional<!firn.sequence<tensor<*xf32>>>, %m: !firn.map<i64, f32>, %x: tensor<2x3xf32>) -> !firn.sequence<tensor<?x3xf32>> {
  %0 = firn.sequence_empty {dtype = 7} : () -> !firn.sequence<i64>
  %1 = firn.sequence_insert %s, %x : (!firn.sequence<tensor<?x3xf32>>, tensor<2x3xf32>) -> !firn.sequence<tensor<?x3xf32>>
  %2 = firn.optional_get_element %o : (!firn.optional<!firn.sequence<tensor<*xf32>>>) -> !firn.sequence<tensor<*xf32>>
  return %1 : !firn.sequence<tensor<?x3xf32>>
}

// -----

func.func @sequence_construct_c1(%a: tensor<2xf32>, %b: tensor<2xi64>) -> !firn.sequence<tensor<2xf32>> {
  // expected-error@+1 {{expected tensors of one element type, found float32 and int64}}
  %0 = firn.sequence_construct %a, %b : (tensor<2xf32>, tensor<2xi64>) -> !firn.sequence<tensor<2xf32>>
  return %0 : !firn.sequence<tensor<2xf32>>
}

// -----

func.func @sequence_insert_c1(%s: !firn.sequence<tensor<2xf32>>, %b: tensor<2xi64>) -> !firn.sequence<tensor<2xf32>> {
  // expected-error@+1 {{expected a tensor of the sequence's element type float32, found int64}}
  %0 = firn.sequence_insert %s, %b : (!firn.sequence<tensor<2xf32>>, tensor<2xi64>) -> !firn.sequence<tensor<2xf32>>
  return %0 : !firn.sequence<tensor<2xf32>>
}

// -----

func.func @sequence_at_of_a_tensor(%x: tensor<2xf32>, %i: tensor<i64>) -> tensor<f32> {
  // expected-error@+1 {{expected a sequence as input 0, found float32[2]}}
  %0 = firn.sequence_at %x, %i : (tensor<2xf32>, tensor<i64>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

func.func @sequence_at_of_a_float_position(%s: !firn.sequence<tensor<2xf32>>, %i: tensor<f32>) -> tensor<2xf32> {
  // expected-error@+1 {{expected a position of int32 or int64, found float32}}
  %0 = firn.sequence_at %s, %i : (!firn.sequence<tensor<2xf32>>, tensor<f32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

func.func @split_to_sequence_c1(%x: tensor<2xf32>) -> !firn.sequence<tensor<1xf32>> {
  // expected-error@+1 {{expected an axis in [-1, 0], found 1}}
  %0 = firn.split_to_sequence %x {axis = 1} : (tensor<2xf32>) -> !firn.sequence<tensor<1xf32>>
  return %0 : !firn.sequence<tensor<1xf32>>
}

// -----

func.func @concat_from_sequence_c1(%s: !firn.sequence<tensor<2xf32>>) -> tensor<2xf32> {
  // expected-error@+1 {{expected an axis in [-1, 0], found 1}}
  %0 = firn.concat_from_sequence %s {axis = 1} : (!firn.sequence<tensor<2xf32>>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

func.func @optional_c1() -> !firn.optional<tensor<2xf32>> {
  // expected-error@+1 {{expected an input, or attribute 'type' to say what the optional may hold}}
  %0 = firn.optional : () -> !firn.optional<tensor<2xf32>>
  return %0 : !firn.optional<tensor<2xf32>>
}

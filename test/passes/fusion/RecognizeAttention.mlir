// RUN: firn-mlir-opt %s -split-input-file --firn-recognize-attention --firn-eliminate-dead | FileCheck %s
// RUN: firn-mlir-opt %s -split-input-file --firn-recognize-attention --firn-recognize-attention --firn-eliminate-dead | FileCheck %s

// CHECK-LABEL: @scale_on_the_product
// CHECK-NEXT: firn.attention %arg0, %arg1, %arg2 {nan_rows = 1 : i64, scale = 5.000000e-01 : f32}
// CHECK-NEXT: return
func.func @scale_on_the_product(%q: tensor<2x3x5x4xf32>, %k: tensor<2x3x7x4xf32>, %v: tensor<2x3x7x4xf32>) -> tensor<2x3x5x4xf32> {
  %c = firn.constant {value = dense<2.0> : tensor<f32>} : tensor<f32>
  %t = firn.transpose %k {perm = array<i64: 0, 1, 3, 2>} : (tensor<2x3x7x4xf32>) -> tensor<2x3x4x7xf32>
  %s = firn.matmul %q, %t : (tensor<2x3x5x4xf32>, tensor<2x3x4x7xf32>) -> tensor<2x3x5x7xf32>
  %d = firn.div %s, %c : (tensor<2x3x5x7xf32>, tensor<f32>) -> tensor<2x3x5x7xf32>
  %p = firn.softmax %d : (tensor<2x3x5x7xf32>) -> tensor<2x3x5x7xf32>
  %y = firn.matmul %p, %v : (tensor<2x3x5x7xf32>, tensor<2x3x7x4xf32>) -> tensor<2x3x5x4xf32>
  return %y : tensor<2x3x5x4xf32>
}

// CHECK-LABEL: @scales_on_both_operands_and_a_mask
// CHECK-NEXT: firn.attention %arg0, %arg1, %arg2, %arg3 {nan_rows = 1 : i64, scale = 2.500000e-01 : f32}
// CHECK-NEXT: return
func.func @scales_on_both_operands_and_a_mask(%q: tensor<2x3x5x4xf32>, %k: tensor<2x3x7x4xf32>, %v: tensor<2x3x7x4xf32>, %m: tensor<2x1x1x7xf32>) -> tensor<2x3x5x4xf32> {
  %c = firn.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %qs = firn.mul %q, %c : (tensor<2x3x5x4xf32>, tensor<f32>) -> tensor<2x3x5x4xf32>
  %ks = firn.mul %c, %k : (tensor<f32>, tensor<2x3x7x4xf32>) -> tensor<2x3x7x4xf32>
  %t = firn.transpose %ks {perm = array<i64: 0, 1, 3, 2>} : (tensor<2x3x7x4xf32>) -> tensor<2x3x4x7xf32>
  %s = firn.matmul %qs, %t : (tensor<2x3x5x4xf32>, tensor<2x3x4x7xf32>) -> tensor<2x3x5x7xf32>
  %d = firn.add %m, %s : (tensor<2x1x1x7xf32>, tensor<2x3x5x7xf32>) -> tensor<2x3x5x7xf32>
  %p = firn.softmax %d {axis = 3 : i64} : (tensor<2x3x5x7xf32>) -> tensor<2x3x5x7xf32>
  %y = firn.matmul %p, %v : (tensor<2x3x5x7xf32>, tensor<2x3x7x4xf32>) -> tensor<2x3x5x4xf32>
  return %y : tensor<2x3x5x4xf32>
}

// CHECK-LABEL: @a_mask_that_replaces_scores
// CHECK-NEXT: firn.attention %arg0, %arg1, %arg2, %arg3 {masked_score = -1.000000e+09 : f32, nan_rows = 1 : i64, scale = 1.000000e+00 : f32}
// CHECK-NEXT: return
func.func @a_mask_that_replaces_scores(%q: tensor<2x3x5x4xf32>, %k: tensor<2x3x7x4xf32>, %v: tensor<2x3x7x4xf32>, %m: tensor<5x7xi1>) -> tensor<2x3x5x4xf32> {
  %c = firn.constant {value = dense<-1.0e9> : tensor<f32>} : tensor<f32>
  %t = firn.transpose %k {perm = array<i64: 0, 1, 3, 2>} : (tensor<2x3x7x4xf32>) -> tensor<2x3x4x7xf32>
  %s = firn.matmul %q, %t : (tensor<2x3x5x4xf32>, tensor<2x3x4x7xf32>) -> tensor<2x3x5x7xf32>
  %d = firn.where %m, %s, %c : (tensor<5x7xi1>, tensor<2x3x5x7xf32>, tensor<f32>) -> tensor<2x3x5x7xf32>
  %p = firn.softmax %d : (tensor<2x3x5x7xf32>) -> tensor<2x3x5x7xf32>
  %y = firn.matmul %p, %v : (tensor<2x3x5x7xf32>, tensor<2x3x7x4xf32>) -> tensor<2x3x5x4xf32>
  return %y : tensor<2x3x5x4xf32>
}

// CHECK-LABEL: @a_mask_that_says_what_is_hidden
// CHECK: %[[M:.+]] = firn.not %arg3
// CHECK-NEXT: firn.attention %arg0, %arg1, %arg2, %[[M]] {nan_rows = 1 : i64, scale = 1.000000e+00 : f32}
// CHECK-NEXT: return
func.func @a_mask_that_says_what_is_hidden(%q: tensor<2x3x5x4xf32>, %k: tensor<2x3x7x4xf32>, %v: tensor<2x3x7x4xf32>, %m: tensor<5x7xi1>) -> tensor<2x3x5x4xf32> {
  %c = firn.constant {value = dense<0xFF800000> : tensor<f32>} : tensor<f32>
  %t = firn.transpose %k {perm = array<i64: 0, 1, 3, 2>} : (tensor<2x3x7x4xf32>) -> tensor<2x3x4x7xf32>
  %s = firn.matmul %q, %t : (tensor<2x3x5x4xf32>, tensor<2x3x4x7xf32>) -> tensor<2x3x5x7xf32>
  %d = firn.where %m, %c, %s : (tensor<5x7xi1>, tensor<f32>, tensor<2x3x5x7xf32>) -> tensor<2x3x5x7xf32>
  %p = firn.softmax %d : (tensor<2x3x5x7xf32>) -> tensor<2x3x5x7xf32>
  %y = firn.matmul %p, %v : (tensor<2x3x5x7xf32>, tensor<2x3x7x4xf32>) -> tensor<2x3x5x4xf32>
  return %y : tensor<2x3x5x4xf32>
}

// CHECK-LABEL: @a_mask_that_replaces_and_one_that_is_added
// CHECK: %[[W:.+]] = firn.where %arg3,
// CHECK: %[[M:.+]] = firn.add %arg4, %[[W]]
// CHECK: firn.attention %arg0, %arg1, %arg2, %[[M]] {
// CHECK-NEXT: return
func.func @a_mask_that_replaces_and_one_that_is_added(%q: tensor<2x3x5x4xf32>, %k: tensor<2x3x7x4xf32>, %v: tensor<2x3x7x4xf32>, %m: tensor<5x7xi1>, %n: tensor<2x1x1x7xf32>) -> tensor<2x3x5x4xf32> {
  %c = firn.constant {value = dense<-3.40282347E+38> : tensor<f32>} : tensor<f32>
  %t = firn.transpose %k {perm = array<i64: 0, 1, 3, 2>} : (tensor<2x3x7x4xf32>) -> tensor<2x3x4x7xf32>
  %s = firn.matmul %q, %t : (tensor<2x3x5x4xf32>, tensor<2x3x4x7xf32>) -> tensor<2x3x5x7xf32>
  %w = firn.where %m, %s, %c : (tensor<5x7xi1>, tensor<2x3x5x7xf32>, tensor<f32>) -> tensor<2x3x5x7xf32>
  %d = firn.add %w, %n : (tensor<2x3x5x7xf32>, tensor<2x1x1x7xf32>) -> tensor<2x3x5x7xf32>
  %p = firn.softmax %d : (tensor<2x3x5x7xf32>) -> tensor<2x3x5x7xf32>
  %y = firn.matmul %p, %v : (tensor<2x3x5x7xf32>, tensor<2x3x7x4xf32>) -> tensor<2x3x5x4xf32>
  return %y : tensor<2x3x5x4xf32>
}

// CHECK-LABEL: @heads_stay_inside_of_rows
// CHECK-NEXT: firn.attention %arg0, %arg1, %arg2 {kv_num_heads = 3 : i64, nan_rows = 1 : i64, q_num_heads = 3 : i64, scale = 1.000000e+00 : f32}
// CHECK-NEXT: return
func.func @heads_stay_inside_of_rows(%q: tensor<?x?x12xf32, #firn.dims<["b", "n", ""]>>, %k: tensor<?x?x12xf32, #firn.dims<["b", "n", ""]>>, %v: tensor<?x?x12xf32, #firn.dims<["b", "n", ""]>>) -> tensor<?x?x12xf32, #firn.dims<["b", "n", ""]>> {
  %qs = firn.reshape %q : (tensor<?x?x12xf32, #firn.dims<["b", "n", ""]>>) -> tensor<?x?x3x4xf32, #firn.dims<["b", "n", "", ""]>>
  %ks = firn.reshape %k : (tensor<?x?x12xf32, #firn.dims<["b", "n", ""]>>) -> tensor<?x?x3x4xf32, #firn.dims<["b", "n", "", ""]>>
  %vs = firn.reshape %v : (tensor<?x?x12xf32, #firn.dims<["b", "n", ""]>>) -> tensor<?x?x3x4xf32, #firn.dims<["b", "n", "", ""]>>
  %qh = firn.transpose %qs {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x?x3x4xf32, #firn.dims<["b", "n", "", ""]>>) -> tensor<?x3x?x4xf32, #firn.dims<["b", "", "n", ""]>>
  %t = firn.transpose %ks {perm = array<i64: 0, 2, 3, 1>} : (tensor<?x?x3x4xf32, #firn.dims<["b", "n", "", ""]>>) -> tensor<?x3x4x?xf32, #firn.dims<["b", "", "", "n"]>>
  %vh = firn.transpose %vs {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x?x3x4xf32, #firn.dims<["b", "n", "", ""]>>) -> tensor<?x3x?x4xf32, #firn.dims<["b", "", "n", ""]>>
  %s = firn.matmul %qh, %t : (tensor<?x3x?x4xf32, #firn.dims<["b", "", "n", ""]>>, tensor<?x3x4x?xf32, #firn.dims<["b", "", "", "n"]>>) -> tensor<?x3x?x?xf32, #firn.dims<["b", "", "n", "n"]>>
  %p = firn.softmax %s : (tensor<?x3x?x?xf32, #firn.dims<["b", "", "n", "n"]>>) -> tensor<?x3x?x?xf32, #firn.dims<["b", "", "n", "n"]>>
  %c = firn.matmul %p, %vh : (tensor<?x3x?x?xf32, #firn.dims<["b", "", "n", "n"]>>, tensor<?x3x?x4xf32, #firn.dims<["b", "", "n", ""]>>) -> tensor<?x3x?x4xf32, #firn.dims<["b", "", "n", ""]>>
  %ct = firn.transpose %c {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x3x?x4xf32, #firn.dims<["b", "", "n", ""]>>) -> tensor<?x?x3x4xf32, #firn.dims<["b", "n", "", ""]>>
  %y = firn.reshape %ct : (tensor<?x?x3x4xf32, #firn.dims<["b", "n", "", ""]>>) -> tensor<?x?x12xf32, #firn.dims<["b", "n", ""]>>
  return %y : tensor<?x?x12xf32, #firn.dims<["b", "n", ""]>>
}

// CHECK-LABEL: @keys_of_a_cache_and_merged_heads
// CHECK: firn.attention {{.*}}, %arg1, %arg1 {nan_rows = 1 : i64, rows = 1 : i64, scale = 1.000000e+00 : f32}
// CHECK-NEXT: return
func.func @keys_of_a_cache_and_merged_heads(%q: tensor<?x?x12xf32, #firn.dims<["b", "n", ""]>>, %k: tensor<?x3x7x4xf32, #firn.dims<["b", "", "", ""]>>) -> tensor<?x?x12xf32, #firn.dims<["b", "n", ""]>> {
  %qs = firn.reshape %q : (tensor<?x?x12xf32, #firn.dims<["b", "n", ""]>>) -> tensor<?x?x3x4xf32, #firn.dims<["b", "n", "", ""]>>
  %qh = firn.transpose %qs {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x?x3x4xf32, #firn.dims<["b", "n", "", ""]>>) -> tensor<?x3x?x4xf32, #firn.dims<["b", "", "n", ""]>>
  %t = firn.transpose %k {perm = array<i64: 0, 1, 3, 2>} : (tensor<?x3x7x4xf32, #firn.dims<["b", "", "", ""]>>) -> tensor<?x3x4x7xf32, #firn.dims<["b", "", "", ""]>>
  %s = firn.matmul %qh, %t : (tensor<?x3x?x4xf32, #firn.dims<["b", "", "n", ""]>>, tensor<?x3x4x7xf32, #firn.dims<["b", "", "", ""]>>) -> tensor<?x3x?x7xf32, #firn.dims<["b", "", "n", ""]>>
  %p = firn.softmax %s : (tensor<?x3x?x7xf32, #firn.dims<["b", "", "n", ""]>>) -> tensor<?x3x?x7xf32, #firn.dims<["b", "", "n", ""]>>
  %c = firn.matmul %p, %k : (tensor<?x3x?x7xf32, #firn.dims<["b", "", "n", ""]>>, tensor<?x3x7x4xf32, #firn.dims<["b", "", "", ""]>>) -> tensor<?x3x?x4xf32, #firn.dims<["b", "", "n", ""]>>
  %ct = firn.transpose %c {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x3x?x4xf32, #firn.dims<["b", "", "n", ""]>>) -> tensor<?x?x3x4xf32, #firn.dims<["b", "n", "", ""]>>
  %y = firn.reshape %ct : (tensor<?x?x3x4xf32, #firn.dims<["b", "n", "", ""]>>) -> tensor<?x?x12xf32, #firn.dims<["b", "n", ""]>>
  return %y : tensor<?x?x12xf32, #firn.dims<["b", "n", ""]>>
}

// CHECK-LABEL: @repeated_heads_are_groups
// CHECK: firn.attention %arg0, %arg1, %arg2 {
// CHECK-NEXT: return
func.func @repeated_heads_are_groups(%q: tensor<2x6x5x4xf32>, %k: tensor<2x3x7x4xf32>, %v: tensor<2x3x7x4xf32>) -> tensor<2x6x5x4xf32> {
  %sh = firn.constant {value = dense<[2, 3, 2, 7, 4]> : tensor<5xi64>} : tensor<5xi64>
  %k1 = firn.reshape %k : (tensor<2x3x7x4xf32>) -> tensor<2x3x1x7x4xf32>
  %k2 = firn.expand %k1, %sh : (tensor<2x3x1x7x4xf32>, tensor<5xi64>) -> tensor<2x3x2x7x4xf32>
  %k3 = firn.reshape %k2 : (tensor<2x3x2x7x4xf32>) -> tensor<2x6x7x4xf32>
  %v1 = firn.reshape %v : (tensor<2x3x7x4xf32>) -> tensor<2x3x1x7x4xf32>
  %v2 = firn.expand %v1, %sh : (tensor<2x3x1x7x4xf32>, tensor<5xi64>) -> tensor<2x3x2x7x4xf32>
  %v3 = firn.reshape %v2 : (tensor<2x3x2x7x4xf32>) -> tensor<2x6x7x4xf32>
  %t = firn.transpose %k3 {perm = array<i64: 0, 1, 3, 2>} : (tensor<2x6x7x4xf32>) -> tensor<2x6x4x7xf32>
  %s = firn.matmul %q, %t : (tensor<2x6x5x4xf32>, tensor<2x6x4x7xf32>) -> tensor<2x6x5x7xf32>
  %p = firn.softmax %s : (tensor<2x6x5x7xf32>) -> tensor<2x6x5x7xf32>
  %y = firn.matmul %p, %v3 : (tensor<2x6x5x7xf32>, tensor<2x6x7x4xf32>) -> tensor<2x6x5x4xf32>
  return %y : tensor<2x6x5x4xf32>
}

// CHECK-LABEL: @one_head_of_three_axes
// CHECK: firn.attention {{.*}} -> tensor<6x1x5x4xf32>
// CHECK-NEXT: firn.reshape
// CHECK-NEXT: return
func.func @one_head_of_three_axes(%q: tensor<6x5x4xf32>, %k: tensor<6x7x4xf32>) -> tensor<6x5x4xf32> {
  %t = firn.transpose %k {perm = array<i64: 0, 2, 1>} : (tensor<6x7x4xf32>) -> tensor<6x4x7xf32>
  %s = firn.matmul %q, %t : (tensor<6x5x4xf32>, tensor<6x4x7xf32>) -> tensor<6x5x7xf32>
  %p = firn.softmax %s : (tensor<6x5x7xf32>) -> tensor<6x5x7xf32>
  %y = firn.matmul %p, %k : (tensor<6x5x7xf32>, tensor<6x7x4xf32>) -> tensor<6x5x4xf32>
  return %y : tensor<6x5x4xf32>
}

// CHECK-LABEL: @a_softmax_in_32_bits_of_16_bit_scores
// CHECK: firn.attention %arg0, %arg1, %arg2, %arg3 {nan_rows = 1 : i64, scale = 5.000000e-01 : f32}
// CHECK-NEXT: return
func.func @a_softmax_in_32_bits_of_16_bit_scores(%q: tensor<2x3x5x4xf16>, %k: tensor<2x3x7x4xf16>, %v: tensor<2x3x7x4xf16>, %m: tensor<5x7xf32>) -> tensor<2x3x5x4xf16> {
  %c = firn.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %t = firn.transpose %k {perm = array<i64: 0, 1, 3, 2>} : (tensor<2x3x7x4xf16>) -> tensor<2x3x4x7xf16>
  %s = firn.matmul %q, %t : (tensor<2x3x5x4xf16>, tensor<2x3x4x7xf16>) -> tensor<2x3x5x7xf16>
  %w = firn.cast %s {to = 1 : i64} : (tensor<2x3x5x7xf16>) -> tensor<2x3x5x7xf32>
  %d = firn.mul %w, %c : (tensor<2x3x5x7xf32>, tensor<f32>) -> tensor<2x3x5x7xf32>
  %e = firn.add %d, %m : (tensor<2x3x5x7xf32>, tensor<5x7xf32>) -> tensor<2x3x5x7xf32>
  %p = firn.softmax %e : (tensor<2x3x5x7xf32>) -> tensor<2x3x5x7xf32>
  %n = firn.cast %p {to = 10 : i64} : (tensor<2x3x5x7xf32>) -> tensor<2x3x5x7xf16>
  %y = firn.matmul %n, %v : (tensor<2x3x5x7xf16>, tensor<2x3x7x4xf16>) -> tensor<2x3x5x4xf16>
  return %y : tensor<2x3x5x4xf16>
}

// CHECK-LABEL: @a_mask_taken_off_and_one_added
// CHECK: %[[N:.+]] = firn.neg %arg3
// CHECK: %[[M:.+]] = firn.add %arg4, %[[N]]
// CHECK: firn.attention %arg0, %arg1, %arg2, %[[M]] {
// CHECK-NEXT: return
func.func @a_mask_taken_off_and_one_added(%q: tensor<2x3x5x4xf32>, %k: tensor<2x3x7x4xf32>, %v: tensor<2x3x7x4xf32>, %m: tensor<5x7xf32>, %n: tensor<2x1x1x7xf32>) -> tensor<2x3x5x4xf32> {
  %t = firn.transpose %k {perm = array<i64: 0, 1, 3, 2>} : (tensor<2x3x7x4xf32>) -> tensor<2x3x4x7xf32>
  %s = firn.matmul %q, %t : (tensor<2x3x5x4xf32>, tensor<2x3x4x7xf32>) -> tensor<2x3x5x7xf32>
  %d = firn.add %s, %n : (tensor<2x3x5x7xf32>, tensor<2x1x1x7xf32>) -> tensor<2x3x5x7xf32>
  %e = firn.sub %d, %m : (tensor<2x3x5x7xf32>, tensor<5x7xf32>) -> tensor<2x3x5x7xf32>
  %p = firn.softmax %e : (tensor<2x3x5x7xf32>) -> tensor<2x3x5x7xf32>
  %y = firn.matmul %p, %v : (tensor<2x3x5x7xf32>, tensor<2x3x7x4xf32>) -> tensor<2x3x5x4xf32>
  return %y : tensor<2x3x5x4xf32>
}

// CHECK-LABEL: @probabilities_that_are_no_numbers_become_zeros
// CHECK: firn.attention %arg0, %arg1, %arg2, %arg3 {scale = 1.000000e+00 : f32, zero_nan = 1 : i64}
// CHECK-NEXT: return
func.func @probabilities_that_are_no_numbers_become_zeros(%q: tensor<2x3x5x4xf32>, %k: tensor<2x3x7x4xf32>, %v: tensor<2x3x7x4xf32>, %m: tensor<5x7xf32>) -> tensor<2x3x5x4xf32> {
  %c = firn.constant {value = dense<0.0> : tensor<f32>} : tensor<f32>
  %t = firn.transpose %k {perm = array<i64: 0, 1, 3, 2>} : (tensor<2x3x7x4xf32>) -> tensor<2x3x4x7xf32>
  %s = firn.matmul %q, %t : (tensor<2x3x5x4xf32>, tensor<2x3x4x7xf32>) -> tensor<2x3x5x7xf32>
  %d = firn.add %s, %m : (tensor<2x3x5x7xf32>, tensor<5x7xf32>) -> tensor<2x3x5x7xf32>
  %p = firn.softmax %d : (tensor<2x3x5x7xf32>) -> tensor<2x3x5x7xf32>
  %i = firn.is_nan %p : (tensor<2x3x5x7xf32>) -> tensor<2x3x5x7xi1>
  %w = firn.where %i, %c, %p : (tensor<2x3x5x7xi1>, tensor<f32>, tensor<2x3x5x7xf32>) -> tensor<2x3x5x7xf32>
  %y = firn.matmul %w, %v : (tensor<2x3x5x7xf32>, tensor<2x3x7x4xf32>) -> tensor<2x3x5x4xf32>
  return %y : tensor<2x3x5x4xf32>
}

// CHECK-LABEL: @a_mask_repeated_for_each_head
// CHECK: firn.attention %arg0, %arg1, %arg2, %arg3 {
// CHECK-NEXT: return
func.func @a_mask_repeated_for_each_head(%q: tensor<2x3x5x4xf32>, %k: tensor<2x3x7x4xf32>, %v: tensor<2x3x7x4xf32>, %m: tensor<2x1x1x7xi1>) -> tensor<2x3x5x4xf32> {
  %c = firn.constant {value = dense<0xFF800000> : tensor<f32>} : tensor<f32>
  %sh = firn.constant {value = dense<[2, 3, 5, 7]> : tensor<4xi64>} : tensor<4xi64>
  %me = firn.expand %m, %sh : (tensor<2x1x1x7xi1>, tensor<4xi64>) -> tensor<2x3x5x7xi1>
  %t = firn.transpose %k {perm = array<i64: 0, 1, 3, 2>} : (tensor<2x3x7x4xf32>) -> tensor<2x3x4x7xf32>
  %s = firn.matmul %q, %t : (tensor<2x3x5x4xf32>, tensor<2x3x4x7xf32>) -> tensor<2x3x5x7xf32>
  %d = firn.where %me, %s, %c : (tensor<2x3x5x7xi1>, tensor<2x3x5x7xf32>, tensor<f32>) -> tensor<2x3x5x7xf32>
  %p = firn.softmax %d : (tensor<2x3x5x7xf32>) -> tensor<2x3x5x7xf32>
  %y = firn.matmul %p, %v : (tensor<2x3x5x7xf32>, tensor<2x3x7x4xf32>) -> tensor<2x3x5x4xf32>
  return %y : tensor<2x3x5x4xf32>
}

// CHECK-LABEL: @keeps_probabilities_that_are_returned
// CHECK-NOT: firn.attention
// CHECK: return
func.func @keeps_probabilities_that_are_returned(%q: tensor<2x3x5x4xf32>, %k: tensor<2x3x7x4xf32>, %v: tensor<2x3x7x4xf32>) -> (tensor<2x3x5x4xf32>, tensor<2x3x5x7xf32>) {
  %t = firn.transpose %k {perm = array<i64: 0, 1, 3, 2>} : (tensor<2x3x7x4xf32>) -> tensor<2x3x4x7xf32>
  %s = firn.matmul %q, %t : (tensor<2x3x5x4xf32>, tensor<2x3x4x7xf32>) -> tensor<2x3x5x7xf32>
  %p = firn.softmax %s : (tensor<2x3x5x7xf32>) -> tensor<2x3x5x7xf32>
  %y = firn.matmul %p, %v : (tensor<2x3x5x7xf32>, tensor<2x3x7x4xf32>) -> tensor<2x3x5x4xf32>
  return %y, %p : tensor<2x3x5x4xf32>, tensor<2x3x5x7xf32>
}

// CHECK-LABEL: @keeps_scores_that_are_returned
// CHECK-NOT: firn.attention
// CHECK: return
func.func @keeps_scores_that_are_returned(%q: tensor<2x3x5x4xf32>, %k: tensor<2x3x7x4xf32>, %v: tensor<2x3x7x4xf32>) -> (tensor<2x3x5x4xf32>, tensor<2x3x5x7xf32>) {
  %t = firn.transpose %k {perm = array<i64: 0, 1, 3, 2>} : (tensor<2x3x7x4xf32>) -> tensor<2x3x4x7xf32>
  %s = firn.matmul %q, %t : (tensor<2x3x5x4xf32>, tensor<2x3x4x7xf32>) -> tensor<2x3x5x7xf32>
  %p = firn.softmax %s : (tensor<2x3x5x7xf32>) -> tensor<2x3x5x7xf32>
  %y = firn.matmul %p, %v : (tensor<2x3x5x7xf32>, tensor<2x3x7x4xf32>) -> tensor<2x3x5x4xf32>
  return %y, %s : tensor<2x3x5x4xf32>, tensor<2x3x5x7xf32>
}

// CHECK-LABEL: @keeps_a_softmax_over_another_axis
// CHECK-NOT: firn.attention
// CHECK: return
func.func @keeps_a_softmax_over_another_axis(%q: tensor<2x3x5x4xf32>, %k: tensor<2x3x7x4xf32>, %v: tensor<2x3x7x4xf32>) -> tensor<2x3x5x4xf32> {
  %t = firn.transpose %k {perm = array<i64: 0, 1, 3, 2>} : (tensor<2x3x7x4xf32>) -> tensor<2x3x4x7xf32>
  %s = firn.matmul %q, %t : (tensor<2x3x5x4xf32>, tensor<2x3x4x7xf32>) -> tensor<2x3x5x7xf32>
  %p = firn.softmax %s {axis = 2 : i64} : (tensor<2x3x5x7xf32>) -> tensor<2x3x5x7xf32>
  %y = firn.matmul %p, %v : (tensor<2x3x5x7xf32>, tensor<2x3x7x4xf32>) -> tensor<2x3x5x4xf32>
  return %y : tensor<2x3x5x4xf32>
}

// CHECK-LABEL: @keeps_a_scale_behind_the_mask
// CHECK-NOT: firn.attention
// CHECK: return
func.func @keeps_a_scale_behind_the_mask(%q: tensor<2x3x5x4xf32>, %k: tensor<2x3x7x4xf32>, %v: tensor<2x3x7x4xf32>, %m: tensor<5x7xf32>) -> tensor<2x3x5x4xf32> {
  %c = firn.constant {value = dense<2.0> : tensor<f32>} : tensor<f32>
  %t = firn.transpose %k {perm = array<i64: 0, 1, 3, 2>} : (tensor<2x3x7x4xf32>) -> tensor<2x3x4x7xf32>
  %s = firn.matmul %q, %t : (tensor<2x3x5x4xf32>, tensor<2x3x4x7xf32>) -> tensor<2x3x5x7xf32>
  %d = firn.add %s, %m : (tensor<2x3x5x7xf32>, tensor<5x7xf32>) -> tensor<2x3x5x7xf32>
  %e = firn.mul %d, %c : (tensor<2x3x5x7xf32>, tensor<f32>) -> tensor<2x3x5x7xf32>
  %p = firn.softmax %e : (tensor<2x3x5x7xf32>) -> tensor<2x3x5x7xf32>
  %y = firn.matmul %p, %v : (tensor<2x3x5x7xf32>, tensor<2x3x7x4xf32>) -> tensor<2x3x5x4xf32>
  return %y : tensor<2x3x5x4xf32>
}

// CHECK-LABEL: @keeps_a_mask_of_one_number_per_query
// CHECK-NOT: firn.attention
// CHECK: return
func.func @keeps_a_mask_of_one_number_per_query(%q: tensor<2x3x5x4xf32>, %k: tensor<2x3x7x4xf32>, %v: tensor<2x3x7x4xf32>, %m: tensor<5x1xf32>) -> tensor<2x3x5x4xf32> {
  %t = firn.transpose %k {perm = array<i64: 0, 1, 3, 2>} : (tensor<2x3x7x4xf32>) -> tensor<2x3x4x7xf32>
  %s = firn.matmul %q, %t : (tensor<2x3x5x4xf32>, tensor<2x3x4x7xf32>) -> tensor<2x3x5x7xf32>
  %d = firn.add %s, %m : (tensor<2x3x5x7xf32>, tensor<5x1xf32>) -> tensor<2x3x5x7xf32>
  %p = firn.softmax %d : (tensor<2x3x5x7xf32>) -> tensor<2x3x5x7xf32>
  %y = firn.matmul %p, %v : (tensor<2x3x5x7xf32>, tensor<2x3x7x4xf32>) -> tensor<2x3x5x4xf32>
  return %y : tensor<2x3x5x4xf32>
}

// CHECK-LABEL: @keeps_a_mask_that_enlarges_the_scores
// CHECK-NOT: firn.attention
// CHECK: return
func.func @keeps_a_mask_that_enlarges_the_scores(%q: tensor<1x3x5x4xf32>, %k: tensor<1x3x7x4xf32>, %v: tensor<2x3x7x4xf32>, %m: tensor<2x1x5x7xf32>) -> tensor<2x3x5x4xf32> {
  %t = firn.transpose %k {perm = array<i64: 0, 1, 3, 2>} : (tensor<1x3x7x4xf32>) -> tensor<1x3x4x7xf32>
  %s = firn.matmul %q, %t : (tensor<1x3x5x4xf32>, tensor<1x3x4x7xf32>) -> tensor<1x3x5x7xf32>
  %d = firn.add %s, %m : (tensor<1x3x5x7xf32>, tensor<2x1x5x7xf32>) -> tensor<2x3x5x7xf32>
  %p = firn.softmax %d : (tensor<2x3x5x7xf32>) -> tensor<2x3x5x7xf32>
  %y = firn.matmul %p, %v : (tensor<2x3x5x7xf32>, tensor<2x3x7x4xf32>) -> tensor<2x3x5x4xf32>
  return %y : tensor<2x3x5x4xf32>
}

// CHECK-LABEL: @keeps_a_mask_added_to_scores_replaced_by_a_common_number
// CHECK-NOT: firn.attention
// CHECK: return
func.func @keeps_a_mask_added_to_scores_replaced_by_a_common_number(%q: tensor<2x3x5x4xf32>, %k: tensor<2x3x7x4xf32>, %v: tensor<2x3x7x4xf32>, %m: tensor<5x7xi1>, %n: tensor<2x1x1x7xf32>) -> tensor<2x3x5x4xf32> {
  %c = firn.constant {value = dense<-1.0e4> : tensor<f32>} : tensor<f32>
  %t = firn.transpose %k {perm = array<i64: 0, 1, 3, 2>} : (tensor<2x3x7x4xf32>) -> tensor<2x3x4x7xf32>
  %s = firn.matmul %q, %t : (tensor<2x3x5x4xf32>, tensor<2x3x4x7xf32>) -> tensor<2x3x5x7xf32>
  %w = firn.where %m, %s, %c : (tensor<5x7xi1>, tensor<2x3x5x7xf32>, tensor<f32>) -> tensor<2x3x5x7xf32>
  %d = firn.add %w, %n : (tensor<2x3x5x7xf32>, tensor<2x1x1x7xf32>) -> tensor<2x3x5x7xf32>
  %p = firn.softmax %d : (tensor<2x3x5x7xf32>) -> tensor<2x3x5x7xf32>
  %y = firn.matmul %p, %v : (tensor<2x3x5x7xf32>, tensor<2x3x7x4xf32>) -> tensor<2x3x5x4xf32>
  return %y : tensor<2x3x5x4xf32>
}

// CHECK-LABEL: @keeps_a_scale_per_head
// CHECK-NOT: firn.attention
// CHECK: return
func.func @keeps_a_scale_per_head(%q: tensor<2x3x5x4xf32>, %k: tensor<2x3x7x4xf32>, %v: tensor<2x3x7x4xf32>, %m: tensor<3x1x1xf32>) -> tensor<2x3x5x4xf32> {
  %t = firn.transpose %k {perm = array<i64: 0, 1, 3, 2>} : (tensor<2x3x7x4xf32>) -> tensor<2x3x4x7xf32>
  %s = firn.matmul %q, %t : (tensor<2x3x5x4xf32>, tensor<2x3x4x7xf32>) -> tensor<2x3x5x7xf32>
  %d = firn.mul %s, %m : (tensor<2x3x5x7xf32>, tensor<3x1x1xf32>) -> tensor<2x3x5x7xf32>
  %p = firn.softmax %d : (tensor<2x3x5x7xf32>) -> tensor<2x3x5x7xf32>
  %y = firn.matmul %p, %v : (tensor<2x3x5x7xf32>, tensor<2x3x7x4xf32>) -> tensor<2x3x5x4xf32>
  return %y : tensor<2x3x5x4xf32>
}

// -----

// Graphs that stay graphs get ONNX's operator, only where it means the same.

// CHECK-LABEL: @graph_of_opset_23
// CHECK-NEXT: firn.attention %arg0, %arg1, %arg2 {scale = 5.000000e-01 : f32}
module attributes {firn.opset = 23 : i64, firn.stays_graph} {
func.func @graph_of_opset_23(%q: tensor<2x3x5x4xf32>, %k: tensor<2x3x7x4xf32>, %v: tensor<2x3x7x4xf32>) -> tensor<2x3x5x4xf32> {
  %c = firn.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %t = firn.transpose %k {perm = array<i64: 0, 1, 3, 2>} : (tensor<2x3x7x4xf32>) -> tensor<2x3x4x7xf32>
  %s = firn.matmul %q, %t : (tensor<2x3x5x4xf32>, tensor<2x3x4x7xf32>) -> tensor<2x3x5x7xf32>
  %d = firn.mul %s, %c : (tensor<2x3x5x7xf32>, tensor<f32>) -> tensor<2x3x5x7xf32>
  %p = firn.softmax %d : (tensor<2x3x5x7xf32>) -> tensor<2x3x5x7xf32>
  %y = firn.matmul %p, %v : (tensor<2x3x5x7xf32>, tensor<2x3x7x4xf32>) -> tensor<2x3x5x4xf32>
  return %y : tensor<2x3x5x4xf32>
}
}

// -----

// CHECK-LABEL: @graph_of_opset_22
// CHECK-NOT: firn.attention
// CHECK: return
module attributes {firn.opset = 22 : i64, firn.stays_graph} {
func.func @graph_of_opset_22(%q: tensor<2x3x5x4xf32>, %k: tensor<2x3x7x4xf32>, %v: tensor<2x3x7x4xf32>) -> tensor<2x3x5x4xf32> {
  %c = firn.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %t = firn.transpose %k {perm = array<i64: 0, 1, 3, 2>} : (tensor<2x3x7x4xf32>) -> tensor<2x3x4x7xf32>
  %s = firn.matmul %q, %t : (tensor<2x3x5x4xf32>, tensor<2x3x4x7xf32>) -> tensor<2x3x5x7xf32>
  %d = firn.mul %s, %c : (tensor<2x3x5x7xf32>, tensor<f32>) -> tensor<2x3x5x7xf32>
  %p = firn.softmax %d : (tensor<2x3x5x7xf32>) -> tensor<2x3x5x7xf32>
  %y = firn.matmul %p, %v : (tensor<2x3x5x7xf32>, tensor<2x3x7x4xf32>) -> tensor<2x3x5x4xf32>
  return %y : tensor<2x3x5x4xf32>
}
}

// -----

// CHECK-LABEL: @graph_with_a_mask_that_may_be_infinite
// CHECK-NOT: firn.attention
// CHECK: return
module attributes {firn.opset = 23 : i64, firn.stays_graph} {
func.func @graph_with_a_mask_that_may_be_infinite(%q: tensor<2x3x5x4xf32>, %k: tensor<2x3x7x4xf32>, %v: tensor<2x3x7x4xf32>, %m: tensor<5x7xf32>) -> tensor<2x3x5x4xf32> {
  %c = firn.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %t = firn.transpose %k {perm = array<i64: 0, 1, 3, 2>} : (tensor<2x3x7x4xf32>) -> tensor<2x3x4x7xf32>
  %s = firn.matmul %q, %t : (tensor<2x3x5x4xf32>, tensor<2x3x4x7xf32>) -> tensor<2x3x5x7xf32>
  %d = firn.mul %s, %c : (tensor<2x3x5x7xf32>, tensor<f32>) -> tensor<2x3x5x7xf32>
  %e = firn.add %d, %m : (tensor<2x3x5x7xf32>, tensor<5x7xf32>) -> tensor<2x3x5x7xf32>
  %p = firn.softmax %e : (tensor<2x3x5x7xf32>) -> tensor<2x3x5x7xf32>
  %y = firn.matmul %p, %v : (tensor<2x3x5x7xf32>, tensor<2x3x7x4xf32>) -> tensor<2x3x5x4xf32>
  return %y : tensor<2x3x5x4xf32>
}
}

// -----

// CHECK-LABEL: @graph_with_a_mask_of_finite_numbers
// CHECK: firn.attention %arg0, %arg1, %arg2, %{{.+}} {scale = 5.000000e-01 : f32}
module attributes {firn.opset = 23 : i64, firn.stays_graph} {
func.func @graph_with_a_mask_of_finite_numbers(%q: tensor<2x3x5x4xf32>, %k: tensor<2x3x7x4xf32>, %v: tensor<2x3x7x4xf32>, %m: tensor<5x7xi64>) -> tensor<2x3x5x4xf32> {
  %one = firn.constant {value = dense<1.0> : tensor<f32>} : tensor<f32>
  %big = firn.constant {value = dense<-1.0e4> : tensor<f32>} : tensor<f32>
  %mf = firn.cast %m {to = 1 : i64} : (tensor<5x7xi64>) -> tensor<5x7xf32>
  %mi = firn.sub %one, %mf : (tensor<f32>, tensor<5x7xf32>) -> tensor<5x7xf32>
  %ma = firn.mul %mi, %big : (tensor<5x7xf32>, tensor<f32>) -> tensor<5x7xf32>
  %c = firn.constant {value = dense<0.5> : tensor<f32>} : tensor<f32>
  %t = firn.transpose %k {perm = array<i64: 0, 1, 3, 2>} : (tensor<2x3x7x4xf32>) -> tensor<2x3x4x7xf32>
  %s = firn.matmul %q, %t : (tensor<2x3x5x4xf32>, tensor<2x3x4x7xf32>) -> tensor<2x3x5x7xf32>
  %d = firn.mul %s, %c : (tensor<2x3x5x7xf32>, tensor<f32>) -> tensor<2x3x5x7xf32>
  %e = firn.add %d, %ma : (tensor<2x3x5x7xf32>, tensor<5x7xf32>) -> tensor<2x3x5x7xf32>
  %p = firn.softmax %e : (tensor<2x3x5x7xf32>) -> tensor<2x3x5x7xf32>
  %y = firn.matmul %p, %v : (tensor<2x3x5x7xf32>, tensor<2x3x7x4xf32>) -> tensor<2x3x5x4xf32>
  return %y : tensor<2x3x5x4xf32>
}
}

// -----

// CHECK-LABEL: @graph_with_a_mask_repeated_along_queries
// CHECK-NOT: firn.attention
// CHECK: return
module attributes {firn.opset = 23 : i64, firn.stays_graph} {
func.func @graph_with_a_mask_repeated_along_queries(%q: tensor<2x3x5x4xf32>, %k: tensor<2x3x7x4xf32>, %v: tensor<2x3x7x4xf32>, %m: tensor<1x7xi1>) -> tensor<2x3x5x4xf32> {
  %a = firn.cast %m {to = 1 : i64} : (tensor<1x7xi1>) -> tensor<1x7xf32>
  %t = firn.transpose %k {perm = array<i64: 0, 1, 3, 2>} : (tensor<2x3x7x4xf32>) -> tensor<2x3x4x7xf32>
  %s = firn.matmul %q, %t : (tensor<2x3x5x4xf32>, tensor<2x3x4x7xf32>) -> tensor<2x3x5x7xf32>
  %e = firn.add %s, %a : (tensor<2x3x5x7xf32>, tensor<1x7xf32>) -> tensor<2x3x5x7xf32>
  %p = firn.softmax %e : (tensor<2x3x5x7xf32>) -> tensor<2x3x5x7xf32>
  %y = firn.matmul %p, %v : (tensor<2x3x5x7xf32>, tensor<2x3x7x4xf32>) -> tensor<2x3x5x4xf32>
  return %y : tensor<2x3x5x4xf32>
}
}

// RUN: firn-mlir-opt %s | firn-mlir-opt | FileCheck %s
// RUN: firnc %models/digits.fpbtxt --emit=plan -o %t.mlir && firn-mlir-opt %t.mlir -o %t.again.mlir && diff %t.mlir %t.again.mlir

// Every entry, printed and read again.
// CHECK-LABEL: plan.program @all_entries arena 192 weights 128
plan.program @all_entries arena 192 weights 128 {
  // CHECK: plan.value 0 = input_dim [0, 0]
  plan.value 0 = input_dim [0, 0]
  plan.value 1 = constant [4]
  // CHECK: plan.value 2 = symbol [] late
  plan.value 2 = symbol [] late
  // CHECK: plan.value 3 = add [1, 2] late
  plan.value 3 = add [1, 2] late
  plan.value 4 = constant [16]
  plan.buffer 0 = input f32 [0, 1] at 0
  // CHECK: plan.buffer 1 = arena f32 [4] at 0 lives [0, 2]
  plan.buffer 1 = arena f32 [4] at 0 lives [0, 2]
  plan.buffer 2 = arena bool [] at 64 lives [0, 8]
  // The same bytes as buffer 1, later.
  plan.buffer 3 = arena f32 [4] at 0 lives [3, 8]
  plan.buffer 4 = weight i64 [4] at 0
  // CHECK: plan.buffer 5 = late f32 [2, 1] at -1
  plan.buffer 5 = late f32 [2, 1] at -1
  // CHECK: plan.buffer 6 = alias f32 [1, 1] at 3
  plan.buffer 6 = alias f32 [1, 1] at 3
  plan.buffer 7 = output f32 [3, 1] at 0
  plan.buffer 8 = arena i64 [] at 128 lives [3, 8]
  // CHECK: plan.input 0 = "x" f32 [0, 1] symbols ["batch", ""] buffer 0
  plan.input 0 = "x" f32 [0, 1] symbols ["batch", ""] buffer 0
  // CHECK: plan.output 0 = "y" f32 [3, 1] symbols ["n", ""] buffer 7
  plan.output 0 = "y" f32 [3, 1] symbols ["n", ""] buffer 7
  // CHECK: plan.constraint 0 in 1 to 9, "dimension 0 of input 'x' must be 1 to 9"
  plan.constraint 0 in 1 to 9, "dimension 0 of input 'x' must be 1 to 9"
  // CHECK: plan.weight 0 : tensor<4xi64>
  plan.weight 0 : tensor<4xi64>
  // CHECK: plan.kernel 0 @firn_k0 parallel scratch 256 reads [0, 4] writes [1, 2] dims [0] as "map" "a+b" costs [0, 1]
  plan.kernel 0 @firn_k0 parallel scratch 256 reads [0, 4] writes [1, 2] dims [0] as "map" "a+b" costs [0, 1]
  // CHECK: plan.if 1 else 3 end 4 reads [2] writes [] dims []
  plan.if 1 else 3 end 4 reads [2] writes [] dims [] as "if" "branch" costs [-1, -1]
  // CHECK: plan.reference 2 "ai.onnx::NonZero" {} reads [1, -1] writes [5] dims []
  plan.reference 2 "ai.onnx::NonZero" {} reads [1, -1] writes [5] dims [] as "NonZero" "c" costs [-1, -1]
  // CHECK: plan.fail 3
  plan.fail 3 reads [] writes [] dims [] as "fail" "this branch is wrong" costs [-1, -1]
  // CHECK: plan.loop 4 end 8 reads [-1, 2] writes [8]
  plan.loop 4 end 8 reads [-1, 2] writes [8] dims [2] as "loop" "d" costs [-1, -1]
  // CHECK: plan.values 5
  plan.values 5 reads [] writes [8] dims [1] as "values" "e" costs [-1, -1]
  // CHECK: plan.append 6
  plan.append 6 reads [6] writes [5] dims [2] as "append" "d" costs [-1, -1]
  // CHECK: plan.bind 7 reads [] writes [] dims [2, 3]
  plan.bind 7 reads [] writes [] dims [2, 3] as "bind" "d" costs [-1, -1]
  // CHECK: plan.copy 8 reads [5] writes [7] dims []
  plan.copy 8 reads [5] writes [7] dims [] as "copy" "f" costs [-1, -1]
}

// Offsets of an arena with dynamic sizes are the executor's business.
// CHECK-LABEL: plan.program @dynamic_arena arena -1 weights 0
plan.program @dynamic_arena arena -1 weights 0 {
  plan.value 0 = input_dim [0, 0]
  plan.buffer 0 = input f32 [0] at 0
  // CHECK: plan.buffer 1 = arena f32 [0] at -1 lives [0, 0]
  plan.buffer 1 = arena f32 [0] at -1 lives [0, 0]
  plan.input 0 = "x" f32 [0] symbols ["batch"] buffer 0
  plan.copy 0 reads [0] writes [1] dims [] as "copy" "" costs [-1, -1]
}

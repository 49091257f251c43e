// RUN: firn-mlir-opt %s --expand-math | FileCheck %s --check-prefixes=CHECK,PLAIN
// RUN: firn-mlir-opt %s --expand-math="avx512=true" | FileCheck %s --check-prefixes=CHECK,SCALEF
// RUN: firn-mlir-opt %s --expand-math="fma=false" | FileCheck %s --check-prefix=NOFMA

// CHECK-LABEL: @exp_of_f32_vectors_is_a_polynomial
// CHECK-NOT: math.exp
// CHECK: math.fma
// PLAIN: arith.shli
// SCALEF: llvm.call_intrinsic "llvm.x86.avx512.mask.scalef.ps.512"
// CHECK: return
// NOFMA-LABEL: @exp_of_f32_vectors_is_a_polynomial
// NOFMA-NOT: math.fma
// NOFMA: return
func.func @exp_of_f32_vectors_is_a_polynomial(%x: vector<16xf32>) -> vector<16xf32> {
  %y = math.exp %x : vector<16xf32>
  return %y : vector<16xf32>
}

// CHECK-LABEL: @scalars_use_the_same_formula
// CHECK-NOT: math.log
// CHECK: return
func.func @scalars_use_the_same_formula(%x: f32) -> f32 {
  %y = math.log %x : f32
  return %y : f32
}

// CHECK-LABEL: @f64_is_left_to_libm
// CHECK: math.exp %arg0 : f64
func.func @f64_is_left_to_libm(%x: f64) -> f64 {
  %y = math.exp %x : f64
  return %y : f64
}

// CHECK-LABEL: @instructions_stay
// CHECK: math.sqrt %arg0
// CHECK: math.floor
func.func @instructions_stay(%x: vector<8xf32>) -> vector<8xf32> {
  %y = math.sqrt %x : vector<8xf32>
  %z = math.floor %y : vector<8xf32>
  return %z : vector<8xf32>
}

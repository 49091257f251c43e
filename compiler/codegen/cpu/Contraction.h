// Contractions, pools and recurrent layers: what the grouping and layout passes need to know of their emitters.
//
// Fused bodies of kind "contraction" (one of the operations below, its result elementwise through any DAG of epilogue
// operations that Elements::computes, all of the contraction's shape, optionally reshaped and transposed at the end,
// one result):
// - firn.matmul, firn.gemm: f32, f64, f16, bf16; static and dynamic sizes; operands are arguments of the body or views
// of
//   them (transpose, reshape, squeeze, unsqueeze, flatten, slice with constant bounds, split, expand: Views.h). `b` may
//   be a firn.dequantize_linear of an 8-bit constant with one scale, one per column, or one per column and block of
//   steps along k; or a firn.cast of a constant of 16-bit floats.
// - firn.matmul_integer (8 bits), result i32; zero points are one number, that of `b` also one per column.
// - firn.conv, firn.conv_integer (8 bits), firn.conv_transpose with `layout = "nhwc"` on the op: operands and result
// are N x spatial x C, the weight is
//   the constant as the model has it (O x C/group x kernel; C x O/group x kernel) and must be packed.
// Other operands of the epilogue broadcast to the contraction's result and may be views of arguments.
//
// "pool": firn.max_pool (one result), average_pool, global_average_pool, global_max_pool with an elementwise epilogue;
// `layout = "nhwc"` or ONNX's own. "sequence": firn.lstm, firn.gru, firn.rnn alone. "attention": firn.attention with
// one result, its operands may be views of arguments.
//
// Packed constants: an operand that `packed` lists is stored in the emitter's layout, a tensor
// [groups, ceil(n / nr), k, nr] padded with zeros; the body's argument keeps its logical type. packConstants() does all
// of it and changes nothing where nothing is to pack. Emitters of convolutions and recurrent layers accept packed
// constants only; a matmul with an unpacked constant is emitted as one of two activations.
#ifndef FIRN_COMPILER_CODEGEN_CPU_CONTRACTION_H
#define FIRN_COMPILER_CODEGEN_CPU_CONTRACTION_H

#include "compiler/codegen/cpu/KernelEmitter.h"
#include "dialects/firn/Firn.h"

namespace firn {

/// How one constant operand of a fused op is to be stored. An attribute {operand, groups, n, k, nr} in the list
/// `packed` of the fused op says that it is.
struct PackedWeight {
  unsigned operand = 0;
  int64_t groups = 1; // batches, groups of channels, directions
  int64_t n = 0;
  int64_t k = 0;
  int64_t nr = 0;
  mlir::Type elementType = {};
  // Element (group, k, n) is element groupStarts[group] + rows[k] + columns[n] of the constant, 0 where one of them is
  // negative. `rows` has one list for all groups, or one for each.
  std::vector<int64_t> groupStarts = {0};
  std::vector<std::vector<int64_t>> rows;
  std::vector<int64_t> columns;
  /// Behind the rows of a panel come 32-bit sums of its columns (of 8-bit weights), as 4 more rows of bytes.
  bool hasSums = false;
  /// Added to each byte, wrapping: 128 makes unsigned weights signed ones.
  int64_t shift = 0;
  int64_t kStep = 1; // panels are [k / kStep][nr][kStep]: 4 for byte dot products

  int64_t panels() const { return (n + nr - 1) / nr; }
  int64_t paddedK() const { return (k + kStep - 1) / kStep * kStep + (hasSums ? 4 : 0); }
  int64_t elements() const { return groups * panels() * paddedK() * nr; }
};

/// The constants of `fused` that its emitter wants packed and that are not yet.
std::vector<PackedWeight> planPacking(FusedOp fused, const TargetDescription &target);

/// The bytes of the packed constant.
std::vector<char> packWeights(const PackedWeight &weight, const ConstantBytes &bytes);

/// Packs every constant that planPacking names: new firn.constant operands and the attribute `packed`.
void packConstants(FusedOp fused, const TargetDescription &target);

/// The packing that the attribute `packed` states for an operand.
std::optional<PackedWeight> packingOf(FusedOp fused, unsigned operand);

/// Floating-point operations (a multiply-add is two) of a contraction, pool or sequence, without its epilogue.
DimExpr contractionFlops(FusedOp fused);

} // namespace firn
#endif

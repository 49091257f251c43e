// Attention inside of a fused body: what is read from where.
#ifndef FIRN_COMPILER_CODEGEN_CPU_ATTENTION_H
#define FIRN_COMPILER_CODEGEN_CPU_ATTENTION_H

#include "compiler/codegen/cpu/Matmul.h"
#include <cmath>

namespace firn {

/// Q, K, V or the result as [batch, heads, length, size]; strides in elements.
struct HeadsView {
  mlir::BlockArgument argument; // null for the result
  mlir::Type elementType;
  DimExpr heads, length, size;
  DimExpr offset, batchStride, headStride, rowStride, elementStride;
};

struct AttentionShape {
  HeadsView q, k, v, result;
  DimExpr batch;
  DimExpr group;                 // heads of Q that share one of K and V
  std::optional<View> mask;      // over [batch, heads, queries, keys of the mask]; bool, or added
  DimExpr maskedKeys;            // how many keys the mask speaks of; those behind are not seen
  std::optional<View> keyCounts; // per batch, how many keys exist
  DimExpr past;                  // keys in front of the first query
  bool isCausal = false, hasNanRows = false, hasZeroNan = false;
  int64_t leftWindow = -1, rightWindow = -1;
  double scale = 1, softcap = 0;
  double maskedScore = -INFINITY; // where a mask of bool is false
};

/// Reads firn.attention; nothing, with the reason in whyNot, if no code can be made for it.
std::optional<AttentionShape> readAttention(AttentionOp op, std::string &whyNot);

/// Multiply-adds of both products count as two operations each.
DimExpr attentionFlops(AttentionOp op);

} // namespace firn
#endif

// Operations that move elements without computing on them, and search.

include "dialects/firn/FirnBase.td"

def Firn_ReshapeOp : Firn_OnnxOp<"reshape", "Reshape", "inferReshape", [Pure]> {
  let summary = "the same elements in another shape";
  let description = [{(I1) `x`, (I2) `shape`: i64; absent once the result's dimensions are known (C3).
    (C1) element counts agree. (C2) at most one -1; 0 copies the input's dimension unless `allowzero`.}];
  let arguments = (ins Firn_Operand:$x, Optional<Firn_Operand>:$shape, DefaultValuedAttr<I64Attr, "0">:$allowzero);
}
def Firn_FlattenOp : Firn_OnnxOp<"flatten", "Flatten", "inferFlatten", [Pure]> {
  let summary = "two axes: the product of those before `axis`, and of the rest";
  let arguments = (ins Firn_Operand:$x, DefaultValuedAttr<I64Attr, "1">:$axis);
}
def Firn_SqueezeOp : Firn_OnnxOp<"squeeze", "Squeeze", "inferSqueeze", [Pure]> {
  let summary = "drops axes of length 1";
  let description = "(I1) `x`, (I2) `axes`: optional, all of length 1. (C1) the named axes have length 1.";
  let arguments = (ins Firn_Operand:$x, Optional<Firn_Operand>:$axes);
}
def Firn_UnsqueezeOp : Firn_OnnxOp<"unsqueeze", "Unsqueeze", "inferUnsqueeze", [Pure]> {
  let summary = "inserts axes of length 1 at positions of the result";
  let arguments = (ins Firn_Operand:$x, Firn_Operand:$axes);
}
def Firn_TransposeOp : Firn_OnnxOp<"transpose", "Transpose", "inferTranspose", [Pure]> {
  let summary = "axis i of the result is axis perm[i] of x";
  let description = "(I1) `x`. (C1) `perm` is a permutation of the axes; absent: reversed.";
  let arguments = (ins Firn_Operand:$x, OptionalAttr<DenseI64ArrayAttr>:$perm);
}
def Firn_ConcatOp : Firn_OnnxOp<"concat", "Concat", "inferConcat", [Pure]> {
  let summary = "inputs one after the other along `axis`";
  let description = "(I1..) `inputs`. (C1) equal ranks and element types. (C2) equal dimensions off the axis. (C3) axis in [-rank, rank).";
  let arguments = (ins Variadic<Firn_Operand>:$inputs, I64Attr:$axis);
}
def Firn_SplitOp : Firn_OnnxOp<"split", "Split", "inferSplit", [Pure]> {
  let summary = "pieces of x along `axis`";
  let description = "(I1) `x`, (I2) `split`: sizes, optional: equal parts. (C1) sizes add up to the axis.";
  let arguments = (ins Firn_Operand:$x, Optional<Firn_Operand>:$split, DefaultValuedAttr<I64Attr, "0">:$axis, OptionalAttr<I64Attr>:$num_outputs);
  let results = (outs Variadic<Firn_Operand>:$outputs);
}
def Firn_SliceOp : Firn_OnnxOp<"slice", "Slice", "inferSlice", [Pure]> {
  let summary = "elements from start to end by step, along some axes";
  let description = "(I1) `x`; `bounds`: (I2) starts, (I3) ends, (I4) axes, (I5) steps. (C1) no step is 0. (C2) equal lengths.";
  let arguments = (ins Firn_Operand:$x, Variadic<Firn_Operand>:$bounds);
}
def Firn_PadOp : Firn_OnnxOp<"pad", "Pad", "inferPad", [Pure]> {
  let summary = "elements added or removed at both ends of axes";
  let description = "(I1) `x`, (I2) `pads`, `options`: (I3) constant, (I4) axes. mode constant, reflect, edge or wrap.";
  let arguments = (ins Firn_Operand:$x, Firn_Operand:$pads, Variadic<Firn_Operand>:$options, DefaultValuedStrAttr<StrAttr, "constant">:$mode);
}
def Firn_ExpandOp : Firn_OnnxOp<"expand", "Expand", "inferExpand", [Pure]> {
  let summary = "x broadcast with `shape`, both ways";
  let arguments = (ins Firn_Operand:$x, Firn_Operand:$shape);
}
def Firn_TileOp : Firn_OnnxOp<"tile", "Tile", "inferTile", [Pure]> {
  let summary = "x repeated along each axis";
  let arguments = (ins Firn_Operand:$x, Firn_Operand:$repeats);
}
def Firn_GatherOp : Firn_OnnxOp<"gather", "Gather", "inferGather", [Pure]> {
  let summary = "slices of x along `axis`, picked by indices";
  let description = "(I1) `x`, (I2) `indices`: i32 or i64 in [-n, n). (C1) axis in [-rank, rank).";
  let arguments = (ins Firn_Operand:$x, Firn_Operand:$indices, DefaultValuedAttr<I64Attr, "0">:$axis);
}
def Firn_GatherElementsOp : Firn_OnnxOp<"gather_elements", "GatherElements", "inferGatherElements", [Pure]> {
  let summary = "one element per index, along `axis`";
  let arguments = (ins Firn_Operand:$x, Firn_Operand:$indices, DefaultValuedAttr<I64Attr, "0">:$axis);
}
def Firn_GatherNDOp : Firn_OnnxOp<"gather_nd", "GatherND", "inferGatherND", [Pure]> {
  let summary = "slices of x at index tuples";
  let arguments = (ins Firn_Operand:$x, Firn_Operand:$indices, DefaultValuedAttr<I64Attr, "0">:$batch_dims);
}
def Firn_ScatterElementsOp : Firn_OnnxOp<"scatter_elements", "ScatterElements", "inferScatterElements", [Pure]> {
  let summary = "x with updates written at indices along `axis`";
  let arguments = (ins Firn_Operand:$x, Firn_Operand:$indices, Firn_Operand:$updates, DefaultValuedAttr<I64Attr, "0">:$axis,
                   DefaultValuedStrAttr<StrAttr, "none">:$reduction);
}
def Firn_ScatterNDOp : Firn_OnnxOp<"scatter_nd", "ScatterND", "inferScatterND", [Pure]> {
  let summary = "x with updates written at index tuples";
  let arguments = (ins Firn_Operand:$x, Firn_Operand:$indices, Firn_Operand:$updates, DefaultValuedStrAttr<StrAttr, "none">:$reduction);
}
def Firn_DepthToSpaceOp : Firn_OnnxOp<"depth_to_space", "DepthToSpace", "inferDepthToSpace", [Pure]> {
  let summary = "blocks of channels become blocks of space";
  let arguments = (ins Firn_Operand:$x, I64Attr:$blocksize, DefaultValuedStrAttr<StrAttr, "DCR">:$mode);
}
def Firn_SpaceToDepthOp : Firn_OnnxOp<"space_to_depth", "SpaceToDepth", "inferSpaceToDepth", [Pure]> {
  let summary = "blocks of space become channels";
  let arguments = (ins Firn_Operand:$x, I64Attr:$blocksize);
}
def Firn_ResizeOp : Firn_OnnxOp<"resize", "Resize", "inferResize", [Pure]> {
  let summary = "resampling by nearest, linear or cubic interpolation";
  let description = "(I1) `x`, (I2) `roi`, (I3) `scales`, (I4) `sizes`: exactly one of the last two is given.";
  let arguments = (ins Firn_Operand:$x, Variadic<Firn_Operand>:$options, DefaultValuedAttr<I64Attr, "0">:$antialias,
                   OptionalAttr<DenseI64ArrayAttr>:$axes, DefaultValuedStrAttr<StrAttr, "half_pixel">:$coordinate_transformation_mode,
                   DefaultValuedAttr<F32Attr, "-0.75f">:$cubic_coeff_a, DefaultValuedAttr<I64Attr, "0">:$exclude_outside,
                   DefaultValuedAttr<F32Attr, "0.0f">:$extrapolation_value, DefaultValuedStrAttr<StrAttr, "stretch">:$keep_aspect_ratio_policy,
                   DefaultValuedStrAttr<StrAttr, "nearest">:$mode, DefaultValuedStrAttr<StrAttr, "round_prefer_floor">:$nearest_mode);
}
def Firn_TriluOp : Firn_OnnxOp<"trilu", "Trilu", "inferUnary", [Pure]> {
  let summary = "upper or lower triangle of the last two axes, the rest 0";
  let arguments = (ins Firn_Operand:$x, Optional<Firn_Operand>:$k, DefaultValuedAttr<I64Attr, "1">:$upper);
}
def Firn_OneHotOp : Firn_OnnxOp<"one_hot", "OneHot", "inferOneHot", [Pure]> {
  let summary = "on-value at each index along a new axis, off-value elsewhere";
  let arguments = (ins Firn_Operand:$indices, Firn_Operand:$depth, Firn_Operand:$values, DefaultValuedAttr<I64Attr, "-1">:$axis);
}
def Firn_TopKOp : Firn_OnnxOp<"topk", "TopK", "inferTopK", [Pure]> {
  let summary = "the k greatest or least elements along an axis, and their indices";
  let arguments = (ins Firn_Operand:$x, Firn_Operand:$k, DefaultValuedAttr<I64Attr, "-1">:$axis, DefaultValuedAttr<I64Attr, "1">:$largest,
                   DefaultValuedAttr<I64Attr, "1">:$sorted);
  let results = (outs Variadic<Firn_Operand>:$outputs);
}
def Firn_NonZeroOp : Firn_OnnxOp<"non_zero", "NonZero", "inferNonZero", [Pure]> {
  let summary = "index tuples of the elements that are not zero: rank x count";
  let arguments = (ins Firn_Operand:$x);
}

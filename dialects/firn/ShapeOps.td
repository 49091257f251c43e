// Constants, shapes as values, and generators.

include "dialects/firn/FirnBase.td"

def Firn_AbsentOp : Firn_Op<"absent", [Pure]> {
  let summary = "an optional input that is not given";
  let results = (outs NoneType:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}
def Firn_ConstantOp : Firn_Op<"constant", [Pure, ConstantLike, DeclareOpInterfaceMethods<Firn_Operator>]> {
  let summary = "a frozen tensor";
  let description = [{
    `value` is a splat or small `dense`, a `dense_resource` handle into the blob store (weights; bytes as in the file,
    packed below 8 bits), or an array of strings for a tensor of strings.
  }];
  let arguments = (ins AnyAttr:$value);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
  let hasFolder = 1;
  let builders = [OpBuilder<(ins "::mlir::ElementsAttr":$value)>];
}
def Firn_DimValuesOp : Firn_Op<"dim_values", [Pure]> {
  let summary = "a small integer tensor whose elements are dimension expressions";
  let description = "`exprs`: one text (DimExpr) per element. (C1) as many as the result has elements. (C2) result is i64 or i32, rank <= 1.";
  let arguments = (ins StrArrayAttr:$exprs);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "$exprs attr-dict `:` type($result)";
  let hasVerifier = 1;
}
def Firn_ShapeOp : Firn_OnnxOp<"shape", "Shape", "inferShape", [Pure]> {
  let summary = "the dimensions [start, end) of x as i64";
  let arguments = (ins Firn_Operand:$x, DefaultValuedAttr<I64Attr, "0">:$start, OptionalAttr<I64Attr>:$end);
}
def Firn_SizeOp : Firn_OnnxOp<"size", "Size", "inferSize", [Pure]> {
  let summary = "the number of elements of x";
  let arguments = (ins Firn_Operand:$x);
}
def Firn_ConstantOfShapeOp : Firn_OnnxOp<"constant_of_shape", "ConstantOfShape", "inferConstantOfShape", [Pure]> {
  let summary = "a tensor of the given shape filled with `value` (one element; absent: f32 0)";
  let arguments = (ins Firn_Operand:$shape, OptionalAttr<ElementsAttr>:$value);
}
def Firn_RangeOp : Firn_OnnxOp<"range", "Range", "inferRange", [Pure]> {
  let summary = "start, start + delta, ... below limit";
  let arguments = (ins Firn_Operand:$start, Firn_Operand:$limit, Firn_Operand:$delta, OptionalAttr<I64Attr>:$stash_type);
}

// Control flow, library operators, and kernels in the making.

include "dialects/firn/FirnBase.td"

def Firn_YieldOp : Firn_Op<"yield", [Pure, Terminator, ReturnLike]> {
  let summary = "ends a region with its results";
  let arguments = (ins Variadic<Firn_Operand>:$operands);
  let assemblyFormat = "($operands^ `:` type($operands))? attr-dict";
}
def Firn_IfOp : Firn_Op<"if", [DeclareOpInterfaceMethods<Firn_Operator>, NoRegionArguments]> {
  let summary = "runs one of two regions; ONNX If";
  let description = "(I1) `condition`: one bool. (C1) both regions yield as many values as there are results, of equal element types.";
  let arguments = (ins Firn_Operand:$condition);
  let results = (outs Variadic<Firn_Operand>:$outputs);
  let regions = (region SizedRegion<1>:$then_branch, SizedRegion<1>:$else_branch);
  let assemblyFormat = "$condition attr-dict `:` functional-type(operands, results) `then` $then_branch `else` $else_branch";
  let hasVerifier = 1;
}
def Firn_LoopOp : Firn_Op<"loop", [DeclareOpInterfaceMethods<Firn_Operator>]> {
  let summary = "runs a region while a condition holds, at most trip_count times; ONNX Loop";
  let description = [{
    (I1) `trip_count`: i64 or absent, (I2) `condition`: bool or absent, (I3..) `carried` initial values.
    The body takes (iteration number, condition, carried...) and yields (condition, carried..., scan outputs...).
    Results: final carried values, then scan outputs stacked along a new leading axis.
    (C1) the body's argument and yield counts fit.
  }];
  let arguments = (ins Firn_Operand:$trip_count, Firn_Operand:$condition, Variadic<Firn_Operand>:$carried);
  let results = (outs Variadic<Firn_Operand>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results) $body";
  let hasVerifier = 1;
}
def Firn_CallOp : Firn_Op<"call", [DeclareOpInterfaceMethods<Firn_Operator>]> {
  let summary = "a library operator: \"domain::Name\" with its attributes";
  let arguments = (ins StrAttr:$callee, Variadic<Firn_Operand>:$inputs);
  let results = (outs Variadic<Firn_Operand>:$outputs);
  let assemblyFormat = "$callee `(` $inputs `)` attr-dict `:` functional-type($inputs, results)";
}
def Firn_FailOp : Firn_Op<"fail"> {
  let summary = "stops the run with a message: a branch that is wrong, should it ever be taken";
  let arguments = (ins StrAttr:$message);
  let results = (outs Variadic<Firn_Operand>:$outputs);
  let assemblyFormat = "$message attr-dict `:` type($outputs)";
}
def Firn_FusedOp : Firn_Op<"fused", [IsolatedFromAbove, Pure, SingleBlock]> {
  let summary = "operations that become one kernel";
  let description = [{
    The region takes the operands and yields the results. `kind` says how it is emitted: `map` (every result element by
    pulling elements through the region), `reduce` (rows stay in cache), `contraction` (one contraction with prologue and
    epilogue), `pool`, `sequence`.
  }];
  let arguments = (ins StrAttr:$kind, Variadic<AnyTensor>:$inputs);
  let results = (outs Variadic<AnyTensor>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$kind `(` $inputs `)` attr-dict `:` functional-type($inputs, results) $body";
  let hasVerifier = 1;
}

// Sequences and optionals.

include "dialects/firn/FirnBase.td"

def Firn_SequenceEmptyOp : Firn_OnnxOp<"sequence_empty", "SequenceEmpty", "inferSequenceEmpty", [Pure]> {
  let summary = "a sequence without tensors, of element type `dtype` (absent: float)";
  let arguments = (ins OptionalAttr<I64Attr>:$dtype);
}
def Firn_SequenceConstructOp : Firn_OnnxOp<"sequence_construct", "SequenceConstruct", "inferSequenceConstruct", [Pure]> {
  let summary = "the sequence of its inputs";
  let description = "(I1..) `inputs`. (C1) they have one element type.";
  let arguments = (ins Variadic<Firn_Operand>:$inputs);
}
def Firn_SequenceInsertOp : Firn_OnnxOp<"sequence_insert", "SequenceInsert", "inferSequenceInsert", [Pure]> {
  let summary = "the sequence with one more tensor";
  let description = [{(I1) `sequence`, (I2) `tensor`, (I3) `position`: i32 or i64 in [-n, n] for n tensors; absent: at the end.
    (C1) the tensor has the sequence's element type. Errors: a position out of range stops the run.}];
  let arguments = (ins Firn_Operand:$sequence, Firn_Operand:$tensor, Optional<Firn_Operand>:$position);
}
def Firn_SequenceEraseOp : Firn_OnnxOp<"sequence_erase", "SequenceErase", "inferSequenceErase", [Pure]> {
  let summary = "the sequence without one of its tensors";
  let description = [{(I1) `sequence`, (I2) `position`: i32 or i64 in [-n, n - 1]; absent: the last. Errors: a position out of range stops the run.}];
  let arguments = (ins Firn_Operand:$sequence, Optional<Firn_Operand>:$position);
}
def Firn_SequenceAtOp : Firn_OnnxOp<"sequence_at", "SequenceAt", "inferSequenceAt", [Pure]> {
  let summary = "one tensor of a sequence";
  let description = [{(I1) `sequence`, (I2) `position`: i32 or i64 in [-n, n - 1]. Errors: a position out of range stops the run.}];
  let arguments = (ins Firn_Operand:$sequence, Firn_Operand:$position);
}
def Firn_SequenceLengthOp : Firn_OnnxOp<"sequence_length", "SequenceLength", "inferSequenceLength", [Pure]> {
  let summary = "the number of tensors in a sequence";
  let arguments = (ins Firn_Operand:$sequence);
}
def Firn_SplitToSequenceOp : Firn_OnnxOp<"split_to_sequence", "SplitToSequence", "inferSplitToSequence", [Pure]> {
  let summary = "pieces of x along `axis` as a sequence";
  let description = [{(I1) `x`, (I2) `split`: the size of each piece, or a list of sizes; absent: 1, and the axis goes unless `keepdims`.
    (C1) axis in [-rank, rank).}];
  let arguments = (ins Firn_Operand:$x, Optional<Firn_Operand>:$split, DefaultValuedAttr<I64Attr, "0">:$axis, DefaultValuedAttr<I64Attr, "1">:$keepdims);
}
def Firn_ConcatFromSequenceOp : Firn_OnnxOp<"concat_from_sequence", "ConcatFromSequence", "inferConcatFromSequence", [Pure]> {
  let summary = "the tensors of a sequence one after the other along `axis`, or along a new axis";
  let description = [{(I1) `sequence`. (C1) axis in [-rank, rank) of the result.}];
  let arguments = (ins Firn_Operand:$sequence, I64Attr:$axis, DefaultValuedAttr<I64Attr, "0">:$new_axis);
}
def Firn_OptionalOp : Firn_OnnxOp<"optional", "Optional", "inferOptional", [Pure]> {
  let summary = "an optional that holds x, or nothing";
  let description = [{(I1) `x`: a tensor or sequence; absent: the optional is none and of `type`. (C1) `type` is given where x is absent.}];
  let arguments = (ins Optional<Firn_Operand>:$x, OptionalAttr<TypeAttr>:$type);
}
def Firn_OptionalHasElementOp : Firn_OnnxOp<"optional_has_element", "OptionalHasElement", "inferOptionalHasElement", [Pure]> {
  let summary = "whether an optional holds something; a tensor or sequence does, an absent input does not";
  let arguments = (ins Optional<Firn_Operand>:$x);
}
def Firn_OptionalGetElementOp : Firn_OnnxOp<"optional_get_element", "OptionalGetElement", "inferOptionalGetElement", [Pure]> {
  let summary = "what an optional holds; a tensor or sequence is itself";
  let description = [{(I1) `x`. Errors: an optional that is none stops the run.}];
  let arguments = (ins Firn_Operand:$x);
}

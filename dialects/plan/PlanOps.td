// The plan dialect: what the executor does, as IR. One to one with the tables of runtime/abi/model.h: entries refer to
// each other by number, as they do there, and steps are flat.
#ifndef PLAN_OPS
#define PLAN_OPS

include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"

def Plan_Dialect : Dialect {
  let name = "plan";
  let cppNamespace = "::firn::plan";
  let summary = "the executor's view of a model: integer values, buffers, steps";
  let description = [{
    A `plan.program` holds the tables of a compiled model, in order: values, buffers, inputs, outputs, constraints, steps.
    Each entry begins with its number. Values are instructions over values below them; buffers, steps and ports name
    values and buffers by number. `firnc --emit=plan` prints it.
  }];
  let usePropertiesForAttributes = 0;
}

class Plan_Op<string mnemonic, list<Trait> traits = []> : Op<Plan_Dialect, mnemonic, traits>;

def Plan_ProgramOp : Plan_Op<"program", [IsolatedFromAbove, Symbol, NoTerminator, NoRegionArguments, SingleBlock]> {
  let summary = "all tables of one model";
  let description = [{
    (C1) numbers of values, buffers, ports and steps count from 0 without gaps.
    (C2) every value, buffer and step that an entry names is there; a value names values below it.
    (C3) a value is `late` if and only if it is a symbol or made of one.
    (C4) an alias names another buffer, and no alias of itself; ports name buffers of their own kind and dtype.
    (C5) buffers in the arena have offsets if and only if `arena_bytes` is not -1; then they are 64-byte aligned and lie
         inside, and two whose lives overlap share no byte.
    (C6) weights lie inside `weight_bytes`, 64-byte aligned.
    (C7) nested steps follow their `plan.if` or `plan.loop` and lie inside whatever is around it.
    (C9) lists are input, output, late or alias buffers without dims; only `plan.reference` and `plan.list` use them.
    (C8) `plan.bind` and `plan.append` set symbols; `plan.append` is in a loop and appends to a late buffer.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, I64Attr:$arena_bytes, I64Attr:$weight_bytes);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name `arena` $arena_bytes `weights` $weight_bytes attr-dict-with-keyword $body";
  let hasRegionVerifier = 1;
}

// --- tables ----------------------------------------------------------------------------------------------------------

class Plan_EntryOp<string mnemonic, list<Trait> traits = []> : Plan_Op<mnemonic, !listconcat([HasParent<"ProgramOp">], traits)>;

def Plan_ValueOp : Plan_EntryOp<"value"> {
  let summary = "an integer: constant, input_dim, symbol, add, sub, mul, floor_div, ceil_div, mod, min or max";
  let description = [{
    `constant [a]`; `input_dim [input, axis]`; `symbol []`, found while running; all others `[value, value]`.
    Example: `plan.value 2 = mul [0, 1]`
  }];
  let arguments = (ins I32Attr:$id, StrAttr:$kind, DenseI64ArrayAttr:$arguments, UnitAttr:$late);
  let assemblyFormat = "$id `=` custom<Keyword>($kind) $arguments (`late` $late^)? attr-dict";
}
def Plan_BufferOp : Plan_EntryOp<"buffer"> {
  let summary = "the bytes of a tensor: of an input or output, in the weights, in the arena, late, or an alias";
  let description = [{
    `at`: the number of the input or output, the byte offset in weights or arena (-1 where the executor places it), or the
    buffer that an alias stands for. `lives`: the first and the last step that need the bytes (arena). `form`: where it is a
    list of tensors, of which one: unranked, sequence, optional, optional_sequence, map or sequence_of_maps.
    Example: `plan.buffer 3 = arena f32 [0, 1] at 128 lives [2, 5]`
  }];
  let arguments = (ins I32Attr:$id, StrAttr:$kind, StrAttr:$dtype, DenseI32ArrayAttr:$dims, I64Attr:$at,
                   OptionalAttr<DenseI32ArrayAttr>:$lives, OptionalAttr<StrAttr>:$form);
  let assemblyFormat = [{
    $id `=` custom<Keyword>($kind) custom<Keyword>($dtype) $dims `at` $at (`lives` $lives^)? (`form` $form^)? attr-dict
  }];
}
class Plan_PortOp<string mnemonic> : Plan_EntryOp<mnemonic> {
  let description = [{`symbols`: the name of each dimension, "" for a fixed one. `default_at`: bytes into the weights, where the input may be left out.}];
  let arguments = (ins I32Attr:$id, StrAttr:$name, StrAttr:$dtype, DenseI32ArrayAttr:$dims, StrArrayAttr:$symbols,
                   I32Attr:$buffer, OptionalAttr<I64Attr>:$default_at);
  let assemblyFormat = [{
    $id `=` $name custom<Keyword>($dtype) $dims `symbols` $symbols `buffer` $buffer (`default` $default_at^)? attr-dict
  }];
}
def Plan_InputOp : Plan_PortOp<"input"> { let summary = "an input of the model"; }
def Plan_OutputOp : Plan_PortOp<"output"> { let summary = "an output of the model"; }

def Plan_ConstraintOp : Plan_EntryOp<"constraint"> {
  let summary = "lower <= value <= upper, else the run is refused with the message";
  let arguments = (ins I32Attr:$value, I64Attr:$lower, I64Attr:$upper, StrAttr:$message);
  let assemblyFormat = "$value `in` $lower `to` $upper `,` $message attr-dict";
}
def Plan_WeightOp : Plan_EntryOp<"weight"> {
  let summary = "a frozen tensor at an offset of the weights";
  let description = [{`value`: its elements; left out where the plan is printed.}];
  let arguments = (ins I64Attr:$at, TypeAttr:$type, OptionalAttr<ElementsAttr>:$value);
  let assemblyFormat = "$at `:` $type attr-dict";
}

// --- steps -----------------------------------------------------------------------------------------------------------

// `reads`, `writes`: buffers, -1 where one is left out. `dims`: values. `costs`: the values of flops and bytes, or -1.
class Plan_StepOp<string mnemonic, dag more = (ins), string format = ""> : Plan_EntryOp<mnemonic> {
  let arguments = !con((ins I32Attr:$id), more, (ins DenseI32ArrayAttr:$reads, DenseI32ArrayAttr:$writes,
      DenseI32ArrayAttr:$dims, StrAttr:$name, StrAttr:$kind_name, DenseI32ArrayAttr:$costs));
  let assemblyFormat = !strconcat("$id ", format, " `reads` $reads `writes` $writes `dims` $dims `as` $kind_name $name `costs` $costs attr-dict");
}
def Plan_KernelOp : Plan_StepOp<"kernel", (ins FlatSymbolRefAttr:$symbol, I64Attr:$scratch_bytes, UnitAttr:$parallel),
                                "$symbol (`parallel` $parallel^)? `scratch` $scratch_bytes"> {
  let summary = "calls a generated function, with all workers where it is parallel";
}
def Plan_ReferenceOp : Plan_StepOp<"reference", (ins StrAttr:$callee, DictionaryAttr:$settings), "$callee $settings"> {
  let summary = "calls a reference kernel; first its shape function where an output's dims are symbols";
}
def Plan_CopyOp : Plan_StepOp<"copy"> { let summary = "copies the bytes of a buffer to another"; }
def Plan_ValuesOp : Plan_StepOp<"values"> { let summary = "stores values as the elements of a buffer"; }
def Plan_BindOp : Plan_StepOp<"bind"> {
  let summary = "symbol dims[2k] takes the present value of dims[2k + 1], all pairs at once";
}
def Plan_IfOp : Plan_StepOp<"if", (ins I32Attr:$middle, I32Attr:$end), "`else` $middle `end` $end"> {
  let summary = "runs the steps up to `else` where reads[0] is true, else those from `else` to `end`";
}
def Plan_LoopOp : Plan_StepOp<"loop", (ins I32Attr:$end), "`end` $end"> {
  let summary = "repeats the steps up to `end`: reads [trip count, condition], writes [iteration], -1 for none";
}
def Plan_AppendOp : Plan_StepOp<"append"> {
  let summary = "appends a buffer to a late one, whose leading dimension, the symbol dims[0], grows by one";
}
def Plan_ListOp : Plan_StepOp<"list", (ins I32Attr:$action), "$action"> {
  let summary = "an operation on lists of tensors: makes, copies, moves or changes one, or reads from it";
}
def Plan_FailOp : Plan_StepOp<"fail"> { let summary = "stops the run with its name as the message"; }

#endif

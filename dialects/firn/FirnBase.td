// The firn dialect, its types and attributes, and the classes that its operations are made from.
#ifndef FIRN_BASE
#define FIRN_BASE

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "dialects/firn/FirnInterfaces.td"

def Firn_Dialect : Dialect {
  let name = "firn";
  let cppNamespace = "::firn";
  let summary = "neural networks on tensors, one operation per operator of the model";
  let description = [{
    Values are tensors (or `none` for an absent optional input), sequences, optionals and maps. Dimensions are static, symbolic or unknown; a tensor
    type carries its symbolic dimensions as an encoding: `tensor<?x384xf32, #firn.dims<["batch", ""]>>`.
    Operators that no pass looks into are `firn.call "domain::Name"`.
  }];
  let usePropertiesForAttributes = 0;
  let extraClassDeclaration = "void registerOperations();";
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
}

def Firn_StringType : TypeDef<Firn_Dialect, "String"> {
  let mnemonic = "string";
  let summary = "an element of a tensor of strings";
}
def Firn_UnknownType : TypeDef<Firn_Dialect, "Unknown"> {
  let mnemonic = "unknown";
  let summary = "an element type that inference has not found yet";
}
def Firn_OpaqueElementType : TypeDef<Firn_Dialect, "OpaqueElement"> {
  let mnemonic = "element";
  let summary = "an element type that MLIR 19 lacks, by its number in runtime/abi/dtype.h";
  let parameters = (ins "int32_t":$dtype);
  let assemblyFormat = "`<` $dtype `>`";
}

def Firn_SequenceType : TypeDef<Firn_Dialect, "Sequence"> {
  let mnemonic = "sequence";
  let summary = "any number of tensors";
  let description = [{
    `element` is the type that all of them have: `!firn.sequence<tensor<?x3xf32>>`, `!firn.sequence<tensor<*xf32>>`, or only their
    element type (`!firn.sequence<f32>`) while there is none yet. A sequence of maps has a map there.
  }];
  let parameters = (ins "::mlir::Type":$element);
  let assemblyFormat = "`<` $element `>`";
}
def Firn_OptionalType : TypeDef<Firn_Dialect, "Optional"> {
  let mnemonic = "optional";
  let summary = "a tensor or a sequence, or nothing";
  let parameters = (ins "::mlir::Type":$element);
  let assemblyFormat = "`<` $element `>`";
}
def Firn_MapType : TypeDef<Firn_Dialect, "Map"> {
  let mnemonic = "map";
  let summary = "values by key; at run time a tensor of keys and one of values";
  let parameters = (ins "::mlir::Type":$key, "::mlir::Type":$value);
  let assemblyFormat = "`<` $key `,` $value `>`";
}

def Firn_DimsAttr : AttrDef<Firn_Dialect, "Dims"> {
  let mnemonic = "dims";
  let summary = "the dimensions of a tensor as expressions over symbols, one text per axis, empty for a static one";
  let description = [{
    The texts are canonical (DimExpr::str), so equal texts mean equal sizes: `#firn.dims<["batch", "2*seq+1", ""]>`.
  }];
  let parameters = (ins "::mlir::ArrayAttr":$exprs);
  let assemblyFormat = "`<` $exprs `>`";
}

// A tensor, `none` for an absent optional input, or where an operator takes such, a sequence, an optional or a map.
def Firn_Operand : AnyTypeOf<[AnyTensor, NoneType, Firn_SequenceType, Firn_OptionalType, Firn_MapType]>;

class Firn_Op<string mnemonic, list<Trait> traits = []> : Op<Firn_Dialect, mnemonic, traits>;

// An operation for operator `onnx` of domain ai.onnx, newest opset. `rule` names its inference function
// `void rule(Inference &)`, declared in Inference.h, where the constraints are checked.
class Firn_OnnxOp<string mnemonic, string onnx, string rule, list<Trait> traits = []>
    : Firn_Op<mnemonic, traits # [DeclareOpInterfaceMethods<Firn_Operator>]> {
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = [{
    static constexpr ::llvm::StringLiteral onnxName = "}] # onnx # [{";
  }];
  let extraClassDefinition = [{
    ::std::string $cppClass::operatorName() { return "ai.onnx::}] # onnx # [{"; }
    void $cppClass::inferShapes(::firn::Inference &inference) { ::firn::}] # rule # [{(inference); }
    ::llvm::LogicalResult $cppClass::verify() { return ::firn::verifyInferred(getOperation()); }
  }];
  let hasVerifier = 1;
  let results = (outs Firn_Operand:$result);
}

#endif

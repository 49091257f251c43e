// Interfaces of the operations of the firn dialect.
#ifndef FIRN_INTERFACES
#define FIRN_INTERFACES

include "mlir/IR/OpBase.td"

def Firn_Operator : OpInterface<"Operator"> {
  let cppNamespace = "::firn";
  let description = [{
    An operation that stands for one operator of a model: operand i is the operator's input i (a value of type `none`
    where an optional input is absent), result i its output i, attributes carry the operator's names.
  }];
  let methods = [
    InterfaceMethod<"Qualified name in the operator library, e.g. `ai.onnx::Conv`.", "::std::string", "operatorName", (ins)>,
    InterfaceMethod<[{
      Infers the element types and dimensions of all results, reports every broken constraint of the operator.
    }], "void", "inferShapes", (ins "::firn::Inference &":$inference)>
  ];
}

#endif

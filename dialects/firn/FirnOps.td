// All operations of the firn dialect, by family.
//
// Labels: I1.. are inputs in order, C1.. constraints. The inference rule that an operation names checks its
// constraints; the same label stands beside the check and in the name of the test that breaks it. Semantics are those
// of the ONNX operator named, newest opset (https://onnx.ai/onnx/operators), unless a description says more.
#ifndef FIRN_OPS
#define FIRN_OPS

include "dialects/firn/FirnBase.td"
include "dialects/firn/Elementwise.td"
include "dialects/firn/Contraction.td"
include "dialects/firn/Window.td"
include "dialects/firn/Reduction.td"
include "dialects/firn/Movement.td"
include "dialects/firn/ShapeOps.td"
include "dialects/firn/Recurrent.td"
include "dialects/firn/Quantization.td"
include "dialects/firn/Sequence.td"
include "dialects/firn/Control.td"

#endif

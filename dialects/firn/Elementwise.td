// Elementwise operations: each element of the result depends on the elements at the same (broadcast) position.

include "dialects/firn/FirnBase.td"

class Firn_Unary<string mnemonic, string onnx, string formula> : Firn_OnnxOp<mnemonic, onnx, "inferUnary", [Pure]> {
  let summary = formula;
  let description = "(I1) `x`. (C1) type(result) = type(x).";
  let arguments = (ins Firn_Operand:$x);
}

def Firn_AbsOp : Firn_Unary<"abs", "Abs", "|x|">;
def Firn_NegOp : Firn_Unary<"neg", "Neg", "-x; flips the sign of zero">;
def Firn_CeilOp : Firn_Unary<"ceil", "Ceil", "least integer >= x">;
def Firn_FloorOp : Firn_Unary<"floor", "Floor", "greatest integer <= x">;
def Firn_RoundOp : Firn_Unary<"round", "Round", "nearest integer, halves to even">;
def Firn_SqrtOp : Firn_Unary<"sqrt", "Sqrt", "square root, NaN below zero">;
def Firn_ReciprocalOp : Firn_Unary<"reciprocal", "Reciprocal", "1 / x">;
def Firn_ExpOp : Firn_Unary<"exp", "Exp", "e^x">;
def Firn_LogOp : Firn_Unary<"log", "Log", "natural logarithm">;
def Firn_SinOp : Firn_Unary<"sin", "Sin", "sine of radians">;
def Firn_CosOp : Firn_Unary<"cos", "Cos", "cosine of radians">;
def Firn_TanOp : Firn_Unary<"tan", "Tan", "tangent of radians">;
def Firn_AsinOp : Firn_Unary<"asin", "Asin", "arcsine">;
def Firn_AcosOp : Firn_Unary<"acos", "Acos", "arccosine">;
def Firn_AtanOp : Firn_Unary<"atan", "Atan", "arctangent">;
def Firn_SinhOp : Firn_Unary<"sinh", "Sinh", "hyperbolic sine">;
def Firn_CoshOp : Firn_Unary<"cosh", "Cosh", "hyperbolic cosine">;
def Firn_TanhOp : Firn_Unary<"tanh", "Tanh", "hyperbolic tangent">;
def Firn_AsinhOp : Firn_Unary<"asinh", "Asinh", "inverse hyperbolic sine">;
def Firn_AcoshOp : Firn_Unary<"acosh", "Acosh", "inverse hyperbolic cosine">;
def Firn_AtanhOp : Firn_Unary<"atanh", "Atanh", "inverse hyperbolic tangent">;
def Firn_ErfOp : Firn_Unary<"erf", "Erf", "error function">;
def Firn_SignOp : Firn_Unary<"sign", "Sign", "-1, 0 or 1">;
def Firn_SigmoidOp : Firn_Unary<"sigmoid", "Sigmoid", "1 / (1 + e^-x)">;
def Firn_ReluOp : Firn_Unary<"relu", "Relu", "max(x, 0); NaN stays NaN">;
def Firn_HardSwishOp : Firn_Unary<"hard_swish", "HardSwish", "x * max(0, min(1, x/6 + 1/2))">;
def Firn_MishOp : Firn_Unary<"mish", "Mish", "x * tanh(ln(1 + e^x))">;
def Firn_SoftplusOp : Firn_Unary<"softplus", "Softplus", "ln(1 + e^x)">;
def Firn_SoftsignOp : Firn_Unary<"softsign", "Softsign", "x / (1 + |x|)">;
def Firn_NotOp : Firn_Unary<"not", "Not", "logical negation of bool">;
def Firn_BitwiseNotOp : Firn_Unary<"bitwise_not", "BitwiseNot", "complement of the bits of an integer">;
def Firn_IdentityOp : Firn_Unary<"identity", "Identity", "x">;

class Firn_UnaryAlpha<string mnemonic, string onnx, string formula, string alpha>
    : Firn_Unary<mnemonic, onnx, formula> {
  let arguments = (ins Firn_Operand:$x, DefaultValuedAttr<F32Attr, alpha>:$alpha);
}
def Firn_LeakyReluOp : Firn_UnaryAlpha<"leaky_relu", "LeakyRelu", "x < 0 ? alpha * x : x", "0.01f">;
def Firn_EluOp : Firn_UnaryAlpha<"elu", "Elu", "x < 0 ? alpha * (e^x - 1) : x", "1.0f">;
def Firn_CeluOp : Firn_UnaryAlpha<"celu", "Celu", "max(0, x) + min(0, alpha * (e^(x/alpha) - 1))", "1.0f">;
def Firn_ThresholdedReluOp : Firn_UnaryAlpha<"thresholded_relu", "ThresholdedRelu", "x > alpha ? x : 0", "1.0f">;
def Firn_SwishOp : Firn_UnaryAlpha<"swish", "Swish", "x * sigmoid(alpha * x)", "1.0f">;
def Firn_SeluOp : Firn_Unary<"selu", "Selu", "gamma * (x > 0 ? x : alpha * (e^x - 1))"> {
  let arguments = (ins Firn_Operand:$x, DefaultValuedAttr<F32Attr, "1.67326319217681884765625f">:$alpha,
                   DefaultValuedAttr<F32Attr, "1.05070102214813232421875f">:$gamma);
}
def Firn_HardSigmoidOp : Firn_Unary<"hard_sigmoid", "HardSigmoid", "max(0, min(1, alpha * x + beta))"> {
  let arguments = (ins Firn_Operand:$x, DefaultValuedAttr<F32Attr, "0.2f">:$alpha, DefaultValuedAttr<F32Attr, "0.5f">:$beta);
}
def Firn_GeluOp : Firn_Unary<"gelu", "Gelu", "x * Phi(x); `approximate` is \"none\" (erf) or \"tanh\""> {
  let arguments = (ins Firn_Operand:$x, DefaultValuedStrAttr<StrAttr, "none">:$approximate);
}

class Firn_Predicate<string mnemonic, string onnx, string formula> : Firn_OnnxOp<mnemonic, onnx, "inferPredicate", [Pure]> {
  let summary = formula;
  let description = "(I1) `x`. (C1) result is bool with the shape of x.";
  let arguments = (ins Firn_Operand:$x);
}
def Firn_IsNaNOp : Firn_Predicate<"is_nan", "IsNaN", "whether x is NaN">;
def Firn_IsInfOp : Firn_Predicate<"is_inf", "IsInf", "whether x is an infinity of an enabled sign"> {
  let arguments = (ins Firn_Operand:$x, DefaultValuedAttr<I64Attr, "1">:$detect_negative, DefaultValuedAttr<I64Attr, "1">:$detect_positive);
}

class Firn_Binary<string mnemonic, string onnx, string formula, list<Trait> traits = []>
    : Firn_OnnxOp<mnemonic, onnx, "inferBinary", [Pure] # traits> {
  let summary = formula;
  let description = "(I1) `a`, (I2) `b`. (C1) shapes broadcast. (C2) equal element types, that of a for the result.";
  let arguments = (ins Firn_Operand:$a, Firn_Operand:$b);
}
def Firn_AddOp : Firn_Binary<"add", "Add", "a + b; integers wrap">;
def Firn_SubOp : Firn_Binary<"sub", "Sub", "a - b; integers wrap">;
def Firn_MulOp : Firn_Binary<"mul", "Mul", "a * b; integers wrap">;
def Firn_DivOp : Firn_Binary<"div", "Div", "a / b; integers truncate, x / 0 is 0 for them">;
def Firn_ModOp : Firn_Binary<"mod", "Mod", "remainder with the divisor's sign; `fmod` 1: the dividend's"> {
  let arguments = (ins Firn_Operand:$a, Firn_Operand:$b, DefaultValuedAttr<I64Attr, "0">:$fmod);
}
def Firn_PowOp : Firn_Binary<"pow", "Pow", "a ^ b, rounded to the type of a; element types may differ">;
def Firn_BitShiftOp : Firn_Binary<"bit_shift", "BitShift", "a shifted by b bits, `direction` LEFT or RIGHT"> {
  let arguments = (ins Firn_Operand:$a, Firn_Operand:$b, StrAttr:$direction);
}
def Firn_AndOp : Firn_Binary<"and", "And", "logical and">;
def Firn_OrOp : Firn_Binary<"or", "Or", "logical or">;
def Firn_XorOp : Firn_Binary<"xor", "Xor", "logical exclusive or">;
def Firn_BitwiseAndOp : Firn_Binary<"bitwise_and", "BitwiseAnd", "bits of both">;
def Firn_BitwiseOrOp : Firn_Binary<"bitwise_or", "BitwiseOr", "bits of either">;
def Firn_BitwiseXorOp : Firn_Binary<"bitwise_xor", "BitwiseXor", "bits of one only">;
def Firn_PReluOp : Firn_Binary<"prelu", "PRelu", "a < 0 ? b * a : a; b broadcasts to a">;

class Firn_Comparison<string mnemonic, string onnx, string formula> : Firn_OnnxOp<mnemonic, onnx, "inferComparison", [Pure]> {
  let summary = formula;
  let description = "(I1) `a`, (I2) `b`. (C1) shapes broadcast. (C2) equal element types. (C3) result is bool.";
  let arguments = (ins Firn_Operand:$a, Firn_Operand:$b);
}
def Firn_EqualOp : Firn_Comparison<"equal", "Equal", "a == b; NaN equals nothing">;
def Firn_GreaterOp : Firn_Comparison<"greater", "Greater", "a > b">;
def Firn_LessOp : Firn_Comparison<"less", "Less", "a < b">;
def Firn_GreaterOrEqualOp : Firn_Comparison<"greater_or_equal", "GreaterOrEqual", "a >= b">;
def Firn_LessOrEqualOp : Firn_Comparison<"less_or_equal", "LessOrEqual", "a <= b">;

class Firn_Variadic<string mnemonic, string onnx, string formula> : Firn_OnnxOp<mnemonic, onnx, "inferVariadic", [Pure]> {
  let summary = formula;
  let description = "(I1..) `inputs`, one or more. (C1) shapes broadcast. (C2) equal element types.";
  let arguments = (ins Variadic<Firn_Operand>:$inputs);
}
def Firn_MaxOp : Firn_Variadic<"max", "Max", "greatest; NaN wins">;
def Firn_MinOp : Firn_Variadic<"min", "Min", "least; NaN wins">;
def Firn_SumOp : Firn_Variadic<"sum", "Sum", "sum, left to right">;
def Firn_MeanOp : Firn_Variadic<"mean", "Mean", "arithmetic mean">;

def Firn_WhereOp : Firn_OnnxOp<"where", "Where", "inferWhere", [Pure]> {
  let summary = "condition ? a : b";
  let description = "(I1) `condition`: bool, (I2) `a`, (I3) `b`. (C1) shapes broadcast. (C2) a and b have one element type.";
  let arguments = (ins Firn_Operand:$condition, Firn_Operand:$a, Firn_Operand:$b);
}
def Firn_ClipOp : Firn_OnnxOp<"clip", "Clip", "inferUnary", [Pure]> {
  let summary = "min(max(x, minimum), maximum)";
  let description = "(I1) `x`; `bounds`: (I2) minimum, (I3) maximum, scalars or absent. (C1) type(result) = type(x).";
  let arguments = (ins Firn_Operand:$x, Variadic<Firn_Operand>:$bounds);
}
def Firn_CastOp : Firn_OnnxOp<"cast", "Cast", "inferCast", [Pure]> {
  let summary = "x converted to element type `to` (a number of TensorProto.DataType)";
  let description = [{(I1) `x`. (C1) `to` is a known element type.
    Out of range and NaN: floats to integers saturate, NaN gives 0; integers wrap. Rounds to nearest even.}];
  let arguments = (ins Firn_Operand:$x, I64Attr:$to, DefaultValuedAttr<I64Attr, "1">:$saturate,
                   DefaultValuedStrAttr<StrAttr, "up">:$round_mode);
}
def Firn_CastLikeOp : Firn_OnnxOp<"cast_like", "CastLike", "inferCastLike", [Pure]> {
  let summary = "x converted to the element type of `like`";
  let arguments = (ins Firn_Operand:$x, Firn_Operand:$like, DefaultValuedAttr<I64Attr, "1">:$saturate,
                   DefaultValuedStrAttr<StrAttr, "up">:$round_mode);
}
def Firn_DropoutOp : Firn_OnnxOp<"dropout", "Dropout", "inferDropout"> {
  let summary = "the identity unless training_mode is true";
  let description = "(I1) `x`; `options`: (I2) ratio, (I3) training_mode. Results: output, mask (bool).";
  let arguments = (ins Firn_Operand:$x, Variadic<Firn_Operand>:$options, OptionalAttr<I64Attr>:$seed);
  let results = (outs Variadic<Firn_Operand>:$outputs);
}

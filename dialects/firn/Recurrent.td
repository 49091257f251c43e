// Recurrent networks.

include "dialects/firn/FirnBase.td"

defvar recurrentAttributes = (ins OptionalAttr<DenseF32ArrayAttr>:$activation_alpha, OptionalAttr<DenseF32ArrayAttr>:$activation_beta,
    OptionalAttr<StrArrayAttr>:$activations, OptionalAttr<F32Attr>:$clip, DefaultValuedStrAttr<StrAttr, "forward">:$direction,
    OptionalAttr<I64Attr>:$hidden_size, DefaultValuedAttr<I64Attr, "0">:$layout);

class Firn_Recurrent<string mnemonic, string onnx, string extra> : Firn_OnnxOp<mnemonic, onnx, "inferRecurrent", [Pure]> {
  let summary = "recurrent layer " # onnx;
  let description = [{`inputs`: X (seq x batch x input), W, R, B, sequence_lens, initial_h}] # extra # [{; all but X, W, R optional.
    `outputs`: Y, Y_h}] # !if(!eq(onnx, "LSTM"), ", Y_c", "") # ".";
  let results = (outs Variadic<Firn_Operand>:$outputs);
}
def Firn_LSTMOp : Firn_Recurrent<"lstm", "LSTM", ", initial_c, P"> {
  let arguments = !con((ins Variadic<Firn_Operand>:$inputs, DefaultValuedAttr<I64Attr, "0">:$input_forget), recurrentAttributes);
}
def Firn_GRUOp : Firn_Recurrent<"gru", "GRU", ""> {
  let arguments = !con((ins Variadic<Firn_Operand>:$inputs, DefaultValuedAttr<I64Attr, "0">:$linear_before_reset), recurrentAttributes);
}
def Firn_RNNOp : Firn_Recurrent<"rnn", "RNN", ""> {
  let arguments = !con((ins Variadic<Firn_Operand>:$inputs), recurrentAttributes);
}

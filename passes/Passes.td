// Every pass: its options, one line each, right by default. One entry here, one file passes/<group>/<Name>.cpp, one test
// test/passes/<group>/<Name>.mlir.
#ifndef FIRN_PASSES
#define FIRN_PASSES

include "mlir/Pass/PassBase.td"

// --- fold ---
def InferShapes : Pass<"firn-infer-shapes", "::mlir::ModuleOp"> {
  let summary = "find element types and dimensions of all values; report every problem";
}
def FoldShapes : Pass<"firn-fold-shapes", "::mlir::ModuleOp"> {
  let summary = "replace small integer tensors that are known as dimension expressions";
}
def FoldConstants : Pass<"firn-fold-constants", "::mlir::ModuleOp"> {
  let summary = "compute operations on constants with the reference kernels";
  let options = [
    Option<"limit", "limit", "int64_t", "-1", "stop after this many rewrites, -1 for no limit; bisects a miscompile">,
    Option<"maxBytes", "max-bytes", "int64_t", "1 << 30", "do not make a constant larger than this">,
    Option<"maxGrowth", "max-growth", "int64_t", "1 << 20", "keep a node whose folding adds more bytes than this to the file">,
    Option<"quantized", "quantized", "std::string", "\"all\"", "constants of small integers that stay: all, read (that a kernel reads as they are) or none">
  ];
}

def ShrinkConstants : Pass<"firn-shrink-constants", "::mlir::ModuleOp"> {
  let summary = "write large constants of one number as that number and a shape";
  let options = [
    Option<"limit", "limit", "int64_t", "-1", "stop after this many rewrites, -1 for no limit; bisects a miscompile">
  ];
}

def ExpandComposites : Pass<"firn-expand-composites", "::mlir::ModuleOp"> {
  let summary = "spell out library operators that are compositions of others";
  let options = [
    Option<"limit", "limit", "int64_t", "-1", "stop after this many rewrites, -1 for no limit; bisects a miscompile">
  ];
}

// --- pipelines ---
def Optimise : Pass<"firn-optimise", "::mlir::ModuleOp"> {
  let summary = "infer, fold, simplify and fuse until nothing changes";
  let options = [
    Option<"rounding", "rounding", "bool", "true", "also rewrites that change how results are rounded">,
    Option<"fast", "fast", "bool", "false", "also rewrites that treat numbers as real ones">,
    Option<"graph", "graph", "bool", "false", "also rewrites that serve graph files alone">,
    Option<"maxGrowth", "max-growth", "int64_t", "1 << 20", "keep a node whose folding adds more bytes than this to the file">,
    Option<"maxFolded", "max-folded", "int64_t", "1 << 30", "do not make a constant larger than this by folding">,
    Option<"maxRounds", "max-rounds", "unsigned", "8", "give up after this many rounds">
  ];
}

// --- simplify ---
class RewritingPass<string argument> : Pass<argument, "::mlir::ModuleOp"> {
  let options = [
    Option<"limit", "limit", "int64_t", "-1", "stop after this many rewrites, -1 for no limit; bisects a miscompile">
  ];
}
def SimplifyAlgebra : RewritingPass<"firn-simplify-algebra"> {
  let summary = "drop elementwise operations that change nothing, shorten chains of them";
}
def SimplifyMovement : RewritingPass<"firn-simplify-movement"> {
  let summary = "drop operations that move no element, shorten chains of those that do";
}
def SimplifyParts : RewritingPass<"firn-simplify-parts"> {
  let summary = "drop slices, splits and concats that undo each other, join those that continue each other";
}
def RelaxAlgebra : RewritingPass<"firn-relax-algebra"> {
  let summary = "join and drop elementwise operations as if numbers were real ones (only with --fast-math)";
}
def AbsorbMovement : RewritingPass<"firn-absorb-movement"> {
  let summary = "let windows, reductions and products say pads, squeezes and transposes around them";
}
def SimplifyControl : RewritingPass<"firn-simplify-control"> {
  let summary = "run branches and loops at compile time where their conditions are constants";
}
def SimplifyQuantization : RewritingPass<"firn-simplify-quantization"> {
  let summary = "give constants stored as small integers one form, and convert them behind movements";
}
def SimplifySequences : RewritingPass<"firn-simplify-sequences"> {
  let summary = "sequences whose tensors are known one by one become those tensors";
}
def DecomposeEinsum : RewritingPass<"firn-decompose-einsum"> {
  let summary = "turn einsum into transposes, sums, products and matrix products";
}
def EliminateCommon : RewritingPass<"firn-eliminate-common"> {
  let summary = "compute equal values once";
}
def EliminateDead : RewritingPass<"firn-eliminate-dead"> {
  let summary = "drop what nobody reads";
}

// --- fusion ---
def FoldConvBatchNorm : RewritingPass<"firn-fold-conv-batch-norm"> {
  let summary = "fold normalisations and scales per channel into the weights of the layer beside them";
}
def RecognizeActivations : RewritingPass<"firn-recognize-activations"> {
  let summary = "activation functions that a model spells out become one operation each";
}
def RecognizeAttention : RewritingPass<"firn-recognize-attention"> {
  let summary = "attention that a model spells out becomes one operation";
}
def MergeQKV : RewritingPass<"firn-merge-qkv"> {
  let summary = "products of one input for queries, keys and values become one product";
}
def RecognizeNormalizations : RewritingPass<"firn-recognize-normalizations"> {
  let summary = "layer and RMS normalisation that a model spells out become one operation each";
}
def FuseBias : RewritingPass<"firn-fuse-bias"> {
  let summary = "make a constant per channel that is added to a layer its bias";
}

// --- layout ---
def MoveTransposes : RewritingPass<"firn-move-transposes"> {
  let summary = "move operations in front of transposes where fewer transposes are left";
}
def AssignLayout : RewritingPass<"firn-assign-layout"> {
  let summary = "give convolutions their channels last, and what lies between them where that saves moves";
}

// --- lowering ---
def Decompose : RewritingPass<"firn-decompose"> {
  let summary = "turn rare operations into those that code is generated for";
}

// --- group ---
def GroupKernels : Pass<"firn-group", "::mlir::ModuleOp"> {
  let summary = "collect operations that become one kernel in firn.fused regions";
  let options = [
    Option<"single", "single", "bool", "false", "one operation per kernel">,
    Option<"limit", "limit", "int64_t", "-1", "stop after this many groups, -1 for no limit; bisects a miscompile">
  ];
}

// --- plan ---

#endif

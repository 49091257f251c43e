// The kernel dialect: the inside of a kernel. Emitters write these operations together with scf, vector, arith and math;
// passes/kernel lowers them to LLVM.
#ifndef KERNEL_OPS
#define KERNEL_OPS

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Kernel_Dialect : Dialect {
  let name = "kernel";
  let cppNamespace = "::firn::kernel";
  let summary = "the inside of a kernel: raw buffers, workers";
  let usePropertiesForAttributes = 0;
  let useDefaultTypePrinterParser = 1;
}

def Kernel_BufferType : TypeDef<Kernel_Dialect, "Buffer"> {
  let mnemonic = "buffer";
  let summary = "the bytes of one tensor; buffers of one kernel do not overlap, but for an output that takes an input's place";
}

class Kernel_Op<string mnemonic, list<Trait> traits = []> : Op<Kernel_Dialect, mnemonic, traits>;

def Kernel_FuncOp : Kernel_Op<"func", [IsolatedFromAbove, Symbol]> {
  let summary = "a kernel";
  let description = [{
    Block arguments: one buffer per entry of firn_step.buffers (`buffer_count`), one index per entry of firn_step.dims
    (`dim_count`), the worker's scratch buffer, worker and workers (index). Ends with kernel.return. Lowers to
    `void name(const firn_kernel_args *, int32_t worker, int32_t workers)`.
    `scratch_bytes`: what one worker needs. `parallel`: whether more than one worker may be given.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, I64Attr:$buffer_count, I64Attr:$dim_count, I64Attr:$scratch_bytes, BoolAttr:$parallel);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name attr-dict-with-keyword $body";
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name, "int64_t":$buffers, "int64_t":$dims, "bool":$parallel)>];
  let extraClassDeclaration = [{
    ::mlir::Value buffer(int64_t i) { return getBody().getArgument(i); }
    ::mlir::Value dim(int64_t i) { return getBody().getArgument(getBufferCount() + i); }
    ::mlir::Value scratch() { return getBody().getArgument(getBufferCount() + getDimCount()); }
    ::mlir::Value worker() { return getBody().getArgument(getBufferCount() + getDimCount() + 1); }
    ::mlir::Value workers() { return getBody().getArgument(getBufferCount() + getDimCount() + 2); }
  }];
}
def Kernel_ReturnOp : Kernel_Op<"return", [Terminator, HasParent<"FuncOp">]> {
  let summary = "ends a kernel";
  let assemblyFormat = "attr-dict";
}

def Kernel_LoadOp : Kernel_Op<"load", [MemoryEffects<[MemRead]>]> {
  let summary = "elements at an offset (in elements of the result's element type): a scalar, or a 1-D vector of consecutive ones";
  let description = [{
    bool elements are bytes: an i1 or vector<Nxi1> result is true where the byte is not 0. `invariant`: no kernel of the step writes these bytes.
    `count`: only the first count lanes are read, the others are 0 (vectors only). Alignment is that of the element.
  }];
  let arguments = (ins Kernel_BufferType:$buffer, Index:$offset, Optional<Index>:$count, UnitAttr:$invariant);
  let results = (outs AnyType:$result);
  let assemblyFormat = "$buffer `[` $offset `]` (`count` $count^)? attr-dict `:` type($result)";
}
def Kernel_StoreOp : Kernel_Op<"store", [MemoryEffects<[MemWrite]>]> {
  let summary = "stores a scalar or a 1-D vector at an offset; with `count` only its first count lanes";
  let arguments = (ins AnyType:$value, Kernel_BufferType:$buffer, Index:$offset, Optional<Index>:$count, UnitAttr:$nontemporal);
  let assemblyFormat = "$value `,` $buffer `[` $offset `]` (`count` $count^)? attr-dict `:` type($value)";
}
def Kernel_OffsetOp : Kernel_Op<"offset", [Pure]> {
  let summary = "the buffer that begins `bytes` bytes into another";
  let arguments = (ins Kernel_BufferType:$buffer, Index:$bytes);
  let results = (outs Kernel_BufferType:$result);
  let assemblyFormat = "$buffer `[` $bytes `]` attr-dict";
}
def Kernel_CopyOp : Kernel_Op<"copy", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "copies `bytes` bytes between buffers that do not overlap; nothing where both are one place";
  let arguments = (ins Kernel_BufferType:$source, Kernel_BufferType:$target, Index:$bytes);
  let assemblyFormat = "$source `to` $target `,` $bytes attr-dict";
}
def Kernel_BarrierOp : Kernel_Op<"barrier", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "all workers of the step meet";
  let assemblyFormat = "attr-dict";
}
def Kernel_FaultOp : Kernel_Op<"fault", [MemoryEffects<[MemWrite]>]> {
  let summary = "reports FIRN_FAULT_ `code` if the condition holds; the kernel goes on";
  let arguments = (ins I1:$condition, I32Attr:$code);
  let assemblyFormat = "$condition `,` $code attr-dict";
}

#endif

#include "compiler/codegen/cpu/ByteTile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "runtime/abi/model.h"

using namespace mlir;

namespace firn {

ByteKernel byteKernel(const TargetDescription &target) {
  if (target.hasVnni)
    return ByteKernel::Quads;
  return target.machine == FIRN_MACHINE_X86_64 ? ByteKernel::Pairs : ByteKernel::Singles;
}

int64_t byteStep(const TargetDescription &target) {
  switch (byteKernel(target)) {
  case ByteKernel::Quads:
    return 4;
  case ByteKernel::Pairs:
    return 2;
  case ByteKernel::Singles:
    break;
  }
  return 1;
}

static Value dotOfQuads(LoopBuilder &l, Value sum, Value unsignedQuads, Value signedQuads) {
  int64_t lanes = cast<VectorType>(sum.getType()).getNumElements();
  StringRef name = lanes == 16  ? "llvm.x86.avx512.vpdpbusd.512"
                   : lanes == 8 ? "llvm.x86.avx512.vpdpbusd.256"
                                : "llvm.x86.avx512.vpdpbusd.128";
  return l.b.create<LLVM::CallIntrinsicOp>(l.loc, sum.getType(), name, ValueRange{sum, unsignedQuads, signedQuads})
      .getResult(0);
}

Value dotWithOnes(KernelContext &context, Value sum, Value columns) {
  Value ones = context.l.b.create<arith::ConstantIntOp>(context.l.loc, 0x01010101, 32);
  return dotOfQuads(context.l, sum, context.l.splat(cast<VectorType>(sum.getType()), ones), columns);
}

namespace {

class ByteTileEmitter {
public:
  ByteTileEmitter(KernelContext &kernelContext, Tile shape, const ByteTile &operands)
      : l(kernelContext.l), tile(shape), bytes(operands), kernel(byteKernel(kernelContext.target)),
        step(byteStep(kernelContext.target)) {
    i32 = l.b.getI32Type();
    vector = VectorType::get({tile.lanes}, i32);
    needsRowSums = kernel == ByteKernel::Quads && (!bytes.columns.zeros.empty() || bytes.columns.isShifted);
  }
  LoopBuilder::Values emit();

private:
  Value number(int64_t value) { return l.b.create<arith::ConstantIntOp>(l.loc, value, 32); }
  Value splat(Value scalar) { return l.splat(vector, scalar); }
  Value mul(Value a, Value b) { return l.b.create<arith::MulIOp>(l.loc, a, b); }
  Value sub(Value a, Value b) { return l.b.create<arith::SubIOp>(l.loc, a, b); }
  Value add(Value a, Value b) { return l.b.create<arith::AddIOp>(l.loc, a, b); }
  Value extend(Value value, Type elementType, bool isUnsigned);
  void prepareZeros();
  Value column(Value at, int64_t j);
  Value left(Value at, Value count);
  Value dot(Value sum, Value left, Value right);
  LoopBuilder::Values stepOf(Value index, LoopBuilder::Values sums, Value count);
  LoopBuilder::Values corrected(LoopBuilder::Values sums);

  LoopBuilder &l;
  Tile tile;
  const ByteTile &bytes;
  ByteKernel kernel;
  int64_t step;
  Type i32;
  VectorType vector;
  bool needsRowSums;
  LoopBuilder::Values zeros; // of the columns, as 16-bit numbers at each neighbour along k
};

} // namespace

Value ByteTileEmitter::extend(Value value, Type elementType, bool isUnsigned) {
  Type type = elementType;
  if (auto shape = dyn_cast<VectorType>(value.getType()))
    type = VectorType::get(shape.getShape(), elementType);
  if (isUnsigned)
    return l.b.create<arith::ExtUIOp>(l.loc, type, value);
  return l.b.create<arith::ExtSIOp>(l.loc, type, value);
}

void ByteTileEmitter::prepareZeros() {
  if (kernel == ByteKernel::Quads)
    return;
  Type i16 = l.b.getI16Type();
  for (Value zero : bytes.columns.zeros) {
    if (kernel == ByteKernel::Singles) {
      zeros.push_back(l.b.create<arith::TruncIOp>(l.loc, VectorType::get({tile.lanes}, i16), zero));
      continue;
    }
    Value low = l.b.create<arith::AndIOp>(l.loc, zero, splat(number(0xffff)));
    Value high = l.b.create<arith::ShLIOp>(l.loc, zero, splat(number(16)));
    Value both = l.b.create<arith::OrIOp>(l.loc, low, high);
    zeros.push_back(l.b.create<vector::BitCastOp>(l.loc, VectorType::get({2 * tile.lanes}, i16), both));
  }
}

/// Vector j of the panel's row at `at`: bytes for Quads, else 16-bit numbers without their zero points.
Value ByteTileEmitter::column(Value at, int64_t j) {
  at = l.add(at, j * tile.lanes * step);
  if (kernel == ByteKernel::Quads)
    return l.load(vector, l.at(bytes.right, at), l.index(0));
  Value loaded = l.load(VectorType::get({tile.lanes * step}, l.b.getI8Type()), bytes.right, at);
  Value wide = extend(loaded, l.b.getI16Type(), bytes.columns.isUnsigned);
  return zeros.empty() ? wide : sub(wide, zeros[j]);
}

/// The neighbours along k at `at` in every lane. Four bytes of a row that is not staged become unsigned ones (signed
/// ones are shifted by 128); only the first `count` exist, the others are 0.
Value ByteTileEmitter::left(Value at, Value count) {
  if (kernel == ByteKernel::Singles)
    return l.splat(VectorType::get({tile.lanes}, l.b.getI16Type()), l.load(l.b.getI16Type(), bytes.left, at));
  if (kernel == ByteKernel::Pairs) {
    Value pair = l.load(i32, l.at(bytes.left, l.mul(at, 2)), l.index(0));
    return l.b.create<vector::BitCastOp>(l.loc, VectorType::get({2 * tile.lanes}, l.b.getI16Type()), splat(pair));
  }
  if (bytes.isStaged || !count) {
    Value quad = l.load(i32, l.at(bytes.left, at), l.index(0));
    if (!bytes.isStaged && bytes.isSigned)
      quad = l.b.create<arith::XOrIOp>(l.loc, quad, number(int32_t(0x80808080u)));
    return splat(quad);
  }
  auto byte = [&](int64_t i) {
    Value loaded = extend(l.load(l.b.getI8Type(), bytes.left, l.add(at, i)), i32, true);
    if (bytes.isSigned)
      loaded = l.b.create<arith::XOrIOp>(l.loc, loaded, number(0x80));
    return l.b.create<arith::ShLIOp>(l.loc, loaded, number(8 * i)).getResult();
  };
  Value quad = byte(0);
  if (auto known = l.constant(count)) {
    for (int64_t i = 1; i < *known; ++i)
      quad = l.b.create<arith::OrIOp>(l.loc, quad, byte(i));
    return splat(quad);
  }
  for (int64_t i = 1; i < 3; ++i) { // one to three exist
    auto op = l.b.create<scf::IfOp>(l.loc, TypeRange(i32), l.less(l.index(i), count), true);
    OpBuilder::InsertionGuard guard(l.b);
    l.b.setInsertionPointToStart(op.thenBlock());
    l.b.create<scf::YieldOp>(l.loc, ValueRange(l.b.create<arith::OrIOp>(l.loc, quad, byte(i)).getResult()));
    l.b.setInsertionPointToStart(op.elseBlock());
    l.b.create<scf::YieldOp>(l.loc, ValueRange(quad));
    quad = op.getResult(0);
  }
  return splat(quad);
}

/// sum + left * right, summed over the neighbours along k.
Value ByteTileEmitter::dot(Value sum, Value leftSide, Value right) {
  switch (kernel) {
  case ByteKernel::Quads:
    return dotOfQuads(l, sum, leftSide, right);
  case ByteKernel::Pairs: {
    StringRef name = tile.lanes == 16  ? "llvm.x86.avx512.pmaddw.d.512"
                     : tile.lanes == 8 ? "llvm.x86.avx2.pmadd.wd"
                                       : "llvm.x86.sse2.pmadd.wd";
    auto product = l.b.create<LLVM::CallIntrinsicOp>(l.loc, Type(vector), name, ValueRange{leftSide, right});
    return add(sum, product.getResult(0));
  }
  case ByteKernel::Singles:
    break;
  }
  return add(sum, mul(extend(leftSide, i32, false), extend(right, i32, false)));
}

/// One step along k: tile.rows * tile.vectors sums, then the rows' own sums where they are needed.
LoopBuilder::Values ByteTileEmitter::stepOf(Value index, LoopBuilder::Values sums, Value count) {
  Value row = l.add(bytes.panel, l.mul(index, bytes.panelColumns * step));
  SmallVector<Value> columns;
  for (int64_t j = 0; j < tile.vectors; ++j)
    columns.push_back(column(row, j));
  int64_t size = tile.rows * tile.vectors;
  Value ones = needsRowSums ? splat(number(0x01010101)) : Value();
  for (int64_t r = 0; r < tile.rows; ++r) {
    Value splatted = left(l.add(bytes.rows[r], l.mul(index, step)), count);
    for (int64_t j = 0; j < tile.vectors; ++j)
      sums[r * tile.vectors + j] = dot(sums[r * tile.vectors + j], splatted, columns[j]);
    if (needsRowSums)
      sums[size + r] = dot(sums[size + r], splatted, ones);
  }
  return sums;
}

/// Of quads: with l' = l + dl and r' = r + dr multiplied, sum (l - zl) * (r - zr) over k is
/// sum l' r' - (zl + dl) * sum r' - (zr + dr) * (sum l' - k * (zl + dl)).
LoopBuilder::Values ByteTileEmitter::corrected(LoopBuilder::Values sums) {
  int64_t size = tile.rows * tile.vectors;
  Value leftZero = bytes.isSigned ? add(bytes.leftZero, number(128)) : bytes.leftZero;
  Value leftZeros = splat(leftZero);
  Value depth = splat(mul(leftZero, l.b.create<arith::IndexCastOp>(l.loc, i32, bytes.depth)));
  for (int64_t j = 0; j < tile.vectors; ++j) {
    Value correction = mul(l.load(vector, bytes.columnSums, l.index(j * tile.lanes)), leftZeros);
    Value rightZero = bytes.columns.zeros.empty() ? splat(number(0)) : bytes.columns.zeros[j];
    if (bytes.columns.isShifted)
      rightZero = sub(rightZero, splat(number(128)));
    for (int64_t r = 0; r < tile.rows; ++r) {
      Value &sum = sums[r * tile.vectors + j];
      sum = sub(sum, correction);
      // A dot product with ones sums four bytes of the row in every lane, so each lane holds the whole sum.
      if (needsRowSums)
        sum = sub(sum, mul(rightZero, sub(sums[size + r], depth)));
    }
  }
  return LoopBuilder::Values(sums.begin(), sums.begin() + size);
}

LoopBuilder::Values ByteTileEmitter::emit() {
  prepareZeros();
  LoopBuilder::Values sums(tile.rows * tile.vectors + (needsRowSums ? tile.rows : 0), l.zero(vector));
  bool hasTail = kernel == ByteKernel::Quads && !bytes.isStaged;
  Value steps = hasTail ? l.div(bytes.depth, step) : l.ceilDiv(bytes.depth, step);
  sums = l.loop(l.index(0), steps, 1, sums,
                [&](Value index, LoopBuilder::Values inner) { return stepOf(index, inner, {}); });
  if (hasTail) {
    Value rest = l.rem(bytes.depth, step);
    sums = l.loop(steps, l.add(steps, l.min(rest, l.index(1))), 1, sums,
                  [&](Value index, LoopBuilder::Values inner) { return stepOf(index, inner, rest); });
  }
  return kernel == ByteKernel::Quads ? corrected(sums) : sums;
}

LoopBuilder::Values multiplyBytes(KernelContext &context, Tile tile, const ByteTile &bytes) {
  return ByteTileEmitter(context, tile, bytes).emit();
}

Type stagedType(KernelContext &context) {
  OpBuilder &b = context.l.b;
  return byteKernel(context.target) == ByteKernel::Quads ? b.getI8Type() : b.getI16Type();
}

Value stagedLeft(KernelContext &context, Value loaded, bool isSigned, Value leftZero) {
  OpBuilder &b = context.l.b;
  Location loc = context.l.loc;
  auto shape = dyn_cast<VectorType>(loaded.getType());
  auto shaped = [&](Value scalar) {
    return shape ? context.l.splat(VectorType::get(shape.getShape(), scalar.getType()), scalar) : scalar;
  };
  if (byteKernel(context.target) == ByteKernel::Quads)
    return isSigned
               ? b.create<arith::XOrIOp>(loc, loaded, shaped(b.create<arith::ConstantIntOp>(loc, -128, 8))).getResult()
               : loaded;
  Type type = b.getI16Type();
  if (shape)
    type = VectorType::get(shape.getShape(), type);
  Value wide = isSigned ? b.create<arith::ExtSIOp>(loc, type, loaded).getResult()
                        : b.create<arith::ExtUIOp>(loc, type, loaded).getResult();
  return b.create<arith::SubIOp>(loc, wide, shaped(b.create<arith::TruncIOp>(loc, b.getI16Type(), leftZero)));
}

} // namespace firn

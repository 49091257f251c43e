#include "compiler/codegen/cpu/ByteTile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace firn {
namespace {

class ByteTileEmitter {
public:
  ByteTileEmitter(KernelContext &kernelContext, Tile shape, const ByteTile &operands)
      : l(kernelContext.l), tile(shape), bytes(operands) {
    i32 = l.b.getI32Type();
    vector = VectorType::get({tile.lanes}, i32);
    isDot = bytes.packed.kStep == 4;
    isSigned = !bytes.leftType.isUnsignedInteger();
    needsRowSums = !bytes.rightZeros.empty() || bytes.packed.shift;
  }
  LoopBuilder::Values emit();

private:
  Value number(int64_t value) { return l.b.create<arith::ConstantIntOp>(l.loc, value, 32); }
  Value splat(Value scalar) { return l.splat(vector, scalar); }
  Value mul(Value a, Value b) { return l.b.create<arith::MulIOp>(l.loc, a, b); }
  Value sub(Value a, Value b) { return l.b.create<arith::SubIOp>(l.loc, a, b); }
  Value add(Value a, Value b) { return l.b.create<arith::AddIOp>(l.loc, a, b); }
  LoopBuilder::Values step(Value index, LoopBuilder::Values sums, Value count);
  Value leftQuad(Value at, Value count);
  Value leftByte(Value at);

  LoopBuilder &l;
  Tile tile;
  const ByteTile &bytes;
  Type i32;
  VectorType vector;
  bool isDot, isSigned, needsRowSums;
};

} // namespace

/// A byte of the left side as i32.
Value ByteTileEmitter::leftByte(Value at) {
  Value loaded = l.load(l.b.getI8Type(), bytes.left, at);
  if (isSigned)
    return l.b.create<arith::ExtSIOp>(l.loc, i32, loaded);
  return l.b.create<arith::ExtUIOp>(l.loc, i32, loaded);
}

/// Four bytes of a row as unsigned ones (signed ones are shifted by 128); only the first `count` exist, the others are
/// 0.
Value ByteTileEmitter::leftQuad(Value at, Value count) {
  Value quad;
  if (!count) {
    quad = l.load(i32, l.at(bytes.left, at), l.index(0));
  } else {
    auto known = l.constant(count);
    quad = number(0);
    for (int64_t i = 0; i < *known; ++i) {
      Value loaded = l.b.create<arith::ExtUIOp>(l.loc, i32, l.load(l.b.getI8Type(), bytes.left, l.add(at, i)));
      quad = l.b.create<arith::OrIOp>(l.loc, quad, l.b.create<arith::ShLIOp>(l.loc, loaded, number(8 * i)));
    }
  }
  if (isSigned) {
    uint32_t exist = count ? (1u << 8 * *l.constant(count)) - 1 : ~0u;
    quad = l.b.create<arith::XOrIOp>(l.loc, quad, number(int32_t(0x80808080u & exist)));
  }
  return quad;
}

/// One step of kStep elements along k: tile.rows * tile.vectors sums, then the rows' own sums where they are needed.
LoopBuilder::Values ByteTileEmitter::step(Value index, LoopBuilder::Values sums, Value count) {
  int64_t kStep = bytes.packed.kStep, nr = bytes.packed.nr;
  Value row = l.add(bytes.panel, l.mul(index, nr * kStep));
  SmallVector<Value> columns;
  for (int64_t j = 0; j < tile.vectors; ++j) {
    Value at = l.add(row, j * tile.lanes * kStep);
    if (isDot) {
      columns.push_back(l.load(vector, l.at(bytes.right, at), l.index(0)));
      continue;
    }
    Value loaded = l.load(VectorType::get({tile.lanes}, l.b.getI8Type()), bytes.right, at);
    columns.push_back(bytes.packed.elementType.isUnsignedInteger()
                          ? l.b.create<arith::ExtUIOp>(l.loc, vector, loaded).getResult()
                          : l.b.create<arith::ExtSIOp>(l.loc, vector, loaded).getResult());
  }
  auto dot = [&](Value sum, Value left, Value right) -> Value {
    if (!isDot)
      return add(sum, mul(left, right));
    StringRef name = tile.lanes == 16  ? "llvm.x86.avx512.vpdpbusd.512"
                     : tile.lanes == 8 ? "llvm.x86.avx512.vpdpbusd.256"
                                       : "llvm.x86.avx512.vpdpbusd.128";
    return l.b.create<LLVM::CallIntrinsicOp>(l.loc, Type(vector), name, ValueRange{sum, left, right}).getResult(0);
  };
  int64_t size = tile.rows * tile.vectors;
  Value ones = needsRowSums ? splat(number(isDot ? 0x01010101 : 1)) : Value();
  for (int64_t r = 0; r < tile.rows; ++r) {
    Value at = l.add(bytes.rows[r], l.mul(index, kStep));
    Value left = splat(isDot ? leftQuad(at, count) : leftByte(at));
    for (int64_t j = 0; j < tile.vectors; ++j)
      sums[r * tile.vectors + j] = dot(sums[r * tile.vectors + j], left, columns[j]);
    if (needsRowSums)
      sums[size + r] = isDot ? dot(sums[size + r], left, ones) : add(sums[size + r], left);
  }
  return sums;
}

LoopBuilder::Values ByteTileEmitter::emit() {
  int64_t size = tile.rows * tile.vectors, k = bytes.packed.k, kStep = bytes.packed.kStep;
  LoopBuilder::Values sums(size + (needsRowSums ? tile.rows : 0), l.zero(vector));
  sums = l.loop(l.index(0), l.index(k / kStep), 1, sums,
                [&](Value index, LoopBuilder::Values inner) { return step(index, inner, {}); });
  if (k % kStep)
    sums = step(l.index(k / kStep), sums, l.index(k % kStep));

  // With l' = l + dl and r' = r + dr multiplied, sum (l - zl) * (r - zr) over k is
  // sum l' r' - (zl + dl) * sum r' - (zr + dr) * (sum l' - k * (zl + dl)).
  Value leftZero = number(bytes.leftZeroNumber);
  if (bytes.leftZero)
    leftZero = isSigned ? l.b.create<arith::ExtSIOp>(l.loc, i32, bytes.leftZero).getResult()
                        : l.b.create<arith::ExtUIOp>(l.loc, i32, bytes.leftZero).getResult();
  if (isDot && isSigned)
    leftZero = add(leftZero, number(128));
  Value leftZeros = splat(leftZero);
  // The packed columns are r - shift where shift is 128: their zero point is zr - 128.
  Value depth = splat(mul(leftZero, number(k)));
  Value sumsStart = l.at(bytes.right, l.add(bytes.panel, (bytes.packed.paddedK() - 4) * bytes.packed.nr));
  for (int64_t j = 0; j < tile.vectors; ++j) {
    Value columnSums = l.load(vector, sumsStart, l.index(j * tile.lanes));
    Value correction = mul(columnSums, leftZeros);
    Value rightZero = bytes.rightZeros.empty() ? splat(number(0)) : bytes.rightZeros[j];
    if (bytes.packed.shift)
      rightZero = sub(rightZero, splat(number(128)));
    for (int64_t r = 0; r < tile.rows; ++r) {
      Value &sum = sums[r * tile.vectors + j];
      sum = sub(sum, correction);
      if (!needsRowSums)
        continue;
      // A byte dot product sums four bytes of the row in every lane, so each lane holds the whole sum.
      sum = sub(sum, mul(rightZero, sub(sums[size + r], depth)));
    }
  }
  return LoopBuilder::Values(sums.begin(), sums.begin() + size);
}

LoopBuilder::Values multiplyBytes(KernelContext &context, Tile tile, const ByteTile &bytes) {
  return ByteTileEmitter(context, tile, bytes).emit();
}

} // namespace firn

// Elements in registers: how each element type is loaded, computed on and stored, as a scalar (lanes 0) or as a native
// vector of `lanes`.
//
// In registers f16 and bf16 are f32 values that are representable in 16 bits (each operation of the graph rounds);
// integers are signless of their width, their sign comes from the firn element type; bool is i1.
#ifndef FIRN_COMPILER_CODEGEN_CPU_ELEMENTS_H
#define FIRN_COMPILER_CODEGEN_CPU_ELEMENTS_H

#include "compiler/codegen/cpu/Target.h"
#include "dialects/firn/Firn.h"
#include "mlir/IR/Builders.h"

namespace firn {

/// Emits element code at a builder's insertion point.
class Elements {
public:
  Elements(mlir::OpBuilder &at, mlir::Location where, const TargetDescription &forTarget)
      : builder(at), loc(where), target(forTarget) {}

  /// Whether elements of this type can be in registers (f16, bf16, f32, f64, bool, integers of 8 to 64 bits).
  static bool supports(mlir::Type elementType);
  /// The type in registers: f32 for f16 and bf16, i8 for ui8, ...; a vector of it unless lanes is 0.
  static mlir::Type registerType(mlir::Type elementType, unsigned lanes);
  /// Bytes of an element in memory (bool: 1).
  static unsigned bytes(mlir::Type elementType);

  /// Elements [offset, offset + lanes) of a buffer; with `count` only the first count, the other lanes are 0.
  mlir::Value load(mlir::Value buffer, mlir::Value offset, mlir::Type elementType, unsigned lanes,
                   mlir::Value count = {});
  void store(mlir::Value value, mlir::Value buffer, mlir::Value offset, mlir::Type elementType, mlir::Value count = {});
  mlir::Value splat(mlir::Value scalar, unsigned lanes);
  /// A number of the firn element type (rounded, saturated to it).
  mlir::Value constant(double value, mlir::Type elementType, unsigned lanes);
  mlir::Value integer(int64_t value, mlir::Type elementType, unsigned lanes);
  /// One element of a constant's bytes.
  mlir::Value constant(const ConstantBytes &bytes, int64_t element, mlir::Type elementType, unsigned lanes);

  /// What an elementwise operation (dialects/firn/Elementwise.td; not clip's and cast_like's tensor operands beyond the
  /// elements given) computes on elements. `operands`: registers of the op's operands in order, null where absent, all
  /// of the same lanes. Rounds to the result's element type. Null, with the reason in whyNot, for what it does not
  /// know.
  mlir::Value compute(mlir::Operation *op, llvm::ArrayRef<mlir::Value> operands, std::string &whyNot);
  /// Whether compute() knows this operation on these types.
  static bool computes(mlir::Operation *op);

  /// The meaning of firn.cast between two element types.
  mlir::Value cast(mlir::Value value, mlir::Type from, mlir::Type to);
  /// After arithmetic in f32: rounds to f16 or bf16 and back; nothing for other types.
  mlir::Value round(mlir::Value value, mlir::Type elementType);
  /// a and b of one element type; NaN wins in max and min of floats.
  mlir::Value maximum(mlir::Value a, mlir::Value b, mlir::Type elementType);
  mlir::Value minimum(mlir::Value a, mlir::Value b, mlir::Type elementType);
  mlir::Value add(mlir::Value a, mlir::Value b);
  mlir::Value sub(mlir::Value a, mlir::Value b);
  mlir::Value mul(mlir::Value a, mlir::Value b);
  mlir::Value div(mlir::Value a, mlir::Value b, mlir::Type elementType);
  mlir::Value fma(mlir::Value a, mlir::Value b, mlir::Value c); // floats
  /// Inside of the register type of `like`.
  mlir::Value number(double value, mlir::Type like);

private:
  mlir::Value unary(mlir::Operation *op, mlir::Value x, mlir::Type elementType);
  mlir::Value floatUnary(mlir::Operation *op, mlir::Value x);
  mlir::Value binary(mlir::Operation *op, mlir::Value a, mlir::Value b, mlir::Type elementType);
  mlir::Value compare(mlir::Operation *op, mlir::Value a, mlir::Value b, mlir::Type elementType);
  mlir::Value power(mlir::Value base, mlir::Type baseType, mlir::Value exponent, mlir::Type exponentType);
  mlir::Value remainder(mlir::Value a, mlir::Value b, mlir::Type elementType, bool fmod);
  mlir::Value quantize(mlir::Operation *op, llvm::ArrayRef<mlir::Value> operands);
  mlir::Value dequantize(mlir::Operation *op, llvm::ArrayRef<mlir::Value> operands);
  mlir::Value floatToInteger(mlir::Value value, mlir::Type to);

  mlir::OpBuilder &builder;
  mlir::Location loc;
  const TargetDescription &target;
};

} // namespace firn
#endif

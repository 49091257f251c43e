// The firn dialect: registration, types, constants.
#include "dialects/firn/Firn.h"
#include "dialects/firn/Inference.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/IR/Matchers.h"
#include "runtime/abi/dtype.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/xxhash.h"
#include <atomic>
#include <cmath>

using namespace mlir;

#include "dialects/firn/FirnOpsDialect.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/firn/FirnOpsTypes.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/firn/FirnOpsAttrs.cpp.inc"

namespace firn {

void FirnDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/firn/FirnOpsTypes.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/firn/FirnOpsAttrs.cpp.inc"
      >();
  registerOperations();
}

// --- types -----------------------------------------------------------------------------------------------------------

RankedTensorType tensorType(Type elementType, ArrayRef<DimExpr> dims) {
  SmallVector<int64_t> shape;
  SmallVector<Attribute> texts;
  Builder builder(elementType.getContext());
  bool isDynamic = false;
  for (const DimExpr &dim : dims) {
    bool isStatic = dim.isConstant() && dim.constant() >= 0;
    shape.push_back(isStatic ? dim.constant() : ShapedType::kDynamic);
    isDynamic |= !isStatic;
    texts.push_back(builder.getStringAttr(isStatic || dim.isConstant() ? "" : dim.str()));
  }
  Attribute encoding = isDynamic ? DimsAttr::get(builder.getContext(), builder.getArrayAttr(texts)) : Attribute();
  return RankedTensorType::get(shape, elementType, encoding);
}

DimExpr dimOf(RankedTensorType type, int64_t axis) {
  if (!type.isDynamicDim(axis))
    return DimExpr(type.getDimSize(axis));
  auto dims = dyn_cast_or_null<DimsAttr>(type.getEncoding());
  if (dims && axis < int64_t(dims.getExprs().size()))
    if (auto text = dyn_cast<StringAttr>(dims.getExprs()[axis]); text && !text.empty())
      if (auto expr = DimExpr::parse(std::string_view(text.getValue().data(), text.getValue().size())))
        return *expr;
  static std::atomic<uint64_t> count;
  return DimExpr::symbol("?" + std::to_string(++count));
}

SmallVector<DimExpr> dimsOf(RankedTensorType type) {
  SmallVector<DimExpr> dims;
  for (int64_t i = 0; i < type.getRank(); ++i)
    dims.push_back(dimOf(type, i));
  return dims;
}

std::string shapeText(ArrayRef<DimExpr> dims) {
  std::string text = "[";
  for (const DimExpr &dim : dims)
    text += (text.size() > 1 ? ", " : "") + dim.str();
  return text + "]";
}

std::string shapeText(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? shapeText(dimsOf(tensor)) : "[*]";
}

namespace {
struct NamedDtype {
  int32_t dtype;
  const char *name;
};
constexpr NamedDtype dtypeNames[] = {{FIRN_F32, "float32"},
                                     {FIRN_U8, "uint8"},
                                     {FIRN_I8, "int8"},
                                     {FIRN_U16, "uint16"},
                                     {FIRN_I16, "int16"},
                                     {FIRN_I32, "int32"},
                                     {FIRN_I64, "int64"},
                                     {FIRN_STRING, "string"},
                                     {FIRN_BOOL, "bool"},
                                     {FIRN_F16, "float16"},
                                     {FIRN_F64, "double"},
                                     {FIRN_U32, "uint32"},
                                     {FIRN_U64, "uint64"},
                                     {FIRN_C64, "complex64"},
                                     {FIRN_C128, "complex128"},
                                     {FIRN_BF16, "bfloat16"},
                                     {FIRN_F8E4M3FN, "float8e4m3fn"},
                                     {FIRN_F8E4M3FNUZ, "float8e4m3fnuz"},
                                     {FIRN_F8E5M2, "float8e5m2"},
                                     {FIRN_F8E5M2FNUZ, "float8e5m2fnuz"},
                                     {FIRN_U4, "uint4"},
                                     {FIRN_I4, "int4"},
                                     {FIRN_F4E2M1, "float4e2m1"},
                                     {FIRN_F8E8M0, "float8e8m0"},
                                     {FIRN_U2, "uint2"},
                                     {FIRN_I2, "int2"}};
} // namespace

Type elementTypeOf(MLIRContext *context, int32_t dtype) {
  Builder b(context);
  auto unsignedType = [&](unsigned bits) { return IntegerType::get(context, bits, IntegerType::Unsigned); };
  switch (dtype) {
  case FIRN_F32:
    return b.getF32Type();
  case FIRN_U8:
    return unsignedType(8);
  case FIRN_I8:
    return b.getI8Type();
  case FIRN_U16:
    return unsignedType(16);
  case FIRN_I16:
    return b.getI16Type();
  case FIRN_I32:
    return b.getI32Type();
  case FIRN_I64:
    return b.getI64Type();
  case FIRN_STRING:
    return StringType::get(context);
  case FIRN_BOOL:
    return b.getI1Type();
  case FIRN_F16:
    return b.getF16Type();
  case FIRN_F64:
    return b.getF64Type();
  case FIRN_U32:
    return unsignedType(32);
  case FIRN_U64:
    return unsignedType(64);
  case FIRN_C64:
    return ComplexType::get(b.getF32Type());
  case FIRN_C128:
    return ComplexType::get(b.getF64Type());
  case FIRN_BF16:
    return b.getBF16Type();
  case FIRN_F8E4M3FN:
    return b.getFloat8E4M3FNType();
  case FIRN_F8E4M3FNUZ:
    return b.getFloat8E4M3FNUZType();
  case FIRN_F8E5M2:
    return b.getFloat8E5M2Type();
  case FIRN_F8E5M2FNUZ:
    return b.getFloat8E5M2FNUZType();
  case FIRN_U4:
    return unsignedType(4);
  case FIRN_I4:
    return b.getIntegerType(4);
  case FIRN_U2:
    return unsignedType(2);
  case FIRN_I2:
    return b.getIntegerType(2);
  case FIRN_F4E2M1:
  case FIRN_F8E8M0:
    return OpaqueElementType::get(context, dtype);
  }
  return {};
}

int32_t dtypeOf(Type type) {
  if (auto opaque = dyn_cast<OpaqueElementType>(type))
    return opaque.getDtype();
  for (const NamedDtype &entry : dtypeNames)
    if (elementTypeOf(type.getContext(), entry.dtype) == type)
      return entry.dtype;
  return 0;
}

std::string elementTypeText(Type elementType) {
  int32_t dtype = dtypeOf(elementType);
  for (const NamedDtype &entry : dtypeNames)
    if (entry.dtype == dtype)
      return entry.name;
  return "unknown";
}

// --- constants -------------------------------------------------------------------------------------------------------

/// Whether `dense` attributes hold this element type as we do: whole bytes, known to MLIR.
static bool fitsDense(Type type) { return type.isIntOrFloat() && type.getIntOrFloatBitWidth() >= 8; }

std::optional<ConstantBytes> constantBytes(Attribute value) {
  if (auto resource = dyn_cast_or_null<DenseResourceElementsAttr>(value)) {
    AsmResourceBlob *blob = resource.getRawHandle().getBlob();
    if (!blob)
      return std::nullopt;
    return ConstantBytes{blob->getData(), false};
  }
  auto dense = dyn_cast_or_null<DenseElementsAttr>(value);
  if (!dense)
    return std::nullopt;
  if (dense.getElementType().isInteger(1)) {
    static const char bytes[] = {0, 1};
    if (!dense.isSplat())
      return std::nullopt;
    return ConstantBytes{ArrayRef<char>(&bytes[dense.getSplatValue<bool>()], 1), true};
  }
  if (!fitsDense(dense.getElementType()))
    return std::nullopt;
  return ConstantBytes{dense.getRawData(), dense.isSplat()};
}

static ElementsAttr makeBlob(RankedTensorType type, ArrayRef<char> bytes, llvm::function_ref<AsmResourceBlob()> make) {
  auto &manager = DenseResourceElementsHandle::getManagerInterface(type.getContext());
  std::string key =
      "w" + llvm::utohexstr(llvm::xxh3_64bits(ArrayRef(reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size())));
  key += "_" + std::to_string(bytes.size());
  if (auto *entry = manager.getBlobManager().lookup(key))
    if (AsmResourceBlob *blob = entry->getBlob(); blob && blob->getData() == bytes)
      return DenseResourceElementsAttr::get(
          type, DenseResourceElementsHandle(entry, type.getContext()->getLoadedDialect<BuiltinDialect>()));
  return DenseResourceElementsAttr::get(type, key, make());
}

/// The value of a type that `dense` attributes hold whose elements all have the same bytes; null for others.
static ElementsAttr splatOf(RankedTensorType type, ArrayRef<char> bytes) {
  Type element = type.getElementType();
  int64_t count = type.getNumElements();
  if (count == 0 || firn_dtype_bits(dtypeOf(element)) < 8 || dtypeOf(element) == FIRN_STRING)
    return {};
  size_t size = bytes.size() / size_t(count);
  if (std::memcmp(bytes.data(), bytes.data() + size, bytes.size() - size) != 0)
    return {};
  if (element.isInteger(1))
    return DenseElementsAttr::get(type, bytes[0] != 0);
  return fitsDense(element) ? DenseElementsAttr::getFromRawBuffer(type, bytes.take_front(size)) : ElementsAttr();
}

ElementsAttr constantFromBytes(RankedTensorType type, ArrayRef<char> bytes) {
  if (ElementsAttr splat = splatOf(type, bytes))
    return splat;
  if (fitsDense(type.getElementType()) && bytes.size() <= 64)
    return DenseElementsAttr::getFromRawBuffer(type, bytes);
  if (bytes.empty())
    bytes = ArrayRef<char>("", size_t(0)); // MLIR copies from the pointer of an empty list too
  return makeBlob(type, bytes, [&] { return HeapAsmResourceBlob::allocateAndCopyWithAlign(bytes, 64); });
}

ElementsAttr constantFromMapped(RankedTensorType type, ArrayRef<char> bytes, std::shared_ptr<void> keepAlive) {
  if (bytes.size() <= 4096) // not worth a mapping
    return constantFromBytes(type, bytes);
  if (ElementsAttr splat = splatOf(type, bytes))
    return splat;
  return makeBlob(type, bytes, [&] {
    return AsmResourceBlob(bytes, 1, [keepAlive](void *, size_t, size_t) {}, /*dataIsMutable=*/false);
  });
}

ElementsAttr constantOf(Value value) {
  auto constant = value.getDefiningOp<ConstantOp>();
  return constant ? dyn_cast<ElementsAttr>(constant.getValue()) : ElementsAttr();
}

/// What firn.elements (or the expressions of firn.dim_values) says of a result.
static std::optional<SmallVector<DimExpr>> recordedElements(OpResult result) {
  Operation *op = result.getOwner();
  auto known = op->getAttrOfType<ArrayAttr>(isa<DimValuesOp>(op) ? "exprs" : "firn.elements");
  if (known && op->getNumResults() > 1)
    known =
        result.getResultNumber() < known.size() ? dyn_cast<ArrayAttr>(known[result.getResultNumber()]) : ArrayAttr();
  if (!known)
    return std::nullopt;
  SmallVector<DimExpr> elements;
  for (Attribute entry : known) {
    auto text = dyn_cast<StringAttr>(entry);
    auto expr = text ? DimExpr::parse(std::string_view(text.data(), text.size())) : std::nullopt;
    if (!expr)
      return std::nullopt;
    elements.push_back(*expr);
  }
  return elements;
}

Attribute elementsAttribute(Operation *op, ArrayRef<std::optional<SmallVector<DimExpr>>> contents) {
  Builder builder(op->getContext());
  SmallVector<Attribute> lists;
  bool isKnown = false;
  for (const auto &elements : contents) {
    isKnown |= elements.has_value();
    if (!elements) {
      lists.push_back(builder.getUnitAttr());
      continue;
    }
    SmallVector<Attribute> texts;
    for (const DimExpr &e : *elements)
      texts.push_back(builder.getStringAttr(e.str()));
    lists.push_back(builder.getArrayAttr(texts));
  }
  return !isKnown ? Attribute() : op->getNumResults() == 1 ? lists[0] : builder.getArrayAttr(lists);
}

/// A simple fraction as an expression: what sizes are scaled by.
static DimExpr fraction(double number) {
  for (int64_t divisor = 1; divisor <= 256; divisor *= 2) {
    double whole = number * double(divisor);
    if (!(std::abs(whole) <= 65536))
      return DimExpr::unknown();
    if (whole == std::floor(whole))
      return DimExpr(int64_t(whole)) * DimExpr::inverse(divisor);
  }
  return DimExpr::unknown();
}

std::optional<SmallVector<DimExpr>> knownNumbers(Value value) {
  auto result = dyn_cast<OpResult>(value);
  if (!result)
    return std::nullopt;
  if (auto recorded = recordedElements(result))
    return recorded;
  return constantNumbers(constantOf(value));
}

std::optional<SmallVector<DimExpr>> constantNumbers(ElementsAttr constant) {
  if (!constant)
    return std::nullopt;
  auto type = cast<RankedTensorType>(constant.getType());
  auto bytes = constantBytes(constant);
  int32_t dtype = dtypeOf(type.getElementType());
  int64_t count = type.getNumElements(), size = firn_dtype_bytes(dtype, 1);
  bool isReal = dtype == FIRN_F32 || dtype == FIRN_F64;
  if (!bytes || count > (isReal ? 64 : 4096) ||
      !(isReal || dtype == FIRN_I64 || dtype == FIRN_I32 || dtype == FIRN_BOOL))
    return std::nullopt;
  SmallVector<DimExpr> elements;
  for (int64_t i = 0; i < count; ++i) {
    const char *at = bytes->bytes.data() + (bytes->isSplat ? 0 : i * size);
    auto read = [&](auto number) {
      std::memcpy(&number, at, sizeof number);
      return number;
    };
    elements.push_back(dtype == FIRN_I64   ? DimExpr(read(int64_t()))
                       : dtype == FIRN_I32 ? DimExpr(read(int32_t()))
                       : dtype == FIRN_F32 ? fraction(read(float()))
                       : dtype == FIRN_F64 ? fraction(read(double()))
                                           : DimExpr(*at != 0));
  }
  return elements;
}

std::optional<SmallVector<DimExpr>> integerElements(Value value) {
  auto type = dyn_cast<TensorType>(value.getType());
  return type && isa<FloatType>(type.getElementType()) ? std::nullopt : knownNumbers(value);
}

std::optional<SmallVector<int64_t>> constantIntegers(Value value) {
  auto elements = integerElements(value);
  if (!elements)
    return std::nullopt;
  SmallVector<int64_t> numbers;
  for (const DimExpr &e : *elements) {
    if (!e.isConstant())
      return std::nullopt;
    numbers.push_back(e.constant());
  }
  return numbers;
}

Value operandOf(Operation *op, unsigned i) {
  if (i >= op->getNumOperands() || isAbsent(op->getOperand(i)))
    return {};
  return op->getOperand(i);
}

std::string nodeName(Location location) {
  if (auto name = dyn_cast<NameLoc>(location))
    return name.getName().str();
  if (auto fused = dyn_cast<FusedLoc>(location)) {
    std::string names;
    for (Location part : fused.getLocations())
      if (std::string name = nodeName(part); !name.empty())
        names += (names.empty() ? "" : "+") + name;
    return names;
  }
  return "";
}

} // namespace firn

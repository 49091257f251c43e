// The plan dialect: registration, words.
#include "dialects/plan/Plan.h"
#include "runtime/abi/dtype.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;

namespace {

/// A word of a table, printed without quotes.
ParseResult parseKeyword(OpAsmParser &parser, StringAttr &word) {
  std::string text;
  if (parser.parseKeywordOrString(&text))
    return failure();
  word = parser.getBuilder().getStringAttr(text);
  return success();
}
void printKeyword(OpAsmPrinter &printer, Operation *, StringAttr word) {
  printer.printKeywordOrString(word.getValue());
}

constexpr llvm::StringLiteral valueKinds[] = {"constant",  "input_dim", "symbol", "add", "sub", "mul",
                                              "floor_div", "ceil_div",  "mod",    "min", "max"};
constexpr llvm::StringLiteral bufferKinds[] = {"input", "output", "weight", "arena", "late", "alias"};
constexpr llvm::StringLiteral forms[] = {"tensor", "unranked",        "sequence", "optional", "optional_sequence",
                                         "map",    "sequence_of_maps"};
constexpr llvm::StringLiteral dtypes[FIRN_DTYPE_COUNT] = {
    "none",       "f32",    "u8",         "i8",  "u16", "i16",    "i32",    "i64",  "string",
    "bool",       "f16",    "f64",        "u32", "u64", "c64",    "c128",   "bf16", "f8e4m3fn",
    "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "u4",  "i4",  "f4e2m1", "f8e8m0", "u2",   "i2"};

template <size_t count> StringRef wordOf(const llvm::StringLiteral (&words)[count], int32_t number) {
  return number >= 0 && size_t(number) < count ? StringRef(words[number]) : StringRef();
}
template <size_t count> int32_t numberOf(const llvm::StringLiteral (&words)[count], StringRef word) {
  for (size_t i = 0; i < count; ++i)
    if (word == words[i])
      return int32_t(i);
  return -1;
}

} // namespace

#include "dialects/plan/PlanOpsDialect.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/plan/PlanOps.cpp.inc"

namespace firn::plan {

void PlanDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "dialects/plan/PlanOps.cpp.inc"
      >();
}

StringRef valueKind(int32_t number) { return wordOf(valueKinds, number); }
int32_t valueKind(StringRef word) { return numberOf(valueKinds, word); }
StringRef bufferKind(int32_t number) { return wordOf(bufferKinds, number); }
int32_t bufferKind(StringRef word) { return numberOf(bufferKinds, word); }
StringRef formWord(int32_t form) { return wordOf(forms, form); }
int32_t formOfWord(StringRef word) { return numberOf(forms, word); }
StringRef dtypeWord(int32_t dtype) { return wordOf(dtypes, dtype); }
int32_t dtypeOfWord(StringRef word) { return numberOf(dtypes, word); }

bool isStep(Operation *op) {
  return isa<KernelOp, ReferenceOp, CopyOp, ValuesOp, BindOp, IfOp, LoopOp, AppendOp, ListOp, FailOp>(op);
}

ArrayRef<int32_t> numbers(Operation *op, StringRef attribute) {
  auto list = op->getAttrOfType<DenseI32ArrayAttr>(attribute);
  return list ? list.asArrayRef() : ArrayRef<int32_t>();
}

LogicalResult ProgramOp::verifyRegions() { return verifyProgram(*this); }

} // namespace firn::plan

// Rules: the driver, and reading and building of constants.
#include "passes/Rules.h"
#include "passes/GraphForm.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "runtime/abi/dtype.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/Hashing.h"
#include <cstring>

using namespace mlir;

namespace firn {

// --- driver ----------------------------------------------------------------------------------------------------------

void RuleRewriter::push(Operation *op) {
  if (places.try_emplace(op, worklist.size()).second)
    worklist.push_back(op);
}

Operation *RuleRewriter::pop() {
  Operation *op = nullptr;
  while (!op && !worklist.empty()) {
    op = worklist.back();
    worklist.pop_back();
  }
  places.erase(op);
  return op;
}

void RuleRewriter::pushUsers(Value value) {
  for (Operation *user : value.getUsers())
    push(user);
}

void RuleRewriter::notifyOperationErased(Operation *op) {
  // What defined the operands may have one use left now, or only uses of one kind, which some rules ask for. Of values
  // with many uses the next round finds that: to look at all of them for each that goes would take quadratic time.
  constexpr unsigned fewUses = 16;
  for (Value operand : op->getOperands())
    if (Operation *producer = operand.getDefiningOp(); producer && !isa<ConstantOp, AbsentOp>(producer)) {
      push(producer);
      if (llvm::hasNItemsOrLess(operand.use_begin(), operand.use_end(), fewUses))
        pushUsers(operand);
    }
  if (auto place = places.find(op); place != places.end()) { // it was among the users
    worklist[place->second] = nullptr;
    places.erase(place);
  }
}

bool isReturned(Value value) {
  return llvm::any_of(value.getUsers(), [](Operation *user) { return isa<func::ReturnOp>(user); });
}

bool isTakenAsOutput(Value value) {
  Operation *producer = value.getDefiningOp();
  return !producer || isa<ConstantOp>(producer) || isReturned(value);
}

std::string otherReader(Value value, Operation *reader) {
  if (value.hasOneUse())
    return "";
  std::string what = "the output of '" + nodeName(value.getDefiningOp()->getLoc()) + "' is ";
  if (isReturned(value))
    return what + "an output of the graph too";
  for (Operation *user : value.getUsers())
    if (user != reader)
      return what + "also read by '" + nodeName(user->getLoc()) + "'";
  return what + "read twice";
}

void RuleRewriter::replace(Operation *op, ValueRange values, StringRef what) {
  report.rewrite(op, what);
  SmallVector<Value> replacements(values);
  SmallVector<Value> seen;
  for (auto [i, result] : llvm::enumerate(op->getResults())) {
    if (!replacements[i])
      continue;
    bool isAgain = llvm::is_contained(seen, replacements[i]);
    if (isReturned(result) && (isAgain || isTakenAsOutput(replacements[i]))) {
      setInsertionPoint(op);
      replacements[i] = create<IdentityOp>(op->getLoc(), replacements[i].getType(), replacements[i]);
    }
    if (isReturned(result))
      seen.push_back(replacements[i]);
  }
  for (auto [i, result] : llvm::enumerate(op->getResults())) {
    if (!replacements[i])
      continue;
    pushUsers(result);
    replaceAllUsesWith(result, replacements[i]);
    if (Operation *producer = replacements[i].getDefiningOp())
      push(producer);
  }
  eraseOp(op);
}

bool RuleRewriter::dropIfUnchanged(Operation *op, StringRef what) {
  if (op->getNumResults() != 1 || !haveSameType(op->getResult(0), op->getOperand(0)))
    return false;
  replace(op, op->getOperand(0), what);
  return true;
}

void RuleRewriter::refuse(Operation *op, StringRef why) {
  if (refused.insert({op, size_t(llvm::hash_value(why))}).second)
    report.refuse(op, why);
}

void RuleRewriter::changed(Operation *op, StringRef what) {
  report.rewrite(op, what);
  push(op);
  for (Value result : op->getResults())
    pushUsers(result);
}

bool RuleRewriter::mayWrite(Operation *op, StringRef name, int64_t since) {
  if (since <= targetOpset)
    return true;
  refuse(op, (name + " is of opset " + Twine(since) + ", the graph is for " + Twine(targetOpset)).str());
  return false;
}

Location RuleRewriter::fused(Operation *op, ArrayRef<Operation *> others) {
  SmallVector<Location> locations;
  for (Operation *other : others)
    locations.push_back(other->getLoc());
  locations.push_back(op->getLoc());
  return FusedLoc::get(getContext(), locations);
}

void RuleSet::apply(ModuleOp module, PassReport &report) const {
  RuleRewriter rewriter(module.getContext(), report);
  if (auto target = module->getAttrOfType<IntegerAttr>(targetOpsetAttribute))
    rewriter.targetOpset = target.getInt();
  SmallVector<Operation *> all;
  module.walk<WalkOrder::PreOrder>([&](Operation *op) { all.push_back(op); });
  for (Operation *op : llvm::reverse(all)) // popped from the end: first operation first
    rewriter.push(op);
  while (!report.done()) {
    Operation *op = rewriter.pop();
    if (!op)
      break;
    auto found = rules.find(op->getName().getTypeID());
    if (found == rules.end())
      continue;
    for (const Rule &rule : found->second)
      if (rule(op, rewriter))
        break;
  }
  updateFunctionTypes(module);
}

void updateFunctionTypes(ModuleOp module) {
  for (auto func : module.getOps<func::FuncOp>()) {
    if (func.isDeclaration())
      continue;
    auto end = func.getBody().front().getTerminator();
    if (!llvm::equal(func.getResultTypes(), end->getOperandTypes()))
      func.setType(FunctionType::get(func.getContext(), func.getArgumentTypes(), end->getOperandTypes()));
  }
}

bool mentionsSymbolsOf(Type type, Operation *op) {
  auto id = op->getAttrOfType<IntegerAttr>("firn.id");
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!id || !tensor)
    return false;
  std::string prefix = "u" + std::to_string(id.getInt()) + ".";
  std::set<std::string> symbols;
  for (const DimExpr &dim : dimsOf(tensor))
    dim.collectSymbols(symbols);
  return llvm::any_of(symbols, [&](StringRef symbol) { return symbol.starts_with(prefix); });
}

bool findsSymbolsForOthers(Operation *op) {
  auto id = op->getAttrOfType<IntegerAttr>("firn.id");
  auto module = op->getParentOfType<ModuleOp>();
  if (!id || !module)
    return false;
  std::string prefix = "u" + std::to_string(id.getInt()) + ".";
  return module
      .walk([&](Operation *other) {
        bool mentions = false;
        if (auto values = dyn_cast<DimValuesOp>(other))
          mentions = llvm::any_of(values.getExprs(),
                                  [&](Attribute text) { return cast<StringAttr>(text).getValue().contains(prefix); });
        else if (isa<ReshapeOp>(other) && other != op)
          mentions = mentionsSymbolsOf(other->getResult(0).getType(), op);
        return mentions ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

// --- reading ---------------------------------------------------------------------------------------------------------

template <typename T> static double read(const char *at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return double(value);
}

/// One element at `at`; nothing for types that are no plain numbers.
static std::optional<double> readNumber(const char *at, int32_t dtype) {
  switch (dtype) {
  case FIRN_F32:
    return read<float>(at);
  case FIRN_F64:
    return read<double>(at);
  case FIRN_I64:
    return read<int64_t>(at);
  case FIRN_I32:
    return read<int32_t>(at);
  case FIRN_I16:
    return read<int16_t>(at);
  case FIRN_I8:
    return read<int8_t>(at);
  case FIRN_U64:
    return read<uint64_t>(at);
  case FIRN_U32:
    return read<uint32_t>(at);
  case FIRN_U16:
    return read<uint16_t>(at);
  case FIRN_U8:
    return read<uint8_t>(at);
  case FIRN_BOOL:
    return *at != 0;
  case FIRN_F16:
  case FIRN_BF16: {
    uint16_t bits;
    std::memcpy(&bits, at, 2);
    llvm::APFloat value(dtype == FIRN_F16 ? llvm::APFloat::IEEEhalf() : llvm::APFloat::BFloat(), llvm::APInt(16, bits));
    bool lost;
    value.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &lost);
    return value.convertToDouble();
  }
  }
  return std::nullopt;
}

RankedTensorType rankedType(Value value) {
  return value ? dyn_cast<RankedTensorType>(value.getType()) : RankedTensorType();
}

bool isFloat(Type elementType) { return isa<FloatType>(elementType); }

std::optional<double> splatOf(Value value) {
  ElementsAttr constant = value ? constantOf(value) : ElementsAttr();
  auto bytes = constantBytes(constant);
  if (!bytes || bytes->bytes.empty())
    return std::nullopt;
  auto type = cast<RankedTensorType>(constant.getType());
  if (!bytes->isSplat && type.getNumElements() != 1)
    return std::nullopt;
  return readNumber(bytes->bytes.data(), dtypeOf(type.getElementType()));
}

bool isSplatOf(Value value, double number) {
  auto splat = splatOf(value);
  return splat && *splat == number && std::signbit(*splat) == std::signbit(number);
}

bool isUniformlyOf(Value value, double number) {
  if (isSplatOf(value, number))
    return true;
  if (auto expand = value ? value.getDefiningOp<ExpandOp>() : ExpandOp())
    return isUniformlyOf(expand.getX(), number);
  auto filled = value ? value.getDefiningOp<ConstantOfShapeOp>() : ConstantOfShapeOp();
  if (!filled)
    return false;
  std::optional<ElementsAttr> given = filled.getValue();
  if (!given)
    return number == 0 && !std::signbit(number);
  auto bytes = constantBytes(*given);
  auto filling = bytes && !bytes->bytes.empty()
                     ? readNumber(bytes->bytes.data(), dtypeOf(cast<ShapedType>(given->getType()).getElementType()))
                     : std::nullopt;
  return filling && *filling == number && std::signbit(*filling) == std::signbit(number);
}

std::optional<std::vector<double>> numbersOf(Value value, int64_t most) {
  ElementsAttr constant = value ? constantOf(value) : ElementsAttr();
  auto bytes = constantBytes(constant);
  if (!bytes)
    return std::nullopt;
  auto type = cast<RankedTensorType>(constant.getType());
  int32_t dtype = dtypeOf(type.getElementType());
  int64_t count = type.getNumElements(), size = firn_dtype_bits(dtype) / 8;
  if (count > most || size == 0)
    return std::nullopt;
  std::vector<double> numbers;
  numbers.reserve(count);
  for (int64_t i = 0; i < count; ++i) {
    auto number = readNumber(bytes->bytes.data() + (bytes->isSplat ? 0 : i * size), dtype);
    if (!number)
      return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

bool haveSameDims(ArrayRef<DimExpr> a, ArrayRef<DimExpr> b) {
  if (a.size() != b.size())
    return false;
  for (auto [x, y] : llvm::zip(a, b))
    if (x != y)
      return false;
  return true;
}

bool isUnaryElementwise(Operation *op) {
  return isa<AbsOp, NegOp, CeilOp, FloorOp, RoundOp, SqrtOp, ReciprocalOp, ExpOp, LogOp, SinOp, CosOp, TanOp, AsinOp,
             AcosOp, AtanOp, SinhOp, CoshOp, TanhOp, AsinhOp, AcoshOp, AtanhOp, ErfOp, SignOp, SigmoidOp, ReluOp,
             HardSwishOp, MishOp, SoftplusOp, SoftsignOp, NotOp, BitwiseNotOp, IdentityOp, LeakyReluOp, EluOp, CeluOp,
             ThresholdedReluOp, SwishOp, SeluOp, HardSigmoidOp, GeluOp, IsNaNOp, IsInfOp, CastOp, ClipOp>(op);
}

bool isBroadcasting(Operation *op) {
  return isa<AddOp, SubOp, MulOp, DivOp, ModOp, PowOp, BitShiftOp, AndOp, OrOp, XorOp, BitwiseAndOp, BitwiseOrOp,
             BitwiseXorOp, PReluOp, EqualOp, GreaterOp, LessOp, GreaterOrEqualOp, LessOrEqualOp, MaxOp, MinOp, SumOp,
             MeanOp, WhereOp>(op);
}

bool areAll(Value value, int64_t number) {
  auto numbers = value ? constantIntegers(value) : std::nullopt;
  return numbers && llvm::all_of(*numbers, [&](int64_t n) { return n == number; });
}

int64_t axisOf(Operation *op, int64_t rank) {
  int64_t axis = op->getAttrOfType<IntegerAttr>("axis").getInt();
  return axis < 0 ? axis + rank : axis;
}

bool haveSameType(Value a, Value b) {
  auto x = rankedType(a), y = rankedType(b);
  return x && y && x.getElementType() == y.getElementType() && haveSameDims(dimsOf(x), dimsOf(y));
}

std::optional<SmallVector<DimExpr>> broadcastDims(ArrayRef<DimExpr> a, ArrayRef<DimExpr> b) {
  size_t rank = std::max(a.size(), b.size());
  SmallVector<DimExpr> dims;
  for (size_t i = 0; i < rank; ++i) {
    DimExpr x = i + a.size() < rank ? DimExpr(1) : a[i + a.size() - rank];
    DimExpr y = i + b.size() < rank ? DimExpr(1) : b[i + b.size() - rank];
    if (x == y || isOne(y))
      dims.push_back(x);
    else if (isOne(x))
      dims.push_back(y);
    else
      return std::nullopt;
  }
  return dims;
}

std::optional<SmallVector<int64_t>> reducedAxes(Operation *reduce) {
  auto type = rankedType(reduce->getOperand(0));
  if (!type)
    return std::nullopt;
  SmallVector<int64_t> axes;
  if (Value given = operandOf(reduce, 1)) {
    auto numbers = constantIntegers(given);
    if (!numbers)
      return std::nullopt;
    axes = *numbers;
  }
  for (int64_t &axis : axes) {
    if (axis < 0)
      axis += type.getRank();
    if (axis < 0 || axis >= type.getRank())
      return std::nullopt;
  }
  llvm::sort(axes);
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  auto noop = reduce->getAttrOfType<IntegerAttr>("noop_with_empty_axes");
  if (axes.empty() && !(noop && noop.getInt()))
    for (int64_t axis = 0; axis < type.getRank(); ++axis)
      axes.push_back(axis);
  return axes;
}

SmallVector<int64_t> permutationOf(TransposeOp transpose) {
  if (auto perm = transpose.getPerm())
    return SmallVector<int64_t>(*perm);
  SmallVector<int64_t> perm;
  if (auto type = rankedType(transpose.getX()))
    for (int64_t axis = type.getRank() - 1; axis >= 0; --axis)
      perm.push_back(axis);
  return perm;
}

bool isViewPermutation(RankedTensorType type, ArrayRef<int64_t> perm) {
  int64_t last = -1;
  for (int64_t axis : perm) {
    if (type.getDimSize(axis) == 1)
      continue;
    if (axis < last)
      return false;
    last = axis;
  }
  return true;
}

// --- building --------------------------------------------------------------------------------------------------------

template <typename T> static void append(std::vector<char> &bytes, T value) {
  const char *at = reinterpret_cast<const char *>(&value);
  bytes.insert(bytes.end(), at, at + sizeof value);
}

static void appendNumber(std::vector<char> &bytes, int32_t dtype, double number) {
  switch (dtype) {
  case FIRN_F32:
    return append(bytes, float(number));
  case FIRN_F64:
    return append(bytes, number);
  case FIRN_I64:
    return append(bytes, int64_t(number));
  case FIRN_I32:
    return append(bytes, int32_t(number));
  case FIRN_I16:
    return append(bytes, int16_t(number));
  case FIRN_I8:
    return append(bytes, int8_t(number));
  case FIRN_U64:
    return append(bytes, uint64_t(number));
  case FIRN_U32:
    return append(bytes, uint32_t(number));
  case FIRN_U16:
    return append(bytes, uint16_t(number));
  case FIRN_U8:
    return append(bytes, uint8_t(number));
  case FIRN_BOOL:
    return append(bytes, uint8_t(number != 0));
  case FIRN_F16:
  case FIRN_BF16: {
    llvm::APFloat value(number);
    bool lost;
    value.convert(dtype == FIRN_F16 ? llvm::APFloat::IEEEhalf() : llvm::APFloat::BFloat(),
                  llvm::APFloat::rmNearestTiesToEven, &lost);
    return append(bytes, uint16_t(value.bitcastToAPInt().getZExtValue()));
  }
  }
}

/// Of a constant that is made for the node at `loc`: without what that node's location says of its own results.
static Location locationOfConstant(Location loc) {
  std::string node = nodeName(loc);
  return node.empty() ? loc : NameLoc::get(StringAttr::get(loc.getContext(), node + "/constant"));
}

Value makeNumbers(OpBuilder &builder, Location loc, RankedTensorType type, ArrayRef<double> numbers) {
  int32_t dtype = dtypeOf(type.getElementType());
  std::vector<char> bytes;
  int64_t count = type.getNumElements();
  for (int64_t i = 0; i < count; ++i)
    appendNumber(bytes, dtype, numbers[numbers.size() == 1 ? 0 : i]);
  return builder.create<ConstantOp>(locationOfConstant(loc), constantFromBytes(type, bytes));
}

Value makeIntegers(OpBuilder &builder, Location loc, ArrayRef<int64_t> numbers) {
  std::vector<char> bytes;
  for (int64_t number : numbers)
    append(bytes, number);
  auto type = RankedTensorType::get({int64_t(numbers.size())}, builder.getI64Type());
  return builder.create<ConstantOp>(locationOfConstant(loc), constantFromBytes(type, bytes));
}

Value makeReshape(OpBuilder &builder, Location loc, Value x, ArrayRef<DimExpr> dims) {
  return builder.create<ReshapeOp>(loc, tensorType(getElementTypeOrSelf(x), dims), x, Value());
}

Value makeTranspose(OpBuilder &builder, Location loc, Value x, ArrayRef<int64_t> perm) {
  auto type = rankedType(x);
  SmallVector<DimExpr> from = dimsOf(type), dims;
  for (int64_t axis : perm)
    dims.push_back(from[axis]);
  return builder.create<TransposeOp>(loc, tensorType(type.getElementType(), dims), x,
                                     builder.getDenseI64ArrayAttr(perm));
}

Value makeAbsent(OpBuilder &builder, Location loc) { return builder.create<AbsentOp>(loc, builder.getNoneType()); }

} // namespace firn

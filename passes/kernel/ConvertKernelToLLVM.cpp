// Kernels to the LLVM dialect.
//
//   kernel.func @add {...} { ^bb0(%a, %b, %out: !kernel.buffer, %n: index, %scratch, %worker, %workers): ... }
//     ==>  llvm.func @add(%args: !llvm.ptr, %worker: i32, %workers: i32)
//
// The buffers' addresses and dims are read from firn_kernel_args at the entry. Each buffer has an alias scope of its
// own; a load or store is of its buffer's scope and of no other, which is how LLVM learns that buffers do not overlap.
// An output that takes an input's place breaks that promise harmlessly: such a kernel reads each element before it
// writes it, and nothing reads it again (inPlacePairs).
#include "passes/kernel/ConvertKernelToLLVM.h"

#include "dialects/kernel/Kernel.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/IndexToLLVM/IndexToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MathToLibm/MathToLibm.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Vector/Transforms/LoweringPatterns.h"
#include "mlir/Transforms/DialectConversion.h"
#include "runtime/abi/model.h"

using namespace mlir;

namespace firn {
namespace {

/// On the casts that stand for a kernel's buffers: which one.
constexpr StringLiteral bufferAttribute = "firn.buffer";

/// The alias scopes of one function, one per buffer.
struct Scopes {
  SmallVector<Attribute> all;

  void annotate(LLVM::AliasAnalysisOpInterface access, int64_t buffer, MLIRContext *context) const {
    if (buffer < 0 || buffer >= int64_t(all.size()))
      return;
    SmallVector<Attribute> others;
    for (auto [i, scope] : llvm::enumerate(all))
      if (int64_t(i) != buffer)
        others.push_back(scope);
    access.setAliasScopes(ArrayAttr::get(context, all[buffer]));
    access.setNoAliasScopes(ArrayAttr::get(context, others));
  }
};

/// What the patterns know of the functions in the making.
using ScopesOf = DenseMap<Operation *, Scopes>;

/// The number of the kernel's buffer behind a value, -1 if it cannot be told.
int64_t bufferNumber(Value buffer) {
  while (auto offset = buffer.getDefiningOp<kernel::OffsetOp>())
    buffer = offset.getBuffer();
  if (auto cast = buffer.getDefiningOp<UnrealizedConversionCastOp>())
    if (auto number = cast->getAttrOfType<IntegerAttr>(bufferAttribute))
      return number.getInt();
  return -1;
}

unsigned elementBytes(Type type) {
  Type element = getElementTypeOrSelf(type);
  return element.isIndex() ? 8 : std::max(1u, element.getIntOrFloatBitWidth() / 8);
}

bool isBool(Type type) { return getElementTypeOrSelf(type).isInteger(1); }

/// The type in memory: i1 is a byte, index 64 bits.
Type memoryType(Type type) {
  Type element = getElementTypeOrSelf(type);
  if (element.isInteger(1))
    element = IntegerType::get(type.getContext(), 8);
  if (element.isIndex())
    element = IntegerType::get(type.getContext(), 64);
  if (auto vector = dyn_cast<VectorType>(type))
    return vector.clone(element);
  return element;
}

template <typename Op> struct KernelPattern : ConvertOpToLLVMPattern<Op> {
  KernelPattern(const LLVMTypeConverter &converter, const ScopesOf &scopesOf)
      : ConvertOpToLLVMPattern<Op>(converter), scopes(scopesOf) {}

  void annotate(Operation *access, Operation *original, Value buffer) const {
    auto found = scopes.find(original->template getParentOfType<LLVM::LLVMFuncOp>());
    if (found != scopes.end())
      found->second.annotate(cast<LLVM::AliasAnalysisOpInterface>(access), bufferNumber(buffer), access->getContext());
  }
  static Value address(ConversionPatternRewriter &rewriter, Location loc, Value base, Value offset, Type element) {
    return rewriter.create<LLVM::GEPOp>(loc, LLVM::LLVMPointerType::get(rewriter.getContext()), element, base, offset,
                                        /*inbounds=*/true);
  }
  /// Lanes below `count`.
  static Value mask(ConversionPatternRewriter &rewriter, Location loc, Value count, VectorType type) {
    int64_t lanes = type.getNumElements();
    Type i32 = rewriter.getI32Type();
    auto vector = VectorType::get(lanes, i32);
    SmallVector<int32_t> iota(lanes);
    for (int64_t i = 0; i < lanes; ++i)
      iota[i] = int32_t(i);
    Value steps = rewriter.create<LLVM::ConstantOp>(loc, vector, DenseElementsAttr::get(vector, ArrayRef(iota)));
    Value narrow = rewriter.create<LLVM::TruncOp>(loc, i32, count);
    Value splat = rewriter.create<LLVM::UndefOp>(loc, vector);
    Value zero = rewriter.create<LLVM::ConstantOp>(loc, i32, rewriter.getI32IntegerAttr(0));
    splat = rewriter.create<LLVM::InsertElementOp>(loc, splat, narrow, zero);
    splat = rewriter.create<LLVM::ShuffleVectorOp>(loc, splat, splat, SmallVector<int32_t>(lanes, 0));
    return rewriter.create<LLVM::ICmpOp>(loc, LLVM::ICmpPredicate::slt, steps, splat);
  }

  const ScopesOf &scopes;
};

struct LoadPattern : KernelPattern<kernel::LoadOp> {
  using KernelPattern::KernelPattern;
  LogicalResult matchAndRewrite(kernel::LoadOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Type type = op.getResult().getType(), memory = memoryType(type);
    unsigned alignment = elementBytes(type);
    Value from = address(rewriter, loc, adaptor.getBuffer(), adaptor.getOffset(), getElementTypeOrSelf(memory));
    Value value;
    if (adaptor.getCount()) {
      auto vector = cast<VectorType>(memory);
      Value zeros = rewriter.create<LLVM::ConstantOp>(loc, vector, rewriter.getZeroAttr(vector));
      auto load =
          rewriter.create<LLVM::MaskedLoadOp>(loc, memory, from, mask(rewriter, loc, adaptor.getCount(), vector),
                                              ValueRange{zeros}, rewriter.getI32IntegerAttr(alignment));
      value = load;
    } else {
      auto load = rewriter.create<LLVM::LoadOp>(loc, memory, from, alignment, /*isVolatile=*/false,
                                                /*isNonTemporal=*/false, op.getInvariant());
      annotate(load, op, op.getBuffer());
      value = load;
    }
    if (isBool(type)) {
      Value zero = rewriter.create<LLVM::ConstantOp>(loc, memory, rewriter.getZeroAttr(memory));
      value = rewriter.create<LLVM::ICmpOp>(loc, LLVM::ICmpPredicate::ne, value, zero);
    }
    rewriter.replaceOp(op, value);
    return success();
  }
};

struct StorePattern : KernelPattern<kernel::StoreOp> {
  using KernelPattern::KernelPattern;
  LogicalResult matchAndRewrite(kernel::StoreOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Type type = op.getValue().getType(), memory = memoryType(type);
    unsigned alignment = elementBytes(type);
    Value to = address(rewriter, loc, adaptor.getBuffer(), adaptor.getOffset(), getElementTypeOrSelf(memory));
    Value value = adaptor.getValue();
    if (isBool(type))
      value = rewriter.create<LLVM::ZExtOp>(loc, memory, value);
    if (adaptor.getCount()) {
      rewriter.create<LLVM::MaskedStoreOp>(loc, value, to,
                                           mask(rewriter, loc, adaptor.getCount(), cast<VectorType>(memory)),
                                           rewriter.getI32IntegerAttr(alignment));
    } else {
      auto store = rewriter.create<LLVM::StoreOp>(loc, value, to, alignment, /*isVolatile=*/false, op.getNontemporal());
      annotate(store, op, op.getBuffer());
    }
    rewriter.eraseOp(op);
    return success();
  }
};

struct OffsetPattern : KernelPattern<kernel::OffsetOp> {
  using KernelPattern::KernelPattern;
  LogicalResult matchAndRewrite(kernel::OffsetOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOp(op,
                       address(rewriter, op.getLoc(), adaptor.getBuffer(), adaptor.getBytes(), rewriter.getI8Type()));
    return success();
  }
};

struct CopyPattern : KernelPattern<kernel::CopyOp> {
  using KernelPattern::KernelPattern;
  LogicalResult matchAndRewrite(kernel::CopyOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    // Where a result has taken an operand's place the bytes are there already.
    Location loc = op.getLoc();
    Value isThere =
        rewriter.create<LLVM::ICmpOp>(loc, LLVM::ICmpPredicate::eq, adaptor.getTarget(), adaptor.getSource());
    Value none = rewriter.create<LLVM::ConstantOp>(loc, rewriter.getI64Type(), rewriter.getI64IntegerAttr(0));
    Value bytes = rewriter.create<LLVM::SelectOp>(loc, isThere, none, adaptor.getBytes());
    rewriter.create<LLVM::MemcpyOp>(loc, adaptor.getTarget(), adaptor.getSource(), bytes, /*isVolatile=*/false);
    rewriter.eraseOp(op);
    return success();
  }
};

/// Field `byteOffset` of firn_kernel_args.
Value readField(OpBuilder &builder, Location loc, Value args, int64_t byteOffset, Type type) {
  Value field = builder.create<LLVM::GEPOp>(loc, LLVM::LLVMPointerType::get(builder.getContext()), builder.getI8Type(),
                                            args, ArrayRef<LLVM::GEPArg>{int32_t(byteOffset)}, /*inbounds=*/true);
  return builder.create<LLVM::LoadOp>(loc, type, field, 8);
}

struct BarrierPattern : KernelPattern<kernel::BarrierOp> {
  using KernelPattern::KernelPattern;
  LogicalResult matchAndRewrite(kernel::BarrierOp op, OpAdaptor, ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Block &entry = op->getParentOfType<LLVM::LLVMFuncOp>().getBody().front();
    auto pointer = LLVM::LLVMPointerType::get(rewriter.getContext());
    Value args = entry.getArgument(0);
    Value function = readField(rewriter, loc, args, offsetof(firn_kernel_args, barrier), pointer);
    Value pool = readField(rewriter, loc, args, offsetof(firn_kernel_args, pool), pointer);
    Type i32 = rewriter.getI32Type();
    auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(rewriter.getContext()), {pointer, i32, i32});
    rewriter.create<LLVM::CallOp>(loc, type, ValueRange{function, pool, entry.getArgument(1), entry.getArgument(2)});
    rewriter.eraseOp(op);
    return success();
  }
};

/// By now a fault stands under its condition (guardFaults).
struct FaultPattern : KernelPattern<kernel::FaultOp> {
  using KernelPattern::KernelPattern;
  LogicalResult matchAndRewrite(kernel::FaultOp op, OpAdaptor, ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Block &entry = op->getParentOfType<LLVM::LLVMFuncOp>().getBody().front();
    Value status = readField(rewriter, loc, entry.getArgument(0), offsetof(firn_kernel_args, status),
                             LLVM::LLVMPointerType::get(rewriter.getContext()));
    Value code = rewriter.create<LLVM::ConstantOp>(loc, rewriter.getI32Type(), op.getCodeAttr());
    rewriter.create<LLVM::StoreOp>(loc, code, status, 4);
    rewriter.eraseOp(op);
    return success();
  }
};

void guardFaults(ModuleOp module) {
  SmallVector<kernel::FaultOp> faults;
  module.walk([&](kernel::FaultOp op) { faults.push_back(op); });
  for (kernel::FaultOp op : faults) {
    OpBuilder builder(op);
    auto guard = builder.create<scf::IfOp>(op.getLoc(), op.getCondition(), /*withElseRegion=*/false);
    op->moveBefore(guard.thenBlock()->getTerminator());
  }
}

/// The llvm.func of a kernel, its body still in the other dialects.
LLVM::LLVMFuncOp convertFunction(kernel::FuncOp func, ScopesOf &scopes) {
  MLIRContext *context = func.getContext();
  OpBuilder builder(func);
  Location loc = func.getLoc();
  auto pointer = LLVM::LLVMPointerType::get(context);
  Type i32 = builder.getI32Type(), i64 = builder.getI64Type();
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context), {pointer, i32, i32});
  auto function = builder.create<LLVM::LLVMFuncOp>(loc, func.getSymName(), type);
  function.setArgAttr(0, LLVM::LLVMDialect::getNoAliasAttrName(), builder.getUnitAttr());
  function.setArgAttr(0, LLVM::LLVMDialect::getReadonlyAttrName(), builder.getUnitAttr());

  Block *entry = &func.getBody().front();
  builder.setInsertionPointToStart(entry);
  Value args = entry->insertArgument(0u, pointer, loc);
  Value worker = entry->insertArgument(1u, i32, loc);
  Value workers = entry->insertArgument(2u, i32, loc);
  Type bufferType = kernel::BufferType::get(context);
  auto domain = LLVM::AliasScopeDomainAttr::get(context, func.getSymNameAttr());
  Scopes &own = scopes[function];
  auto replace = [&](unsigned argument, Value value, bool isBuffer, int64_t number) {
    auto cast = builder.create<UnrealizedConversionCastOp>(loc, isBuffer ? bufferType : builder.getIndexType(), value);
    if (isBuffer) {
      cast->setAttr(bufferAttribute, builder.getI64IntegerAttr(number));
      own.all.push_back(LLVM::AliasScopeAttr::get(domain, builder.getStringAttr("buffer" + Twine(number))));
    }
    entry->getArgument(argument).replaceAllUsesWith(cast.getResult(0));
  };
  int64_t buffers = func.getBufferCount(), dims = func.getDimCount();
  auto element = [&](Value array, int64_t i, Type elementType) -> Value {
    Value at = builder.create<LLVM::GEPOp>(loc, pointer, i64, array, ArrayRef<LLVM::GEPArg>{int32_t(i)}, true);
    return builder.create<LLVM::LoadOp>(loc, elementType, at, 8);
  };
  if (buffers > 0) {
    Value array = readField(builder, loc, args, offsetof(firn_kernel_args, buffers), pointer);
    for (int64_t i = 0; i < buffers; ++i)
      replace(3 + i, element(array, i, pointer), true, i);
  }
  if (dims > 0) {
    Value array = readField(builder, loc, args, offsetof(firn_kernel_args, dims), pointer);
    for (int64_t i = 0; i < dims; ++i)
      replace(3 + buffers + i, element(array, i, i64), false, 0);
  }
  Value wideWorker = builder.create<LLVM::ZExtOp>(loc, i64, worker);
  Value wideWorkers = builder.create<LLVM::ZExtOp>(loc, i64, workers);
  Value scratch = readField(builder, loc, args, offsetof(firn_kernel_args, scratch), pointer);
  Value stride = readField(builder, loc, args, offsetof(firn_kernel_args, scratch_stride), i64);
  Value distance = builder.create<LLVM::MulOp>(loc, wideWorker, stride);
  scratch = builder.create<LLVM::GEPOp>(loc, pointer, builder.getI8Type(), scratch, distance, true);
  replace(3 + buffers + dims, scratch, true, buffers);
  replace(3 + buffers + dims + 1, wideWorker, false, 0);
  replace(3 + buffers + dims + 2, wideWorkers, false, 0);
  entry->eraseArguments(3, entry->getNumArguments() - 3);
  func->walk([&](kernel::ReturnOp op) {
    OpBuilder at(op);
    at.create<LLVM::ReturnOp>(op.getLoc(), ValueRange{});
    op.erase();
  });
  function.getBody().takeBody(func.getBody());
  func.erase();
  return function;
}

/// Functions of f64 that LLVM has no intrinsic for become calls of libm. (f32 has polynomials: expandMath.)
LogicalResult callLibm(ModuleOp module) {
  auto isLibm = [](Operation *op) {
    return isa<math::AcosOp, math::AcoshOp, math::AsinOp, math::AsinhOp, math::AtanOp, math::Atan2Op, math::AtanhOp,
               math::CoshOp, math::ErfOp, math::ExpM1Op, math::Log1pOp, math::SinhOp, math::TanOp, math::TanhOp>(op);
  };
  bool isNeeded =
      module.walk([&](Operation *op) { return isLibm(op) ? WalkResult::interrupt() : WalkResult::advance(); })
          .wasInterrupted();
  if (!isNeeded)
    return success();
  RewritePatternSet patterns(module.getContext());
  populateMathToLibmConversionPatterns(patterns);
  ConversionTarget target(*module.getContext());
  target.markUnknownOpDynamicallyLegal([&](Operation *op) { return !isLibm(op); });
  return applyPartialConversion(module, target, std::move(patterns));
}

/// Casts between a type and its LLVM type that conversion left in pairs.
LogicalResult removeCasts(ModuleOp module) {
  SmallVector<UnrealizedConversionCastOp> casts;
  module.walk([&](UnrealizedConversionCastOp op) { casts.push_back(op); });
  for (UnrealizedConversionCastOp op : casts) {
    auto producer = op.getOperand(0).getDefiningOp<UnrealizedConversionCastOp>();
    if (producer && producer.getOperand(0).getType() == op.getResult(0).getType())
      op.getResult(0).replaceAllUsesWith(producer.getOperand(0));
  }
  for (UnrealizedConversionCastOp op : llvm::reverse(casts)) {
    if (!op.use_empty())
      return op.emitError("has no LLVM type");
    op.erase();
  }
  return success();
}

/// Gives the arguments of inner blocks (loop counters, buffers) their LLVM types. The patterns of cf convert branches
/// to blocks that have them already; only a pattern for functions would convert blocks as well.
void convertBlockArguments(ModuleOp module, const LLVMTypeConverter &converter) {
  for (auto func : module.getOps<LLVM::LLVMFuncOp>())
    for (Block &block : func.getBody()) {
      if (block.isEntryBlock())
        continue;
      OpBuilder builder = OpBuilder::atBlockBegin(&block);
      for (BlockArgument argument : block.getArguments()) {
        Type type = argument.getType(), converted = converter.convertType(type);
        if (!converted || converted == type)
          continue;
        auto cast = builder.create<UnrealizedConversionCastOp>(argument.getLoc(), type, argument);
        argument.replaceAllUsesExcept(cast.getResult(0), cast);
        argument.setType(converted);
      }
    }
}

} // namespace

LogicalResult convertKernelsToLLVM(ModuleOp module) {
  MLIRContext *context = module.getContext();
  guardFaults(module);
  ScopesOf scopes;
  SmallVector<kernel::FuncOp> kernels(module.getOps<kernel::FuncOp>());
  for (kernel::FuncOp func : kernels)
    convertFunction(func, scopes);

  LowerToLLVMOptions options(context);
  options.overrideIndexBitwidth(64);
  LLVMTypeConverter converter(context, options);
  converter.addConversion([](kernel::BufferType type) { return LLVM::LLVMPointerType::get(type.getContext()); });
  { // Structured control flow first: its patterns and those of cf share no conversion.
    RewritePatternSet patterns(context);
    populateSCFToControlFlowConversionPatterns(patterns);
    ConversionTarget target(*context);
    target.addIllegalDialect<scf::SCFDialect>();
    target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
    if (failed(applyPartialConversion(module, target, std::move(patterns))))
      return failure();
  }
  if (failed(callLibm(module)))
    return failure();
  convertBlockArguments(module, converter);
  RewritePatternSet patterns(context);
  patterns.add<LoadPattern, StorePattern, OffsetPattern, CopyPattern, BarrierPattern, FaultPattern>(converter, scopes);
  arith::populateCeilFloorDivExpandOpsPatterns(patterns);
  arith::populateArithToLLVMConversionPatterns(converter, patterns);
  populateMathToLLVMConversionPatterns(converter, patterns, /*approximateLog1p=*/false);
  cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
  populateFuncToLLVMConversionPatterns(converter, patterns);
  vector::populateVectorBroadcastLoweringPatterns(patterns);
  populateVectorToLLVMConversionPatterns(converter, patterns);
  index::populateIndexToLLVMConversionPatterns(converter, patterns);
  LLVMConversionTarget target(*context);
  target.addLegalOp<ModuleOp, UnrealizedConversionCastOp>();
  if (failed(applyFullConversion(module, target, std::move(patterns))))
    return failure();
  return removeCasts(module);
}

} // namespace firn

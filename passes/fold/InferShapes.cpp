// InferShapes: element types and dimensions of all values, from the inputs on.
//
// In:      a module of firn ops, any result types.      Out: ranked types with symbolic dimensions wherever a rule
// tells;
//          the attribute firn.elements on operations with small results whose contents are known, element by element,
//          as numbers or dimension expressions ("?": this one is not).
//          the module's attribute firn.requires: [a, b, message] for sizes that must be equal, [a, "", message] for
//          those that must not be negative, as far as only a run tells. The planner makes constraints of them.
// Keeps:   everything but types.
// Reports: every broken constraint of every operation as an error at its location, and goes on. A broken branch of an
// If
//          whose other branch is sound becomes firn.fail (an error only if it is ever taken).
// Chooses: where branches of an If differ in rank and only running tells which one runs, the rest of the model decides.
// If
//          it fits one of them alone, that one is compiled and the other fails if it is ever taken. If it fits both,
//          the result is a tensor whose rank only running tells; operations on such run on reference kernels.
// Running twice changes nothing more.
#include "dialects/firn/Inference.h"
#include "dialects/firn/Lists.h"
#include "passes/GraphForm.h"
#include "passes/Passes.h"
#include "passes/Rules.h"
#include "passes/fold/MovedElements.h"
#include "passes/fold/ReferenceCall.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include <map>
#include <set>

using namespace mlir;

namespace firn {
#define GEN_PASS_DEF_INFERSHAPES
#include "passes/Passes.h.inc"

namespace {
struct Problem {
  Operation *op;
  std::string message;
  StringRef code;
};

using Problems = std::vector<Problem>;

/// What becomes of an If whose branches are sound and differ in rank.
enum class Ranks { Then, Else, Both };

/// Set on an If whose branches both stay.
constexpr llvm::StringLiteral keepsBothKey = "firn.keeps_both";

bool isUnranked(Type type) {
  auto tensor = dyn_cast<UnrankedTensorType>(type);
  return tensor && !isa<UnknownType>(tensor.getElementType());
}

class Inferrer {
public:
  /// `keepsGraph`: all branches stay what they are, whatever is wrong with one of them, and unknown operators are no
  /// errors.
  Inferrer(Ranks chosen, bool keepsGraph) : ranks(chosen), keepsAll(keepsGraph) {}
  bool foundDifferentRanks() const { return foundRanks; }
  void warn() const {
    for (const auto &[location, message] : warnings)
      emitWarning(location) << message;
  }
  /// What the operations of the function's own block require of the inputs' sizes: those run at every run.
  const std::vector<std::pair<Operation *, Inference::Requirement>> &requirements() const { return required; }

  /// Symbols that two operations of the function's own block hold to different numbers: no run can satisfy both.
  Problems contradictions() const {
    std::map<std::string, std::pair<int64_t, Operation *>> sizes;
    Problems found;
    for (const auto &[op, requirement] : required) {
      if (!requirement.b)
        continue;
      bool isNumberFirst = requirement.a.isConstant();
      std::optional<std::string> symbol = (isNumberFirst ? *requirement.b : requirement.a).asSymbol();
      std::optional<int64_t> size = (isNumberFirst ? requirement.a : *requirement.b).asConstant();
      if (!symbol || !size)
        continue;
      auto [place, isNew] = sizes.try_emplace(*symbol, *size, op);
      auto [other, node] = place->second;
      if (!isNew && other != *size)
        found.push_back({op,
                         "expected dimension '" + *symbol + "' to have one size, found " + std::to_string(other) +
                             " in node '" + nodeName(node->getLoc()) + "' and " + std::to_string(*size) + " here",
                         "import.shape"});
    }
    return found;
  }

  void block(Block &block, Problems &problems) {
    for (Operation &op : llvm::make_early_inc_range(block))
      operation(&op, problems);
  }

private:
  Ranks ranks;
  bool keepsAll, foundRanks = false;
  std::vector<std::pair<Location, std::string>> warnings; // their operations may be gone: in a branch that fails
  std::vector<std::pair<Operation *, Inference::Requirement>> required;
  std::map<std::string, DimExpr> known; // sizes of symbols that an operation found before

  static bool ranksDiffer(IfOp op) {
    Operation *yields[] = {op.getThenBranch().front().getTerminator(), op.getElseBranch().front().getTerminator()};
    for (auto [a, b] : llvm::zip(yields[0]->getOperandTypes(), yields[1]->getOperandTypes())) {
      auto x = dyn_cast<RankedTensorType>(a), y = dyn_cast<RankedTensorType>(b);
      if (x && y && x.getRank() != y.getRank())
        return true;
    }
    return false;
  }

  /// A symbol that an operation found before and whose size is known now.
  void noteKnown(Operation *op, Value value, ArrayRef<DimExpr> dims) {
    auto before = dyn_cast<RankedTensorType>(value.getType());
    if (!op->hasAttr("firn.id") || !before || before.getRank() != int64_t(dims.size()))
      return;
    for (auto [old, now] : llvm::zip(dimsOf(before), dims))
      if (std::optional<std::string> symbol = old.asSymbol(); symbol && old != now)
        if (mentionsSymbolsOf(tensorType(before.getElementType(), {old}), op))
          known.insert_or_assign(*symbol, now);
  }

  /// What an operation says of dimensions itself, with the sizes that became known.
  void useKnown(Operation *op) {
    if (known.empty())
      return;
    auto type = op->getNumResults() == 1 ? dyn_cast<RankedTensorType>(op->getResult(0).getType()) : RankedTensorType();
    if (auto reshape = dyn_cast<ReshapeOp>(op);
        reshape && type && (!reshape.getShape() || isAbsent(reshape.getShape()))) {
      SmallVector<DimExpr> dims = dimsOf(type);
      for (DimExpr &dim : dims)
        dim = dim.with(known);
      reshape.getResult().setType(tensorType(type.getElementType(), dims));
    }
    if (auto values = dyn_cast<DimValuesOp>(op)) {
      SmallVector<Attribute> texts;
      for (Attribute text : values.getExprs()) {
        auto expr = DimExpr::parse(cast<StringAttr>(text).getValue());
        texts.push_back(expr ? StringAttr::get(op->getContext(), expr->with(known).str()) : text);
      }
      values.setExprsAttr(ArrayAttr::get(op->getContext(), texts));
    }
  }

  void operation(Operation *op, Problems &problems) {
    useKnown(op);
    if (auto branch = dyn_cast<IfOp>(op))
      branches(branch, problems);
    else if (auto loop = dyn_cast<LoopOp>(op))
      iterations(loop, problems);
    auto rule = dyn_cast<Operator>(op);
    if (!rule || isa<ConstantOp>(op))
      return;
    if (keepsAll && isa<CallOp>(op) && !referenceOperator(op))
      return; // a graph may hold operators that nobody here knows
    Inference inference(op, inferByReference);
    if (auto branch = dyn_cast<IfOp>(op); branch && keepsAll && ranksDiffer(branch))
      return; // legal in a graph: only running tells the rank
    if (!takesLists(op))
      for (auto [i, operand] : llvm::enumerate(op->getOperands()))
        if (isListType(operand.getType())) {
          problems.push_back(
              {op, "expected a tensor as input " + std::to_string(i) + ", found " + typeText(operand.getType()),
               "import.type"});
          return;
        }
    rule.inferShapes(inference);
    if (inference.errors().empty())
      inferMovedElements(inference);
    if (llvm::any_of(op->getOperandTypes(), isUnranked) && !isa<IfOp, LoopOp>(op))
      inferAcrossRanks(inference);
    for (const Inference::Error &error : inference.errors())
      problems.push_back({op, error.message, error.code});
    if (!keepsAll && isa<func::FuncOp>(op->getParentOp()))
      for (const Inference::Requirement &requirement : inference.requirements())
        required.emplace_back(op, requirement);
    apply(op, inference);
  }

  /// Whether the operation's own rule says what it takes.
  static bool takesLists(Operation *op) {
    return isa<IdentityOp, IfOp, LoopOp, CallOp, SequenceInsertOp, SequenceEraseOp, SequenceAtOp, SequenceLengthOp,
               SequenceConstructOp, ConcatFromSequenceOp, OptionalOp, OptionalHasElementOp, OptionalGetElementOp>(op);
  }

  void apply(Operation *op, const Inference &inference) {
    bool hasUnranked = llvm::any_of(op->getOperandTypes(), isUnranked);
    for (auto [value, inferred] : llvm::zip(op->getResults(), inference.inferred())) {
      if (isAbsent(value))
        continue;
      if (inferred.type)
        value.setType(inferred.type);
      else if (inferred.elementType && inferred.dims) {
        noteKnown(op, value, *inferred.dims);
        value.setType(tensorType(inferred.elementType, *inferred.dims));
      } else if (inferred.elementType && (hasUnranked || isa<UnrankedTensorType>(value.getType())))
        value.setType(UnrankedTensorType::get(inferred.elementType));
    }
    if (auto branch = dyn_cast<IfOp>(op)) // a failing branch yields nothing of its own
      for (Region *region : {&branch.getThenBranch(), &branch.getElseBranch()})
        for (auto [result, yielded] : llvm::zip(op->getResults(), region->front().getTerminator()->getOperands()))
          if (isa_and_nonnull<FailOp>(yielded.getDefiningOp()))
            yielded.setType(result.getType());
    SmallVector<std::optional<Inference::Dims>> contents;
    for (const Inference::Result &result : inference.inferred())
      contents.push_back(result.elements);
    if (Attribute elements = elementsAttribute(op, contents))
      op->setAttr("firn.elements", elements);
    else
      op->removeAttr("firn.elements");
  }

  void branches(IfOp op, Problems &problems) {
    Problems wrong[2];
    Region *regions[] = {&op.getThenBranch(), &op.getElseBranch()};
    if (auto condition = integerElements(op.getCondition());
        condition && condition->size() == 1 && (*condition)[0].isConstant())
      return block(regions[(*condition)[0].constant() ? 0 : 1]->front(),
                   problems); // the other may be wrong without harm
    for (int i = 0; i < 2; ++i)
      block(regions[i]->front(), wrong[i]);
    if (wrong[0].empty() == wrong[1].empty()) {
      for (auto &list : wrong)
        problems.insert(problems.end(), list.begin(), list.end());
      if (problems.empty() && !keepsAll && !op->hasAttr(keepsBothKey) && ranksDiffer(op)) {
        foundRanks = true;
        if (ranks == Ranks::Both) {
          op->setAttr(keepsBothKey, UnitAttr::get(op->getContext()));
          return;
        }
        int other = ranks == Ranks::Then ? 1 : 0;
        warnings.emplace_back(problemLocation(op, "import.branch"),
                              std::string("its branches have results of different rank; the ") +
                                  (other ? "else" : "then") + " branch fails if it is ever taken");
        replaceByFailure(op, regions[other]->front(),
                         nodeName(op.getLoc()) +
                             ": this branch gives a result of another rank than the model was compiled for");
      }
      return;
    }
    int bad = wrong[0].empty() ? 1 : 0;
    for (const Problem &problem : wrong[bad])
      emitWarning(problemLocation(problem.op, "import.branch"))
          << "this branch fails if it is ever taken: " << problem.message;
    if (keepsAll)
      return;
    const Problem first = wrong[bad][0];
    replaceByFailure(op, regions[bad]->front(), nodeName(first.op->getLoc()) + ": " + first.message);
  }

  /// The branch becomes one firn.fail that yields values of the op's result types.
  void replaceByFailure(IfOp op, Block &branch, StringRef message) {
    Operation *yield = branch.getTerminator();
    OpBuilder builder(yield);
    Type unknown = UnrankedTensorType::get(UnknownType::get(op.getContext()));
    SmallVector<Type> types(op.getNumResults(), unknown);
    auto fail = builder.create<FailOp>(op.getLoc(), types, builder.getStringAttr(message));
    yield->setOperands(fail.getOutputs());
    for (Operation &old : llvm::make_early_inc_range(llvm::reverse(branch)))
      if (&old != yield && &old != fail)
        old.erase();
  }

  /// What a carried list, or one whose rank changes, is in every iteration; null for tensors of one rank.
  static Type carriedType(Type before, Type after, unsigned i, LoopOp op, Problems &found) {
    if (isListType(before) || isListType(after)) {
      Type joined = joinTypes(before, after);
      if (!joined)
        found.push_back({op,
                         "expected carried value " + std::to_string(i) + " to keep its type " + typeText(before) +
                             ", found " + typeText(after),
                         "import.type"});
      return joined;
    }
    auto mine = dyn_cast<TensorType>(before), theirs = dyn_cast<TensorType>(after);
    if (!mine || !theirs || isa<UnknownType>(theirs.getElementType()))
      return {};
    if (isa<UnknownType>(mine.getElementType()))
      return after;
    bool isOneRank = mine.hasRank() && theirs.hasRank() && mine.getRank() == theirs.getRank();
    if (isOneRank || mine.getElementType() != theirs.getElementType())
      return {};
    return UnrankedTensorType::get(mine.getElementType());
  }

  /// Carried values take the types of the first iteration, dimensions that a later one changes become symbols of the
  /// loop.
  void iterations(LoopOp op, Problems &problems) {
    Block &body = op.getBody().front();
    MLIRContext *context = op.getContext();
    body.getArgument(0).setType(RankedTensorType::get({}, IntegerType::get(context, 64)));
    body.getArgument(1).setType(RankedTensorType::get({}, IntegerType::get(context, 1)));
    unsigned carried = op.getCarried().size();
    for (unsigned i = 0; i < carried; ++i)
      body.getArgument(i + 2).setType(op.getCarried()[i].getType());
    Inference symbols(op);
    for (int round = 0; round < 8; ++round) {
      Problems found;
      block(body, found);
      bool isStable = true;
      for (unsigned i = 0; i < carried; ++i) {
        BlockArgument argument = body.getArgument(i + 2);
        Value next = body.getTerminator()->getOperand(i + 1);
        if (Type joined = carriedType(argument.getType(), next.getType(), i, op, found);
            joined && joined != argument.getType()) {
          argument.setType(joined);
          isStable = false;
        }
        auto mine = dyn_cast<RankedTensorType>(argument.getType()), theirs = dyn_cast<RankedTensorType>(next.getType());
        if (!mine || !theirs)
          continue;
        if (mine.getElementType() != theirs.getElementType() && !isa<UnknownType>(theirs.getElementType())) {
          found.push_back({op,
                           "expected carried value " + std::to_string(i) + " to keep its element type " +
                               elementTypeText(mine.getElementType()) + ", found " +
                               elementTypeText(theirs.getElementType()),
                           "import.dtype"});
          continue;
        }
        SmallVector<DimExpr> dims = dimsOf(mine);
        bool changed = false;
        for (int64_t axis = 0; axis < mine.getRank(); ++axis) {
          DimExpr after = dimOf(theirs, axis), own = symbols.unknownDim(carriedResultId(unknownResultId(op, i)), axis);
          if (dims[axis] != after && dims[axis] != own) {
            dims[axis] = own;
            changed = true;
          }
        }
        if (changed) {
          argument.setType(tensorType(mine.getElementType(), dims));
          isStable = false;
        }
      }
      if (isStable || round == 7) {
        problems.insert(problems.end(), found.begin(), found.end());
        return;
      }
    }
  }
};

/// A firn.squeeze without axes drops the axes of length 1, which for a symbolic dimension only running could tell. It
/// is taken to keep them: the run must then refuse a length of 1.
void noteAssumptions(func::FuncOp func) {
  if (staysGraph(func->getParentOfType<ModuleOp>()))
    return;
  Builder builder(func.getContext());
  SmallVector<Attribute> assumptions;
  if (auto known = func->getAttrOfType<ArrayAttr>(assumptionsAttribute))
    assumptions.append(known.begin(), known.end());
  size_t before = assumptions.size();
  for (auto op : func.getBody().front().getOps<SqueezeOp>()) {
    auto type = dyn_cast<RankedTensorType>(op.getOperand(0).getType());
    if (!type || (op->getNumOperands() > 1 && !isa_and_nonnull<AbsentOp>(op.getOperand(1).getDefiningOp())))
      continue;
    for (auto [axis, dim] : llvm::enumerate(dimsOf(type))) {
      if (dim.isConstant() || dim.isAtLeast(2))
        continue;
      std::string message = "node '" + nodeName(op.getLoc()) + "' (Squeeze without axes) would drop axis " +
                            std::to_string(axis) + " of its input, length " + dim.str() +
                            ", where it is 1: fix the dimension (firnc --dim)";
      Attribute assumption = builder.getStrArrayAttr({dim.str(), message});
      if (!llvm::is_contained(assumptions, assumption))
        assumptions.push_back(assumption);
    }
  }
  if (assumptions.size() != before)
    func->setAttr(assumptionsAttribute, builder.getArrayAttr(assumptions));
}

struct InferShapes : impl::InferShapesBase<InferShapes> {
  void runOnOperation() override {
    for (auto func : llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>()))
      if (!func.isDeclaration() && !infer(func))
        return signalPassFailure();
  }

  /// Infers copies where branches differ in rank, to see what the rest of the model fits.
  bool infer(func::FuncOp func) {
    func::FuncOp original = func.clone();
    bool keepsGraph = staysGraph(getOperation());
    Problems problems;
    Inferrer inferrer(Ranks::Then, keepsGraph);
    inferrer.block(func.getBody().front(), problems);
    if (inferrer.foundDifferentRanks() && inferInOtherWays(func, original, problems.empty())) {
      original.erase();
      return true;
    }
    inferrer.warn();
    if (problems.empty())
      problems = inferrer.contradictions();
    for (const Problem &problem : problems)
      emitError(problemLocation(problem.op, problem.code), problem.message);
    original.erase();
    finish(func, inferrer);
    return problems.empty();
  }

  /// `func` was inferred with the then branches: whether its place was taken by one with the else branches or with
  /// both.
  bool inferInOtherWays(func::FuncOp func, func::FuncOp original, bool isThenSound) {
    auto attempt = [&](Ranks ranks, bool isWanted) {
      func::FuncOp copy = original.clone();
      getOperation().insert(func, copy);
      Problems problems;
      Inferrer inferrer(ranks, false);
      inferrer.block(copy.getBody().front(), problems);
      bool isSound = problems.empty();
      if (!isSound || !isWanted) {
        copy.erase();
        return isSound;
      }
      inferrer.warn();
      func.erase();
      finish(copy, inferrer);
      return true;
    };
    bool isElseSound = attempt(Ranks::Else, !isThenSound);
    if (isThenSound != isElseSound)
      return isElseSound;
    return attempt(Ranks::Both, true);
  }

  void finish(func::FuncOp func, const Inferrer &inferrer) {
    noteAssumptions(func);
    recordRequirements(inferrer);
    Operation *end = func.getBody().front().getTerminator();
    func.setType(FunctionType::get(&getContext(), func.getArgumentTypes(), end->getOperandTypes()));
  }

  /// Adds to the module's list. It outlives the operations: what is fused or rewritten later may no longer tell.
  void recordRequirements(const Inferrer &inferrer) {
    if (inferrer.requirements().empty())
      return;
    SmallVector<Attribute> list;
    if (auto old = getOperation()->getAttrOfType<ArrayAttr>("firn.requires"))
      llvm::append_range(list, old);
    std::set<std::pair<std::string, std::string>> known;
    auto text = [](Attribute entry, unsigned i) { return cast<StringAttr>(cast<ArrayAttr>(entry)[i]).str(); };
    for (Attribute entry : list)
      known.emplace(text(entry, 0), text(entry, 1));
    Builder builder(&getContext());
    for (const auto &[op, requirement] : inferrer.requirements()) {
      std::string a = requirement.a.str(), b = requirement.b ? requirement.b->str() : "";
      std::string type = cast<Operator>(op).operatorName();
      if (known.emplace(a, b).second)
        list.push_back(
            builder.getStrArrayAttr({a, b,
                                     "node '" + nodeName(op->getLoc()) + "' (" +
                                         StringRef(type).rsplit(':').second.str() + "): " + requirement.message}));
    }
    getOperation()->setAttr("firn.requires", builder.getArrayAttr(list));
  }
};
} // namespace

} // namespace firn

// A loop nest in the making: evaluates the nodes of a Trace at the loop depth that they depend on, as scalars or
// vectors.
#ifndef FIRN_COMPILER_CODEGEN_CPU_NEST_H
#define FIRN_COMPILER_CODEGEN_CPU_NEST_H

#include "compiler/codegen/cpu/Elements.h"
#include "compiler/codegen/cpu/Trace.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <deque>

namespace firn {

/// One result element: what is stored where.
struct NestStore {
  unsigned buffer;
  mlir::Type elementType;
  int node;
};

/// What is traced of some results: a box of their iteration space.
struct TracedNest {
  std::unique_ptr<Trace> trace;
  std::vector<unsigned> order;   // the loops, outermost first; rows last
  std::vector<NestStore> stores; // stores[i] goes to element indices[i]
  std::vector<Linear> indices;
};

/// Traces results of `fused` (all those given) into nests; false with the reason. With `mayReduce` results over the
/// outer loops alone share a nest with those over outer and row loops.
bool traceResults(FusedOp fused, bool mayReduce, std::vector<TracedNest> &nests, std::string &whyNot);

class Nest {
public:
  Nest(TracedNest &traced, FusedOp fused, kernel::FuncOp func, const TargetDescription &target, DimValues &dims,
       mlir::OpBuilder &builder);

  /// Emits the whole nest. False with the reason in whyNot.
  bool emit();
  std::string whyNot;
  int64_t scratchBytes = 0; // of one worker

  /// Cycles that one element takes, roughly; for the decision whether workers pay.
  int64_t cyclesPerElement() const;
  DimExpr elementCount() const;

private:
  // --- where values are made
  struct Frame {
    explicit Frame(mlir::Block *in, mlir::Operation *before = nullptr) : block(in), anchor(before) {}
    mlir::Block *block;
    mlir::Operation *anchor; // values are inserted before it; null: at the end
    uint64_t loops = 0;
    llvm::SmallVector<std::pair<unsigned, mlir::Value>, 2> counters;
    llvm::DenseMap<std::pair<int, unsigned>, mlir::Value> nodes; // node, lanes -> value
    llvm::DenseMap<unsigned, mlir::Value> atoms;
    std::map<std::string, mlir::Value> linears;
  };
  /// The innermost frame that any of these loops is bound in.
  unsigned frameOf(uint64_t loops) const;
  void insertAt(unsigned frame);

  // --- values
  mlir::Value index(const Linear &linear);
  mlir::Value counter(unsigned loop) const;
  mlir::Value atom(unsigned number);
  /// The node's register: a vector if it depends on the vector loop and vectors are being made, else a scalar.
  mlir::Value node(int number);
  mlir::Value make(int number, bool isVector);
  mlir::Value atLanes(int number, unsigned lanes);
  mlir::Value loadNode(const Node &node, bool isVector);
  mlir::Value indexNode(const Node &node, bool isVector);
  mlir::Value arith(const Node &node, llvm::ArrayRef<mlir::Value> operands);
  mlir::Value tableBuffer(mlir::Attribute value);
  /// A vector whose lane i is what `scalar` makes with the vector loop's counter at base + i.
  mlir::Value laneByLane(mlir::Type elementType, llvm::function_ref<mlir::Value()> scalar);
  bool dependsOnVector(uint64_t loops) const { return lanes > 0 && (loops >> vectorLoop & 1); }
  /// Whether the vector loop's counter is in no atom but itself.
  bool isLinearInVector(const Linear &linear) const;
  void store(const NestStore &store, const Linear &at);

  // --- loops
  using Values = llvm::SmallVector<mlir::Value>;
  /// for counter in [begin, end) step `step`: body, in a frame that binds the loop. Returns the carried values.
  Values forLoop(unsigned loop, mlir::Value begin, mlir::Value end, int64_t step, mlir::ValueRange carried,
                 llvm::function_ref<Values(Values)> body);
  /// The vector loop over [begin, end): vectors, then what is left. `isMultiple`: nothing is left.
  void vectorLoops(unsigned loop, mlir::Value begin, mlir::Value end, const DimExpr &extent, bool isMultiple,
                   llvm::function_ref<void()> body);
  void nestedLoops(llvm::ArrayRef<unsigned> loops, llvm::function_ref<void()> body);
  /// Loops over `loops`, of which workers have a part each.
  void workerLoops(llvm::ArrayRef<unsigned> loops, llvm::function_ref<void()> body);
  void transposedLoops();
  void tile(mlir::Value i, mlir::Value j);
  void direct();
  void bind(unsigned loop, mlir::Value counter);
  void unbind() { frames.pop_back(); }
  mlir::Value number(int64_t value) { return dims.constant(value); }
  mlir::Value add(mlir::Value a, mlir::Value b);

  // --- choices
  void chooseVectorLoop();
  unsigned lanesFor(unsigned loop) const;
  double costOf(unsigned loop, unsigned width) const;
  double weightOf(const Node &node) const;
  std::optional<int64_t> extentOf(unsigned loop) const {
    return (trace.loops[loop].end - trace.loops[loop].begin).asConstant();
  }
  bool findTransposition();
  bool fail(const llvm::Twine &why);

  // --- reductions (NestReduction.cpp)
  void emitBody();
  mlir::Value reduce(int number);
  void reductionsBelow(int number, llvm::SmallVector<int> &ordered, llvm::DenseSet<int> &seen) const;
  void planSpills();
  void rowLoops(llvm::ArrayRef<unsigned> loops, llvm::function_ref<void()> body);
  Values combine(const Node &node, mlir::ValueRange accumulated, mlir::ValueRange next, mlir::Type operandType);
  Values identity(const Node &node, mlir::Type operandType, unsigned width);
  Values nextElement(const Node &node, unsigned width);
  Values horizontal(const Node &node, Values accumulated, mlir::Type operandType);
  Values accumulate(const Node &node, llvm::ArrayRef<unsigned> loops, Values carried, unsigned unroll, unsigned width);
  void finishSpills();
  mlir::Value spillOffset(unsigned width);
  mlir::Value spillPlace(int number, unsigned width, mlir::Value &offset);
  struct Spill {
    int64_t bytesOffset = 0;
    bool isStored = false;
    int outputStore = -1; // the store whose place in the result is borrowed, or the scratch buffer
  };
  llvm::DenseMap<int, Spill> spills;
  llvm::SmallVector<int> storedNow; // spilled in the loop being emitted

  Trace &trace;
  TracedNest &traced;
  FusedOp fused;
  kernel::FuncOp func;
  const TargetDescription &target;
  DimValues &dims;
  mlir::OpBuilder &builder;
  mlir::Location loc;
  Elements elements;
  std::deque<Frame> frames;

  llvm::SmallVector<unsigned> outerLoops; // in order, without the vector loop if it is one of them
  unsigned chosenLoop = ~0u;              // the vector loop, ~0: none
  unsigned fullLanes = 0;                 // lanes of whole vectors
  bool isRowVector = false;               // the vector loop is a row loop
  // The state while emitting.
  unsigned vectorLoop = 63; // the loop whose lanes are being made
  unsigned lanes = 0;       // 0: scalars
  mlir::Value count;        // lanes below it exist; null: all
  mlir::Value laneEnd;      // one past the vector loop's last counter, where count is set
  // Transposition: loads of these nodes come from tiles.
  unsigned tileLoop = ~0u;
  llvm::DenseMap<int, Values> tiles; // node -> one vector per tileLoop counter
  unsigned tileRow = 0;              // which of them
};

} // namespace firn
#endif

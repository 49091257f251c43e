// What one element of a fused operation's result is made of: a graph of loads and computations over loop counters.
//
// pull() walks from a result back to the operands with a symbolic position per axis, so that movement operations
// (reshape, transpose, slice, ...) cost nothing but index arithmetic. Positions are linear in the loop counters
// wherever that can be had: where a reshape cuts a loop in two, or a concatenation gives parts of a loop to different
// operands, the trace asks for another loop nest (`request`) and is made again.
#ifndef FIRN_COMPILER_CODEGEN_CPU_TRACE_H
#define FIRN_COMPILER_CODEGEN_CPU_TRACE_H

#include "compiler/codegen/cpu/KernelEmitter.h"
#include <map>

namespace firn {

/// constant + the sum of coefficient * atom. Atoms are numbered by their Trace.
struct Linear {
  DimExpr constant;
  std::map<unsigned, DimExpr> terms; // no zero coefficients

  Linear(DimExpr value = DimExpr(0)) : constant(std::move(value)) {}
  static Linear atom(unsigned number) {
    Linear result;
    result.terms.emplace(number, DimExpr(1));
    return result;
  }
  Linear operator+(const Linear &other) const;
  Linear operator*(const DimExpr &factor) const;
  DimExpr coefficient(unsigned atom) const;
  bool isConstant() const { return terms.empty(); }
  std::string key() const;
};

/// A loop of the nest: counts over [begin, end) of `size` values.
struct Loop {
  DimExpr size, begin, end;
  bool isRow = false; // reduced: inside of the others

  explicit Loop(DimExpr count) : size(count), begin(0), end(count) {}
  bool isWhole() const { return begin == DimExpr(0) && end == size; }
};

/// What a position is made of besides constants.
struct Atom {
  enum Kind {
    Counter,  // of a loop
    FloorDiv, // of `argument` by `divisor`, both >= 0
    Mod,
    Clamp,   // `argument` to [0, size)
    Element, // node `node` is an integer; negative ones count from `size`, others are faults and clamped
    Nearest, // floor of `argument` * scale + shift, clamped to [0, size)
  };
  Kind kind;
  DimExpr size; // values lie in [0, size)
  Linear argument;
  DimExpr divisor;
  int node = -1;
  double scale = 1, shift = 0; // Nearest
  uint64_t loops = 0;          // which it depends on, by number
};

struct Node {
  enum Kind {
    Load,      // element `index` of buffer `buffer`
    Table,     // element `index` of a constant that is no splat
    Splat,     // one element of a constant
    Index,     // the number `index`
    IsAtLeast, // index >= 0
    Compute,   // an elementwise operation of the dialect
    Arith,     // an operation that no operation of the dialect stands for, see `code`
    Fraction,  // what rounding down leaves of the Nearest atom `element`
    Reduce,    // over the row loops, see `code`
  };
  enum Code {
    Select,
    Add,
    Sub,
    Mul,
    Div,
    Exp,
    Log,
    Sqrt,
    Abs,
    Square,
    IsEqual,
    Cast, // Arith
    Sum,
    Product,
    Max,
    Min,
    ArgMax,
    ArgMin, // Reduce
  };
  explicit Node(Kind of) : kind(of) {}
  Kind kind;
  Code code = Select;
  mlir::Type elementType;
  mlir::Operation *op = nullptr;
  llvm::SmallVector<int> operands; // -1: absent
  unsigned buffer = 0;
  Linear index;
  mlir::Attribute value;   // Table, Splat
  int64_t element = 0;     // Splat: which; Fraction: the atom
  double number = 0;       // Splat without value
  bool selectLast = false; // ArgMax, ArgMin
  bool skipsNaN = false;   // Max: NaN may be missed, what is made of it is NaN anyway
  uint64_t loops = 0;      // which it depends on
};

class Trace {
public:
  /// Position on one axis. On an axis of length 1 that the consumer broadcasts, `at` is the consumer's position (the
  /// index itself is 0): a reduction finds the loop that it runs over there.
  struct Coordinate {
    Linear at;
    bool isOne = false;
  };
  using Position = llvm::SmallVector<Coordinate>;
  /// Which input of a concatenation, which segment of a pad, a part of the nest lies in.
  using Decisions = std::map<std::string, int>;

  Trace(FusedOp fused, std::vector<Loop> nest, Decisions decided = {});

  /// The node of one element, -1 if the trace has failed or requests another nest.
  int pull(mlir::Value value, llvm::ArrayRef<Coordinate> position);

  /// Why no nodes came out.
  enum Request { None, Failure, Split, Cut, Row };
  Request request = None;
  std::string whyNot;       // Failure
  unsigned requestLoop = 0; // Split, Cut
  DimExpr splitInner;       // Split: the loop becomes (size / splitInner, splitInner)
  std::string cutSite;      // Cut: decision i holds for [cuts[i].first, cuts[i].second) of the loop
  std::vector<std::pair<DimExpr, DimExpr>> cuts;
  std::vector<DimExpr> rowSizes; // Row: the nest lacks loops of these sizes to reduce over

  bool mayReduce = false;         // whether reductions may be met
  std::vector<unsigned> rowLoops; // in the order of the reduced axes, once a reduction has been met
  bool maySplit = true;

  std::vector<Loop> loops; // loop i is atom i
  std::vector<Atom> atoms;
  std::vector<Node> nodes;

  /// Positions over the axes of a shape for a linear index into it, or nothing (requesting a split, or failing).
  std::optional<llvm::SmallVector<Linear>> delinearize(const Linear &index, llvm::ArrayRef<DimExpr> dims);
  Linear linearize(llvm::ArrayRef<Coordinate> position, llvm::ArrayRef<DimExpr> dims) const;
  uint64_t loopsOf(const Linear &index) const;
  int add(Node node);
  int splat(double number, mlir::Type elementType);
  int arith(Node::Code code, mlir::Type type, llvm::ArrayRef<int> operands);
  int reduction(Node::Code code, mlir::Type type, int operand);
  /// Cast to `type` unless it is that.
  int castTo(int node, mlir::Type type);

  /// Merges neighbouring loops that every index crosses in one stride, and drops loops of one iteration. The loops that
  /// are left keep their numbers; their order is `order`.
  void collapse(std::vector<unsigned> &order, llvm::MutableArrayRef<Linear> stores);

private:
  int fail(const llvm::Twine &why);
  int pullOperation(mlir::OpResult result, llvm::ArrayRef<Coordinate> position);
  int pullElementwise(mlir::Operation *op, llvm::ArrayRef<Coordinate> position);
  int pullReshape(mlir::Value x, mlir::Value result, llvm::ArrayRef<Coordinate> position);
  int pullConcat(ConcatOp op, llvm::ArrayRef<Coordinate> position);
  int pullSlice(SliceOp op, llvm::ArrayRef<Coordinate> position);
  int pullPad(PadOp op, llvm::ArrayRef<Coordinate> position);
  int pullGather(mlir::Operation *op, llvm::ArrayRef<Coordinate> position);
  int pullQuantization(mlir::Operation *op, llvm::ArrayRef<Coordinate> position);
  int pullOneHot(OneHotOp op, llvm::ArrayRef<Coordinate> position);
  int pullResize(ResizeOp op, llvm::ArrayRef<Coordinate> position);
  int pullConstant(mlir::Attribute value, mlir::RankedTensorType type, llvm::ArrayRef<Coordinate> position);
  int pullNormalization(mlir::OpResult result, llvm::ArrayRef<Coordinate> position); // TraceReduce.cpp
  int pullReduction(mlir::Operation *op, llvm::ArrayRef<Coordinate> position);
  /// Turns the coordinates of `axes` into positions over the row loops. False with a request or a failure.
  bool enterRow(Position &position, llvm::ArrayRef<DimExpr> dims, llvm::ArrayRef<int64_t> axes);
  bool isWholeAxis(const Linear &index, const DimExpr &size) const;

  /// Which of the segments `index` lies in; -1 with a request, -2 where that can only be told while running.
  int segmentOf(const Linear &index, llvm::ArrayRef<std::pair<DimExpr, DimExpr>> segments, mlir::Operation *op);
  unsigned addAtom(Atom atom);
  std::pair<DimExpr, DimExpr> boundsOf(const Linear &index) const; // least and greatest value
  Linear indexOf(const Coordinate &c) const { return c.isOne ? Linear() : c.at; }
  Linear elementIndex(int node, const DimExpr &size);

  FusedOp fused;
  Decisions decisions;
  std::map<std::string, int> nodeCache;
  std::map<std::string, unsigned> atomCache;
  std::map<std::string, int> pulled;
  std::vector<std::pair<DimExpr, Linear>> rowAxes; // the reduced axes longer than 1 and their positions
};

/// The dimensions of a value, 1s included.
llvm::SmallVector<DimExpr> dimsOfValue(mlir::Value value);

} // namespace firn
#endif

// RNN, GRU and LSTM. States stay in double from step to step; outputs are rounded once.
#include "runtime/kernels/Require.h"

namespace firn::kernels {

namespace {

// --- activations -----------------------------------------------------------------------------------------------------

enum class Function {
  affine,
  elu,
  hardSigmoid,
  leakyRelu,
  relu,
  scaledTanh,
  sigmoid,
  softplus,
  softsign,
  tanhFunction,
  thresholdedRelu
};

struct FunctionEntry {
  const char *name; // lower case: exporters disagree on upper case
  Function function;
  bool hasAlpha, hasBeta;
  double alpha, beta; // of the ONNX operator of that name
};

constexpr FunctionEntry functionTable[] = {
    {"affine", Function::affine, true, true, 1, 0},
    {"elu", Function::elu, true, false, 1, 0},
    {"hardsigmoid", Function::hardSigmoid, true, true, double(0.2f), 0.5},
    {"leakyrelu", Function::leakyRelu, true, false, double(0.01f), 0},
    {"relu", Function::relu, false, false, 0, 0},
    {"scaledtanh", Function::scaledTanh, true, true, 1, 1},
    {"sigmoid", Function::sigmoid, false, false, 0, 0},
    {"softplus", Function::softplus, false, false, 0, 0},
    {"softsign", Function::softsign, false, false, 0, 0},
    {"tanh", Function::tanhFunction, false, false, 0, 0},
    {"thresholdedrelu", Function::thresholdedRelu, true, false, 1, 0},
};

struct Activation {
  Function function;
  double alpha, beta;
  double clip; // what enters is clipped to [-clip, clip]
};

double sigmoid(double x) {
  double e = exp(-fabs(x)); // never overflows
  return x >= 0 ? 1 / (1 + e) : e / (1 + e);
}

double apply(const Activation &activation, double x) {
  double alpha = activation.alpha, beta = activation.beta;
  if (x > activation.clip)
    x = activation.clip;
  else if (x < -activation.clip)
    x = -activation.clip;
  switch (activation.function) {
  case Function::affine:
    return alpha * x + beta;
  case Function::elu:
    return x >= 0 ? x : alpha * expm1(x);
  case Function::hardSigmoid: {
    double y = alpha * x + beta;
    return y < 0 ? 0 : y > 1 ? 1 : y;
  }
  case Function::leakyRelu:
    return x >= 0 ? x : alpha * x;
  case Function::relu:
    return x < 0 ? 0 : x;
  case Function::scaledTanh:
    return alpha * tanh(beta * x);
  case Function::sigmoid:
    return sigmoid(x);
  case Function::softplus:
    return (x > 0 ? x : 0) + log1p(exp(-fabs(x)));
  case Function::softsign:
    return x / (1 + fabs(x));
  case Function::tanhFunction:
    return tanh(x);
  case Function::thresholdedRelu:
    return x >= alpha ? x : 0;
  }
  return x;
}

const FunctionEntry *findFunction(const char *name, int64_t length) {
  for (const FunctionEntry &entry : functionTable) {
    bool isEqual = int64_t(strlen(entry.name)) == length;
    for (int64_t i = 0; isEqual && i < length; ++i)
      isEqual = (name[i] | 0x20) == entry.name[i];
    if (isEqual)
      return &entry;
  }
  return nullptr;
}

// --- what the three operators share ----------------------------------------------------------------------------------

enum class Cell { rnn, gru, lstm };
constexpr int32_t gatesOf(Cell cell) { return cell == Cell::rnn ? 1 : cell == Cell::gru ? 3 : 4; }
constexpr int32_t functionsOf(Cell cell) { return cell == Cell::rnn ? 1 : cell == Cell::gru ? 2 : 3; }

struct RecurrentOperands {
  const firn_view *x, *w, *r, *b, *lengths, *initialH, *initialC, *peepholes;
  int64_t steps, batch, inputs, hidden, directions;
  bool isBatchFirst, startsReversed; // the first direction runs backwards
  Activation activations[6];         // three a direction at most
};

const firn_attribute *listAttribute(const firn_call *call, const char *name, int64_t kind) {
  const firn_attribute *attribute = findAttribute(call, name);
  return attribute && attribute->kind == kind ? attribute : nullptr;
}

int32_t readActivations(firn_call *call, Cell cell, RecurrentOperands *o) {
  static const char *const defaults[][3] = {{"tanh"}, {"sigmoid", "tanh"}, {"sigmoid", "tanh", "tanh"}};
  const int32_t each = functionsOf(cell), needed = each * int32_t(o->directions);
  const firn_attribute *names = listAttribute(call, "activations", FIRN_ATTR_STRINGS);
  const firn_attribute *alphas = listAttribute(call, "activation_alpha", FIRN_ATTR_FLOATS);
  const firn_attribute *betas = listAttribute(call, "activation_beta", FIRN_ATTR_FLOATS);
  // RNN's default is a list for two directions, which files spell out for one direction too.
  if (names && names->count != needed && !(cell == Cell::rnn && names->count > needed))
    return fail(call, FIRN_CALL_INVALID, "attribute activations has the wrong length: expected %d, found %lld", needed,
                static_cast<long long>(names->count));
  double clip = INFINITY;
  if (findAttribute(call, "clip")) {
    clip = floatAttribute(call, "clip", 0);
    if (!(clip >= 0))
      return fail(call, FIRN_CALL_INVALID, "attribute clip must not be negative, found %g", clip);
  }
  // The lists of parameters hold entries only for those functions that have one.
  int64_t alphaAt = 0, betaAt = 0;
  for (int32_t i = 0; i < needed; ++i) {
    const char *name = defaults[int(cell)][i % each];
    int64_t length = int64_t(strlen(name));
    if (names) {
      name = static_cast<const firn_string *>(names->data)[i].data;
      length = static_cast<const firn_string *>(names->data)[i].length;
    }
    const FunctionEntry *entry = findFunction(name, length);
    if (!entry)
      return fail(call, FIRN_CALL_INVALID, "attribute activations has an unknown function at position %d: '%.*s'", i,
                  length < 80 ? int(length) : 80, name);
    Activation &activation = o->activations[i];
    activation = {entry->function, entry->alpha, entry->beta, clip};
    if (entry->hasAlpha && alphas && alphaAt < alphas->count)
      activation.alpha = static_cast<const float *>(alphas->data)[alphaAt++];
    if (entry->hasBeta && betas && betaAt < betas->count)
      activation.beta = static_cast<const float *>(betas->data)[betaAt++];
  }
  return FIRN_CALL_OK;
}

int32_t recurrentOperands(firn_call *call, Cell cell, RecurrentOperands *o) {
  static const char *const directionNames[] = {"forward", "reverse", "bidirectional"};
  FIRN_TRY(requireInput(call, 0, "X", floatTypes, &o->x));
  FIRN_TRY(requireInput(call, 1, "W", floatTypes, &o->w));
  FIRN_TRY(requireInput(call, 2, "R", floatTypes, &o->r));
  FIRN_TRY(optionalInput(call, 3, "B", floatTypes, &o->b));
  FIRN_TRY(optionalInput(call, 4, "sequence_lens", typeSet(FIRN_I32), &o->lengths));
  FIRN_TRY(optionalInput(call, 5, "initial_h", floatTypes, &o->initialH));
  o->initialC = o->peepholes = nullptr;
  if (cell == Cell::lstm) {
    FIRN_TRY(optionalInput(call, 6, "initial_c", floatTypes, &o->initialC));
    FIRN_TRY(optionalInput(call, 7, "P", floatTypes, &o->peepholes));
  }
  FIRN_TRY(requireSameDtype(call, "W", o->w, "X", *o->x));
  FIRN_TRY(requireSameDtype(call, "R", o->r, "X", *o->x));
  FIRN_TRY(requireSameDtype(call, "B", o->b, "X", *o->x));
  FIRN_TRY(requireSameDtype(call, "initial_h", o->initialH, "X", *o->x));
  FIRN_TRY(requireSameDtype(call, "initial_c", o->initialC, "X", *o->x));
  FIRN_TRY(requireSameDtype(call, "P", o->peepholes, "X", *o->x));
  FIRN_TRY(requireRank(call, "X", *o->x, 3, 3));
  FIRN_TRY(requireRank(call, "W", *o->w, 3, 3));
  FIRN_TRY(requireRank(call, "R", *o->r, 3, 3));
  int32_t direction;
  int64_t layout;
  FIRN_TRY(choiceAttribute(call, "direction", directionNames, 3, 0, &direction));
  FIRN_TRY(boundedAttribute(call, "layout", 0, 0, 1, &layout));
  o->isBatchFirst = layout == 1;
  o->startsReversed = direction == 1;
  o->directions = direction == 2 ? 2 : 1;
  o->steps = o->x->dims[o->isBatchFirst];
  o->batch = o->x->dims[!o->isBatchFirst];
  o->inputs = o->x->dims[2];
  o->hidden = o->r->dims[2];
  FIRN_TRY(boundedAttribute(call, "hidden_size", o->hidden, o->hidden, o->hidden, &o->hidden));
  int64_t rows;
  if (__builtin_mul_overflow(o->hidden, 2 * gatesOf(cell), &rows))
    return fail(call, FIRN_CALL_INVALID, "R has too many columns: %lld", static_cast<long long>(o->hidden));
  rows /= 2;
  int64_t wDims[3] = {o->directions, rows, o->inputs}, rDims[3] = {o->directions, rows, o->hidden};
  int64_t bDims[2] = {o->directions, 2 * rows}, pDims[2] = {o->directions, 3 * o->hidden};
  int64_t stateDims[3] = {o->isBatchFirst ? o->batch : o->directions, o->isBatchFirst ? o->directions : o->batch,
                          o->hidden};
  FIRN_TRY(requireShape(call, "W", o->w, wDims, 3));
  FIRN_TRY(requireShape(call, "R", o->r, rDims, 3));
  FIRN_TRY(requireShape(call, "B", o->b, bDims, 2));
  FIRN_TRY(requireVector(call, "sequence_lens", o->lengths, o->batch));
  FIRN_TRY(requireShape(call, "initial_h", o->initialH, stateDims, 3));
  FIRN_TRY(requireShape(call, "initial_c", o->initialC, stateDims, 3));
  FIRN_TRY(requireShape(call, "P", o->peepholes, pDims, 2));
  return readActivations(call, cell, o);
}

template <Cell cell> int32_t inferRecurrent(firn_call *call) {
  RecurrentOperands o;
  FIRN_TRY(recurrentOperands(call, cell, &o));
  int64_t timeFirst[4] = {o.steps, o.directions, o.batch, o.hidden}, stateDims[3] = {o.directions, o.batch, o.hidden};
  int64_t batchFirst[4] = {o.batch, o.steps, o.directions, o.hidden};
  int64_t batchFirstState[3] = {o.batch, o.directions, o.hidden};
  FIRN_TRY(setChecked(call, 0, o.x->dtype, o.isBatchFirst ? batchFirst : timeFirst, 4));
  for (int32_t i = 1; i <= (cell == Cell::lstm ? 2 : 1); ++i)
    FIRN_TRY(setChecked(call, i, o.x->dtype, o.isBatchFirst ? batchFirstState : stateDims, 3));
  return FIRN_CALL_OK;
}

/// The parameters of one direction, matrices transposed: a product then runs along rows.
struct DirectionParameters {
  double *w;         // [inputs, gates * hidden]
  double *r;         // [hidden, gates * hidden]
  double *wb, *rb;   // [gates * hidden] each
  double *peepholes; // [3 * hidden], zeros where absent
  const Activation *activations;
};

/// State and working memory of one sequence.
struct CellState {
  double *h, *c, *x, *gates, *recurrent; // recurrent: R h + Rb apart from W x + Wb
};

/// sums += vector * matrix, for columns [first, first + count) of a matrix of `columns`.
void addProduct(const double *vector, int64_t rows, const double *matrix, int64_t columns, int64_t first, int64_t count,
                double *sums) {
  for (int64_t k = 0; k < rows; ++k)
    for (int64_t j = 0; j < count; ++j)
      sums[first + j] += vector[k] * matrix[k * columns + first + j];
}

void stepRnn(const RecurrentOperands &o, const DirectionParameters &p, CellState &s) {
  for (int64_t j = 0; j < o.hidden; ++j)
    s.h[j] = apply(p.activations[0], s.gates[j] + s.recurrent[j]);
}

/// Gates in the order update, reset, hidden.
void stepGru(const RecurrentOperands &o, const DirectionParameters &p, bool isLinearBeforeReset, CellState &s) {
  int64_t n = o.hidden;
  for (int64_t j = 0; j < 2 * n; ++j)
    s.gates[j] = apply(p.activations[0], s.gates[j] + s.recurrent[j]);
  const double *update = s.gates, *reset = s.gates + n;
  double *candidate = s.gates + 2 * n, *recurrent = s.recurrent + 2 * n;
  if (isLinearBeforeReset) {
    for (int64_t j = 0; j < n; ++j)
      recurrent[j] *= reset[j];
  } else {
    double *scaled = s.recurrent; // no longer needed
    for (int64_t j = 0; j < n; ++j) {
      scaled[j] = reset[j] * s.h[j];
      recurrent[j] = p.rb[2 * n + j];
    }
    addProduct(scaled, n, p.r, 3 * n, 2 * n, n, s.recurrent);
  }
  for (int64_t j = 0; j < n; ++j)
    s.h[j] = (1 - update[j]) * apply(p.activations[1], candidate[j] + recurrent[j]) + update[j] * s.h[j];
}

/// Gates in the order input, output, forget, cell; peepholes in the order input, output, forget.
void stepLstm(const RecurrentOperands &o, const DirectionParameters &p, bool isCoupled, CellState &s) {
  int64_t n = o.hidden;
  const Activation &f = p.activations[0], &g = p.activations[1];
  // The clip limits what enters the gates. The cell state is no gate, and runtimes agree on leaving it unclipped.
  Activation h = p.activations[2];
  h.clip = INFINITY;
  for (int64_t j = 0; j < n; ++j) {
    double gate[4];
    for (int64_t k = 0; k < 4; ++k)
      gate[k] = s.gates[k * n + j] + s.recurrent[k * n + j];
    double in = apply(f, gate[0] + p.peepholes[j] * s.c[j]);
    double forget = isCoupled ? 1 - in : apply(f, gate[2] + p.peepholes[2 * n + j] * s.c[j]);
    s.c[j] = forget * s.c[j] + in * apply(g, gate[3]);
    double out = apply(f, gate[1] + p.peepholes[n + j] * s.c[j]);
    s.h[j] = out * apply(h, s.c[j]);
  }
}

int32_t loadDirection(firn_call *call, Cell cell, const RecurrentOperands &o, int64_t direction,
                      DirectionParameters *p) {
  int64_t rows = gatesOf(cell) * o.hidden;
  for (int64_t k = 0; k < o.inputs; ++k)
    loadDoubles(*o.w, direction * rows * o.inputs + k, o.inputs, rows, p->w + k * rows);
  for (int64_t k = 0; k < o.hidden; ++k)
    loadDoubles(*o.r, direction * rows * o.hidden + k, o.hidden, rows, p->r + k * rows);
  for (int64_t j = 0; j < 2 * rows; ++j)
    p->wb[j] = 0;
  for (int64_t j = 0; j < 3 * o.hidden; ++j)
    p->peepholes[j] = 0;
  if (o.b)
    loadDoubles(*o.b, direction * 2 * rows, 1, 2 * rows, p->wb);
  if (o.peepholes)
    loadDoubles(*o.peepholes, direction * 3 * o.hidden, 1, 3 * o.hidden, p->peepholes);
  p->activations = o.activations + direction * functionsOf(cell);
  for (int64_t b = 0; b < o.batch && o.lengths; ++b) {
    int64_t length = getInt(*o.lengths, b);
    if (length < 0 || length > o.steps)
      return fail(call, FIRN_CALL_INVALID,
                  "sequence_lens is out of range at position %lld: expected 0 to %lld, found %lld",
                  static_cast<long long>(b), static_cast<long long>(o.steps), static_cast<long long>(length));
  }
  return FIRN_CALL_OK;
}

template <Cell cell> int32_t runRecurrent(firn_call *call) {
  RecurrentOperands o;
  FIRN_TRY(recurrentOperands(call, cell, &o));
  firn_view *y = output(call, 0), *lastH = output(call, 1), *lastC = cell == Cell::lstm ? output(call, 2) : nullptr;
  bool isLinearBeforeReset = intAttribute(call, "linear_before_reset", 0) != 0;
  bool isCoupled = intAttribute(call, "input_forget", 0) != 0;
  int64_t rows = gatesOf(cell) * o.hidden;
  DirectionParameters p;
  CellState s;
  FIRN_TRY(allocate(call, o.inputs * rows, &p.w));
  FIRN_TRY(allocate(call, o.hidden * rows, &p.r));
  FIRN_TRY(allocate(call, 2 * rows, &p.wb));
  FIRN_TRY(allocate(call, 3 * o.hidden, &p.peepholes));
  FIRN_TRY(allocate(call, o.hidden, &s.h));
  FIRN_TRY(allocate(call, o.hidden, &s.c));
  FIRN_TRY(allocate(call, o.inputs, &s.x));
  FIRN_TRY(allocate(call, rows, &s.gates));
  FIRN_TRY(allocate(call, rows, &s.recurrent));
  p.rb = p.wb + rows;
  for (int64_t d = 0; d < o.directions; ++d) {
    FIRN_TRY(loadDirection(call, cell, o, d, &p));
    bool isReversed = d == 1 || o.startsReversed;
    for (int64_t b = 0; b < o.batch; ++b) {
      int64_t length = o.lengths ? getInt(*o.lengths, b) : o.steps;
      int64_t state = (o.isBatchFirst ? b * o.directions + d : d * o.batch + b) * o.hidden;
      for (int64_t j = 0; j < o.hidden; ++j) {
        s.h[j] = o.initialH ? getDouble(*o.initialH, state + j) : 0;
        s.c[j] = o.initialC ? getDouble(*o.initialC, state + j) : 0;
      }
      for (int64_t t = 0; t < o.steps; ++t) {
        int64_t at = t < length && isReversed ? length - 1 - t : t;
        int64_t to =
            (o.isBatchFirst ? (b * o.steps + at) * o.directions + d : (at * o.directions + d) * o.batch + b) * o.hidden;
        if (t >= length) { // padding
          for (int64_t j = 0; j < o.hidden && y; ++j)
            setDouble(*y, to + j, 0);
          continue;
        }
        loadDoubles(*o.x, (o.isBatchFirst ? b * o.steps + at : at * o.batch + b) * o.inputs, 1, o.inputs, s.x);
        memcpy(s.gates, p.wb, size_t(rows) * sizeof(double));
        memcpy(s.recurrent, p.rb, size_t(rows) * sizeof(double));
        addProduct(s.x, o.inputs, p.w, rows, 0, rows, s.gates);
        addProduct(s.h, o.hidden, p.r, rows, 0, rows, s.recurrent);
        if (cell == Cell::rnn)
          stepRnn(o, p, s);
        else if (cell == Cell::gru)
          stepGru(o, p, isLinearBeforeReset, s);
        else
          stepLstm(o, p, isCoupled, s);
        if (y)
          storeDoubles(*y, to, o.hidden, s.h);
      }
      if (lastH)
        storeDoubles(*lastH, state, o.hidden, s.h);
      if (lastC)
        storeDoubles(*lastC, state, o.hidden, s.c);
    }
  }
  return FIRN_CALL_OK;
}

} // namespace

FIRN_OPERATOR(ai_onnx, GRU, "ai.onnx::GRU", inferRecurrent<Cell::gru>, runRecurrent<Cell::gru>)
FIRN_OPERATOR(ai_onnx, LSTM, "ai.onnx::LSTM", inferRecurrent<Cell::lstm>, runRecurrent<Cell::lstm>)
FIRN_OPERATOR(ai_onnx, RNN, "ai.onnx::RNN", inferRecurrent<Cell::rnn>, runRecurrent<Cell::rnn>)

} // namespace firn::kernels

#include "compiler/driver/GraphReport.h"
#include "dialects/firn/Firn.h"
#include "passes/group/Groupable.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include <nlohmann/json.hpp>

using namespace mlir;

namespace firn {

namespace {

using Json = nlohmann::ordered_json;

/// At least 1: what is left of a dimension of 1 after a kernel of 3 says nothing.
int64_t sizeAtOnes(const DimExpr &dim) {
  std::set<std::string> symbols;
  dim.collectSymbols(symbols);
  std::map<std::string, DimExpr> ones;
  for (const std::string &symbol : symbols)
    ones.emplace(symbol, DimExpr(1));
  return std::max<int64_t>(dim.with(ones).asConstant().value_or(1), 1);
}

int64_t elementsOf(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  int64_t count = type ? 1 : 0;
  if (type)
    for (const DimExpr &dim : dimsOf(type))
      count *= sizeAtOnes(dim);
  return count;
}

int64_t bytesOf(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  int32_t dtype = type ? dtypeOf(type.getElementType()) : 0;
  return dtype && dtype != FIRN_STRING ? firn_dtype_bytes(dtype, elementsOf(value)) : 0;
}

/// Of an operand's axis, counted from the end where negative; 1 where there is none.
int64_t sizeOfAxis(Value value, int64_t axis) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type)
    return 1;
  axis += axis < 0 ? type.getRank() : 0;
  return axis >= 0 && axis < type.getRank() ? sizeAtOnes(dimOf(type, axis)) : 1;
}

int64_t flopsOfOperation(Operation *op) {
  int64_t results = elementsOf(op->getResult(0));
  if (isa<MatMulOp, MatMulIntegerOp, QLinearMatMulOp>(op))
    return 2 * results * sizeOfAxis(op->getOperand(0), -1);
  if (auto gemm = dyn_cast<GemmOp>(op))
    return 2 * results * sizeOfAxis(gemm.getA(), gemm.getTransA() ? 0 : 1);
  if (isa<ConvOp, ConvIntegerOp, QLinearConvOp, ConvTransposeOp>(op)) {
    Value weight = op->getOperand(isa<QLinearConvOp>(op) ? 3 : 1);
    int64_t counted = isa<ConvTransposeOp>(op) ? elementsOf(op->getOperand(0)) : results;
    return 2 * counted * (elementsOf(weight) / std::max<int64_t>(sizeOfAxis(weight, 0), 1));
  }
  if (isa<AttentionOp>(op)) // scores and their product with the values
    return 4 * elementsOf(op->getOperand(0)) * sizeOfAxis(op->getOperand(1), -2);
  if (isa<LSTMOp, GRUOp, RNNOp>(op))
    return 2 * sizeOfAxis(op->getOperand(0), 0) * sizeOfAxis(op->getOperand(0), 1) *
           (elementsOf(op->getOperand(1)) + elementsOf(op->getOperand(2)));
  switch (roleOf(op)) {
  case Role::Elementwise:
    return results;
  case Role::Reduce:
    return elementsOf(op->getOperand(0));
  default:
    return 0;
  }
}

bool isNode(Operation *op) { return !isa<ConstantOp, AbsentOp>(op) && op->getNumResults() > 0; }

/// Bodies count: of an If the dearest branch, of a Loop or Scan the body once.
int64_t flopsOf(Block &block) {
  int64_t sum = 0;
  for (Operation &op : block.without_terminator()) {
    int64_t body = 0;
    for (Region &region : op.getRegions())
      for (Block &inner : region)
        body = std::max(body, flopsOf(inner));
    sum += body + (isNode(&op) && op.getNumRegions() == 0 ? flopsOfOperation(&op) : 0);
  }
  return sum;
}

int64_t peakOf(Block &block) {
  int64_t alive = 0, peak = 0;
  DenseMap<Value, unsigned> readers;
  auto begin = [&](Value value) {
    readers[value] = unsigned(std::distance(value.use_begin(), value.use_end()));
    alive += bytesOf(value);
  };
  llvm::for_each(block.getArguments(), begin);
  for (Operation &op : block) {
    if (isNode(&op))
      llvm::for_each(op.getResults(), begin);
    int64_t body = 0;
    for (Region &region : op.getRegions())
      for (Block &inner : region)
        body = std::max(body, peakOf(inner));
    peak = std::max(peak, alive + body);
    op.walk([&](Operation *inner) { // bodies read values of the graph around them
      for (Value operand : inner->getOperands())
        if (auto left = readers.find(operand); left != readers.end() && --left->second == 0)
          alive -= bytesOf(operand);
    });
  }
  return peak;
}

/// Three digits: "1.19e-07".
std::string shortest(double number) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.3g", number);
  return text;
}

std::string row(StringRef name, const std::string &before, const std::string &after) {
  return llvm::formatv("  {0,-28}{1,16}{2,16}\n", name, before, after);
}

Block &mainBlock(ModuleOp module) { return (*module.getOps<func::FuncOp>().begin()).getBody().front(); }

} // namespace

GraphFacts factsOf(ModuleOp module, const model::Model &model, int64_t bytes) {
  GraphFacts facts;
  facts.counts.add(model.graph);
  facts.bytes = bytes;
  facts.flops = flopsOf(mainBlock(module));
  facts.activationBytes = peakActivations(module);
  return facts;
}

int64_t peakActivations(ModuleOp module) { return peakOf(mainBlock(module)); }

static void collectOrigins(const model::Graph &graph,
                           std::vector<std::pair<std::string, std::vector<std::string>>> &origins) {
  for (const model::Node &node : graph.nodes) {
    if (!node.sources.empty() && !(node.sources.size() == 1 && node.sources[0] == node.name))
      origins.emplace_back(node.name, node.sources);
    for (const model::Attribute &attribute : node.attributes)
      if (attribute.graph)
        collectOrigins(*attribute.graph, origins);
  }
}

std::vector<std::pair<std::string, std::vector<std::string>>> originsOf(const model::Model &model) {
  std::vector<std::pair<std::string, std::vector<std::string>>> origins;
  collectOrigins(model.graph, origins);
  return origins;
}

/// Rounds repeat themselves: each refusal once, rewrites counted.
static std::map<std::string, size_t> countRewrites(const GraphReport &report, std::vector<const PassRemark *> &kept) {
  std::map<std::string, size_t> rewrites;
  std::set<std::string> seen;
  for (const PassRemark &remark : report.remarks)
    if (!remark.isRefusal)
      ++rewrites[remark.pass];
    else if (seen.insert(remark.pass + '\n' + remark.node + '\n' + remark.text).second)
      kept.push_back(&remark);
  return rewrites;
}

/// Operators of both graphs, the most frequent first.
static std::vector<std::string> operatorsOf(const GraphReport &report) {
  std::map<std::string, int64_t> counts;
  for (const GraphFacts *facts : {&report.before, &report.after})
    for (const auto &[name, count] : facts->counts.operators)
      counts[name] = std::max(counts[name], count);
  std::vector<std::string> names;
  for (const auto &[name, count] : counts)
    names.push_back(name);
  llvm::sort(names, [&](const std::string &a, const std::string &b) {
    return std::make_pair(-counts[a], StringRef(a)) < std::make_pair(-counts[b], StringRef(b));
  });
  return names;
}

static int64_t countOf(const GraphFacts &facts, const std::string &name) {
  auto found = facts.counts.operators.find(name);
  return found == facts.counts.operators.end() ? 0 : found->second;
}

std::string text(const GraphReport &report) {
  const GraphFacts &before = report.before, &after = report.after;
  std::string out = row("operator", "before", "after");
  for (const std::string &name : operatorsOf(report))
    out += row(name, std::to_string(countOf(before, name)), std::to_string(countOf(after, name)));
  auto total = [&](StringRef name, int64_t was, int64_t is) {
    out += row(name, std::to_string(was), std::to_string(is));
  };
  total("nodes", before.counts.nodes, after.counts.nodes);
  total("parameters", before.counts.parameters, after.counts.parameters);
  total("bytes", before.bytes, after.bytes);
  total("FLOPs*", before.flops, after.flops);
  total("activation bytes*", before.activationBytes, after.activationBytes);
  out += "  * dynamic dimensions count as 1\n";
  std::vector<const PassRemark *> refusals;
  auto rewrites = countRewrites(report, refusals);
  if (!rewrites.empty())
    out += "rewrites\n";
  for (const auto &[pass, count] : rewrites)
    out += "  " + pass + ": " + std::to_string(count) + "\n";
  if (!refusals.empty())
    out += "not rewritten\n";
  for (const PassRemark *r : refusals)
    out += "  " + r->pass + (r->node.empty() ? "" : " ") + r->node + ": " + r->text + "\n";
  std::string made;
  for (const auto &[node, sources] : report.origins)
    if (node != llvm::join(sources, "+")) // such a name says it
      made += "  " + node + " <- " + llvm::join(sources, ", ") + "\n";
  if (!made.empty())
    out += "new nodes\n" + made;
  return out;
}

Json json(const GraphReport &report) {
  auto pair = [](int64_t before, int64_t after) { return Json{{"before", before}, {"after", after}}; };
  const GraphFacts &before = report.before, &after = report.after;
  Json json = {{"schema", "firn.optimise.v1"}, {"model", report.input}, {"output", report.output}};
  json["nodes"] = pair(before.counts.nodes, after.counts.nodes);
  json["parameters"] = pair(before.counts.parameters, after.counts.parameters);
  json["bytes"] = pair(before.bytes, after.bytes);
  json["flops"] = pair(before.flops, after.flops);
  json["activation_bytes"] = pair(before.activationBytes, after.activationBytes);
  json["operators"] = Json::object();
  for (const std::string &name : operatorsOf(report))
    json["operators"][name] = pair(countOf(before, name), countOf(after, name));
  std::vector<const PassRemark *> refusals;
  json["rewrites"] = countRewrites(report, refusals);
  json["refusals"] = Json::array();
  for (const PassRemark *r : refusals)
    json["refusals"].push_back({{"pass", r->pass}, {"node", r->node}, {"why", r->text}});
  json["new_nodes"] = Json::array();
  for (const auto &[node, sources] : report.origins)
    json["new_nodes"].push_back({{"node", node}, {"from", sources}});
  if (!report.comparison)
    return json;
  Json &verification = json["verification"] = {{"equal", report.comparison->isEqual()},
                                               {"runs", report.comparison->runs},
                                               {"why_not", report.comparison->whyNot},
                                               {"first_node", report.comparison->firstNode},
                                               {"outputs", Json::array()}};
  for (const OutputDifference &output : report.comparison->outputs)
    verification["outputs"].push_back({{"name", output.name},
                                       {"max_absolute", output.maxAbsolute},
                                       {"max_relative", output.maxRelative},
                                       {"what", output.what}});
  return json;
}

std::string text(const GraphComparison &comparison) {
  if (!comparison.isCompared())
    return "not verified: " + comparison.whyNot + "\n";
  std::string out = llvm::formatv("{0}: {1} run{2} on random inputs\n", comparison.isEqual() ? "verified" : "DIFFERENT",
                                  comparison.runs, comparison.runs == 1 ? "" : "s");
  for (const OutputDifference &output : comparison.outputs)
    out += llvm::formatv("  {0}: largest difference {1}, {2} of the largest value{3}{4}\n", output.name,
                         shortest(output.maxAbsolute), shortest(output.maxRelative), output.what.empty() ? "" : "; ",
                         output.what)
               .str();
  if (!comparison.firstNode.empty())
    out += "  first different node: " + comparison.firstNode + "\n";
  return out;
}

} // namespace firn

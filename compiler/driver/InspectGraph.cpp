// InspectGraph: a graph file counted and listed.
#include "compiler/driver/InspectGraph.h"
#include "compiler/Diagnostics.h"
#include "compiler/driver/GraphCounts.h"
#include "compiler/driver/Options.h"
#include "compiler/import/Blob.h"
#include "compiler/import/firn/Reader.h"
#include "compiler/import/onnx/Reader.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <nlohmann/json.hpp>
#include <set>

namespace firn {

namespace {

using Json = nlohmann::ordered_json;

Json describeValue(const model::Value &value) {
  Json entry = {{"name", value.name}};
  using Kind = model::Type::Kind;
  static const char *const kinds[] = {"unknown", "tensor", "sparse_tensor", "sequence", "map", "optional"};
  if (value.type.kind != Kind::Tensor)
    entry["kind"] = kinds[int(value.type.kind)];
  const model::Type *held = &value.type;
  while (held->element)
    held = held->element.get();
  entry["dtype"] = dtypeText(held->dtype);
  entry["dims"] = nullptr; // the file gives no rank
  if (!value.type.dims)
    return entry;
  entry["dims"] = Json::array();
  for (const model::Dim &dim : *value.type.dims)
    entry["dims"].push_back(dim.size ? Json(*dim.size) : dim.symbol.empty() ? Json() : Json(dim.symbol));
  return entry;
}

Json describe(const model::Model &model, const std::string &path, const std::string &format) {
  GraphCounts counts;
  counts.add(model.graph);
  for (const model::Function &function : model.functions)
    counts.add(function.nodes);
  Json json = {{"file", path}, {"format", format}, {"name", model.graph.name}};
  json["producer"] = model.producer + (model.producerVersion.empty() ? "" : " " + model.producerVersion);
  if (format == "onnx")
    json["ir_version"] = model.formatVersion;
  json["model_version"] = model.modelVersion;
  json["opsets"] = Json::object();
  for (const auto &[domain, version] : model.opsets)
    json["opsets"][model::domainName(domain)] = version;
  std::set<std::string> defaults;
  for (const model::Tensor &tensor : model.graph.constants)
    defaults.insert(tensor.name);
  json["inputs"] = Json::array();
  for (const model::Value &value : model.graph.inputs) {
    Json entry = describeValue(value);
    entry["optional"] = defaults.count(value.name) != 0;
    // Old files list every weight as an input; that is no input that a user gives.
    if (!entry["optional"].get<bool>() || model.formatVersion >= 4 || format != "onnx")
      json["inputs"].push_back(entry);
  }
  json["outputs"] = Json::array();
  for (const model::Value &value : model.graph.outputs)
    json["outputs"].push_back(describeValue(value));
  json["nodes"] = counts.nodes;
  json["nested_graphs"] = counts.nestedGraphs;
  json["functions"] = model.functions.size();
  // The most frequent first; equal ones by name.
  std::vector<std::pair<std::string, int64_t>> operators(counts.operators.begin(), counts.operators.end());
  llvm::sort(operators, [](const auto &x, const auto &y) {
    return x.second != y.second ? x.second > y.second : x.first < y.first;
  });
  json["operators"] = Json::object();
  for (const auto &[name, count] : operators)
    json["operators"][name] = count;
  json["parameters"] = counts.parameters;
  json["weights"] = {{"tensors", counts.tensors}, {"bytes", counts.weightBytes}, {"dtypes", Json::object()}};
  for (const auto &[dtype, sums] : counts.weights)
    json["weights"]["dtypes"][dtype] = {{"tensors", sums.first}, {"bytes", sums.second}};
  json["metadata"] = Json::object();
  for (const auto &[key, value] : model.metadata)
    json["metadata"][key] = value;
  if (!model.doc.empty())
    json["doc"] = model.doc;
  return json;
}

void printValue(llvm::raw_ostream &out, const Json &value) {
  out << "  " << value["name"].get<std::string>() << ": " << value["dtype"].get<std::string>();
  if (value["dims"].is_null()) {
    out << "[...]";
  } else {
    out << "[";
    bool isFirst = true;
    for (const Json &dim : value["dims"]) {
      out << (isFirst ? "" : ",") << (dim.is_null() ? "?" : dim.is_string() ? dim.get<std::string>() : dim.dump());
      isFirst = false;
    }
    out << "]";
  }
  if (value.contains("kind"))
    out << " " << value["kind"].get<std::string>();
  out << (value.value("optional", false) ? " (may be left out)\n" : "\n");
}

void print(llvm::raw_ostream &out, const Json &json) {
  out << json["file"].get<std::string>() << ": " << json["format"].get<std::string>() << " graph '"
      << json["name"].get<std::string>() << "'";
  if (std::string producer = json["producer"].get<std::string>(); !producer.empty())
    out << " by " << producer;
  out << "\nopsets\n";
  for (const auto &[domain, version] : json["opsets"].items())
    out << "  " << domain << " " << version.get<int64_t>() << "\n";
  for (const char *kind : {"inputs", "outputs"}) {
    out << kind << "\n";
    for (const Json &value : json[kind])
      printValue(out, value);
  }
  out << "operators\n";
  for (const auto &[name, count] : json["operators"].items())
    out << "  " << llvm::format("%6lld", static_cast<long long>(count.get<int64_t>())) << "  " << name << "\n";
  out << "  " << json["nodes"].get<int64_t>() << " nodes";
  if (int64_t nested = json["nested_graphs"].get<int64_t>())
    out << ", " << nested << " nested graphs";
  if (int64_t functions = json["functions"].get<int64_t>())
    out << ", " << functions << " functions";
  out << "\nweights\n  " << json["parameters"].get<int64_t>() << " parameters in "
      << json["weights"]["tensors"].get<int64_t>() << " tensors, " << json["weights"]["bytes"].get<int64_t>()
      << " bytes\n";
  for (const auto &[dtype, sums] : json["weights"]["dtypes"].items())
    out << "  " << dtype << ": " << sums["tensors"].get<int64_t>() << " tensors, " << sums["bytes"].get<int64_t>()
        << " bytes\n";
  if (!json["metadata"].empty())
    out << "metadata\n";
  for (const auto &[key, value] : json["metadata"].items())
    out << "  " << key << ": " << value.get<std::string>() << "\n";
}

} // namespace

int inspectGraph(const std::string &path, bool asJson) {
  Diagnostics diagnostics(path);
  std::string why;
  std::optional<MappedFile> file = mapFile(path, why);
  if (!file) {
    llvm::errs() << path << ": cannot be read: " << why << "\n";
    return exitFile;
  }
  llvm::StringRef bytes(file->bytes.data(), file->bytes.size());
  bool isText = llvm::StringRef(path).ends_with(".fpbtxt") || isFirnText(bytes);
  bool isFirn = isText || isFirnBinary(bytes);
  std::optional<model::Model> model =
      isFirn ? readFirn(bytes, path, isText, {}, diagnostics) : readOnnx(bytes, path, {}, diagnostics);
  if (!diagnostics.all().empty())
    llvm::errs() << diagnostics.text();
  if (!model)
    return exitRejected;
  Json json = describe(*model, path, isFirn ? "firn" : "onnx");
  if (asJson)
    llvm::outs() << json.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
  else
    print(llvm::outs(), json);
  return diagnostics.hasErrors() ? exitRejected : exitDone;
}

} // namespace firn

#include "tools/tensor_io/Inputs.h"

#include <charconv>

namespace firn::tools {

namespace {

firn_error emptyError() {
  firn_error error{};
  error.struct_size = sizeof error;
  return error;
}

// splitmix64: the same values on every machine.
class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}
  uint64_t next() {
    uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

private:
  uint64_t state;
};

template <typename T> T parseNumber(const std::string &text, const std::string &what) {
  T value;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    throw Failure(BadCommandLine, what + ": '" + text + "' is not a number");
  return value;
}

// "NAME=VALUE" of an option; a name may hold '=' itself, so the split is at the first one after which the value can be.
std::pair<std::string, std::string> splitAssignment(const std::string &text, const std::string &option) {
  size_t split = text.find("=@");
  if (split == std::string::npos)
    split = text.rfind('=');
  if (split == std::string::npos || split == 0)
    throw Failure(BadCommandLine, option + " '" + text + "': expected NAME=VALUE");
  return {text.substr(0, split), text.substr(split + 1)};
}

using Dimensions = std::map<std::string, int64_t>;

Dimensions parseDims(const std::vector<std::string> &texts) {
  Dimensions dims;
  for (const std::string &text : texts) {
    auto [name, value] = splitAssignment(text, "--dim");
    dims[name] = parseNumber<int64_t>(value, "--dim " + name);
    if (dims[name] < 0)
      throw Failure(BadCommandLine, "--dim " + text + ": a dimension cannot be negative");
  }
  return dims;
}

// Floats in [-1, 1), integers and bools 0 or 1 (in range for every use as an index), texts of one letter. A dynamic
// dimension is what --dim says, else 1.
Tensor randomTensor(const firn_port_info &port, const Dimensions &given, uint64_t seed) {
  if (port.form != FIRN_FORM_TENSOR)
    throw Failure(Rejected, std::string("input '") + port.name + "' is a " + portType(port) +
                                ", for which there are no random values\n  fix: give it with --input NAME=@FILE.pb");
  std::vector<int64_t> dims(port.dims, port.dims + port.rank);
  for (size_t d = 0; d < dims.size(); ++d)
    if (dims[d] < 0) {
      auto found = port.symbols[d] ? given.find(port.symbols[d]) : given.end();
      dims[d] = found == given.end() ? 1 : found->second;
    }
  Tensor tensor(port.dtype, dims);
  Random random(seed);
  for (int64_t i = 0, n = tensor.count(); i < n; ++i) {
    uint64_t bits = random.next();
    if (port.dtype == FIRN_STRING)
      tensor.strings.emplace_back(1, char('a' + bits % 26));
    else if (isFloat(port.dtype) || isComplex(port.dtype))
      setElement(tensor, i, double(int64_t(bits) >> 11) * 0x1p-52);
    else
      setElement(tensor, i, double(bits & 1));
  }
  tensor.linkStrings();
  return tensor;
}

std::string portTypes(const firn_model *model) {
  std::string text;
  for (int32_t i = 0; i < firn_model_input_count(model); ++i)
    text += (i ? ", " : "") + std::string("'") + inputInfo(model, i).name + "'";
  return text;
}

template <typename Describe> firn_port_info describe(Describe function, const firn_model *model, int32_t index) {
  firn_port_info port{};
  port.struct_size = sizeof port;
  if (function(model, index, &port) != FIRN_OK)
    throw Failure(Internal, "the model does not describe its ports");
  return port;
}

} // namespace

ExitStatus exitStatusOf(firn_status status) {
  switch (status) {
  case FIRN_OK:
    return Done;
  case FIRN_UNREADABLE:
    return BadFile;
  case FIRN_DIFFERS:
    return Different;
  case FIRN_BAD_ARGUMENT:
  case FIRN_BUSY:
    return Internal;
  default:
    return Rejected;
  }
}

ModelHandle openModel(const std::string &path, bool toRead) {
  firn_error error = emptyError();
  firn_model *model = nullptr;
  auto open = toRead ? firn_model_open_to_read : firn_model_open;
  if (firn_status status = open(path.c_str(), &model, &error))
    throw Failure(exitStatusOf(status), error.message);
  return ModelHandle(model);
}

SessionHandle createSession(const firn_model *model, int32_t threads) {
  firn_error error = emptyError();
  firn_session_options options{};
  options.struct_size = sizeof options;
  options.threads = threads;
  firn_session *session = nullptr;
  if (firn_status status = firn_session_create(model, &options, &session, &error))
    throw Failure(exitStatusOf(status), error.message);
  return SessionHandle(session);
}

void runSession(firn_session *session, const std::vector<firn_tensor> &inputs, std::vector<firn_tensor> &outputs) {
  if (firn_status status = firn_session_run(session, inputs.data(), outputs.data()))
    throw Failure(exitStatusOf(status), firn_session_message(session));
}

firn_port_info inputInfo(const firn_model *model, int32_t index) { return describe(firn_model_input, model, index); }
firn_port_info outputInfo(const firn_model *model, int32_t index) { return describe(firn_model_output, model, index); }

std::vector<PortName> inputNames(const firn_model *model) {
  std::vector<PortName> names;
  for (int32_t i = 0; i < firn_model_input_count(model); ++i)
    names.push_back({inputInfo(model, i).name, inputInfo(model, i).dtype, inputInfo(model, i).form});
  return names;
}

std::vector<PortName> outputNames(const firn_model *model) {
  std::vector<PortName> names;
  for (int32_t i = 0; i < firn_model_output_count(model); ++i)
    names.push_back({outputInfo(model, i).name, outputInfo(model, i).dtype, outputInfo(model, i).form});
  return names;
}

std::string portType(const firn_port_info &port) {
  static const char *const forms[][2] = {{"", ""},
                                         {"", "[any rank]"},
                                         {"sequence of ", ""},
                                         {"optional ", ""},
                                         {"optional sequence of ", ""},
                                         {"map to ", ""},
                                         {"sequence of maps to ", ""}};
  std::string text = port.dtype == FIRN_DTYPE_NONE ? "any type" : firn_dtype_name(port.dtype);
  if (port.form > FIRN_FORM_TENSOR && size_t(port.form) < sizeof forms / sizeof forms[0])
    return forms[port.form][0] + text + forms[port.form][1];
  text += '[';
  for (int32_t d = 0; d < port.rank; ++d) {
    text += d ? "," : "";
    text += port.dims[d] >= 0 ? std::to_string(port.dims[d]) : port.symbols[d] ? port.symbols[d] : "?";
  }
  return text + ']';
}

std::vector<Tensor> makeInputs(const firn_model *model, const InputOptions &options) {
  std::vector<PortName> ports = inputNames(model);
  std::vector<Tensor> result(ports.size());
  if (!options.folder.empty())
    result = readTensors(options.folder, "input", ports);
  Dimensions dims = parseDims(options.dims);
  for (const std::string &text : options.inputs) {
    auto [name, value] = splitAssignment(text, "--input");
    int32_t index = firn_model_find_input(model, name.c_str());
    if (index < 0)
      throw Failure(Rejected, "the model has no input '" + name + "'; its inputs are " + portTypes(model));
    if (value.substr(0, 1) == "@") {
      result[size_t(index)] = readTensor(value.substr(1), ports[size_t(index)]);
    } else if (value == "random" || value.substr(0, 7) == "random:") {
      uint64_t seed = value == "random" ? 0 : parseNumber<uint64_t>(value.substr(7), "--input " + name);
      result[size_t(index)] = randomTensor(inputInfo(model, index), dims, seed);
    } else {
      throw Failure(BadCommandLine, "--input '" + text + "': expected NAME=@FILE or NAME=random[:SEED]");
    }
  }
  std::string missing;
  for (size_t i = 0; i < ports.size(); ++i) {
    firn_port_info port = inputInfo(model, int32_t(i));
    bool mayBeAbsent = port.optional || port.form == FIRN_FORM_OPTIONAL || port.form == FIRN_FORM_OPTIONAL_SEQUENCE;
    if (result[i].dtype != FIRN_DTYPE_NONE || mayBeAbsent)
      continue;
    if (options.isRandomAllowed)
      result[i] = randomTensor(port, dims, i);
    else
      missing += (missing.empty() ? "" : "\n") + std::string("input '") + port.name + "' is missing: it must be " +
                 portType(port);
  }
  if (!missing.empty())
    throw Failure(Rejected, missing + "\n  fix: give it with --input NAME=@FILE, --input NAME=random or --inputs DIR");
  return result;
}

std::vector<firn_tensor> views(const std::vector<Tensor> &tensors) {
  std::vector<firn_tensor> result;
  for (const Tensor &tensor : tensors)
    result.push_back(tensor.dtype == FIRN_DTYPE_NONE ? firn_tensor{} : tensor.view());
  return result;
}

} // namespace firn::tools

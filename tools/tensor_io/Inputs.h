// Models and their inputs for the tools that run them.
#ifndef FIRN_TOOLS_TENSOR_IO_INPUTS_H
#define FIRN_TOOLS_TENSOR_IO_INPUTS_H

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tools/tensor_io/Files.h"

namespace firn::tools {

struct CloseModel {
  void operator()(firn_model *model) const { firn_model_close(model); }
};
using ModelHandle = std::unique_ptr<firn_model, CloseModel>;

struct DestroySession {
  void operator()(firn_session *session) const { firn_session_destroy(session); }
};
using SessionHandle = std::unique_ptr<firn_session, DestroySession>;

/// The exit status for a failed call.
ExitStatus exitStatusOf(firn_status status);

/// Throw Failure with the executor's message.
ModelHandle openModel(const std::string &path, bool toRead = false);
SessionHandle createSession(const firn_model *model, int32_t threads);
void runSession(firn_session *session, const std::vector<firn_tensor> &inputs, std::vector<firn_tensor> &outputs);

firn_port_info inputInfo(const firn_model *model, int32_t index);
firn_port_info outputInfo(const firn_model *model, int32_t index);
std::vector<PortName> inputNames(const firn_model *model);
std::vector<PortName> outputNames(const firn_model *model);
/// "f32[batch,128]".
std::string portType(const firn_port_info &port);

/// What the command line says about inputs.
struct InputOptions {
  std::vector<std::string> inputs; // NAME=@file.npy, NAME=random[:SEED]
  std::string folder;              // --inputs
  std::vector<std::string> dims;   // --dim NAME=VALUE, for random inputs
  bool isRandomAllowed = false;    // inputs that are not given are random
};

/// One tensor per input of the model; absent ones have no dtype. Throws Failure that names every missing input.
std::vector<Tensor> makeInputs(const firn_model *model, const InputOptions &options);

std::vector<firn_tensor> views(const std::vector<Tensor> &tensors);

} // namespace firn::tools
#endif

// Judge: compiles models and compares their runs with the reference evaluator, many models in one process.
//
//   random-judge [--level N] FOLDER...     FOLDER: model.onnx, input_0.pb ..., tolerance.txt ("rtol atol" a line, one
//   per
//                                          output), optionally output_0.pb ... of another runtime
//
// Prints "ok FOLDER" or "FAILED FOLDER: why" for each, as it goes: what is missing after a crash has not been judged.
#include "test/random/Reference.h"
#include "tools/tensor_io/Compare.h"
#include "tools/tensor_io/Inputs.h"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sys/stat.h>

using namespace firn::tools;

namespace {

struct Tolerance {
  double rtol = 1e-3, atol = 1e-4;
};

Tensor copied(const firn_view &view) {
  Tensor tensor(view.dtype, std::vector<int64_t>(view.dims, view.dims + view.rank));
  if (tensor.bytes() > 0)
    std::memcpy(tensor.data(), view.data, size_t(tensor.bytes()));
  return tensor;
}

bool exists(const std::string &path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0;
}

std::vector<Tolerance> readTolerances(const std::string &path) {
  std::vector<Tolerance> tolerances;
  std::ifstream file(path);
  for (Tolerance one; file >> one.rtol >> one.atol;)
    tolerances.push_back(one);
  return tolerances;
}

/// Why the outputs are not those wanted, or "".
std::string compare(const std::vector<Tensor> &got, const std::vector<Tensor> &wanted,
                    const std::vector<Tolerance> &tolerances) {
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i].dtype == FIRN_DTYPE_NONE)
      continue;
    Tolerance tolerance = i < tolerances.size() ? tolerances[i] : Tolerance();
    if (i >= got.size())
      return "output " + std::to_string(i) + " is missing";
    if (std::string why = difference(got[i], wanted[i], tolerance.rtol, tolerance.atol); !why.empty())
      return "output " + std::to_string(i) + " " + why;
  }
  return "";
}

std::string judge(const std::string &folder, unsigned level) {
  std::string model = folder + "/model.onnx", artifact = folder + "/model.firn", why;
  std::vector<Tensor> inputs;
  for (int i = 0; exists(folder + "/input_" + std::to_string(i) + ".pb"); ++i)
    inputs.push_back(
        readTensor(folder + "/input_" + std::to_string(i) + ".pb", PortName{"", FIRN_DTYPE_NONE, FIRN_FORM_TENSOR}));
  std::vector<firn_view> views, outputs;
  for (Tensor &input : inputs) {
    firn_view view{};
    view.data = input.data();
    view.dtype = input.dtype;
    view.rank = int32_t(input.dims.size());
    std::copy(input.dims.begin(), input.dims.end(), view.dims);
    views.push_back(view);
  }
  std::vector<std::vector<char>> storage;
  if (!evaluateByReference(model, views, outputs, storage, why))
    return "the reference evaluator fails: " + why;
  std::vector<Tensor> wanted;
  for (const firn_view &view : outputs)
    wanted.push_back(copied(view));
  std::vector<Tolerance> tolerances = readTolerances(folder + "/tolerance.txt");
  std::vector<Tensor> others;
  for (size_t i = 0; i < wanted.size(); ++i) {
    std::string path = folder + "/output_" + std::to_string(i) + ".pb";
    others.push_back(exists(path) ? readTensor(path, PortName{"", FIRN_DTYPE_NONE, FIRN_FORM_TENSOR}) : Tensor());
  }
  if (why = compare(wanted, others, tolerances); !why.empty())
    return "the reference evaluator against ONNX Runtime: " + why;
  if (!compileForThisMachine(model, artifact, level, why))
    return why;
  ModelHandle opened = openModel(artifact);
  std::vector<firn_tensor> given;
  for (const Tensor &input : inputs)
    given.push_back(input.view());
  for (int threads : {1, 2}) {
    SessionHandle session = createSession(opened.get(), threads);
    for (int round = 0; round < 2; ++round) { // the second one finds what the first one left
      std::vector<firn_tensor> results(wanted.size());
      runSession(session.get(), given, results);
      std::vector<Tensor> got;
      for (const firn_tensor &result : results)
        got.push_back(Tensor::borrow(result));
      if (why = compare(got, wanted, tolerances); !why.empty())
        return std::to_string(threads) + " threads, run " + std::to_string(round) + ": " + why;
    }
  }
  return "";
}

} // namespace

int main(int argc, char **argv) {
  unsigned level = 3;
  int first = 1, failed = 0;
  if (argc > 2 && std::strcmp(argv[1], "--level") == 0) {
    level = unsigned(std::atoi(argv[2]));
    first = 3;
  }
  for (int i = first; i < argc; ++i) {
    std::string why;
    try {
      why = judge(argv[i], level);
    } catch (const std::exception &error) {
      why = error.what();
    }
    failed += !why.empty();
    if (why.empty())
      std::printf("ok %s\n", argv[i]);
    else
      std::printf("FAILED %s: %s\n", argv[i], why.c_str());
    std::fflush(stdout);
  }
  return failed ? 1 : 0;
}

// The reference evaluator behind an interface free of MLIR.
#ifndef FIRN_TEST_RANDOM_REFERENCE_H
#define FIRN_TEST_RANDOM_REFERENCE_H

#include "runtime/abi/reference.h"

#include <string>
#include <vector>

/// Evaluates the ONNX model in `path` by the reference kernels; false with a reason. The outputs' data lies in
/// `storage`.
bool evaluateByReference(const std::string &path, const std::vector<firn_view> &inputs, std::vector<firn_view> &outputs,
                         std::vector<std::vector<char>> &storage, std::string &whyNot);
/// Compiles the model for this machine; false with the exit status in `whyNot` (messages go to stderr).
bool compileForThisMachine(const std::string &path, const std::string &artifact, unsigned level, std::string &whyNot);

#endif

// Artifacts made by hand: a shared object built from artifacts/NAME.c, weights and a footer.
#ifndef FIRN_TEST_RUNTIME_ARTIFACTS_H
#define FIRN_TEST_RUNTIME_ARTIFACTS_H

#include <cstring>
#include <string>
#include <vector>

#include "runtime/abi/model.h"
#include "runtime/include/firn/firn.h"

namespace firn::test {

/// The shared object of artifacts/NAME.c.
std::string readImage(const std::string &name);

/// The footer as it should be for this image and these weights.
firn_footer makeFooter(const std::string &image, const std::string &body, const std::string &weights);
/// Hashes the footer anew, after a test has changed it on purpose.
void sealFooter(firn_footer &footer);

/// A whole, valid file.
std::string makeArtifact(const std::string &name, const std::vector<float> &weights = {});

/// The same around any image.
std::string makeFile(const std::string &image, const std::vector<float> &weights);

/// Where a test may write; removed by the next run.
std::string temporaryPath(const std::string &name);
void writeBytes(const std::string &path, const std::string &bytes);

/// A tensor over the elements of a vector that lives on.
template <typename T> firn_tensor tensorOf(std::vector<T> &elements, std::vector<int64_t> dims, int32_t dtype) {
  firn_tensor tensor{};
  tensor.data = elements.data();
  tensor.bytes = int64_t(elements.size() * sizeof(T));
  tensor.dtype = dtype;
  tensor.rank = int32_t(dims.size());
  for (size_t d = 0; d < dims.size(); ++d)
    tensor.dims[d] = dims[d];
  return tensor;
}

/// The weights of ScaleAdd: w, the default of s, and the proof.
std::vector<float> scaleAddWeights();

} // namespace firn::test
#endif

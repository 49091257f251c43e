#include "test/runtime/src/Artifacts.h"

#include <cstdio>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <unistd.h>

#include "runtime/src/Hash.h"
#include "runtime/src/Machine.h"

namespace firn::test {

std::string readImage(const std::string &name) {
  std::ifstream file(FIRN_TEST_ARTIFACTS "/" + name + ".so", std::ios::binary);
  if (!file)
    throw std::runtime_error("no " FIRN_TEST_ARTIFACTS "/" + name + ".so");
  std::stringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

firn_footer makeFooter(const std::string &image, const std::string &body, const std::string &weights) {
  firn_footer footer{};
  std::memcpy(footer.magic, FIRN_MAGIC, sizeof footer.magic);
  footer.abi_version = FIRN_ABI_VERSION;
  footer.footer_size = sizeof footer;
  footer.image_size = image.size();
  footer.image_hash = runtime::xxh64(image.data(), image.size());
  footer.weights_offset = body.size() - weights.size();
  footer.weights_size = weights.size();
  footer.file_size = body.size() + sizeof footer;
  footer.machine = runtime::hostMachine();
  runtime::Sha256 digest;
  digest.update(body.data(), body.size());
  digest.finish(footer.digest);
  sealFooter(footer);
  return footer;
}

void sealFooter(firn_footer &footer) {
  footer.footer_hash = runtime::xxh64(&footer, offsetof(firn_footer, footer_hash));
}

std::string makeArtifact(const std::string &name, const std::vector<float> &weights) {
  return makeFile(readImage(name), weights);
}

std::string makeFile(const std::string &image, const std::vector<float> &weights) {
  std::string tail(reinterpret_cast<const char *>(weights.data()), weights.size() * sizeof(float));
  std::string body = image + std::string((4096 - image.size() % 4096) % 4096, '\0') + tail;
  firn_footer footer = makeFooter(image, body, tail);
  return body + std::string(reinterpret_cast<const char *>(&footer), sizeof footer);
}

std::string temporaryPath(const std::string &name) {
  return std::string(FIRN_TEST_ARTIFACTS) + "/" + name + "." + std::to_string(getpid()) + ".firn";
}

void writeBytes(const std::string &path, const std::string &bytes) {
  // A new file, as a compiler writes: one that is open must not change.
  std::remove(path.c_str());
  std::ofstream(path, std::ios::binary) << bytes;
}

std::vector<float> scaleAddWeights() {
  std::vector<float> weights(256 / 4 + 8);
  for (int i = 0; i < 4; ++i)
    weights[size_t(i)] = float(i + 1);
  weights[16] = 10;
  for (int i = 0; i < 8; ++i) {
    weights[size_t(32 + i)] = float(i);
    weights[size_t(48 + i)] = 0.5f;
    weights[size_t(64 + i)] = float(i) * float(i % 4 + 1) * 10 + 0.5f;
  }
  return weights;
}

} // namespace firn::test

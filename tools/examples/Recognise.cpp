// firn-recognise MODEL.firn LABELS.txt FILE…: says what kind of file each FILE is, by Magika's compiled model.
//
// Magika sees the first and the last 1024 bytes of a file, without the white space at its ends, as numbers; where the
// file is shorter, 256 stands for a missing byte. It gives one probability for each line of LABELS.txt.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "runtime/include/firn/firn.h"

static const int64_t side = 1024, block = 4096;
static const int32_t missing = 256;
static const char *const whiteSpace = " \t\n\v\f\r";

/// The up to 4096 bytes of the file from `offset`, which counts from the end if negative.
static std::string readBlock(std::ifstream &file, int64_t size, bool fromEnd) {
  int64_t length = std::min(size, block);
  std::string bytes(size_t(length), '\0');
  file.seekg(fromEnd ? size - length : 0);
  file.read(bytes.data(), length);
  return bytes;
}

/// Fills 2 * side features. Returns false if the file cannot be read or holds less than 8 bytes to judge by.
static bool readFeatures(const char *path, int32_t *features) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  int64_t size = file.tellg();
  if (!file || size <= 0)
    return false;
  std::string head = readBlock(file, size, false), tail = readBlock(file, size, true);
  head.erase(0, std::min(head.find_first_not_of(whiteSpace), head.size()));
  tail.erase(tail.find_last_not_of(whiteSpace) + 1);
  for (int64_t i = 0; i < 2 * side; ++i)
    features[i] = missing;
  for (int64_t i = 0; i < side && i < int64_t(head.size()); ++i)
    features[i] = static_cast<unsigned char>(head[size_t(i)]);
  for (int64_t i = 0; i < side && i < int64_t(tail.size()); ++i)
    features[2 * side - 1 - i] = static_cast<unsigned char>(tail[tail.size() - 1 - size_t(i)]);
  return file.good() && head.size() >= 8;
}

static int fail(const char *what, const char *why) {
  std::fprintf(stderr, "firn-recognise: %s: %s\n", what, why);
  return 1;
}

int main(int argc, char **argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: firn-recognise MODEL.firn LABELS.txt FILE...\n");
    return 2;
  }
  std::vector<std::string> labels;
  std::ifstream list(argv[2]);
  for (std::string line; std::getline(list, line);)
    labels.push_back(line);

  firn_error error = {};
  error.struct_size = sizeof(error);
  firn_model *model = nullptr;
  firn_session *session = nullptr;
  if (firn_model_open(argv[1], &model, &error) != FIRN_OK)
    return fail(argv[1], error.message);
  if (firn_model_input_count(model) != 1 || firn_model_output_count(model) != 1)
    return fail(argv[1], "expected one input and one output, as Magika has");
  if (firn_session_create(model, nullptr, &session, &error) != FIRN_OK)
    return fail(argv[1], error.message);

  alignas(FIRN_ALIGNMENT) static int32_t features[2 * side];
  firn_tensor input = {features, sizeof(features), {1, 2 * side}, FIRN_I32, 2, 0};
  int status = 0;
  for (int i = 3; i < argc; ++i) {
    if (!readFeatures(argv[i], features)) {
      std::printf("%-40s cannot be read, or is too short to tell\n", argv[i]);
      continue;
    }
    firn_tensor output = {};
    auto start = std::chrono::steady_clock::now();
    if (firn_session_run(session, &input, &output) != FIRN_OK) {
      status = fail(argv[i], firn_session_message(session));
      break;
    }
    double millis = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    if (output.dtype != FIRN_F32 || output.bytes < int64_t(labels.size() * sizeof(float)) || labels.empty()) {
      status = fail(argv[2], "has not one label for each output of the model");
      break;
    }
    const float *probability = static_cast<const float *>(output.data);
    size_t best = 0;
    for (size_t k = 1; k < labels.size(); ++k)
      best = probability[k] > probability[best] ? k : best;
    std::printf("%-40s %-14s %5.1f %%  %6.2f ms\n", argv[i], labels[best].c_str(), 100. * double(probability[best]),
                millis);
  }
  firn_session_destroy(session);
  firn_model_close(model);
  return status;
}

// Runs LLVMFuzzerTestOneInput of a target on models that a fixed sequence of numbers makes from the seeds: the same
// ones on every machine, so that a red run repeats and names its model. What coverage would lead to is for the hunt
// with libFuzzer (CMakeLists.txt).
//   graph_mutants COUNT FOLDER...     the model of a crash is "mutant_N" in the working directory
#include "test/fuzz/MutateModel.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static std::vector<std::string> readSeeds(int count, char **folders) {
  std::vector<std::string> paths, seeds;
  for (int i = 0; i < count; ++i)
    for (const auto &entry : std::filesystem::recursive_directory_iterator(folders[i]))
      if (entry.is_regular_file() && entry.path().extension() != ".pb") // tensors
        paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  for (const std::string &path : paths) {
    std::ostringstream bytes;
    bytes << std::ifstream(path, std::ios::binary).rdbuf();
    seeds.push_back(bytes.str());
  }
  return seeds;
}

int main(int argc, char **argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: graph_mutants COUNT FOLDER...\n");
    return 2;
  }
  const std::vector<std::string> seeds = readSeeds(argc - 2, argv + 2);
  const unsigned count = unsigned(std::strtoul(argv[1], nullptr, 10));
  constexpr size_t largest = 1 << 18;
  for (unsigned n = 0; n < seeds.size() + count; ++n) {
    std::mt19937 random(n);
    // The seeds themselves first.
    std::string model = seeds[n < seeds.size() ? n : random() % seeds.size()];
    for (unsigned steps = n < seeds.size() ? 0 : 1 + random() % 12; steps-- > 0;) {
      unsigned seed = unsigned(random());
      std::string next = seed % 6 ? firn::test::mutateModel(model, seed)
                                  : firn::test::spliceModels(model, seeds[random() % seeds.size()], seed);
      if (next.size() <= largest)
        model = std::move(next);
    }
    std::string name = "mutant_" + std::to_string(n);
    std::ofstream(name, std::ios::binary) << model; // before it can crash
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t *>(model.data()), model.size());
    std::filesystem::remove(name);
  }
  std::printf("%zu seeds and %u mutants: no crash\n", seeds.size(), count);
  return 0;
}

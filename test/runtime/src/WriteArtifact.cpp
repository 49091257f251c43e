// write_artifact NAME FILE: writes the artifact of artifacts/NAME.c, for tests of tools.
#include <cstdio>

#include "test/runtime/src/Artifacts.h"

int main(int argc, char **argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: write_artifact NAME FILE\n");
    return 2;
  }
  std::string name = argv[1];
  firn::test::writeBytes(argv[2], firn::test::makeArtifact(name, name == "ScaleAdd" ? firn::test::scaleAddWeights()
                                                                                    : std::vector<float>{}));
  return 0;
}

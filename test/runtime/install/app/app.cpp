#include <cstdio>
#include <firn/firn.hpp>

int main(int, char **argv) {
  firn::Model model(argv[1]);
  model.verify();
  std::printf("%s verified\n", model.describe().name);
}

// firn-inspect-graph FILE [--json]: what firn-inspect runs for graph files. A program of its own, so that a look at a
// compiled model does not wait for the compiler's libraries.
#include "compiler/driver/InspectGraph.h"
#include "compiler/driver/Options.h"

#include <cstdio>
#include <string>

int main(int argc, char **argv) {
  bool asJson = argc == 3 && std::string(argv[2]) == "--json";
  if (argc != 2 && !asJson) {
    std::fputs("firn-inspect-graph FILE [--json]: use firn-inspect, which runs it\n", stderr);
    return firn::exitBadCommandLine;
  }
  return firn::inspectGraph(argv[1], asJson);
}

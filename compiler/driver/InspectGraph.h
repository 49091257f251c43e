// InspectGraph: what is inside a graph file, as the file says it: nothing is inferred or changed.
#ifndef FIRN_COMPILER_DRIVER_INSPECTGRAPH_H
#define FIRN_COMPILER_DRIVER_INSPECTGRAPH_H

#include <string>

namespace firn {

/// Prints format, opsets, inputs, outputs, operators, parameters, bytes of weights and metadata of an ONNX or Firn
/// graph to stdout, as JSON or for people. Problems go to stderr. Returns an exit status (Options.h).
int inspectGraph(const std::string &path, bool asJson);

} // namespace firn
#endif

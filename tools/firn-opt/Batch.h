// Batch: several graphs, or those of a folder, through firn-opt at once.
#ifndef FIRN_TOOLS_FIRN_OPT_BATCH_H
#define FIRN_TOOLS_FIRN_OPT_BATCH_H

#include "compiler/driver/OptimiseGraph.h"

namespace firn {

/// A graph to read and the one to write.
struct BatchItem {
  std::string input, output;
};

/// Whether a name ends as those of graphs do: .onnx, .fpb, .fpbtxt.
bool isGraphName(const std::string &path);

/// The graphs that `inputs` name, files or folders (with the folders in them), and where below `folder` each goes: as
/// it lies below the folder that was named. `extension`: of all outputs, or "" to keep each its own. Two inputs with
/// one output, and a folder without graphs, are problems.
std::vector<BatchItem> batchItems(const std::vector<std::string> &inputs, const std::string &folder,
                                  const std::string &extension, std::string &problem);

/// Optimises `jobs` graphs at a time, 0: one for each core, each with `options`; a line on stdout for each that is
/// done, with its messages and reports. JSON reports go beside the outputs, as OUTPUT.json. Returns the largest exit
/// status.
int optimiseBatch(const std::vector<BatchItem> &items, const OptimiseGraphOptions &options, unsigned jobs);

} // namespace firn
#endif

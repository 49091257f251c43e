// Edit: what a user changes of a model as it is read: a part cut out, values and dimensions renamed.
//
// Names are those of the file: the cut comes first, then the renaming.
#ifndef FIRN_COMPILER_IMPORT_EDIT_H
#define FIRN_COMPILER_IMPORT_EDIT_H

#include <string>
#include <utility>
#include <vector>

namespace firn {

struct ModelEdits {
  using Renaming = std::vector<std::pair<std::string, std::string>>; // old, new; all at once
  std::vector<std::string> inputs, outputs;                          // of the part; empty: as the model has them
  Renaming values, dims;

  bool any() const { return !inputs.empty() || !outputs.empty() || !values.empty() || !dims.empty(); }
};

} // namespace firn
#endif

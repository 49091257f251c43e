// What is inside a compiled model.
#ifndef FIRN_TOOLS_FIRN_INSPECT_ARTIFACT_H
#define FIRN_TOOLS_FIRN_INSPECT_ARTIFACT_H

#include <string>
#include <vector>

namespace firn::tools {

/// Whether a file ends with the footer of a compiled model, or is an ELF file that should.
bool isArtifact(const std::string &path);

/// The description, for people or as JSON.
/// dims: NAME=VALUE of dynamic dimensions, for which the memory is stated.
std::string describeArtifact(const std::string &path, const std::vector<std::string> &dims, bool withSteps,
                             bool asJson);

} // namespace firn::tools
#endif

// Artifact: a planned program and its objects become one file, model.firn (docs/artifact.md).
#ifndef FIRN_COMPILER_ARTIFACT_ARTIFACT_H
#define FIRN_COMPILER_ARTIFACT_ARTIFACT_H

#include "compiler/codegen/cpu/Target.h"
#include "compiler/plan/Program.h"

namespace firn {

/// A tensor of the proof.
struct ProofTensor {
  firn_view view;
  std::vector<char> bytes;
};

struct ArtifactContents {
  std::string name;
  std::vector<std::pair<std::string, std::string>> metadata, provenance;
  std::vector<ProofTensor> proof; // inputs, then outputs; or empty
  double proofRtol = 0, proofAtol = 0;
  unsigned maxThreads = 0;
  std::vector<const Program *> variants; // which read the weights of the whole
};

/// Writes the artifact to `path` (whole or not at all). Returns an error text, empty on success.
std::string writeArtifact(llvm::StringRef path, const Program &program, const ArtifactContents &contents,
                          llvm::ArrayRef<std::vector<char>> objects, const TargetDescription &target);

/// The weights, then the proof's tensors, with their padding, from offset 0 on, piece by piece.
void writeWeights(const Program &program, const ArtifactContents &contents,
                  llvm::function_ref<void(llvm::ArrayRef<char>)> write);

/// Writes the object `path` and beside it a header, for programs that link the model in (firn_model_open_static). The
/// object has one symbol, "<name of the file>_model". Returns an error text, empty on success (StaticObject.cpp).
std::string writeStaticObject(llvm::StringRef path, const Program &program, const ArtifactContents &contents,
                              llvm::ArrayRef<std::vector<char>> objects, const TargetDescription &target);

/// The tables as a relocatable object with the symbol FIRN_MODEL_SYMBOL and, if there are variants,
/// FIRN_VARIANTS_SYMBOL. Proof tensors lie from `proofOffset` on in the weights. Returns an error text.
std::string tablesObject(const Program &program, const ArtifactContents &contents, const TargetDescription &target,
                         int64_t proofOffset, std::vector<char> &object);

/// Links objects, and members of the target's archive of reference kernels that they need, into a shared object
/// (Link.cpp), which exports `symbols`. Returns an error text.
std::string linkSharedObject(llvm::ArrayRef<std::vector<char>> objects, const TargetDescription &target,
                             llvm::ArrayRef<llvm::StringRef> symbols, std::vector<char> &image);

/// A static library or an object, whole, as a shared object that exports what its sources export; and as one object in
/// which its operators (firn_op_...) alone are global. Return an error text.
std::string linkLibrary(llvm::StringRef path, const TargetDescription &target, std::vector<char> &image);
std::string libraryObject(llvm::StringRef path, const TargetDescription &target, std::vector<char> &object);

/// The same as one relocatable object in which `symbol` alone is global. Returns an error text.
std::string linkRelocatable(llvm::ArrayRef<std::vector<char>> objects, const TargetDescription &target,
                            llvm::StringRef symbol, std::vector<char> &object);

/// The embedded archive of reference kernels for a machine; empty where there is none.
llvm::ArrayRef<char> kernelArchive(uint32_t machine);

/// XXH64 with seed 0, as the executor computes it.
uint64_t xxh64(llvm::ArrayRef<char> bytes);

} // namespace firn
#endif

// Artifact: [ELF shared object][padding][weights][footer].
#include "compiler/artifact/Artifact.h"

#include "runtime/abi/variants.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

namespace firn {

uint64_t xxh64(llvm::ArrayRef<char> bytes) {
  return llvm::xxHash64(llvm::ArrayRef(reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()));
}

namespace {
/// Counts, hashes and writes what goes into the file.
class DigestingStream {
public:
  explicit DigestingStream(llvm::raw_ostream &to) : out(to) {}
  void write(llvm::ArrayRef<char> bytes) {
    out.write(bytes.data(), bytes.size());
    digest.update(llvm::StringRef(bytes.data(), bytes.size()));
    position += bytes.size();
  }
  void padTo(uint64_t offset) {
    std::vector<char> zeros(std::min<uint64_t>(offset - position, 1 << 16));
    while (position < offset)
      write(llvm::ArrayRef(zeros).take_front(offset - position));
  }
  uint64_t position = 0;
  llvm::SHA256 digest;

private:
  llvm::raw_ostream &out;
};
} // namespace

static void writeWeight(llvm::function_ref<void(llvm::ArrayRef<char>)> write, mlir::ElementsAttr value) {
  auto bytes = constantBytes(value);
  auto type = llvm::cast<mlir::RankedTensorType>(value.getType());
  if (!bytes->isSplat)
    return write(bytes->bytes);
  // A splat is written out in pieces.
  std::vector<char> piece;
  int64_t left = type.getNumElements();
  for (int64_t i = 0; i < std::min<int64_t>(left, 4096); ++i)
    piece.insert(piece.end(), bytes->bytes.begin(), bytes->bytes.end());
  for (; left > 0; left -= 4096)
    write(llvm::ArrayRef(piece).take_front(std::min<int64_t>(left, 4096) * bytes->bytes.size()));
}

void writeWeights(const Program &program, const ArtifactContents &contents,
                  llvm::function_ref<void(llvm::ArrayRef<char>)> write) {
  int64_t position = 0;
  auto counted = [&](llvm::ArrayRef<char> bytes) {
    write(bytes);
    position += bytes.size();
  };
  auto padTo = [&](int64_t offset) {
    std::vector<char> zeros(std::max<int64_t>(0, std::min<int64_t>(offset - position, 1 << 16)));
    while (position < offset)
      counted(llvm::ArrayRef(zeros).take_front(offset - position));
  };
  for (const ProgramWeight &weight : program.weights) {
    padTo(weight.offset);
    if (weight.value)
      writeWeight(counted, weight.value);
    else
      counted(weight.strings);
  }
  padTo(program.weightBytes);
  for (const ProofTensor &tensor : contents.proof) {
    counted(tensor.bytes);
    padTo(llvm::alignTo(position, FIRN_BUFFER_ALIGNMENT));
  }
}

std::string writeArtifact(llvm::StringRef path, const Program &program, const ArtifactContents &contents,
                          llvm::ArrayRef<std::vector<char>> objects, const TargetDescription &target) {
  std::vector<std::vector<char>> all(objects);
  all.emplace_back();
  if (std::string error = tablesObject(program, contents, target, program.weightBytes, all.back()); !error.empty())
    return error;
  std::vector<char> image;
  std::vector<llvm::StringRef> symbols = {FIRN_MODEL_SYMBOL};
  if (!contents.variants.empty())
    symbols.push_back(FIRN_VARIANTS_SYMBOL);
  if (std::string error = linkSharedObject(all, target, symbols, image); !error.empty())
    return error;

  std::string temporary = path.str() + ".part";
  std::error_code error;
  llvm::raw_fd_ostream file(temporary, error);
  if (error)
    return "cannot write '" + path.str() + "': " + error.message();
  DigestingStream out(file);
  firn_footer footer{};
  std::memcpy(footer.magic, FIRN_MAGIC, sizeof footer.magic);
  footer.abi_version = FIRN_ABI_VERSION;
  footer.footer_size = sizeof footer;
  footer.image_size = image.size();
  footer.image_hash = xxh64(image);
  footer.machine = target.machine;
  footer.cpu_features = target.featureMask;
  out.write(image);
  footer.weights_offset = llvm::alignTo(image.size(), target.pageSize);
  out.padTo(footer.weights_offset);
  writeWeights(program, contents, [&](llvm::ArrayRef<char> bytes) { out.write(bytes); });
  footer.weights_size = out.position - footer.weights_offset;
  footer.file_size = out.position + sizeof footer;
  auto digest = out.digest.final();
  std::copy(digest.begin(), digest.end(), footer.digest);
  footer.footer_hash = xxh64({reinterpret_cast<const char *>(&footer), offsetof(firn_footer, footer_hash)});
  file.write(reinterpret_cast<const char *>(&footer), sizeof footer);
  file.close();
  if (file.has_error()) {
    llvm::sys::fs::remove(temporary);
    return "cannot write '" + path.str() + "': " + file.error().message();
  }
  if (std::error_code renamed = llvm::sys::fs::rename(temporary, path))
    return "cannot write '" + path.str() + "': " + renamed.message();
  return "";
}

} // namespace firn

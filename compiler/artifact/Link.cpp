// Link: objects become a shared object, by lld in this process.
#include "compiler/artifact/Artifact.h"

#include "lld/Common/Driver.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ObjCopy/CommonConfig.h"
#include "llvm/ObjCopy/ConfigManager.h"
#include "llvm/ObjCopy/ObjCopy.h"
#include "llvm/Object/Binary.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <mutex>

LLD_HAS_DRIVER(elf)

extern "C" {
extern const char firn_archive_x86_64_begin[], firn_archive_x86_64_end[];
extern const char firn_archive_aarch64_begin[], firn_archive_aarch64_end[];
}

namespace firn {

llvm::ArrayRef<char> kernelArchive(uint32_t machine) {
  if (machine == FIRN_MACHINE_X86_64)
    return {firn_archive_x86_64_begin, firn_archive_x86_64_end};
  if (machine == FIRN_MACHINE_AARCH64)
    return {firn_archive_aarch64_begin, firn_archive_aarch64_end};
  return {};
}

static std::string writeFile(llvm::StringRef path, llvm::ArrayRef<char> bytes) {
  std::error_code error;
  llvm::raw_fd_ostream out(path, error);
  if (error)
    return "cannot write '" + path.str() + "': " + error.message();
  out.write(bytes.data(), bytes.size());
  out.close();
  return out.has_error() ? "cannot write '" + path.str() + "': " + out.error().message() : "";
}

namespace {
/// One run of lld on objects in a temporary folder.
class Link {
public:
  explicit Link(const TargetDescription &linked) : target(linked) {}
  ~Link() {
    if (!folder.empty())
      llvm::sys::fs::remove_directories(folder);
  }

  std::string createFolder() {
    if (std::error_code error = llvm::sys::fs::createUniqueDirectory("firn-link", folder))
      return "cannot create a temporary folder: " + error.message();
    return "";
  }

  void add(llvm::StringRef file) { files.push_back(file.str()); }

  /// Puts the objects, and the target's archive of reference kernels, into the folder.
  std::string prepare(llvm::ArrayRef<std::vector<char>> objects) {
    if (std::string error = createFolder(); !error.empty())
      return error;
    for (auto [i, object] : llvm::enumerate(objects)) {
      files.push_back(path("o" + llvm::Twine(i) + ".o"));
      if (std::string error = writeFile(files.back(), object); !error.empty())
        return error;
    }
    if (llvm::ArrayRef<char> archive = kernelArchive(target.machine); !archive.empty()) {
      files.push_back(path("kernels.a"));
      if (std::string error = writeFile(files.back(), archive); !error.empty())
        return error;
    }
    return "";
  }

  std::string run(llvm::ArrayRef<const char *> options, std::vector<char> &result) {
    const char *emulation = target.machine == FIRN_MACHINE_AARCH64 ? "aarch64linux"
                            : target.machine == FIRN_MACHINE_RISCV ? "elf64lriscv"
                                                                   : "elf_x86_64";
    std::string output = path("output");
    std::vector<const char *> args = {"ld.lld", "-m", emulation, "-o", output.c_str()};
    args.insert(args.end(), options.begin(), options.end());
    for (const std::string &file : files)
      args.push_back(file.c_str());
    std::string messages, errors;
    llvm::raw_string_ostream out(messages), err(errors);
    static std::mutex lldIsNotReentrant;
    std::lock_guard<std::mutex> lock(lldIsNotReentrant);
    lld::Result linked = lld::lldMain(args, out, err, {{lld::Gnu, &lld::elf::link}});
    if (linked.retCode != 0)
      return "linking failed: " + err.str();
    auto buffer = llvm::MemoryBuffer::getFile(output, false, false);
    if (!buffer)
      return "cannot read '" + output + "': " + buffer.getError().message();
    result.assign((*buffer)->getBufferStart(), (*buffer)->getBufferEnd());
    return "";
  }

  std::string path(const llvm::Twine &name) const {
    llvm::SmallString<128> full(folder);
    llvm::sys::path::append(full, name);
    return full.str().str();
  }

private:
  const TargetDescription &target;
  llvm::SmallString<128> folder;
  std::vector<std::string> files;
};
} // namespace

std::string linkSharedObject(llvm::ArrayRef<std::vector<char>> objects, const TargetDescription &target,
                             llvm::ArrayRef<llvm::StringRef> symbols, std::vector<char> &image) {
  Link link(target);
  if (std::string error = link.prepare(objects); !error.empty())
    return error;
  // The soname and the order of sections must not depend on the folder's random name.
  std::string script = link.path("exports.map"),
              exports = "{ global: " + llvm::join(symbols, "; ") + "; local: *; };\n";
  if (std::string error = writeFile(script, {exports.data(), exports.size()}); !error.empty())
    return error;
  std::string versionScript = "--version-script=" + script;
  // For a short load: with -Bsymbolic all pointers of the tables are relative ones, for which the loader looks no name
  // up; with --no-rosegment read-only data is mapped together with the code.
  // libm's and libc's functions are found in the process that loads the artifact: the executor links both.
  return link.run({"-shared", "-Bsymbolic", "--no-rosegment", "-soname", "model.firn", "--gc-sections",
                   "--build-id=none", "--hash-style=gnu", "-z", "now", "-z", "relro", "-z", "noexecstack",
                   "--no-undefined-version", versionScript.c_str(), "--unresolved-symbols=ignore-all"},
                  image);
}

/// Links relocatably; of the symbols only those that match `kept` stay global.
static std::string linkRelocatable(Link &link, llvm::ArrayRef<const char *> options, llvm::StringRef kept,
                                   std::vector<char> &object) {
  std::vector<char> linked;
  if (std::string error = link.run(options, linked); !error.empty())
    return error;
  llvm::objcopy::ConfigManager config;
  config.Common.InputFilename = config.Common.OutputFilename = "model.o";
  auto keep = llvm::objcopy::NameOrPattern::create(kept, llvm::objcopy::MatchStyle::Wildcard,
                                                   [](llvm::Error error) { return error; });
  if (!keep)
    return "linking failed: " + llvm::toString(keep.takeError());
  if (llvm::Error error = config.Common.SymbolsToKeepGlobal.addMatcher(std::move(keep)))
    return "linking failed: " + llvm::toString(std::move(error));
  auto binary = llvm::object::createBinary(llvm::MemoryBufferRef({linked.data(), linked.size()}, "model.o"));
  if (!binary)
    return "linking failed: " + llvm::toString(binary.takeError());
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream out(bytes);
  if (llvm::Error error = llvm::objcopy::executeObjcopyOnBinary(config, **binary, out))
    return "linking failed: " + llvm::toString(std::move(error));
  object.assign(bytes.begin(), bytes.end());
  return "";
}

std::string linkRelocatable(llvm::ArrayRef<std::vector<char>> objects, const TargetDescription &target,
                            llvm::StringRef symbol, std::vector<char> &object) {
  Link link(target);
  if (std::string error = link.prepare(objects); !error.empty())
    return error;
  // Groups would be merged by name with those of another model, whose other symbols are local to it.
  return linkRelocatable(link, {"-r", "--force-group-allocation"}, symbol, object);
}

std::string linkLibrary(llvm::StringRef path, const TargetDescription &target, std::vector<char> &image) {
  Link link(target);
  if (std::string error = link.createFolder(); !error.empty())
    return error;
  link.add(path);
  return link.run({"-shared", "--whole-archive", "--build-id=none", "--hash-style=gnu", "-z", "now", "-z",
                   "noexecstack", "--unresolved-symbols=ignore-all"},
                  image);
}

std::string libraryObject(llvm::StringRef path, const TargetDescription &target, std::vector<char> &object) {
  Link link(target);
  if (std::string error = link.createFolder(); !error.empty())
    return error;
  link.add(path);
  return linkRelocatable(link, {"-r", "--force-group-allocation", "--whole-archive"}, "firn_op_*", object);
}

} // namespace firn

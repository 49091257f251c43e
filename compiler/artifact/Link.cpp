// Link: objects become a shared object, by lld in this process.
#include "compiler/artifact/Artifact.h"

#include "lld/Common/Driver.h"
#include "llvm/ADT/ScopeExit.h"
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

std::string linkSharedObject(llvm::ArrayRef<std::vector<char>> objects, const TargetDescription &target,
                             std::vector<char> &image) {
  llvm::SmallString<128> folder;
  if (std::error_code error = llvm::sys::fs::createUniqueDirectory("firn-link", folder))
    return "cannot create a temporary folder: " + error.message();
  auto cleanUp = llvm::make_scope_exit([&] { llvm::sys::fs::remove_directories(folder); });
  auto inFolder = [&](const llvm::Twine &name) {
    llvm::SmallString<128> path(folder);
    llvm::sys::path::append(path, name);
    return path.str().str();
  };
  std::vector<std::string> files;
  for (auto [i, object] : llvm::enumerate(objects)) {
    files.push_back(inFolder("o" + llvm::Twine(i) + ".o"));
    if (std::string error = writeFile(files.back(), object); !error.empty())
      return error;
  }
  if (llvm::ArrayRef<char> archive = kernelArchive(target.machine); !archive.empty()) {
    files.push_back(inFolder("kernels.a"));
    if (std::string error = writeFile(files.back(), archive); !error.empty())
      return error;
  }
  // The soname and the order of sections must not depend on the folder's random name.
  std::string output = inFolder("model.so"), script = inFolder("exports.map");
  std::string exports = "{ global: " FIRN_MODEL_SYMBOL "; local: *; };\n";
  if (std::string error = writeFile(script, {exports.data(), exports.size()}); !error.empty())
    return error;
  const char *emulation = target.machine == FIRN_MACHINE_AARCH64 ? "aarch64linux"
                          : target.machine == FIRN_MACHINE_RISCV ? "elf64lriscv"
                                                                 : "elf_x86_64";
  std::string versionScript = "--version-script=" + script;
  std::vector<const char *> args = {"ld.lld",
                                    "-m",
                                    emulation,
                                    "-shared",
                                    "-soname",
                                    "model.firn",
                                    "--gc-sections",
                                    "--build-id=none",
                                    "--hash-style=gnu",
                                    "-z",
                                    "now",
                                    "-z",
                                    "relro",
                                    "-z",
                                    "noexecstack",
                                    "--no-undefined-version",
                                    versionScript.c_str(),
                                    "-o",
                                    output.c_str()};
  // libm's and libc's functions are found in the process that loads the artifact: the executor links both.
  args.push_back("--unresolved-symbols=ignore-all");
  for (const std::string &file : files)
    args.push_back(file.c_str());
  std::string messages, errors;
  llvm::raw_string_ostream out(messages), err(errors);
  static std::mutex lldIsNotReentrant;
  std::lock_guard<std::mutex> lock(lldIsNotReentrant);
  lld::Result result = lld::lldMain(args, out, err, {{lld::Gnu, &lld::elf::link}});
  if (result.retCode != 0)
    return "linking failed: " + err.str();
  auto buffer = llvm::MemoryBuffer::getFile(output, false, false);
  if (!buffer)
    return "cannot read '" + output + "': " + buffer.getError().message();
  image.assign((*buffer)->getBufferStart(), (*buffer)->getBufferEnd());
  return "";
}

} // namespace firn

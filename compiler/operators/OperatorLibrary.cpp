#include "compiler/operators/OperatorLibrary.h"
#include "compiler/artifact/Artifact.h"
#include "compiler/import/onnx/Schema.h"
#include "runtime/kernels/Table.h"

#include "llvm/Object/Archive.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include <deque>
#include <dlfcn.h>
#include <set>

namespace firn {
namespace {

#if defined(__aarch64__)
constexpr uint32_t hostMachine = FIRN_MACHINE_AARCH64;
#else
constexpr uint32_t hostMachine = FIRN_MACHINE_X86_64;
#endif

bool isShared(llvm::StringRef path) { return path.ends_with(".so") || path.contains(".so."); }

/// The machine (ELF's e_machine) that a static library's code is for; 0 where it holds no object.
uint32_t machineOf(llvm::StringRef path, std::string &why) {
  auto buffer = llvm::MemoryBuffer::getFile(path, false, false);
  if (!buffer) {
    why = buffer.getError().message();
    return 0;
  }
  auto machineIn = [](llvm::MemoryBufferRef bytes) -> uint32_t {
    auto object = llvm::object::ObjectFile::createELFObjectFile(bytes);
    if (!object) {
      llvm::consumeError(object.takeError());
      return 0;
    }
    return llvm::cast<llvm::object::ELFObjectFileBase>(**object).getEMachine();
  };
  if (uint32_t machine = machineIn(**buffer))
    return machine;
  auto archive = llvm::object::Archive::create(**buffer);
  uint32_t machine = 0;
  if (archive) {
    llvm::Error error = llvm::Error::success();
    for (const llvm::object::Archive::Child &child : (*archive)->children(error))
      if (auto member = child.getMemoryBufferRef(); member && !machine)
        machine = machineIn(*member);
      else if (!member)
        llvm::consumeError(member.takeError());
    llvm::consumeError(std::move(error));
  } else {
    llvm::consumeError(archive.takeError());
  }
  if (!machine)
    why = "it is no object and no archive of objects";
  return machine;
}

class LibraryLoader {
public:
  LibraryLoader(const std::string &library, Diagnostics &reported) : path(library), diagnostics(reported) {}

  bool load() {
    if (isShared(path))
      return open(path);
    std::string why;
    TargetDescription host;
    host.machine = hostMachine;
    uint32_t machine = machineOf(path, why);
    if (!machine)
      return fail("cannot be read: " + why);
    if (machine != host.machine)
      return true; // code for another machine: what it computes another library must say
    std::vector<char> image;
    if (std::string error = linkLibrary(path, host, image); !error.empty())
      return fail("cannot be linked: " + error);
    llvm::SmallString<128> temporary;
    int file;
    if (std::error_code error = llvm::sys::fs::createTemporaryFile("firn-ops", "so", file, temporary))
      return fail("cannot be loaded: " + error.message());
    llvm::raw_fd_ostream(file, true).write(image.data(), image.size());
    bool isOpen = open(temporary.str().str());
    llvm::sys::fs::remove(temporary);
    return isOpen;
  }

private:
  bool fail(const std::string &what) {
    diagnostics.error("options.ops", "library '" + path + "' " + what);
    return false;
  }

  bool open(const std::string &file) {
    // A name without a slash would be searched for; the path is meant.
    void *handle = dlopen((file.find('/') == std::string::npos ? "./" + file : file).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle)
      return fail("cannot be loaded: " + std::string(dlerror()));
    auto *library = static_cast<const firn_custom_library *>(dlsym(handle, FIRN_CUSTOM_SYMBOL));
    if (!library)
      return fail("does not define " FIRN_CUSTOM_SYMBOL);
    if (library->version != FIRN_CUSTOM_VERSION)
      return fail("has another version of its interface: expected " + std::to_string(FIRN_CUSTOM_VERSION) + ", found " +
                  std::to_string(library->version));
    for (uint32_t i = 0; i < library->operator_count; ++i)
      if (!add(library->operators[i], i))
        return false;
    return true;
  }

  bool add(const firn_custom_operator &added, uint32_t index) {
    if (!added.op || !added.op->name || !added.op->infer || !added.op->run)
      return fail("gives operator " + std::to_string(index) + " no name, shape function or kernel");
    auto [domain, name] = llvm::StringRef(added.op->name).split("::");
    auto refuse = [&](const std::string &what) {
      return fail("operator '" + std::string(added.op->name) + "' " + what);
    };
    if (domain.empty() || name.empty())
      return refuse("needs a name of the form domain::Name");
    if (domain == "ai.onnx" || domain == "ai.onnx.ml")
      return refuse("is in a domain that is not the user's");
    const firn_custom_operator *known = kernels::findCustom(added.op->name);
    if (!known && !kernels::addCustom(added))
      return refuse("is one of Firn's own");
    if (known)
      return true; // the same library once as a shared and once as a static one: the first tells what it computes
    Schema schema{};
    schema.domain = keep(domain.str());
    schema.name = keep(name.str());
    schema.since = std::max<int64_t>(1, added.since_version);
    std::string inputs, outputs, attributes;
    if (!letters(added.inputs, added.input_count, inputs) || !letters(added.outputs, added.output_count, outputs))
      return refuse("has inputs or outputs in a wrong order: required ones come first, a variadic one last");
    for (int32_t i = 0; i < added.attribute_count; ++i) {
      const firn_attribute &attribute = added.attributes[i].attribute;
      static const char kinds[] = {0, 'i', 'f', 's', 't', 'I', 'F', 'S'};
      if (!attribute.name || attribute.kind < FIRN_ATTR_INT || attribute.kind > FIRN_ATTR_STRINGS)
        return refuse("has attribute " + std::to_string(i) + " without a name or of an unknown kind");
      attributes += std::string(attributes.empty() ? "" : " ") + attribute.name + ":" + kinds[attribute.kind] +
                    (added.attributes[i].required ? "!" : "");
    }
    schema.inputs = keep(inputs);
    schema.outputs = keep(outputs);
    schema.attributes = keep(attributes);
    addSchema(schema);
    return true;
  }

  /// As Schema has them: r, o, v.
  static bool letters(const firn_custom_value *values, int32_t count, std::string &text) {
    for (int32_t i = 0; i < count; ++i) {
      int64_t kind = values[i].kind;
      if (kind < FIRN_CUSTOM_REQUIRED || kind > FIRN_CUSTOM_VARIADIC || (kind == FIRN_CUSTOM_VARIADIC && i + 1 < count))
        return false;
      text += "rov"[kind];
    }
    return true;
  }

  static const char *keep(std::string text) {
    static std::deque<std::string> texts;
    return texts.emplace_back(std::move(text)).c_str();
  }

  const std::string &path;
  Diagnostics &diagnostics;
};

} // namespace

bool loadOperatorLibraries(const std::vector<std::string> &paths, Diagnostics &diagnostics) {
  // A model is read more than once: for its variants, for its proof.
  static std::set<std::string> loaded;
  bool isDone = true;
  for (const std::string &path : paths)
    if (!loaded.count(path)) {
      if (LibraryLoader(path, diagnostics).load())
        loaded.insert(path);
      else
        isDone = false;
    }
  return isDone;
}

std::optional<std::vector<std::vector<char>>> operatorCode(const std::vector<std::string> &paths,
                                                           const TargetDescription &target, Diagnostics &diagnostics) {
  std::vector<std::vector<char>> objects;
  for (const std::string &path : paths) {
    std::string why;
    if (isShared(path) || machineOf(path, why) != target.machine)
      continue;
    if (std::string error = libraryObject(path, target, objects.emplace_back()); !error.empty()) {
      diagnostics.error("options.ops", "library '" + path + "' cannot be linked: " + error);
      return std::nullopt;
    }
  }
  return objects;
}

} // namespace firn

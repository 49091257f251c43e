#include "compiler/import/Blob.h"
#include "runtime/abi/dtype.h"
#include <climits>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <mutex>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace firn {

namespace {

/// The ranges of this process that are mapped files: begin -> end.
struct Mappings {
  std::mutex mutex;
  std::map<uintptr_t, uintptr_t> ranges;

  static Mappings &all() {
    static Mappings mappings;
    return mappings;
  }
};

} // namespace

void releasePages(llvm::ArrayRef<char> bytes) {
  // Reading one byte may map as much as this around it, also of neighbours that were given back before.
  constexpr uintptr_t most = uintptr_t(2) << 20;
  uintptr_t begin = reinterpret_cast<uintptr_t>(bytes.data()), end = begin + bytes.size();
  Mappings &mappings = Mappings::all();
  std::lock_guard<std::mutex> lock(mappings.mutex); // the mapping stays while its pages go
  auto after = mappings.ranges.upper_bound(begin);
  if (after == mappings.ranges.begin() || std::prev(after)->second < end)
    return;
  auto [first, last] = *std::prev(after);
  begin = std::max(first, begin / most * most);
  end = std::min(last, (end + most - 1) / most * most);
  madvise(reinterpret_cast<void *>(begin), end - begin, MADV_DONTNEED);
}

std::optional<MappedFile> mapFile(const std::string &path, std::string &why) {
  // O_NONBLOCK: a pipe in the place of a file must not hang us before fstat tells.
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    why = std::strerror(errno);
    return std::nullopt;
  }
  struct stat status;
  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
    why = "it is not a regular file";
    close(fd);
    return std::nullopt;
  }
  MappedFile file;
  size_t size = size_t(status.st_size);
  if (size) {
    void *data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED) {
      why = std::strerror(errno);
      close(fd);
      return std::nullopt;
    }
    file.bytes = {static_cast<const char *>(data), size};
    Mappings &mappings = Mappings::all();
    std::lock_guard<std::mutex> lock(mappings.mutex);
    uintptr_t begin = reinterpret_cast<uintptr_t>(data);
    mappings.ranges[begin] = begin + size;
    file.owner = std::shared_ptr<void>(data, [size, &mappings](void *p) {
      std::lock_guard<std::mutex> lock(mappings.mutex);
      mappings.ranges.erase(reinterpret_cast<uintptr_t>(p));
      munmap(p, size);
    });
  }
  close(fd);
  return file;
}

static std::string resolved(const std::string &path) {
  char *real = realpath(path.c_str(), nullptr);
  std::string result = real ? real : "";
  free(real);
  return result;
}

SideFiles::SideFiles(llvm::StringRef modelPath, const Limits &limits) : left(limits.modelBytes) {
  if (modelPath.empty())
    return;
  size_t slash = modelPath.rfind('/');
  folder = resolved(slash == llvm::StringRef::npos ? "." : modelPath.substr(0, slash + 1).str());
}

std::optional<MappedFile> SideFiles::range(const std::string &location, int64_t offset, std::optional<int64_t> length,
                                           std::string &why) {
  auto found = open.find(location);
  if (found == open.end()) {
    if (folder.empty()) {
      why = "the model lies in no folder";
      return std::nullopt;
    }
    if (location.empty() || location.find('\0') != std::string::npos) {
      why = "the location is no file name";
      return std::nullopt;
    }
    if (location[0] == '/') {
      why = "absolute paths are not followed";
      return std::nullopt;
    }
    llvm::StringRef rest = location;
    while (!rest.empty()) {
      auto [part, tail] = rest.split('/');
      if (part == "..") {
        why = "the path leaves the model's folder";
        return std::nullopt;
      }
      rest = tail;
    }
    std::string path = resolved(folder + "/" + location);
    if (path.empty()) {
      why = std::strerror(errno);
      return std::nullopt;
    }
    llvm::StringRef below = path;
    if (folder != "/" && !(below.consume_front(folder) && (below.empty() || below[0] == '/'))) {
      why = "a symbolic link leaves the model's folder";
      return std::nullopt;
    }
    std::optional<MappedFile> file = mapFile(path, why);
    if (!file)
      return std::nullopt;
    isOverLimit = int64_t(file->bytes.size()) > left;
    if (isOverLimit) {
      why = "the side files are larger than the limit, raise --max-model-bytes";
      return std::nullopt;
    }
    left -= int64_t(file->bytes.size());
    found = open.emplace(location, *file).first;
  }
  const MappedFile &file = found->second;
  int64_t size = int64_t(file.bytes.size());
  if (offset < 0 || offset > size || (length && (*length < 0 || *length > size - offset))) {
    why = "the file has " + std::to_string(size) + " bytes, the tensor asks for " +
          (length ? std::to_string(*length) + " " : std::string("those ")) + "from " + std::to_string(offset);
    return std::nullopt;
  }
  MappedFile part = file;
  part.bytes = file.bytes.slice(size_t(offset), size_t(length ? *length : size - offset));
  return part;
}

std::optional<int64_t> elementCount(llvm::ArrayRef<int64_t> dims) {
  int64_t count = 1;
  bool isEmpty = false;
  for (int64_t dim : dims) {
    if (dim < 0 || dim > (int64_t(1) << 48))
      return std::nullopt;
    isEmpty |= dim == 0;
    // Zero anywhere makes an empty tensor, but the others must still be of sane size.
    if (dim && __builtin_mul_overflow(count, dim, &count))
      return std::nullopt;
    if (count > (int64_t(1) << 48))
      return std::nullopt;
  }
  return isEmpty ? 0 : count;
}

std::optional<int64_t> byteCount(int32_t dtype, llvm::ArrayRef<int64_t> dims) {
  std::optional<int64_t> count = elementCount(dims);
  if (!count || firn_dtype_bits(dtype) == 0)
    return std::nullopt;
  return firn_dtype_bytes(dtype, *count);
}

char *allocateBytes(model::Tensor &tensor, size_t size) {
  // One byte at least, so that an empty tensor has an address too.
  std::shared_ptr<void> owner(std::calloc(1, size ? size : 1), std::free);
  char *bytes = static_cast<char *>(owner.get());
  tensor.owner = std::move(owner);
  tensor.bytes = {bytes, bytes ? size : 0};
  return bytes;
}

} // namespace firn

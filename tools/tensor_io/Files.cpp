#include "tools/tensor_io/Files.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

namespace firn::tools {

namespace fs = std::filesystem;

namespace {

[[noreturn]] void fileFailure(const std::string &path, const char *what) {
  throw Failure(BadFile, path + ": " + what + ": " + std::strerror(errno));
}

class OpenFile {
public:
  OpenFile(const std::string &path, int flags) : number(::open(path.c_str(), flags | O_CLOEXEC, 0666)) {}
  ~OpenFile() {
    if (number >= 0)
      ::close(number);
  }
  int number;
};

bool endsWith(const std::string &text, std::string_view end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// Adds the file's name to what a parser says.
template <typename Parse> Tensor named(const std::string &path, Parse parse) {
  try {
    return parse();
  } catch (const Failure &failure) {
    throw Failure(failure.status, path + ": " + failure.what());
  }
}

// The members of an archive, by name or by the position that "KIND_2" or numpy's "arr_2" says.
std::vector<Tensor> readArchive(const std::string &path, const std::string &kind, const std::vector<PortName> &ports) {
  std::string bytes = readFile(path);
  std::vector<NpzMember> members;
  try {
    members = parseNpz(bytes);
  } catch (const Failure &failure) {
    throw Failure(failure.status, path + ": " + failure.what());
  }
  std::vector<Tensor> result(ports.size());
  for (size_t i = 0; i < ports.size(); ++i)
    for (const std::string &name : {ports[i].name, kind + "_" + std::to_string(i), "arr_" + std::to_string(i)}) {
      auto member = std::find_if(members.begin(), members.end(), [&](const NpzMember &m) { return m.name == name; });
      if (member == members.end())
        continue;
      result[i] = named(path + ": " + name, [&] { return parseNpy(member->bytes, ports[i].dtype); });
      break;
    }
  return result;
}

// KIND_0.pb ... carry names, by which they are assigned where these are ports; else their number counts.
void readNumberedPb(const fs::path &folder, const std::string &kind, const std::vector<PortName> &ports,
                    std::vector<Tensor> &result) {
  std::vector<Tensor> unnamed(ports.size());
  for (size_t i = 0; i < ports.size(); ++i) {
    fs::path path = folder / (kind + "_" + std::to_string(i) + ".pb");
    if (!fs::exists(path))
      continue;
    Tensor tensor = readTensor(path.string(), ports[i]);
    auto port = std::find_if(ports.begin(), ports.end(), [&](const PortName &p) { return p.name == tensor.name; });
    size_t index = size_t(port - ports.begin());
    if (port == ports.end() || result[index].dtype != FIRN_DTYPE_NONE)
      unnamed[i] = std::move(tensor);
    else
      result[index] = std::move(tensor);
  }
  for (size_t i = 0; i < ports.size(); ++i)
    if (unnamed[i].dtype != FIRN_DTYPE_NONE && result[i].dtype == FIRN_DTYPE_NONE)
      result[i] = std::move(unnamed[i]);
}

// The only .npz of a folder, or "".
std::string archiveOf(const fs::path &folder) {
  std::string found;
  for (const fs::directory_entry &entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".npz") {
      if (!found.empty())
        return "";
      found = entry.path().string();
    }
  return found;
}

} // namespace

std::string readFile(const std::string &path) {
  OpenFile file(path, O_RDONLY);
  struct stat status;
  if (file.number < 0 || fstat(file.number, &status) != 0)
    fileFailure(path, "cannot be read");
  if (!S_ISREG(status.st_mode))
    throw Failure(BadFile, path + ": is not a regular file");
  std::string bytes;
  bytes.reserve(size_t(status.st_size));
  prefault(bytes.data(), size_t(status.st_size));
  bytes.resize(size_t(status.st_size));
  for (size_t done = 0; done < bytes.size();) {
    ssize_t got = ::read(file.number, bytes.data() + done, bytes.size() - done);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      fileFailure(path, "cannot be read");
    if (got == 0)
      throw Failure(BadFile, path + ": became shorter while it was read");
    done += size_t(got);
  }
  return bytes;
}

void writeFile(const std::string &path, std::string_view bytes) {
  std::string beside = path + ".tmp" + std::to_string(getpid());
  {
    OpenFile file(beside, O_WRONLY | O_CREAT | O_TRUNC);
    if (file.number < 0)
      fileFailure(path, "cannot be written");
    for (size_t done = 0; done < bytes.size();) {
      ssize_t wrote = ::write(file.number, bytes.data() + done, bytes.size() - done);
      if (wrote < 0 && errno == EINTR)
        continue;
      if (wrote <= 0) {
        int reason = errno;
        ::unlink(beside.c_str());
        errno = reason;
        fileFailure(path, "cannot be written");
      }
      done += size_t(wrote);
    }
  }
  if (::rename(beside.c_str(), path.c_str()) != 0) {
    int reason = errno;
    ::unlink(beside.c_str());
    errno = reason;
    fileFailure(path, "cannot be written");
  }
}

void makeFolder(const std::string &path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error || !fs::is_directory(path))
    throw Failure(BadFile, path + ": cannot be made a folder" + (error ? ": " + error.message() : ""));
}

Tensor readTensor(const std::string &path, const PortName &port) {
  if (!endsWith(path, ".pb") && !endsWith(path, ".npy"))
    throw Failure(BadCommandLine, path + ": tensors are read from .pb and .npy files");
  std::string bytes = readFile(path);
  bool isTensor = port.form == FIRN_FORM_TENSOR || port.form == FIRN_FORM_UNRANKED || port.form == FIRN_FORM_OPTIONAL;
  if (!isTensor && !endsWith(path, ".pb"))
    throw Failure(Rejected, path + ": '" + port.name + "' is no tensor: sequences and maps are read from .pb files");
  return named(path, [&] { return endsWith(path, ".pb") ? parsePb(bytes, port.form) : parseNpy(bytes, port.dtype); });
}

std::vector<Tensor> readTensors(const std::string &path, const std::string &kind, const std::vector<PortName> &ports) {
  if (endsWith(path, ".npz"))
    return readArchive(path, kind, ports);
  if (!fs::is_directory(path))
    throw Failure(BadFile, path + ": is neither a folder nor an .npz file");
  std::vector<Tensor> result(ports.size());
  if (std::string archive = archiveOf(path); !archive.empty())
    result = readArchive(archive, kind, ports);
  readNumberedPb(path, kind, ports, result);
  for (size_t i = 0; i < ports.size(); ++i) {
    if (result[i].dtype != FIRN_DTYPE_NONE)
      continue;
    bool isFileName = ports[i].name.find('/') == std::string::npos && !ports[i].name.empty();
    std::vector<std::string> names = {kind + "_" + std::to_string(i) + ".npy"};
    if (isFileName)
      names.insert(names.end(), {ports[i].name + ".npy", ports[i].name + ".pb"});
    for (const std::string &name : names)
      if (fs::path file = fs::path(path) / name; fs::exists(file)) {
        result[i] = readTensor(file.string(), ports[i]);
        break;
      }
  }
  return result;
}

} // namespace firn::tools

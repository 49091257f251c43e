// numpy's .npz: a zip archive of .npy files, stored or deflated. The central directory is what counts; zip64 is read.
#include <cstring>
#include <zlib.h>

#include "tools/tensor_io/Files.h"

namespace firn::tools {

namespace {

[[noreturn]] void malformed(const char *what) {
  throw Failure(Rejected, std::string("is not an .npz archive: ") + what);
}

// Largest member that is unpacked.
constexpr uint64_t mostBytes = uint64_t(1) << 34;

class Archive {
public:
  explicit Archive(std::string_view content) : bytes(content) {}

  std::vector<NpzMember> members() {
    std::vector<NpzMember> result;
    auto [at, count] = directory();
    for (uint64_t i = 0; i < count; ++i) {
      if (number(at, 4) != 0x02014b50)
        malformed("its directory is damaged");
      uint64_t nameBytes = number(at + 28, 2), extraBytes = number(at + 30, 2), commentBytes = number(at + 32, 2);
      Entry entry{number(at + 10, 2), number(at + 20, 4), number(at + 24, 4), number(at + 42, 4)};
      std::string name(piece(at + 46, nameBytes));
      readZip64(entry, piece(at + 46 + nameBytes, extraBytes));
      at += 46 + nameBytes + extraBytes + commentBytes;
      if (number(at - 46 - nameBytes - extraBytes - commentBytes + 8, 2) & 1)
        malformed("a member is encrypted");
      if (name.size() > 4 && name.compare(name.size() - 4, 4, ".npy") == 0)
        result.push_back({name.substr(0, name.size() - 4), unpack(entry)});
    }
    return result;
  }

private:
  struct Entry {
    uint64_t method, packed, unpacked, offset;
  };
  std::string_view bytes;

  std::string_view piece(uint64_t at, uint64_t count) const {
    if (at > bytes.size() || count > bytes.size() - at)
      malformed("it is cut off");
    return bytes.substr(size_t(at), size_t(count));
  }
  uint64_t number(uint64_t at, size_t size) const {
    uint64_t value = 0;
    std::memcpy(&value, piece(at, size).data(), size);
    return value;
  }

  // Start and number of entries of the central directory.
  std::pair<uint64_t, uint64_t> directory() const {
    // The end record has 22 bytes and a comment of at most 65535.
    for (uint64_t back = 22; back <= bytes.size() && back <= 22 + 65535; ++back) {
      uint64_t end = bytes.size() - back;
      if (number(end, 4) != 0x06054b50)
        continue;
      uint64_t count = number(end + 10, 2), start = number(end + 16, 4);
      if (end >= 20 && number(end - 20, 4) == 0x07064b50) { // zip64
        uint64_t record = number(end - 12, 8);
        if (number(record, 4) != 0x06064b50)
          malformed("its zip64 record is damaged");
        count = number(record + 32, 8);
        start = number(record + 48, 8);
      }
      if (count > bytes.size() / 46)
        malformed("it claims more members than it can have");
      return {start, count};
    }
    malformed("it has no directory");
  }

  // Sizes and offset beyond 4 GB, in the order of the fields that are all ones.
  static void readZip64(Entry &entry, std::string_view extra) {
    while (extra.size() >= 4) {
      uint16_t id, size;
      std::memcpy(&id, extra.data(), 2);
      std::memcpy(&size, extra.data() + 2, 2);
      if (size > extra.size() - 4)
        malformed("a directory entry is damaged");
      std::string_view field = extra.substr(4, size);
      for (uint64_t *value : {&entry.unpacked, &entry.packed, &entry.offset})
        if (id == 1 && *value == 0xffffffff && field.size() >= 8) {
          std::memcpy(value, field.data(), 8);
          field.remove_prefix(8);
        }
      extra.remove_prefix(size_t(4) + size);
    }
  }

  std::string unpack(const Entry &entry) const {
    if (number(entry.offset, 4) != 0x04034b50)
      malformed("a member is not where the directory says");
    uint64_t start = entry.offset + 30 + number(entry.offset + 26, 2) + number(entry.offset + 28, 2);
    std::string_view packed = piece(start, entry.packed);
    if (entry.method == 0) {
      if (entry.packed != entry.unpacked)
        malformed("a stored member has two sizes");
      return std::string(packed);
    }
    // deflate makes at most 1032 bytes of one.
    if (entry.method != 8 || entry.unpacked > mostBytes || entry.unpacked / 1040 > entry.packed)
      malformed("a member is packed in an unknown way or too large");
    std::string result(size_t(entry.unpacked), '\0');
    z_stream stream{};
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK)
      throw Failure(Internal, "zlib does not start");
    size_t read = 0, written = 0;
    int status = Z_OK;
    // zlib counts in 32 bits.
    constexpr size_t most = size_t(1) << 30;
    while (status == Z_OK) {
      size_t in = std::min(most, packed.size() - read), out = std::min(most, result.size() - written);
      stream.next_in = reinterpret_cast<Bytef *>(const_cast<char *>(packed.data() + read));
      stream.avail_in = uInt(in);
      stream.next_out = reinterpret_cast<Bytef *>(result.data() + written);
      stream.avail_out = uInt(out);
      status = inflate(&stream, Z_NO_FLUSH);
      read += in - stream.avail_in;
      written += out - stream.avail_out;
      if (status == Z_OK && in == stream.avail_in && out == stream.avail_out)
        break; // no progress: cut off
    }
    inflateEnd(&stream);
    if (status != Z_STREAM_END || written != result.size())
      malformed("a member cannot be unpacked");
    return result;
  }
};

} // namespace

std::vector<NpzMember> parseNpz(std::string_view bytes) { return Archive(bytes).members(); }

} // namespace firn::tools

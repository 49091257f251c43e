// numpy's .npy format, versions 1 to 3: a magic number, a header that is a Python literal, and the elements.
#include <algorithm>
#include <cstring>

#include "tools/tensor_io/Files.h"

namespace firn::tools {

namespace {

constexpr std::string_view magic("\x93NUMPY", 6);

[[noreturn]] void malformed(const std::string &what) { throw Failure(Rejected, "is not an .npy array: " + what); }

// The header's dictionary, of which the three keys that numpy writes are read.
struct Header {
  std::string description;
  bool isFortran = false;
  std::vector<int64_t> shape;
};

class HeaderParser {
public:
  explicit HeaderParser(std::string_view text) : rest(text) {}

  Header parse() {
    Header header;
    expect('{');
    while (!take('}')) {
      std::string key = quoted();
      expect(':');
      if (key == "descr") {
        if (peek() == '[')
          malformed("records are not supported");
        header.description = quoted();
      } else if (key == "fortran_order") {
        header.isFortran = boolean();
      } else if (key == "shape") {
        header.shape = shape();
      } else {
        malformed("unknown key '" + key + "'");
      }
      take(',');
    }
    return header;
  }

private:
  std::string_view rest;

  void skipSpace() {
    while (!rest.empty() && (rest[0] == ' ' || rest[0] == '\n' || rest[0] == '\t'))
      rest.remove_prefix(1);
  }
  char peek() {
    skipSpace();
    return rest.empty() ? '\0' : rest[0];
  }
  bool take(char c) {
    if (peek() != c || rest.empty())
      return false;
    rest.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!take(c))
      malformed(std::string("its header lacks '") + c + "'");
  }
  std::string quoted() {
    char quote = peek();
    if (quote != '\'' && quote != '"')
      malformed("its header lacks a quoted text");
    size_t end = rest.find(quote, 1);
    if (end == std::string_view::npos)
      malformed("its header is cut off");
    std::string text(rest.substr(1, end - 1));
    rest.remove_prefix(end + 1);
    return text;
  }
  bool boolean() {
    skipSpace();
    for (bool value : {true, false}) {
      std::string_view word = value ? "True" : "False";
      if (rest.substr(0, word.size()) == word) {
        rest.remove_prefix(word.size());
        return value;
      }
    }
    malformed("its fortran_order is neither True nor False");
  }
  std::vector<int64_t> shape() {
    std::vector<int64_t> dims;
    expect('(');
    while (!take(')')) {
      peek();
      int64_t dim = 0;
      size_t digits = 0;
      for (; digits < rest.size() && rest[digits] >= '0' && rest[digits] <= '9'; ++digits)
        if (__builtin_mul_overflow(dim, int64_t(10), &dim) ||
            __builtin_add_overflow(dim, int64_t(rest[digits] - '0'), &dim))
          malformed("a dimension is too large");
      if (digits == 0 || dims.size() == FIRN_TENSOR_MAX_RANK)
        malformed("its shape is no list of at most 12 dimensions");
      rest.remove_prefix(digits);
      dims.push_back(dim);
      take(',');
    }
    return dims;
  }
};

struct ElementType {
  int32_t dtype;
  const char *code;
};
const ElementType elementTypes[] = {{FIRN_F32, "f4"}, {FIRN_F64, "f8"},  {FIRN_F16, "f2"}, {FIRN_U8, "u1"},
                                    {FIRN_I8, "i1"},  {FIRN_U16, "u2"},  {FIRN_I16, "i2"}, {FIRN_U32, "u4"},
                                    {FIRN_I32, "i4"}, {FIRN_U64, "u8"},  {FIRN_I64, "i8"}, {FIRN_BOOL, "b1"},
                                    {FIRN_C64, "c8"}, {FIRN_C128, "c16"}};

// A text element: bytes (S) or code points of four bytes (U), padded with zeros.
std::string decodeText(const char *data, size_t units, bool isUnicode, bool isSwapped) {
  std::string text;
  if (!isUnicode) {
    text.assign(data, units);
    text.erase(text.find_last_not_of('\0') + 1);
    return text;
  }
  for (size_t i = 0; i < units; ++i) {
    uint32_t code;
    std::memcpy(&code, data + 4 * i, 4);
    if (isSwapped)
      code = __builtin_bswap32(code);
    if (code == 0)
      break;
    if (code < 0x80) {
      text += char(code);
    } else if (code < 0x800) {
      text += {char(0xc0 | (code >> 6)), char(0x80 | (code & 63))};
    } else if (code < 0x10000) {
      text += {char(0xe0 | (code >> 12)), char(0x80 | ((code >> 6) & 63)), char(0x80 | (code & 63))};
    } else {
      text += {char(0xf0 | (code >> 18)), char(0x80 | ((code >> 12) & 63)), char(0x80 | ((code >> 6) & 63)),
               char(0x80 | (code & 63))};
    }
  }
  return text;
}

// Where element `i` of a row-major tensor lies in a column-major one.
int64_t fortranIndex(int64_t i, const std::vector<int64_t> &dims) {
  int64_t index[FIRN_TENSOR_MAX_RANK], result = 0, stride = 1;
  for (size_t d = dims.size(); d-- > 0; i /= dims[d])
    index[d] = i % dims[d];
  for (size_t d = 0; d < dims.size(); ++d) {
    result += index[d] * stride;
    stride *= dims[d];
  }
  return result;
}

// Copies elements of `size` bytes, which are swapped in parts of `part` bytes.
void copyElements(char *to, const char *from, int64_t count, size_t size, size_t part, const Header &header,
                  bool isSwapped) {
  if (!header.isFortran && !isSwapped) {
    std::memcpy(to, from, size_t(count) * size);
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    int64_t source = header.isFortran ? fortranIndex(i, header.shape) : i;
    char *element = to + size_t(i) * size;
    std::memcpy(element, from + size_t(source) * size, size);
    for (size_t p = 0; isSwapped && p < size; p += part)
      std::reverse(element + p, element + p + part);
  }
}

// The dtype of elements described by `code`, such as "f4".
int32_t elementType(const std::string &code, int32_t wanted) {
  if (code == "V2" && (wanted == FIRN_BF16 || wanted == FIRN_DTYPE_NONE))
    return FIRN_BF16;
  if ((code == "V1" || code == "f1" || code == "u1" || code == "i1") && dtypeBits(wanted) == 8 && isFloat(wanted))
    return wanted;
  for (const ElementType &type : elementTypes)
    if (code == type.code)
      return type.dtype;
  throw Failure(Rejected, "has elements of type '" + code + "', which no tensor has");
}

Tensor packElements(const Tensor &wide, int32_t dtype) {
  Tensor packed(dtype, wide.dims);
  for (int64_t i = 0, n = wide.count(); i < n; ++i)
    setElement(packed, i, double(elementAsInt(wide, i)));
  return packed;
}

Tensor parseTexts(const Header &header, std::string_view data, bool isUnicode, bool isSwapped, size_t units) {
  size_t size = units * (isUnicode ? 4 : 1);
  int64_t count = checkedCount(FIRN_STRING, header.shape);
  if (units > (1u << 24) || uint64_t(count) * size != data.size())
    malformed("its size does not fit its shape");
  if (size == 0 && count > (1 << 20))
    malformed("it has too many empty texts");
  Tensor tensor(FIRN_STRING, header.shape);
  for (int64_t i = 0; i < count; ++i) {
    int64_t source = header.isFortran ? fortranIndex(i, header.shape) : i;
    tensor.strings.push_back(decodeText(data.data() + size_t(source) * size, units, isUnicode, isSwapped));
  }
  tensor.linkStrings();
  return tensor;
}

} // namespace

Tensor parseNpy(std::string_view bytes, int32_t wanted) {
  if (bytes.substr(0, magic.size()) != magic || bytes.size() < 10)
    malformed("it does not begin with numpy's magic number");
  uint8_t version = uint8_t(bytes[6]);
  if (version < 1 || version > 3)
    malformed("it has version " + std::to_string(version));
  size_t start = version == 1 ? 10 : 12, length = uint8_t(bytes[8]) | size_t(uint8_t(bytes[9])) << 8;
  if (bytes.size() < start)
    malformed("it is cut off");
  if (version > 1)
    length |= size_t(uint8_t(bytes[10])) << 16 | size_t(uint8_t(bytes[11])) << 24;
  if (length > bytes.size() - start)
    malformed("its header is cut off");
  Header header = HeaderParser(bytes.substr(start, length)).parse();
  std::string_view data = bytes.substr(start + length);
  if (header.description.size() < 2)
    malformed("it does not say what its elements are");
  char order = header.description[0];
  std::string code = header.description;
  if (order == '<' || order == '>' || order == '|' || order == '=')
    code.erase(0, 1);
  bool isSwapped = order == '>';
  if (code[0] == 'S' || code[0] == 'U')
    return parseTexts(header, data, code[0] == 'U', isSwapped, std::strtoul(code.c_str() + 1, nullptr, 10));
  if (code[0] == 'O')
    throw Failure(Rejected, "holds Python objects, which cannot be read; save numbers or fixed-width texts");
  int32_t dtype = elementType(code, wanted);
  size_t size = size_t(dtypeBits(dtype)) / 8;
  int64_t count = checkedCount(dtype, header.shape);
  if (uint64_t(count) * size != data.size())
    malformed("it has " + std::to_string(data.size()) + " bytes of elements, expected " +
              std::to_string(uint64_t(count) * size));
  Tensor tensor(dtype, header.shape);
  copyElements(tensor.data(), data.data(), count, size, isComplex(dtype) ? size / 2 : size, header, isSwapped);
  bool isByte = dtype == FIRN_I8 || dtype == FIRN_U8;
  if (isByte && (wanted == FIRN_I4 || wanted == FIRN_U4 || wanted == FIRN_I2 || wanted == FIRN_U2))
    return packElements(tensor, wanted);
  return tensor;
}

std::string formatNpy(const Tensor &tensor) {
  std::string code;
  for (const ElementType &type : elementTypes)
    if (type.dtype == tensor.dtype)
      code = type.code;
  std::string elements(tensor.data(), tensor.data() + tensor.bytes());
  size_t longest = 1;
  if (tensor.dtype == FIRN_STRING) { // as bytes: S<length of the longest>
    elements.clear();
    for (const std::string &text : tensor.strings)
      longest = std::max(longest, text.size());
    for (const std::string &text : tensor.strings)
      elements += text + std::string(longest - text.size(), '\0');
    code = "S" + std::to_string(longest);
  } else if (code.empty() && dtypeBits(tensor.dtype) < 8) { // one byte an element
    code = tensor.dtype == FIRN_I4 || tensor.dtype == FIRN_I2 ? "i1" : "u1";
    elements.clear();
    for (int64_t i = 0, n = tensor.count(); i < n; ++i)
      elements += char(elementAsInt(tensor, i));
  } else if (code.empty()) { // bf16 and float8, as ml_dtypes stores them
    code = "V" + std::to_string(dtypeBits(tensor.dtype) / 8);
  }
  bool hasOrder = code[0] != 'S' && code[0] != 'V' && code.substr(1) != "1";
  std::string header =
      "{'descr': '" + std::string(hasOrder ? "<" : "|") + code + "', 'fortran_order': False, 'shape': (";
  for (int64_t dim : tensor.dims)
    header += std::to_string(dim) + ", ";
  if (tensor.dims.size() > 1)
    header.erase(header.size() - 2);
  header += "), }";
  header.append(63 - (magic.size() + 4 + header.size()) % 64, ' ');
  header += '\n';
  std::string result(magic);
  result += {'\1', '\0', char(header.size() & 255), char(header.size() >> 8)};
  return result + header + elements;
}

} // namespace firn::tools

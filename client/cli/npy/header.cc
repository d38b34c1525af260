#include "client/cli/npy/header.h"

#include <cctype>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "kernels/status_macros.h"

namespace warpline::client {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kAlignment = 64;  // as numpy writes it, for mmap
constexpr char kSupported[] =
    "supported are bool (b1), unsigned and signed integers (u1 to u8, i1 to i8), f16 (f2), f32 (f4), f64 "
    "(f8), "
    "c64 (c8), c128 (c16), and as raw memory, whose type is named: bf16 (V2), f8e4m3 and f8e5m2 (V1)";

// The name of a type in a file. NumPy has no bf16 and no f8: their elements are stored as raw memory.
struct Descr {
  std::string_view text;
  DType dtype;
};
constexpr Descr kDescrs[] = {
    {"|b1", DType::kBool},   {"|u1", DType::kU8},  {"<u2", DType::kU16},   {"<u4", DType::kU32},
    {"<u8", DType::kU64},    {"|i1", DType::kI8},  {"<i2", DType::kI16},   {"<i4", DType::kI32},
    {"<i8", DType::kI64},    {"<f2", DType::kF16}, {"|V2", DType::kBF16},  {"<f4", DType::kF32},
    {"<f8", DType::kF64},    {"<c8", DType::kC64}, {"<c16", DType::kC128}, {"|V1", DType::kF8E4M3},
    {"|V1", DType::kF8E5M2},
};
static_assert(std::size(kDescrs) == kAllDTypes.size());

absl::Status Invalid(std::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("not a valid .npy header: ", std::string(what)));
}

// Quotes text of the file for an error message. Control characters are escaped, and long text is cut.
std::string Quoted(std::string_view text) {
  constexpr std::size_t kMaxShown = 80;
  return absl::StrReplaceAll(absl::CHexEscape(std::string(text.substr(0, kMaxShown))), {{"\\'", "'"}});
}

// Parses the form of dictionary that numpy writes, with keys in any order and any spacing.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  // Skips spaces, and then `c` if it is next.
  bool Consume(char c) {
    SkipSpace();
    if (text_.empty() || text_.front() != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  bool AtEnd() {
    SkipSpace();
    return text_.empty();
  }
  char Peek() {
    SkipSpace();
    return text_.empty() ? '\0' : text_.front();
  }

  absl::StatusOr<std::string_view> String() {
    const char quote = Peek();
    if (quote != '\'' && quote != '"') return Invalid("a string was expected");
    const std::size_t end = text_.find(quote, 1);
    if (end == std::string_view::npos) return Invalid("a string does not end");
    const std::string_view value = text_.substr(1, end - 1);
    if (value.find('\\') != std::string_view::npos) return Invalid("an escape in a string");
    text_.remove_prefix(end + 1);
    return value;
  }

  absl::StatusOr<bool> Bool() {
    SkipSpace();
    for (const auto& [name, value] : {std::pair<std::string_view, bool>{"True", true}, {"False", false}}) {
      if (text_.substr(0, name.size()) != name) continue;
      text_.remove_prefix(name.size());
      return value;
    }
    return Invalid("fortran_order is neither True nor False");
  }

  absl::StatusOr<Shape> ShapeTuple() {
    Shape shape;
    if (!Consume('(')) return Invalid("shape is not a tuple");
    bool comma = false;
    while (!Consume(')')) {
      SkipSpace();
      std::int64_t size = 0;
      const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), size);
      if (error == std::errc::result_out_of_range) return Invalid("a size in shape is above 2^63");
      if (error != std::errc()) return Invalid("shape has something that is not a whole number");
      if (size < 0) return Invalid(absl::StrCat("a size in shape is ", size));
      text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
      if (!text_.empty() && text_.front() == 'L') text_.remove_prefix(1);  // Python 2 wrote longs
      if (shape.rank == kMaxRank) {
        return absl::InvalidArgumentError(absl::StrCat("the array has more than ", kMaxRank, " axes"));
      }
      shape.Append(size);
      comma = Consume(',');
      if (!comma && Peek() != ')') return Invalid("shape is not a tuple of numbers");
    }
    if (shape.rank == 1 && !comma) return Invalid("shape is a number in brackets, not a tuple");
    return shape;
  }

  std::string_view rest() const { return text_; }

 private:
  void SkipSpace() {
    while (!text_.empty() && std::isspace(static_cast<unsigned char>(text_.front()))) text_.remove_prefix(1);
  }

  std::string_view text_;
};

// Abseil's string_view is a different type from the standard library's.
void AppendName(std::string* text, std::string_view name) { text->append(name); }

absl::Status ReadDescr(std::string_view descr, std::optional<DType> wanted, NpyHeader& header) {
  const std::string name = absl::StrCat("dtype '", Quoted(descr), "'");
  const bool has_order = !descr.empty() && std::string_view("<>=|").find(descr[0]) != std::string_view::npos;
  const std::string_view type = has_order ? descr.substr(1) : descr;
  if (!type.empty() && type[0] == 'O') {
    return absl::InvalidArgumentError(absl::StrCat(name, ": arrays of Python objects are refused"));
  }
  const bool raw = !type.empty() && type[0] == 'V';
  std::vector<std::string_view> names;  // of the types that it could be
  for (const Descr& row : kDescrs) {
    if (row.text.substr(1) != type) continue;
    names.push_back(Name(row.dtype));
    // Raw memory needs an explicit type.
    if (wanted != row.dtype && (raw || wanted)) continue;
    header.dtype = row.dtype;
    header.big_endian = has_order && descr[0] == '>';
    return absl::OkStatus();
  }
  if (names.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(name, " is not supported; ", kSupported));
  }
  if (raw) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " is raw memory: say what it is, in run as NAME:bf16=FILE, else with --dtype ",
                     absl::StrJoin(names, " or ", AppendName)));
  }
  return absl::InvalidArgumentError(absl::StrCat(name, " is not ", std::string(Name(*wanted))));
}

std::string_view DescrOf(DType dtype) {
  for (const Descr& row : kDescrs) {
    if (row.dtype == dtype) return row.text;
  }
  return "?";
}

}  // namespace

absl::StatusOr<NpyPrefix> ParseNpyPrefix(std::string_view bytes) {
  if (bytes.substr(0, kMagic.size()) != kMagic) {
    return absl::InvalidArgumentError("not a .npy file (it does not start with \\x93NUMPY)");
  }
  const auto byte = [&](std::size_t i) {
    return static_cast<std::size_t>(static_cast<unsigned char>(bytes[i]));
  };
  if (bytes.size() < 10) return Invalid("the file ends within it");
  const std::size_t version = byte(6);
  if (version < 1 || version > 3) return absl::InvalidArgumentError(absl::StrCat(".npy version ", version));
  NpyPrefix prefix{.header_offset = 10, .header_bytes = byte(8) | byte(9) << 8};
  if (version > 1) {
    if (bytes.size() < kNpyPrefixBytes) return Invalid("the file ends within it");
    prefix.header_offset = kNpyPrefixBytes;
    prefix.header_bytes |= byte(10) << 16 | byte(11) << 24;
  }
  if (prefix.header_bytes > kMaxNpyHeaderBytes) {
    return Invalid(absl::StrCat("it claims ", prefix.header_bytes, " bytes; at most ", kMaxNpyHeaderBytes,
                                " are accepted"));
  }
  return prefix;
}

absl::StatusOr<NpyHeader> ParseNpyHeader(std::string_view text, std::optional<DType> dtype) {
  NpyHeader header;
  bool has_descr = false, has_order = false, has_shape = false;
  Parser parser(text);
  if (!parser.Consume('{')) return Invalid("no dictionary");
  while (!parser.Consume('}')) {
    ASSIGN_OR_RETURN(const std::string_view key, parser.String());
    if (!parser.Consume(':')) return Invalid("no ':' after a key");
    if (key == "descr") {
      if (parser.Peek() == '[' || parser.Peek() == '(') {
        const std::string_view type = parser.rest().substr(0, parser.rest().find(", 'fortran_order'"));
        return absl::InvalidArgumentError(
            absl::StrCat("structured dtype ", Quoted(type), " is refused; ", kSupported));
      }
      ASSIGN_OR_RETURN(const std::string_view descr, parser.String());
      RETURN_IF_ERROR(ReadDescr(descr, dtype, header));
      has_descr = true;
    } else if (key == "fortran_order") {
      ASSIGN_OR_RETURN(header.fortran_order, parser.Bool());
      has_order = true;
    } else if (key == "shape") {
      ASSIGN_OR_RETURN(header.shape, parser.ShapeTuple());
      has_shape = true;
    } else {
      return Invalid(absl::StrCat("unknown key '", Quoted(key), "'"));
    }
    if (!parser.Consume(',') && parser.Peek() != '}') return Invalid("the dictionary does not end");
  }
  if (!parser.AtEnd()) return Invalid("something follows the dictionary");
  if (!has_descr || !has_order || !has_shape) return Invalid("descr, fortran_order or shape is missing");
  return header;
}

std::string FormatNpyHeader(const NpyHeader& header) {
  std::vector<std::int64_t> sizes;
  sizes.reserve(static_cast<std::size_t>(header.shape.rank));
  for (int axis = 0; axis < header.shape.rank; ++axis) sizes.push_back(header.shape[axis]);
  // Python's tuples: (), (2,), (2, 3).
  std::string text =
      absl::StrCat("{'descr': '", std::string(DescrOf(header.dtype)),
                   "', 'fortran_order': ", header.fortran_order ? "True" : "False", ", 'shape': (",
                   absl::StrJoin(sizes, ", "), sizes.size() == 1 ? ",), }" : "), }");
  const std::size_t fixed = 10 + text.size() + 1;
  text.append((kAlignment - fixed % kAlignment) % kAlignment, ' ');
  text += '\n';
  std::string bytes(kMagic);
  bytes += {'\x01', '\x00', static_cast<char>(text.size() & 0xff), static_cast<char>(text.size() >> 8)};
  return bytes + text;
}

}  // namespace warpline::client

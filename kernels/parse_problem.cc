#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "kernels/map/pair.h"
#include "kernels/problem_text.h"

namespace warpline {
namespace {

constexpr std::int64_t kLeastStride = std::numeric_limits<std::int64_t>::min();

absl::string_view ToAbsl(std::string_view text) { return {text.data(), text.size()}; }

// One line, and its words that are not parsed yet. The first error is kept; everything parsed after it is
// ignored.
class Line {
 public:
  explicit Line(std::string_view text)
      : text_(text), words_(absl::StrSplit(ToAbsl(text), ' ', absl::SkipEmpty())) {}

  std::string Take(const char* what) {
    if (next_ == words_.size()) {
      Refuse(what);
      return "";
    }
    return words_[next_++];
  }
  // Returns the next word, without `beginning`, if it starts with it.
  std::optional<std::string> TakeIf(std::string_view beginning) {
    if (next_ == words_.size()) return std::nullopt;
    absl::string_view word = words_[next_];
    if (!absl::ConsumePrefix(&word, ToAbsl(beginning))) return std::nullopt;
    ++next_;
    return std::string(word);
  }
  bool TakeWord(std::string_view whole) {
    if (next_ == words_.size() || words_[next_] != whole) return false;
    ++next_;
    return true;
  }

  std::int64_t Number(absl::string_view digits, std::int64_t least) {
    std::int64_t number = least;
    if (!absl::SimpleAtoi(digits, &number) || number < least) {
      Refuse(absl::StrCat("a number from ", least, " to ", std::numeric_limits<std::int64_t>::max(),
                          ", not \"", digits, "\""));
    }
    return std::max(number, least);
  }
  // Parses "name=N", with N at least `least`.
  bool TakeNumber(const char* name, std::int64_t least, std::int64_t& into) {
    const auto digits = TakeIf(absl::StrCat(name, "="));
    if (digits) into = Number(*digits, least);
    return digits.has_value();
  }
  // Same; N must be at least the current value of `into`.
  bool TakeNumber(const char* name, std::int64_t& into) { return TakeNumber(name, into, into); }
  std::vector<std::int64_t> Numbers(const std::string& word, char by, std::size_t most, std::int64_t least) {
    std::vector<std::int64_t> numbers;
    for (absl::string_view digits : absl::StrSplit(word, by)) numbers.push_back(Number(digits, least));
    if (numbers.size() > most) {
      Refuse(absl::StrCat("at most ", most, " numbers, not the ", numbers.size(), " of \"", word, "\""));
      numbers.resize(most);
    }
    return numbers;
  }
  Shape TakeSizes(const char* what) {
    constexpr double kMax = 1e18;  // maximum number of elements, so that nothing overflows
    Shape shape;
    double count = 1;
    for (std::int64_t size : Numbers(Take(what), 'x', kMaxRank, 1)) {
      count *= static_cast<double>(size);
      shape.Append(size);
    }
    if (count > kMax) Refuse("smaller sizes");
    return shape;
  }
  // Takes one number for each axis of the shape.
  void TakeSteps(const char* name, int rank, std::int64_t* into, std::int64_t least = 0) {
    const auto word = TakeIf(absl::StrCat(name, "="));
    if (!word) return;
    const std::vector<std::int64_t> steps = Numbers(*word, ',', kMaxRank, least);
    if (std::ssize(steps) != rank) return Refuse("a number for each axis");
    std::copy(steps.begin(), steps.end(), into);
  }
  std::vector<int> Axes(const std::string& word, int rank) {
    std::vector<int> axes;
    for (std::int64_t axis : Numbers(word, ',', kMaxRank, 0)) {
      if (axis >= rank) Refuse(absl::StrCat("axes below ", rank));
      axes.push_back(static_cast<int>(std::min<std::int64_t>(axis, rank - 1)));
    }
    std::vector<int> sorted = axes;
    std::sort(sorted.begin(), sorted.end());
    if (std::unique(sorted.begin(), sorted.end()) != sorted.end()) Refuse("each axis once");
    return axes;
  }
  DType Type(std::string_view name) {
    for (DType dtype : kAllDTypes) {
      if (Name(dtype) == name) return dtype;
    }
    Refuse("a type, as f32 or bf16");
    return DType::kF32;
  }

  void Refuse(absl::string_view what) {
    if (!status_.ok()) return;
    status_ = absl::InvalidArgumentError(absl::StrCat("\"", ToAbsl(text_), "\": expected ", what));
  }
  absl::Status End() {
    if (next_ < words_.size()) Refuse(absl::StrCat("nothing of \"", words_[next_], "\""));
    return status_;
  }
  bool ok() const { return status_.ok(); }
  bool AtEnd() const { return next_ == words_.size(); }

 private:
  std::string_view text_;
  std::vector<std::string> words_;
  std::size_t next_ = 0;
  absl::Status status_;
};

// Parses the row stride, which is stored as 0 if the array is dense.
void TakeRowStride(Line& line, const Shape& shape, std::int64_t& row_stride) {
  const std::int64_t row = RowSize(shape);
  if (line.TakeNumber("ld", row, row_stride) && row_stride == row) row_stride = 0;
}

Problem ParseTranspose(Line& line, DType dtype, const Shape& shape) {
  TransposeProblem p{.dtype = dtype, .shape = shape};
  const std::vector<int> perm = line.Axes(line.Take("the order of the axes"), shape.rank);
  if (std::ssize(perm) != shape.rank) line.Refuse("each axis once");
  if (line.ok()) std::copy(perm.begin(), perm.end(), p.perm.begin());
  TakeRowStride(line, shape, p.row_stride);
  return p;
}

Problem ParseReduce(Line& line, ReduceOp op, DType dtype, const Shape& shape) {
  ReduceProblem p;
  p.op = op;
  p.dtype = dtype;
  p.shape = shape;
  const std::string axes = line.Take("axes");
  if (axes == "all") {
    p.axes_mask = (1u << shape.rank) - 1;
  } else {
    for (int axis : line.Axes(axes, shape.rank)) p.axes_mask |= 1u << axis;
  }
  const int reduced = std::popcount(p.axes_mask);
  if (IsArg(op) && reduced != 1 && reduced != shape.rank) line.Refuse("one axis or all");
  if (const auto type = line.TakeIf(">")) p.out_dtype = line.Type(*type);
  std::int64_t ddof = 0;
  line.TakeNumber("ddof", 0, ddof);
  p.ddof = static_cast<std::int32_t>(std::min<std::int64_t>(ddof, INT32_MAX));
  TakeRowStride(line, shape, p.row_stride);
  return p;
}

// Parses one word of the options that follow the sizes of a product; false if it is not such a word.
bool TakeDetail(Line& line, GemmProblem& p) {
  for (const char* layout : {"nn", "nt", "tn", "tt"}) {
    if (!line.TakeWord(layout)) continue;
    p.trans_a = layout[0] == 't';
    p.trans_b = layout[1] == 't';
    p.lda = p.trans_a ? p.m : p.k;
    p.ldb = p.trans_b ? p.k : p.n;
    return true;
  }
  if (const auto count = line.TakeIf("x")) {
    p.batch = GemmBatch::Dense(line.Number(*count, 1));
  } else if (const auto sizes = line.TakeIf("batch=")) {
    p.batch = {};
    for (std::int64_t size : line.Numbers(*sizes, 'x', GemmBatch::kMaxAxes, 1)) {
      p.batch.dims[p.batch.rank++] = size;
    }
    line.TakeSteps("a", p.batch.rank, p.batch.a);
    line.TakeSteps("b", p.batch.rank, p.batch.b);
    line.TakeSteps("c", p.batch.rank, p.batch.c);
  } else if (const auto type = line.TakeIf(">")) {
    p.out_dtype = line.Type(*type);
  } else if (line.TakeWord("c")) {
    p.has_c = true;
  } else if (line.TakeWord("bias")) {
    p.has_bias = true;
  } else if (line.TakeWord("relu")) {
    p.activation = Activation::kRelu;
  } else if (line.TakeWord("gelu")) {
    p.activation = Activation::kGelu;
  } else {
    return line.TakeNumber("lda", p.lda) || line.TakeNumber("ldb", p.ldb) || line.TakeNumber("ldc", p.ldc);
  }
  return true;
}

Problem ParseGemm(Line& line, bool tf32, DType dtype, const Shape& shape) {
  GemmProblem p;
  p.dtype = dtype;
  if (shape.rank != 3) {
    line.Refuse("m, n and k");
    return p;
  }
  p.m = shape[0], p.n = shape[1], p.k = shape[2];
  p.lda = p.k, p.ldb = p.ldc = p.n;
  if (tf32) p.precision = Precision::kTf32;
  while (line.ok() && TakeDetail(line, p)) {
  }
  const bool is_half = dtype == DType::kF16 || dtype == DType::kBF16;
  const bool usual = !p.out_dtype || *p.out_dtype == (dtype == DType::kI8 ? DType::kI32 : dtype);
  if (!IsGemmInput(dtype)) line.Refuse("a type of products");
  if (!usual && !(is_half && *p.out_dtype == DType::kF32) && *p.out_dtype != dtype)
    line.Refuse("a result of a type that products have");
  return p;
}

Problem ParsePair(Line& line, PairOp op, DType dtype, const Shape& shape) {
  PairMap p{.op = op, .dtype = dtype, .out_dtype = dtype, .shape = shape};
  p.x_strides = p.y_strides = RowMajorStrides(shape);
  if (op == PairOp::kCast) {
    if (const auto type = line.TakeIf(">")) {
      p.out_dtype = line.Type(*type);
    } else {
      line.Refuse(">TYPE, that of the result");
    }
  }
  if (!ReadsY(op)) {
    line.TakeSteps("x", shape.rank, p.x_strides.data(), kLeastStride);
    return ToMap(p);
  }
  if (const auto word = line.TakeIf("*")) {
    Shape smaller = shape;
    const std::vector<int> axes = line.Axes(*word, shape.rank);
    for (int axis : axes) smaller[axis] = 1;
    p.y_strides = RowMajorStrides(smaller);
    for (int axis : axes) p.y_strides[axis] = 0;
  }
  line.TakeSteps("x", shape.rank, p.x_strides.data(), kLeastStride);
  line.TakeSteps("y", shape.rank, p.y_strides.data(), kLeastStride);
  return ToMap(p);
}

// Parses the operation of a node, the type of its result and its operands. `types` are the types of the
// values before it.
MapNode ParseNode(Line& line, const std::string& word, std::vector<DType>& types) {
  MapNode node;
  const std::size_t open = word.find('(');
  const absl::string_view head = absl::string_view(word).substr(0, open);
  const std::pair<absl::string_view, absl::string_view> named = absl::StrSplit(head, absl::MaxSplits(':', 1));
  const auto row = std::find_if(kMapOps.begin(), kMapOps.end(),
                                [&](const MapOpRow& each) { return ToAbsl(each.name) == named.first; });
  if (open == std::string::npos || word.back() != ')' || row == kMapOps.end()) {
    line.Refuse(absl::StrCat("a node as add(0,1), not \"", word, "\""));
    return node;
  }
  node.op = static_cast<MapOp>(row - kMapOps.begin());
  const auto wanted = static_cast<std::size_t>(std::max(row->operands, 1));
  const std::vector<std::int64_t> operands =
      line.Numbers(word.substr(open + 1, word.size() - open - 2), ',', wanted, 0);
  if (operands.size() != wanted) line.Refuse(absl::StrCat(wanted, " operands in \"", word, "\""));
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (row->operands > 0 && operands[i] >= std::ssize(types)) {
      line.Refuse(absl::StrCat("operands below ", types.size(), " in \"", word, "\""));
    }
    node.operands[i] = static_cast<std::int16_t>(operands[i]);
  }
  if (!line.ok()) return node;
  const auto typed = static_cast<std::size_t>(node.operands[node.op == MapOp::kWhere ? 1 : 0]);
  node.dtype = row->result == MapResult::kGiven ? line.Type({named.second.data(), named.second.size()})
                                                : ResultOf(node.op, types[typed]);
  types.push_back(node.dtype);
  return node;
}

Problem ParseMap(Line& line, const Shape& shape) {
  MapProblem p{.shape = shape};
  std::vector<DType> types;
  while (line.ok()) {
    const std::string word = line.Take("the types of the inputs, and =");
    const std::vector<std::string> parts = absl::StrSplit(word, absl::MaxSplits('@', 1));
    Strides strides = RowMajorStrides(shape);
    if (parts.size() == 2) {
      const std::vector<std::int64_t> steps = line.Numbers(parts[1], ',', kMaxRank, kLeastStride);
      if (std::ssize(steps) != shape.rank) line.Refuse("a number for each axis");
      std::copy(steps.begin(), steps.end(), strides.begin());
    }
    if (parts[0] == "=") {
      if (parts.size() == 2) p.out_strides = strides;
      break;
    }
    p.inputs.push_back({.dtype = line.Type(parts[0]), .strides = strides});
    types.push_back(p.inputs.back().dtype);
  }
  if (p.inputs.size() > kMaxMapInputs) line.Refuse("at most 32 inputs");
  while (line.ok() && !line.AtEnd()) p.nodes.push_back(ParseNode(line, line.Take("a node"), types));
  if (p.nodes.empty() || p.nodes.size() > kMaxMapNodes) line.Refuse("1 to 256 nodes");
  if (!p.nodes.empty()) p.dtype = p.inputs.empty() ? p.OutDType() : p.inputs[0].dtype;
  return p;
}

Problem ParseOf(Line& line) {
  const std::string op = line.Take("an operation");
  if (op == "map") {
    const Shape sizes = line.TakeSizes("sizes");
    return line.ok() ? ParseMap(line, sizes) : Problem();
  }
  const std::string type = line.Take("a type");
  const bool is_tf32 = type == "tf32" && op == "gemm";
  const DType dtype = is_tf32 ? DType::kF32 : line.Type(type);
  const Shape shape = line.TakeSizes("sizes");
  if (!line.ok()) return {};
  if (op == "transpose") return ParseTranspose(line, dtype, shape);
  if (op == "gemm") return ParseGemm(line, is_tf32, dtype, shape);
  if (op == "cast") return ParsePair(line, PairOp::kCast, dtype, shape);
  if (op == "scale") return ParsePair(line, PairOp::kScale, dtype, shape);
  if (op == "add") return ParsePair(line, PairOp::kAdd, dtype, shape);
  for (ReduceOp reduce : kAllReduceOps) {
    if (Name(reduce) == op) return ParseReduce(line, reduce, dtype, shape);
  }
  line.Refuse("transpose, gemm, cast, scale, add, map, or a reduction as sum");
  return {};
}

}  // namespace

absl::StatusOr<Problem> ParseProblem(std::string_view text) {
  Line line(text);
  Problem problem = ParseOf(line);
  if (absl::Status status = line.End(); !status.ok()) return status;
  return problem;
}

absl::StatusOr<std::vector<Problem>> ParseProblems(std::string_view text, std::string_view source) {
  std::vector<Problem> problems;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(absl::string_view(text.data(), text.size()), '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    auto problem = ParseProblem({line.data(), line.size()});
    if (!problem.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(absl::string_view(source.data(), source.size()), ":",
                                                     number, ": ", problem.status().message()));
    }
    problems.push_back(*std::move(problem));
  }
  return problems;
}

}  // namespace warpline

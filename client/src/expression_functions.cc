#include "client/src/expression_functions.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "kernels/map/operations.h"
#include "kernels/shape.h"
#include "kernels/status_macros.h"
#include "proto/rules/tensor_rules.h"

namespace warpline::client {
namespace {

using Sizes = std::vector<std::int64_t>;

Sizes SizesOf(const Shape& shape) { return {shape.dims.begin(), shape.dims.begin() + shape.rank}; }

// Adds the steps of one function.
class Composer {
 public:
  Composer(ExpressionProgram& program, std::size_t at, std::string what)
      : program_(program), at_(at), what_(std::move(what)) {}

  absl::StatusOr<TensorSpec> TypeOf(const std::string& x) const { return program_.TypeOf(at_, what_, x); }
  absl::Status Error(const std::string& text) const {
    return ColumnError(at_, absl::StrCat(what_, " ", text));
  }

  // Adds a step with these inputs, whose operation `set` sets, and returns its name.
  template <typename Set>
  absl::StatusOr<std::string> Step(const std::vector<std::string>& inputs, const char* operation, Set&& set) {
    v1::Step step;
    for (const std::string& input : inputs) step.add_inputs(input);
    set(step);
    ASSIGN_OR_RETURN(const Tree tree, program_.Add(at_, std::move(step), operation));
    return tree.name;
  }

  absl::StatusOr<std::string> Reshape(const std::string& x, const Sizes& sizes) {
    return Step({x}, "reshape", [&](v1::Step& step) {
      v1::ReshapeStep& reshape = *step.mutable_reshape();
      for (const std::int64_t size : sizes) reshape.add_shape(size);
    });
  }

  // The elements [from, end) along an axis.
  absl::StatusOr<std::string> Range(const std::string& x, int axis, std::int64_t from, std::int64_t end) {
    return Step({x}, "slice", [&](v1::Step& step) {
      v1::SliceStep& slice = *step.mutable_slice();
      slice.add_axes(axis);
      slice.add_starts(from);
      slice.add_ends(end);
    });
  }

  absl::StatusOr<std::string> Compress(const std::string& x, const std::string& mask) {
    return Step({x, mask}, "compress", [](v1::Step& step) { step.mutable_compress(); });
  }

  // Sorts along an axis, at least so far that these places have their elements.
  absl::StatusOr<std::string> Select(const std::string& x, int axis, const std::set<std::int64_t>& kth) {
    return Step({x}, "sort", [&](v1::Step& step) {
      step.mutable_sort()->set_axis(axis);
      for (const std::int64_t k : kth) step.mutable_sort()->add_kth(k);
    });
  }

  absl::StatusOr<Tree> Map(MapOp op, std::vector<Tree> operands) {
    return program_.Elementwise(at_, RowOf(op), std::move(operands));
  }
  absl::StatusOr<std::string> NameOf(const Tree& tree) { return program_.NameOf(tree); }
  Tree Named(const std::string& name) const { return {.at = at_, .name = name}; }
  Tree Number(double value) const { return {.at = at_, .real = value}; }
  ExpressionProgram& program() { return program_; }
  std::size_t at() const { return at_; }

 private:
  ExpressionProgram& program_;
  const std::size_t at_;
  const std::string what_;
};

// The operand of a function along one axis: all its elements in a row if no axis is given.
struct Rows {
  std::string x;
  int axis = 0;
  std::int64_t count = 0;  // of the axis
  DType dtype = DType::kF32;
  Sizes result;  // the shape of a result with one element for the axis
};

absl::StatusOr<Rows> RowsOf(Composer& make, const FunctionCall& call) {
  ASSIGN_OR_RETURN(const TensorSpec given, make.TypeOf(call.x));
  Rows rows{.x = call.x, .dtype = given.dtype};
  const int rank = given.shape.rank;
  Sizes kept = SizesOf(given.shape);
  if (call.axis.has_value()) {
    if (*call.axis < -rank || *call.axis >= rank) {
      return make.Error(absl::StrCat("has axis=", *call.axis, ", but its operand has ", rank, " axes"));
    }
    rows.axis = *call.axis < 0 ? *call.axis + rank : *call.axis;
    rows.count = kept[static_cast<std::size_t>(rows.axis)];
    kept[static_cast<std::size_t>(rows.axis)] = 1;
    rows.result = kept;
    if (!call.keepdims) rows.result.erase(rows.result.begin() + rows.axis);
  } else {
    ASSIGN_OR_RETURN(rows.x, make.Reshape(call.x, {-1}));
    rows.count = given.shape.Count();
    if (call.keepdims) rows.result.assign(kept.size(), 1);
  }
  if (rows.count == 0) return make.Error("of no elements has no value");
  return rows;
}

// Ends a function of `rows`: if an element is NaN, so is the result. `last` is behind all numbers of its row.
absl::StatusOr<Tree> OrNaN(Composer& make, const Rows& rows, const Tree& result, const std::string& last) {
  Tree all = result;
  if (IsFloat(rows.dtype)) {
    const Tree greatest = make.Named(last);
    ASSIGN_OR_RETURN(Tree is_nan, make.Map(MapOp::kIsNan, {greatest}));
    ASSIGN_OR_RETURN(all, make.Map(MapOp::kWhere, {std::move(is_nan), greatest, result}));
  }
  ASSIGN_OR_RETURN(const std::string name, make.NameOf(all));
  ASSIGN_OR_RETURN(const std::string shaped, make.Reshape(name, rows.result));
  return make.Named(shaped);
}

absl::StatusOr<Tree> Median(ExpressionProgram& program, const FunctionCall& call) {
  Composer make(program, call.at, "median");
  ASSIGN_OR_RETURN(const Rows rows, RowsOf(make, call));
  const std::int64_t low = (rows.count - 1) / 2, high = rows.count / 2, end = rows.count - 1;
  ASSIGN_OR_RETURN(const std::string ordered, make.Select(rows.x, rows.axis, {low, high, end}));
  ASSIGN_OR_RETURN(const std::string middle, make.Range(ordered, rows.axis, low, high + 1));
  ASSIGN_OR_RETURN(const std::string mean, make.Step({middle}, "mean", [&](v1::Step& step) {
    step.mutable_reduce()->set_op(v1::REDUCE_OP_MEAN);
    step.mutable_reduce()->add_axes(rows.axis);
    step.mutable_reduce()->set_keepdims(true);
  }));
  std::string last;
  if (IsFloat(rows.dtype)) {
    ASSIGN_OR_RETURN(last, make.Range(ordered, rows.axis, end, end + 1));
  }
  return OrNaN(make, rows, make.Named(mean), last);
}

// Interpolates linearly, from the nearer neighbour, as NumPy does.
absl::StatusOr<Tree> Quantile(ExpressionProgram& program, const FunctionCall& call) {
  Composer make(program, call.at, "quantile");
  if (!call.q.has_value()) return make.Error("lacks q, as in q=0.25");
  if (!(*call.q >= 0 && *call.q <= 1))
    return make.Error(absl::StrCat("has q=", *call.q, ": it is in [0, 1]"));
  ASSIGN_OR_RETURN(Rows rows, RowsOf(make, call));
  if (!IsFloat(rows.dtype)) {
    ASSIGN_OR_RETURN(rows.x, make.Step({rows.x}, "cast", [](v1::Step& step) {
      step.mutable_cast()->set_data_type(v1::DATA_TYPE_F64);
    }));
    rows.dtype = DType::kF64;
  }
  const double position = *call.q * static_cast<double>(rows.count - 1);
  const auto low = static_cast<std::int64_t>(position);
  const std::int64_t end = rows.count - 1, high = std::min(low + 1, end);
  const double weight = position - static_cast<double>(low);
  ASSIGN_OR_RETURN(const std::string ordered, make.Select(rows.x, rows.axis, {low, high, end}));
  ASSIGN_OR_RETURN(const std::string lower, make.Range(ordered, rows.axis, low, low + 1));
  ASSIGN_OR_RETURN(const std::string upper, make.Range(ordered, rows.axis, high, high + 1));
  ASSIGN_OR_RETURN(const std::string last, make.Range(ordered, rows.axis, end, end + 1));
  const Tree a = make.Named(lower), b = make.Named(upper);
  ASSIGN_OR_RETURN(Tree distance, make.Map(MapOp::kSubtract, {b, a}));
  const bool near_low = weight < 0.5;
  ASSIGN_OR_RETURN(Tree part, make.Map(MapOp::kMultiply,
                                       {std::move(distance), make.Number(near_low ? weight : 1 - weight)}));
  ASSIGN_OR_RETURN(Tree between,
                   make.Map(near_low ? MapOp::kAdd : MapOp::kSubtract, {near_low ? a : b, std::move(part)}));
  // Infinite neighbours that are equal have no distance.
  ASSIGN_OR_RETURN(Tree equal, make.Map(MapOp::kEqual, {a, b}));
  ASSIGN_OR_RETURN(const Tree result, make.Map(MapOp::kWhere, {std::move(equal), a, std::move(between)}));
  return OrNaN(make, rows, result, last);
}

absl::StatusOr<Tree> Cumulative(ExpressionProgram& program, const FunctionCall& call, const char* what,
                                v1::ScanOp op) {
  Composer make(program, call.at, what);
  std::string x = call.x;
  if (!call.axis.has_value()) {
    ASSIGN_OR_RETURN(x, make.Reshape(x, {-1}));
  }
  ASSIGN_OR_RETURN(const std::string sums, make.Step({x}, what, [&](v1::Step& step) {
    step.mutable_scan()->set_op(op);
    step.mutable_scan()->set_axis(call.axis.value_or(0));
  }));
  return make.Named(sums);
}
absl::StatusOr<Tree> Cumsum(ExpressionProgram& program, const FunctionCall& call) {
  return Cumulative(program, call, "cumsum", v1::SCAN_OP_SUM);
}
absl::StatusOr<Tree> Cumprod(ExpressionProgram& program, const FunctionCall& call) {
  return Cumulative(program, call, "cumprod", v1::SCAN_OP_PROD);
}

absl::StatusOr<Tree> Nonzero(ExpressionProgram& program, const FunctionCall& call) {
  Composer make(program, call.at, "nonzero");
  ASSIGN_OR_RETURN(const TensorSpec x, make.TypeOf(call.x));
  const int rank = x.shape.rank;
  if (rank != 1 && !call.axis.has_value()) {
    return make.Error(
        absl::StrCat("lacks axis, as its operand has ", rank, " axes: axis=0 gives the places along it"));
  }
  const int axis = call.axis.value_or(0);
  if (axis < -rank || axis >= rank) {
    return make.Error(absl::StrCat("has axis=", axis, ", but its operand has ", rank, " axes"));
  }
  std::string mask = call.x;
  if (x.dtype != DType::kBool) {
    ASSIGN_OR_RETURN(const Tree differs,
                     make.Map(MapOp::kNotEqual, {make.Named(call.x), Tree{.at = call.at, .integer = 0}}));
    ASSIGN_OR_RETURN(mask, make.NameOf(differs));
  }
  ASSIGN_OR_RETURN(const std::string places, make.Step({}, "index", [&](v1::Step& step) {
    v1::MapNode& node = *step.mutable_map()->add_nodes();
    node.set_op(v1::MAP_OP_INDEX);
    node.set_data_type(v1::DATA_TYPE_I64);
    node.set_integer(axis < 0 ? axis + rank : axis);
    for (const std::int64_t size : SizesOf(x.shape)) step.mutable_map()->add_shape(size);
  }));
  ASSIGN_OR_RETURN(const std::string found, make.Compress(places, mask));
  return make.Named(found);
}

absl::StatusOr<Tree> Unique(ExpressionProgram& program, const FunctionCall& call) {
  Composer make(program, call.at, "unique");
  ASSIGN_OR_RETURN(const TensorSpec x, make.TypeOf(call.x));
  ASSIGN_OR_RETURN(const std::string row, make.Reshape(call.x, {-1}));
  ASSIGN_OR_RETURN(const std::string ordered, make.Select(row, 0, {}));
  if (x.shape.Count() < 2) return make.Named(ordered);
  ASSIGN_OR_RETURN(const std::string before, make.Range(ordered, 0, 0, -1));
  ASSIGN_OR_RETURN(const std::string after, make.Range(ordered, 0, 1, x.shape.Count()));
  ASSIGN_OR_RETURN(Tree differs, make.Map(MapOp::kNotEqual, {make.Named(before), make.Named(after)}));
  if (IsFloat(x.dtype)) {  // all NaN are one
    ASSIGN_OR_RETURN(Tree is_nan, make.Map(MapOp::kIsNan, {make.Named(before)}));
    ASSIGN_OR_RETURN(Tree is_number, make.Map(MapOp::kLogicalNot, {std::move(is_nan)}));
    ASSIGN_OR_RETURN(differs, make.Map(MapOp::kLogicalAnd, {std::move(differs), std::move(is_number)}));
  }
  ASSIGN_OR_RETURN(const std::string others, make.NameOf(differs));
  ASSIGN_OR_RETURN(const std::string first,
                   program.Constant(Tree{.at = call.at, .integer = 1}, DType::kBool, Sizes{1}));
  ASSIGN_OR_RETURN(const std::string mask,
                   make.Step({first, others}, "concat", [](v1::Step& step) { step.mutable_concat(); }));
  ASSIGN_OR_RETURN(const std::string found, make.Compress(ordered, mask));
  return make.Named(found);
}

constexpr FunctionRow kFunctions[] = {
    {"median", "median(x)", "axis: a number (default: of all elements), keepdims = false", "axis, keepdims",
     Median},
    {"quantile", "quantile(x)", "q: a number in [0, 1], which must be given; axis and keepdims as of median",
     "q, axis, keepdims", Quantile},
    {"cumsum", "cumsum(x)", "axis: a number (default: x in one row)", "axis", Cumsum},
    {"cumprod", "cumprod(x)", "as cumsum, of products", "axis", Cumprod},
    {"nonzero", "nonzero(x)",
     "the places of elements that are not 0, along axis: a number, which must be\n"
     "given if x has several; only as an output",
     "axis", Nonzero},
    {"unique", "unique(x)", "the different elements, sorted; only as an output", "", Unique},
};

}  // namespace

bool FunctionRow::Takes(std::string_view argument) const {
  const std::vector<std::string> names =
      absl::StrSplit(absl::string_view(arguments.data(), arguments.size()), ", ");
  return std::find(names.begin(), names.end(), argument) != names.end();
}

std::span<const FunctionRow> FunctionTable() { return kFunctions; }

const FunctionRow* FunctionNamed(std::string_view name) {
  const auto* const found = std::find_if(std::begin(kFunctions), std::end(kFunctions),
                                         [&](const FunctionRow& row) { return row.name == name; });
  return found == std::end(kFunctions) ? nullptr : found;
}

}  // namespace warpline::client

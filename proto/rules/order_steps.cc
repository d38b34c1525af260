#include "proto/rules/order_steps.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "kernels/field_error.h"
#include "kernels/status_macros.h"
#include "proto/rules/index_steps.h"
#include "proto/rules/known_fields.h"
#include "proto/rules/operand_checks.h"
#include "proto/rules/tensor_rules.h"
#include "proto/rules/views.h"

namespace warpline {
namespace {

// The data types of a scan: of x when the scan starts, of the kernel's computation, and of the result.
struct ScanTypes {
  DType converted, computed, result;
};

DType WideOf(DType dtype) {
  if (IsFloat(dtype)) return dtype == DType::kF64 ? dtype : DType::kF32;
  return IsUnsigned(dtype) ? DType::kU64 : DType::kI64;
}

absl::StatusOr<ScanTypes> CheckScanTypes(DType x, ScanOp op, v1::DataType given) {
  const bool is_order = op == ScanOp::kMin || op == ScanOp::kMax;
  const DType usual = is_order || IsComplex(x) ? x : DefaultOutDType(ReduceOp::kSum, x);
  DType result = usual;
  if (given != v1::DATA_TYPE_UNSPECIFIED) {
    ASSIGN_OR_RETURN(result, CheckDataType("out_data_type", given));
  }
  const auto refused = [&](const std::string& why) {
    return FieldError("out_data_type", absl::StrCat(TypeName(result), ": ", why));
  };
  const std::string what = absl::StrCat("a running ", std::string(Name(op)), " of ", TypeName(x));
  if (is_order && result != x) return refused(absl::StrCat(what, " has its data type"));
  if (IsComplex(x) != IsComplex(result)) {
    return refused(absl::StrCat(what, IsComplex(x) ? " is" : " is no", " complex number"));
  }
  if (!is_order && (result == DType::kBool || !IsMapType(result))) {
    return refused("the result is a number of 8 bits or more, and not f8");
  }
  if (IsFloat(usual) && !IsFloat(result)) return refused(absl::StrCat(what, " is a floating-point number"));
  if (IsComplex(result)) return ScanTypes{result, result == DType::kC64 ? DType::kF32 : DType::kF64, result};
  // Sums and products modulo 2^64 are also correct modulo 2^bits, so integers are not narrowed first.
  const DType computed = WideOf(result);
  return ScanTypes{IsFloat(result) ? result : computed, computed, result};
}

absl::StatusOr<ScanOp> CheckScanOp(v1::ScanOp op) {
  static_assert(static_cast<int>(ScanOp::kSum) + 1 == v1::SCAN_OP_SUM);
  static_assert(static_cast<int>(ScanOp::kMax) + 1 == v1::SCAN_OP_MAX);
  if (op >= v1::SCAN_OP_SUM && op <= v1::SCAN_OP_MAX) return kAllScanOps[op - 1];
  return UnknownNumber("op", op, "sum (1), prod (2), min (3), max (4)");
}

absl::StatusOr<Operand> Converted(const Operand& x, DType dtype, EmitStep emit) {
  if (x.dtype == dtype) return x;
  ASSIGN_OR_RETURN(Operand converted, emit(CastOf(x, dtype), "", -1));
  converted.field = x.field;
  return converted;
}

// Returns x as a dense tensor. Bools are first cast to 0 or 1: any nonzero byte is true, but sorts compare
// bytes.
absl::StatusOr<Operand> DenseKeys(const Operand& x, EmitStep emit) {
  if (x.dtype != DType::kBool) return Dense(x, emit);
  ASSIGN_OR_RETURN(Operand keys, emit(CastOf(x, DType::kBool), "", -1));
  keys.field = x.field;
  return keys;
}

// Clamps the result of an exclusive minimum or maximum, which was computed in a wider type, to the range of
// `dtype`. Without this, elements with no predecessor would be the greatest or least number of the wider
// type.
absl::StatusOr<Operand> WithinType(const Operand& x, ScanOp op, DType dtype, EmitStep emit) {
  const int bits = 8 * static_cast<int>(SizeOf(dtype)) - 1;
  const std::int64_t greatest = (std::int64_t{1} << bits) - 1;
  v1::MapStep map;
  v1::MapNode& limit = *map.add_nodes();
  limit.set_op(v1::MAP_OP_CONSTANT);
  limit.set_data_type(ToProto(x.dtype));
  limit.set_integer(op == ScanOp::kMin ? greatest : dtype == DType::kBool ? 0 : -greatest - 1);
  v1::MapNode& limited = *map.add_nodes();
  limited.set_op(op == ScanOp::kMin ? v1::MAP_OP_MINIMUM : v1::MAP_OP_MAXIMUM);
  limited.add_operands(0);
  limited.add_operands(1);
  ASSIGN_OR_RETURN(ConvertedStep converted,
                   ConvertMap({&x}, map, [](const char*, double) { return Scalar{}; }));
  return emit(std::move(converted), "", -1);
}

// How to sort along an axis, and what to return.
struct SortOptions {
  std::int32_t axis = -1;
  std::optional<std::int64_t> taken;  // number of elements to return; not set: all
  bool descending = false, nan_first = false;
  bool values = true, indices = false;
  absl::Span<const std::int64_t> kth = {};  // as in SortStep
};

// Checks the places of a selection, and puts them into the problem in ascending order, each once.
absl::Status SetKth(absl::Span<const std::int64_t> given, SortProblem& problem) {
  if (given.size() > SortProblem::kMaxKth) {
    return FieldError("kth", absl::StrCat(given.size(), " places; at most ", SortProblem::kMaxKth,
                                          " are selected in one step"));
  }
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (given[i] < 0 || given[i] >= problem.taken) {
      return FieldError(absl::StrCat("kth[", i, "]"), absl::StrCat(given[i], " is outside of [0, ",
                                                                   problem.taken, "), the size of the axis"));
    }
  }
  const auto end = std::copy(given.begin(), given.end(), problem.kth.begin());
  std::sort(problem.kth.begin(), end);
  const auto last = std::unique(problem.kth.begin(), end);
  std::fill(last, end, 0);
  problem.kth_count = static_cast<std::size_t>(last - problem.kth.begin());
  return absl::OkStatus();
}

// Sorts run along the last axis. Another axis is moved there first, and moved back in a view.
absl::StatusOr<StepResults> SortedBy(const Operand& x, const SortOptions& options, std::string_view what,
                                     const std::string& variant, EmitStep emit) {
  RETURN_IF_ERROR(CheckTakes(x, what, IsReal));
  ASSIGN_OR_RETURN(const int axis, CheckAxis("axis", options.axis, x.shape.rank));
  const int last = x.shape.rank - 1;
  Perm perm{}, back{};
  for (int i = 0; i <= last; ++i) {
    const int from = i < axis ? i : i < last ? i + 1 : axis;
    perm[static_cast<std::size_t>(i)] = static_cast<std::int8_t>(from);
    back[static_cast<std::size_t>(from)] = static_cast<std::int8_t>(i);
  }
  ASSIGN_OR_RETURN(const Operand rows, DenseKeys(PermuteView(x, perm), emit));
  SortProblem problem{.dtype = x.dtype,
                      .rows = 1,
                      .count = rows.shape[last],
                      .taken = options.taken.value_or(rows.shape[last]),
                      .descending = options.descending,
                      .nan_first = options.nan_first,
                      .values = options.values,
                      .indices = options.indices};
  RETURN_IF_ERROR(SetKth(options.kth, problem));
  for (int i = 0; i < last; ++i) problem.rows *= rows.shape[i];
  Shape shape = rows.shape;
  shape[last] = problem.taken;
  ConvertedStep converted;
  const DType first = options.values ? x.dtype : DType::kI64;
  ASSIGN_OR_RETURN(converted.output, DenseResult(x.field + ".shape", first, shape));
  if (options.values && options.indices) {
    ASSIGN_OR_RETURN(const TensorSpec indices, DenseResult(x.field + ".shape", DType::kI64, shape));
    converted.further.push_back(indices);
  }
  const std::vector<TensorSpec> further = converted.further;
  converted.step.problem = problem;
  Read(rows, converted.step);
  ASSIGN_OR_RETURN(const Operand own, emit(std::move(converted), variant, -1));
  StepResults results{.own = PermuteView(own, back)};
  if (!further.empty()) {
    results.further = PermuteView(DenseOperand("", own.tensor + 1, further[0]), back);
  }
  return results;
}

}  // namespace

absl::StatusOr<Operand> ScanSteps(const Operand& x, const v1::ScanStep& scan, const std::string& variant,
                                  EmitStep emit) {
  RETURN_IF_ERROR(CheckTakes(x, "scan", IsMapType));
  ASSIGN_OR_RETURN(const ScanOp op, CheckScanOp(scan.op()));
  ASSIGN_OR_RETURN(const int axis, CheckAxis("axis", scan.axis(), x.shape.rank));
  if (IsComplex(x.dtype) && op != ScanOp::kSum) {
    const std::string name(Name(op));
    if (op != ScanOp::kProd) {
      return FieldError("op", absl::StrCat("complex numbers have no order, so there is no running ", name));
    }
    return absl::Status(
        InField("op", absl::UnimplementedError("running products of complex numbers are not implemented")));
  }
  ASSIGN_OR_RETURN(const ScanTypes types, CheckScanTypes(x.dtype, op, scan.out_data_type()));
  ASSIGN_OR_RETURN(const Operand given, Converted(x, types.converted, emit));
  Operand wide = given;
  if (!IsComplex(types.result)) {
    ASSIGN_OR_RETURN(wide, Converted(given, types.computed, emit));
  }
  ASSIGN_OR_RETURN(const Operand dense, Dense(wide, emit));
  ScanProblem problem{.op = op,
                      .dtype = types.computed,
                      .outer = 1,
                      .count = x.shape[axis],
                      .inner = IsComplex(types.result) ? 2 : 1,  // real and imaginary parts
                      .exclusive = scan.exclusive(),
                      .reverse = scan.reverse()};
  for (int i = 0; i < x.shape.rank; ++i) {
    if (i < axis) problem.outer *= x.shape[i];
    if (i > axis) problem.inner *= x.shape[i];
  }
  ConvertedStep converted;
  ASSIGN_OR_RETURN(converted.output, DenseResult(x.field + ".shape", dense.dtype, x.shape));
  converted.step.problem = problem;
  Read(dense, converted.step);
  ASSIGN_OR_RETURN(Operand result, emit(std::move(converted), variant, -1));
  const bool has_wider_limits = IsSigned(types.result) || types.result == DType::kBool;
  if (scan.exclusive() && (op == ScanOp::kMin || op == ScanOp::kMax) && result.dtype != types.result &&
      has_wider_limits) {
    result.field = x.field;
    ASSIGN_OR_RETURN(result, WithinType(result, op, types.result, emit));
  }
  return Converted(result, types.result, emit);
}

absl::StatusOr<StepResults> SortSteps(const Operand& x, const v1::SortStep& sort, const std::string& variant,
                                      EmitStep emit) {
  return SortedBy(x,
                  {.axis = sort.axis(),
                   .taken = {},
                   .descending = sort.descending(),
                   .indices = !sort.indices().empty(),
                   .kth = sort.kth()},
                  "sort", variant, emit);
}

absl::StatusOr<Operand> ArgsortSteps(const Operand& x, const v1::ArgsortStep& argsort,
                                     const std::string& variant, EmitStep emit) {
  ASSIGN_OR_RETURN(const StepResults results, SortedBy(x,
                                                       {.axis = argsort.axis(),
                                                        .taken = {},
                                                        .descending = argsort.descending(),
                                                        .values = false,
                                                        .indices = true,
                                                        .kth = argsort.kth()},
                                                       "argsort", variant, emit));
  return results.own;
}

absl::StatusOr<StepResults> TopkSteps(const Operand& x, const v1::TopkStep& topk, const std::string& variant,
                                      EmitStep emit) {
  if (x.shape.rank == 0) return FieldError(x.field + ".shape", "rank 0; at least 1 is needed");
  const std::int64_t size = x.shape[x.shape.rank - 1];
  if (topk.k() < 1 || topk.k() > size) {
    return FieldError("k",
                      absl::StrCat(topk.k(), " is outside of [1, ", size, "], the size of the last axis"));
  }
  return SortedBy(x,
                  {.axis = -1,
                   .taken = topk.k(),
                   .descending = !topk.smallest(),
                   .nan_first = !topk.smallest(),
                   .indices = !topk.indices().empty()},
                  "topk", variant, emit);
}

absl::StatusOr<Operand> SearchsortedSteps(const Operand& x1, const Operand& x2, const Operand* sorter,
                                          const v1::SearchsortedStep& search, const std::string& variant,
                                          EmitStep emit) {
  RETURN_IF_ERROR(CheckTakes(x1, "searchsorted", IsReal));
  RETURN_IF_ERROR(CheckSameType(x2, x1.dtype, x1.field));
  if (x1.shape.rank != 1) {
    return FieldError(x1.field + ".shape", absl::StrCat("rank ", x1.shape.rank, "; a vector is needed"));
  }
  SearchProblem problem{.dtype = x1.dtype,
                        .count = x1.shape[0],
                        .needles = x2.shape.Count(),
                        .right = search.right(),
                        .has_sorter = sorter != nullptr};
  ConvertedStep converted;
  ASSIGN_OR_RETURN(converted.output, DenseResult(x2.field + ".shape", DType::kI64, x2.shape));
  ASSIGN_OR_RETURN(const Operand sorted, DenseKeys(x1, emit));
  ASSIGN_OR_RETURN(const Operand needles, DenseKeys(x2, emit));
  Read(sorted, converted.step);
  Read(needles, converted.step);
  if (sorter != nullptr) {
    RETURN_IF_ERROR(CheckIndices(*sorter));
    if (sorter->shape != x1.shape) {
      return FieldError(sorter->field + ".shape", absl::StrCat(ToString(sorter->shape), ", but ", x1.field,
                                                               " is ", ToString(x1.shape)));
    }
    problem.sorter_dtype = sorter->dtype;
    ASSIGN_OR_RETURN(const Operand places, Dense(*sorter, emit));
    Read(places, converted.step);
  }
  converted.step.problem = problem;
  return emit(std::move(converted), variant, -1);
}

}  // namespace warpline

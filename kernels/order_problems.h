// Problems that depend on the order of elements along an axis: scans and sorting.
//
// Real numbers are ordered as in the Python array API standard: -0 equals +0, and every NaN comes after all
// numbers.
#ifndef WARPLINE_KERNELS_ORDER_PROBLEMS_H_
#define WARPLINE_KERNELS_ORDER_PROBLEMS_H_

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/dtype.h"

namespace warpline {

enum class ScanOp : std::uint8_t { kSum, kProd, kMin, kMax };
inline constexpr std::array kAllScanOps = {ScanOp::kSum, ScanOp::kProd, ScanOp::kMin, ScanOp::kMax};
constexpr std::string_view Name(ScanOp op) {
  constexpr std::array<std::string_view, kAllScanOps.size()> kNames = {"sum", "prod", "min", "max"};
  return kNames[static_cast<std::size_t>(op)];
}

// The types that scans compute in. Other types are cast before and after.
constexpr bool IsScanType(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF64 || dtype == DType::kI64 || dtype == DType::kU64;
}

// A scan along the middle axis of a dense array [outer, count, inner]. y[i] combines x[0] to x[i], or, if
// exclusive, the elements before x[i]. Reverse: starts at the end. Sums and products of integers are modulo
// 2^64. For minimum and maximum, NaN wins over all numbers.
struct ScanProblem {
  ScanOp op = ScanOp::kSum;
  DType dtype = DType::kF32;  // of x and y: IsScanType
  std::int64_t outer = 1, count = 1, inner = 1;
  bool exclusive = false, reverse = false;

  friend bool operator==(const ScanProblem&, const ScanProblem&) = default;
};

// Sorts the rows of a dense matrix, or takes the first `taken` elements of each sorted row. Equal elements
// keep their order. The results are the elements, or their positions in the row as i64, or both in this
// order. With places in `kth`, rows need be sorted only so far that these have the elements of a sorted row,
// and all elements before one of them come before it in that order. Each sorted row meets this.
struct SortProblem {
  static constexpr std::size_t kMaxKth = 16;

  DType dtype = DType::kF32;  // IsReal
  std::int64_t rows = 1, count = 1, taken = 1;
  bool descending = false;
  bool nan_first = false;  // otherwise NaN comes last, in either order
  bool values = true, indices = false;
  std::array<std::int64_t, kMaxKth> kth = {};  // the first kth_count are used: they ascend, below `taken`
  std::size_t kth_count = 0;

  int ResultCount() const { return (values ? 1 : 0) + (indices ? 1 : 0); }
  std::span<const std::int64_t> Kth() const { return std::span(kth).first(kth_count); }
  friend bool operator==(const SortProblem&, const SortProblem&) = default;
};

// For each element of `x2`, returns the position in the sorted vector x1 where it would be inserted, as i64.
// That is before all equal elements, or after them. With a sorter, the elements x1[sorter[i]] are sorted; its
// indices are as in TakeProblem.
struct SearchProblem {
  DType dtype = DType::kF32;  // of x1 and x2: IsReal
  std::int64_t count = 1;     // of x1
  std::int64_t needles = 1;   // of x2
  bool right = false;         // after equal elements
  bool has_sorter = false;
  DType sorter_dtype = DType::kI64;

  friend bool operator==(const SearchProblem&, const SearchProblem&) = default;
};

}  // namespace warpline

#endif  // WARPLINE_KERNELS_ORDER_PROBLEMS_H_

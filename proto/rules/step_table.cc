#include "proto/rules/step_table.h"

#include <algorithm>

namespace warpline {
namespace {

using v1::Step;

constexpr StepRow kRows[] = {
    {Step::kTranspose, "transpose", StepKind::kView, 1, "transpose(x)",
     "perm = [] (axis i of the result is axis perm[i] of x; []: swap the last two)"},
    {Step::kGemm, "gemm", StepKind::kKernel, 2, "gemm(a, b)",
     "activation(alpha * op(a) * op(b) + beta * c + bias)\n"
     "trans_a = false, trans_b = false, alpha = 1, beta = 0 (1 with c), c: a matrix,\n"
     "bias: a vector, activation = none (relu, gelu), precision = ieee (tf32),\n"
     "out_dtype: TYPE of the result (default: what the operands give)"},
    {Step::kReduce, "reduce", StepKind::kKernel, 1, "reduce(x)",
     "op: NAME, which must be given; axes = [] (all), keepdims = false,\n"
     "ddof = 0 (of var and std: divide by n - ddof), out_dtype: TYPE as of gemm.\n"
     "sum(x), mean(x, axis=0) and so on: reduce with this op; axis is another name of axes",
     "op", "op=sum"},
    {Step::kCast, "cast", StepKind::kElementwise, 1, "cast(x)", "dtype: TYPE, which must be given",
     "data_type", "dtype=f32"},
    {Step::kScale, "scale", StepKind::kElementwise, 1, "scale(x)", "factor: a number, which must be given",
     "factor", "factor=0.5"},
    {Step::kAdd, "add", StepKind::kElementwise, 2, "add(x, y)", "the sum, as x + y"},
    {Step::kMap, "map", StepKind::kElementwise, kAnyNumber, "", ""},  // expressions have operators and names
    {Step::kReshape, "reshape", StepKind::kView, 1, "reshape(x)",
     "shape: the sizes, which must be given; one of them may be -1", "shape", "shape=[2,-1]"},
    {Step::kSlice, "slice", StepKind::kView, 1, "slice(x)",
     "starts = [], ends = [] ([]: from one end to the other; those below 0 count from the end),\n"
     "axes = [] (the first ones), steps = [] (1)"},
    {Step::kBroadcastTo, "broadcast_to", StepKind::kView, 1, "broadcast_to(x)",
     "shape: the sizes, which must be given", "shape", "shape=[4,3]"},
    {Step::kDiagonal, "diagonal", StepKind::kView, 1, "diagonal(x)", "offset = 0, axis1 = -2, axis2 = -1"},
    {Step::kConcat, "concat", StepKind::kKernel, kAnyNumber, "concat(x, y, ...)", "axis = 0"},
    {Step::kTake, "take", StepKind::kSteps, 2, "take(x, i)", "axis = 0; i: indices of type i32 or i64"},
    {Step::kTakeAlongAxis, "take_along_axis", StepKind::kSteps, 2, "take_along_axis(x, i)",
     "axis = 0; i: indices of as many axes as x"},
    {Step::kPutAlongAxis, "put_along_axis", StepKind::kSteps, 3, "put_along_axis(x, i, values)",
     "axis = 0: a copy of x with values where indices say"},
    {Step::kScan, "scan", StepKind::kSteps, 1, "scan(x)",
     "op: sum, prod, min or max, which must be given; axis = -1, exclusive = false,\n"
     "reverse = false, out_dtype: TYPE as of gemm",
     "op", "op=sum"},
    {Step::kSort, "sort", StepKind::kSteps, 1, "sort(x)",
     "axis = -1, descending = false, indices: a name for the places of the sorted elements,\n"
     "kth = [] (at most 16 places that must have their elements; the others are in any order)"},
    {Step::kArgsort, "argsort", StepKind::kSteps, 1, "argsort(x)",
     "axis = -1, descending = false, kth = [] (as of sort)"},
    {Step::kTopk, "topk", StepKind::kSteps, 1, "topk(x)",
     "k: how many of the last axis, which must be given; smallest = false,\n"
     "indices: a name as of sort, as in 'v = topk(x, k=3, indices=i)' with -o v=V.npy -o i=I.npy",
     "k", "k=10"},
    {Step::kSearchsorted, "searchsorted", StepKind::kSteps, 2, "searchsorted(x1, x2)",
     "right = false, sorter: the places that sort x1"},
    {Step::kSetSlice, "set_slice", StepKind::kCopies, 2, "set_slice(x, values)",
     "a copy of x with values in the elements that slice takes by the same fields:\n"
     "starts = [], ends = [], axes = [], steps = []"},
    {Step::kCompress, "compress", StepKind::kSteps, 2, "compress(x, mask)",
     "the elements for which the mask is true; only as an output"},
    {Step::kRoll, "roll", StepKind::kCopies, 1, "roll(x)",
     "shifts: a number for each of axes = [] ([]: x in one row, by one number); must be given", "shifts",
     "shifts=[1]"},
    {Step::kTile, "tile", StepKind::kCopies, 1, "tile(x)",
     "counts: a number for each of the last axes, which must be given", "counts", "counts=[2]"},
    {Step::kRepeat, "repeat", StepKind::kCopies, 1, "repeat(x)",
     "count: how often each element comes, which must be given;\n"
     "axis: a number (default: x in one row)",
     "count", "count=2"},
    {Step::kPad, "pad", StepKind::kCopies, 1, "pad(x)",
     "before = [], after = [] (a number for each of axes = [], which are the first ones),\n"
     "values: an array of what is added (default: zeros)"},
};

}  // namespace

std::span<const StepRow> StepTable() { return kRows; }

const StepRow* RowOf(const v1::Step& step) {
  const auto* const found = std::find_if(std::begin(kRows), std::end(kRows), [&](const StepRow& row) {
    return row.operation == step.operation_case();
  });
  return found == std::end(kRows) ? nullptr : found;
}

const StepRow* StepNamed(std::string_view name) {
  const auto* const found =
      std::find_if(std::begin(kRows), std::end(kRows), [&](const StepRow& row) { return row.name == name; });
  return found == std::end(kRows) ? nullptr : found;
}

}  // namespace warpline

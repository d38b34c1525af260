// Names of problems in tables and in the JSON.
#ifndef WARPLINE_KERNELS_BENCH_REPORT_LABELS_H_
#define WARPLINE_KERNELS_BENCH_REPORT_LABELS_H_

#include <optional>
#include <string>
#include <string_view>

#include "kernels/map/pair.h"
#include "kernels/problem.h"

namespace warpline::bench {

// The cast, product or sum that a problem is, if it is one.
std::optional<PairMap> PairIn(const Problem& problem);
// "transpose", "gemm", "reduce", "cast", "scale", "add" or "map"
std::string_view OpName(const Problem& problem);
// Type of the inputs; "tf32" for products of that precision.
std::string_view TypeName(const Problem& problem);
// "8192x8192", "2048x2048x2048" (m, n, k)
std::string ShapeName(const Problem& problem);
// "all", "0" or "0,2"; empty but for reductions
std::string AxesName(const Problem& problem);
// The axes of the input in the order of the output, as in "1,0". Empty except for transpositions.
std::string PermName(const Problem& problem);
// "reduce f32 16384x16384 axis 0", "transpose u8 8x4x3 perm 2,0,1". Whatever is not said is the plainest: a
// sum, the reversal of two axes, a product without batch and epilogue, a result of the type of the inputs.
std::string Label(const Problem& problem);

}  // namespace warpline::bench

#endif  // WARPLINE_KERNELS_BENCH_REPORT_LABELS_H_

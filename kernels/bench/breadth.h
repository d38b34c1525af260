// The problems that users send, beyond the ladders' squares: of each the server's own choice is measured.
#ifndef WARPLINE_KERNELS_BENCH_BREADTH_H_
#define WARPLINE_KERNELS_BENCH_BREADTH_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/bench/cases.h"

namespace warpline::bench {

// One line of the table: the operation, the type, the shape, and what there is to say beyond:
//   transpose f32 64x2048x2048 0,2,1              the axes of the input in the order of the output
//   sum bf16 256x512x512 0,2                      a reduction, with the axes it reduces, or "all"
//   gemm bf16 4096x4096x64 nt x64 bias gelu >f32  m, n and k; transposed operands, batch, epilogue, result
//   cast u8 8192x8192 >f32                        the type of the result
//   add f32 8192x8192 *0                          axes along which the second operand is broadcast
// Throws Failure for what is not of this form.
Problem ParseProblem(std::string_view line);

std::span<const std::string_view> BreadthLines();

// The lines of these operations ("transpose", "gemm", "reduce", "elementwise"; empty: all).
std::vector<Case> BreadthCases(std::span<const std::string> ops);

}  // namespace warpline::bench

#endif  // WARPLINE_KERNELS_BENCH_BREADTH_H_

// Lists kernels that read an operand twice and rely on it not changing in between.
#ifndef WARPLINE_KERNELS_READS_TWICE_H_
#define WARPLINE_KERNELS_READS_TWICE_H_

#include "kernels/problem.h"

namespace warpline {

// True if CUDA kernels of the operation would read or write out of bounds if an operand changed while they
// run:
//
// - compress counts the selected rows of the mask, and numbers them in another kernel (take/compress.cu);
// - sort lets CUB make a histogram of the keys of x, and move them in another kernel (sort/radix.cu,
// `direct`).
//
// A client can change its shared memory at any time. So these operations never run directly on operands in
// shared memory (ChoosePath): the operands are copied to the device first. Add other kernels of this kind
// here.
constexpr bool ReadsTwice(Op op) { return op == Op::kCompress || op == Op::kSort; }

}  // namespace warpline

#endif  // WARPLINE_KERNELS_READS_TWICE_H_

// The implementations of the rows in cpu_variants.cc, one per source file.
#ifndef WARPLINE_KERNELS_CPU_LAUNCHERS_H_
#define WARPLINE_KERNELS_CPU_LAUNCHERS_H_

#include <cstddef>

#include "kernels/problem.h"
#include "kernels/variant.h"

namespace warpline::cpu {

void TransposeEigen(const TransposeProblem& problem, const Operands& operands);
void TransposeReference(const TransposeProblem& problem, const Operands& operands);

// Supports f32, f64, c64 and c128, with sizes that fit into BLAS's 32-bit integers.
bool GemmOpenblasSupports(const GemmProblem& problem, const DeviceTraits& traits);
void GemmOpenblas(const GemmProblem& problem, const Operands& operands);

// Supports every gemm. The workspace is a few cache blocks, for any size of the problem.
std::size_t GemmEigenWorkspaceBytes(const GemmProblem& problem, const DeviceTraits& traits);
void GemmEigen(const GemmProblem& problem, const Operands& operands);
void GemmReference(const GemmProblem& problem, const Operands& operands);

// ReduceEigen supports sum, mean, min and max of floats and integers, if the result has its default type, but
// for the mean of integers of 64 bits.
bool ReduceEigenSupportsDType(DType dtype);
bool ReduceEigenSupports(const ReduceProblem& problem, const DeviceTraits& traits);
void ReduceEigen(const ReduceProblem& problem, const Operands& operands);
bool ReducePassesSupports(const ReduceProblem& problem, const DeviceTraits& traits);
void ReducePasses(const ReduceProblem& problem, const Operands& operands);
void ReduceReference(const ReduceProblem& problem, const Operands& operands);

// Supports every map. The workspace is a few blocks for each live value, for any size of the problem.
std::size_t MapBlocksWorkspaceBytes(const MapProblem& problem, const DeviceTraits& traits);
void MapBlocks(const MapProblem& problem, const Operands& operands);

// Indices out of range are reported before anything is written.
void Take(const TakeProblem& problem, const Operands& operands);
void Put(const PutProblem& problem, const Operands& operands);
void Search(const SearchProblem& problem, const Operands& operands);
void Compress(const CompressProblem& problem, const Operands& operands);

void Scan(const ScanProblem& problem, const Operands& operands);

// The workspace holds the keys of one row, or of its selected elements.
std::size_t SortWorkspaceBytes(const SortProblem& problem, const DeviceTraits& traits);
void Sort(const SortProblem& problem, const Operands& operands);

}  // namespace warpline::cpu

#endif  // WARPLINE_KERNELS_CPU_LAUNCHERS_H_

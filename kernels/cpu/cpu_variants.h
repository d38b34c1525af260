// The variant tables of the CPU backend.
#ifndef WARPLINE_KERNELS_CPU_CPU_VARIANTS_H_
#define WARPLINE_KERNELS_CPU_CPU_VARIANTS_H_

#include <span>

#include "kernels/variant.h"

namespace warpline {

// A launcher. It runs to completion, only on the calling thread.
template <typename ProblemT>
using CpuLaunch = void(const ProblemT&, const Operands&);
template <typename ProblemT>
using CpuVariant = Variant<ProblemT, CpuLaunch<ProblemT>>;

std::span<const CpuVariant<TransposeProblem>> CpuTransposeVariants();
std::span<const CpuVariant<GemmProblem>> CpuGemmVariants();
std::span<const CpuVariant<ReduceProblem>> CpuReduceVariants();
std::span<const CpuVariant<MapProblem>> CpuMapVariants();
std::span<const CpuVariant<TakeProblem>> CpuTakeVariants();
std::span<const CpuVariant<PutProblem>> CpuPutVariants();
std::span<const CpuVariant<ScanProblem>> CpuScanVariants();
std::span<const CpuVariant<SortProblem>> CpuSortVariants();
std::span<const CpuVariant<SearchProblem>> CpuSearchVariants();
std::span<const CpuVariant<CompressProblem>> CpuCompressVariants();

// Returns the table for a type of problem.
inline auto CpuTable(const TransposeProblem&) { return CpuTransposeVariants(); }
inline auto CpuTable(const GemmProblem&) { return CpuGemmVariants(); }
inline auto CpuTable(const ReduceProblem&) { return CpuReduceVariants(); }
inline auto CpuTable(const MapProblem&) { return CpuMapVariants(); }
inline auto CpuTable(const TakeProblem&) { return CpuTakeVariants(); }
inline auto CpuTable(const PutProblem&) { return CpuPutVariants(); }
inline auto CpuTable(const ScanProblem&) { return CpuScanVariants(); }
inline auto CpuTable(const SortProblem&) { return CpuSortVariants(); }
inline auto CpuTable(const SearchProblem&) { return CpuSearchVariants(); }
inline auto CpuTable(const CompressProblem&) { return CpuCompressVariants(); }

}  // namespace warpline

#endif  // WARPLINE_KERNELS_CPU_CPU_VARIANTS_H_

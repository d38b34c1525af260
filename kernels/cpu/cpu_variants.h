// The variant tables of the CPU backend.
#ifndef WARPLINE_KERNELS_CPU_CPU_VARIANTS_H_
#define WARPLINE_KERNELS_CPU_CPU_VARIANTS_H_

#include <span>

#include "kernels/variant.h"

namespace warpline {

// Runs to completion on the calling thread, and on that thread only.
template <typename ProblemT>
using CpuLaunch = void(const ProblemT&, const Operands&);
template <typename ProblemT>
using CpuVariant = Variant<ProblemT, CpuLaunch<ProblemT>>;

std::span<const CpuVariant<TransposeProblem>> CpuTransposeVariants();
std::span<const CpuVariant<GemmProblem>> CpuGemmVariants();
std::span<const CpuVariant<ReduceProblem>> CpuReduceVariants();
// One table for cast, scale and add.
std::span<const CpuVariant<MapProblem>> CpuMapVariants();

// From a problem's type to its table.
inline auto CpuTable(const TransposeProblem&) { return CpuTransposeVariants(); }
inline auto CpuTable(const GemmProblem&) { return CpuGemmVariants(); }
inline auto CpuTable(const ReduceProblem&) { return CpuReduceVariants(); }
inline auto CpuTable(const MapProblem&) { return CpuMapVariants(); }

}  // namespace warpline

#endif  // WARPLINE_KERNELS_CPU_CPU_VARIANTS_H_

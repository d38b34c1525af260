#include "kernels/cpu/cpu_variants.h"

#include <array>
#include <cstddef>

#include "kernels/cpu/launchers.h"

namespace warpline {
namespace {

constexpr bool AnyDType(DType) { return true; }
constexpr bool FloatDType(DType dtype) { return IsFloat(dtype); }
constexpr bool BlasDType(DType dtype) { return dtype == DType::kF32 || dtype == DType::kF64; }
constexpr bool ReduceDType(DType dtype) { return dtype != DType::kI64; }

template <typename ProblemT>
constexpr bool Always(const ProblemT&, const DeviceTraits&) {
  return true;
}
constexpr bool NotArgmax(const ReduceProblem& problem, const DeviceTraits&) {
  return problem.op != ReduceOp::kArgmax;
}

template <typename ProblemT>
constexpr std::size_t NoWorkspace(const ProblemT&, const DeviceTraits&) {
  return 0;
}

// Columns: name, summary, reproducible, supports_dtype, supports, workspace_bytes, launch. Every row runs one
// thread in a fixed order, so all are reproducible.
constexpr std::array kTranspose = {
    CpuVariant<TransposeProblem>{"eigen", "2-D blocks by Eigen, rows by memcpy", true, AnyDType,
                                 Always<TransposeProblem>, NoWorkspace<TransposeProblem>,
                                 cpu::TransposeEigen},
    CpuVariant<TransposeProblem>{"reference", "plain loops", true, AnyDType, Always<TransposeProblem>,
                                 NoWorkspace<TransposeProblem>, cpu::TransposeReference},
};

constexpr std::array kGemm = {
    CpuVariant<GemmProblem>{"openblas", "OpenBLAS, one thread; tf32 is computed in f32", true, BlasDType,
                            cpu::GemmOpenblasSupports, NoWorkspace<GemmProblem>, cpu::GemmOpenblas},
    CpuVariant<GemmProblem>{"eigen", "Eigen in f32 or f64; tf32 is computed in f32", true, FloatDType,
                            Always<GemmProblem>, cpu::GemmEigenWorkspaceBytes, cpu::GemmEigen},
    CpuVariant<GemmProblem>{"reference", "plain loops in f64", true, FloatDType, Always<GemmProblem>,
                            NoWorkspace<GemmProblem>, cpu::GemmReference},
};

constexpr std::array kReduce = {
    CpuVariant<ReduceProblem>{"eigen", "Eigen; f16, bf16 and f32 in f32, long sums in f64", true, ReduceDType,
                              NotArgmax, NoWorkspace<ReduceProblem>, cpu::ReduceEigen},
    CpuVariant<ReduceProblem>{"reference", "plain loops in f64", true, ReduceDType, Always<ReduceProblem>,
                              NoWorkspace<ReduceProblem>, cpu::ReduceReference},
};

}  // namespace

std::span<const CpuVariant<TransposeProblem>> CpuTransposeVariants() { return kTranspose; }
std::span<const CpuVariant<GemmProblem>> CpuGemmVariants() { return kGemm; }
std::span<const CpuVariant<ReduceProblem>> CpuReduceVariants() { return kReduce; }

}  // namespace warpline

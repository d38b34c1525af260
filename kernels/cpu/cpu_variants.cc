#include "kernels/cpu/cpu_variants.h"

#include <array>
#include <cstddef>

#include "kernels/cpu/launchers.h"

namespace warpline {
namespace {

constexpr bool AnyDType(DType) { return true; }
constexpr bool BlasDType(DType dtype) { return dtype == DType::kF32 || dtype == DType::kF64; }

template <typename ProblemT>
constexpr bool Always(const ProblemT&, const DeviceTraits&) {
  return true;
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
    CpuVariant<GemmProblem>{"eigen", "Eigen in f32, f64 or u32; tf32 is computed in f32", true, IsGemmInput,
                            Always<GemmProblem>, cpu::GemmEigenWorkspaceBytes, cpu::GemmEigen},
    CpuVariant<GemmProblem>{"reference", "plain loops in f64 or u32", true, IsGemmInput, Always<GemmProblem>,
                            NoWorkspace<GemmProblem>, cpu::GemmReference},
};

constexpr std::array kReduce = {
    CpuVariant<ReduceProblem>{"eigen", "Eigen; f16, bf16 and f32 in f32, long sums in f64", true,
                              cpu::ReduceEigenSupportsDType, cpu::ReduceEigenSupports,
                              NoWorkspace<ReduceProblem>, cpu::ReduceEigen},
    CpuVariant<ReduceProblem>{"reference", "plain loops in f64 or 64-bit integers", true, IsReal,
                              Always<ReduceProblem>, NoWorkspace<ReduceProblem>, cpu::ReduceReference},
};

constexpr std::array kElementwise = {
    CpuVariant<ElementwiseProblem>{"reference", "plain loops", true, IsReal, Always<ElementwiseProblem>,
                                   NoWorkspace<ElementwiseProblem>, cpu::ElementwiseReference},
};

}  // namespace

std::span<const CpuVariant<TransposeProblem>> CpuTransposeVariants() { return kTranspose; }
std::span<const CpuVariant<GemmProblem>> CpuGemmVariants() { return kGemm; }
std::span<const CpuVariant<ReduceProblem>> CpuReduceVariants() { return kReduce; }
std::span<const CpuVariant<ElementwiseProblem>> CpuElementwiseVariants() { return kElementwise; }

}  // namespace warpline

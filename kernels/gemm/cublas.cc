// Variant `cublas`: cuBLASLt with the algorithm that its heuristic ranks first; its configurations are those
// ranked behind. The query happens at launch, that is, once when a graph is captured.
//
// Limit: the tensor cores (f32: the FMA units), and power. What it does not do as promised, see
// GemmCublasFuses, is left to our own rungs. The last rung.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "kernels/gemm/cublas_product.h"
#include "kernels/gemm/kernels.h"

namespace warpline {
namespace {

// One axis of the batch becomes a stride. Not of i8: `cublas_packed` strides those, k being innermost there
// as the tensor cores want it. The steps of the loop are launches, which a graph holds all, and a cache many
// graphs.
StridedBatch BatchOf(const GemmProblem& problem) {
  return problem.dtype == DType::kI8 ? StridedBatch::OfNoAxis(problem.batch)
                                     : StridedBatch::OfLargestAxis(problem.batch);
}

bool AreMultiples(std::initializer_list<std::int64_t> sizes, std::int64_t of) {
  return std::all_of(sizes.begin(), sizes.end(), [of](std::int64_t size) { return size % of == 0; });
}

bool IsEmpty(const GemmProblem& problem) {
  return problem.m == 0 || problem.n == 0 || problem.batch.Count() == 0;
}

std::size_t WorkspaceOf(const Operands& operands) {
  return operands.workspace == nullptr ? 0 : std::min(operands.workspace_bytes, kCublasWorkspaceBytes);
}

}  // namespace

bool GemmCublasFuses(const GemmProblem& problem) {
  const std::int64_t ldc = problem.has_c ? problem.ldc : problem.n;
  // Whole words of four; and with a C whose rows are not those of D, half of a result is wrong (13.0, H200).
  if (problem.dtype == DType::kI8) {
    return problem.OutDType() == DType::kI32 && ldc == problem.n &&
           AreMultiples({problem.m, problem.n, problem.k, problem.lda, problem.ldb}, 4);
  }
  // If D is a vector, alpha 0 and beta 1, it takes C for D and returns: D keeps what was in its
  // memory before (13.0, H200; alpha and beta are not known here).
  if (problem.has_c && (problem.m == 1 || problem.n == 1)) return false;
  if (!problem.has_bias && problem.activation == Activation::kNone) return true;
  // It fuses nothing into f64 products; and rows that are not aligned to 16 bytes it rounds to 16 bits before
  // it adds the bias, and then again; for which ReLU alone makes no difference. Its gelu has the error of an
  // approximated tanh, 2^-11: enough for results of 16 bits and for what asks for tf32, not for f32.
  const bool half = SizeOf(problem.OutDType()) == 2;
  const bool coarse = half || problem.precision == Precision::kTf32;
  const bool rounds_once = !half || (!problem.has_bias && problem.activation == Activation::kRelu) ||
                           AreMultiples({problem.lda, problem.ldb, problem.n, problem.k, ldc}, 8);
  return problem.dtype != DType::kF64 && (coarse || problem.activation != Activation::kGelu) && rounds_once;
}

bool GemmCublasPreferred(const GemmProblem& problem, const DeviceTraits& traits) {
  return !GemmCublasAddsBiasSlowly(problem) && !GemmWgmmaWritesFaster(problem, traits);
}

bool GemmCublasSupports(const GemmProblem& problem, const DeviceTraits& traits) {
  // Without a product there are no A and B to describe.
  return traits.has_cublaslt && IsGemmCublasInput(problem.dtype) && problem.k > 0 &&
         BatchOf(problem).loop.Count() <= kMaxCublasLaunches && GemmCublasFuses(problem);
}

cudaError_t LaunchGemmCublas(const GemmProblem& problem, const Operands& operands, const CudaContext& context,
                             cudaStream_t stream) {
  if (IsEmpty(problem)) return cudaSuccess;
  if (context.cublaslt == nullptr) return cudaErrorNotSupported;
  CublasCall call(*context.cublaslt, DescribeCublasProduct(problem, operands, BatchOf(problem)));
  return call.LaunchRanked(context.configuration, operands.workspace, WorkspaceOf(operands), stream);
}

}  // namespace warpline

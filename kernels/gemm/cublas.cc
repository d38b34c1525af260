// Variant `cublas`: cuBLASLt with the algorithm that its heuristic ranks first. The configurations are the
// algorithms with lower ranks. The heuristic is queried at launch, that is, once when a graph is captured.
//
// Limit: the tensor cores (f32: the FMA units), and power. Our other rungs handle products that cuBLASLt does
// not compute as the API promises, see GemmCublasFuses. The last rung.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "kernels/gemm/cublas_product.h"
#include "kernels/gemm/kernels.h"

namespace warpline {
namespace {

// One batch axis becomes the strided one. This is not done for i8: `cublas_packed` handles these, because it
// makes k innermost, as the tensor cores need. Each loop step is a launch. A graph holds all launches, and a
// cache holds many graphs, so their number is limited.
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
  // i8 needs sizes and strides that are multiples of four. If the row strides of C and D differ, half of the
  // result is wrong (13.0, H200).
  if (problem.dtype == DType::kI8) {
    return problem.OutDType() == DType::kI32 && ldc == problem.n &&
           AreMultiples({problem.m, problem.n, problem.k, problem.lda, problem.ldb}, 4);
  }
  // If D is a vector, alpha 0 and beta 1, the library treats C as D and returns without writing: D keeps the
  // previous contents of its memory (13.0, H200; alpha and beta are not known here).
  if (problem.has_c && (problem.m == 1 || problem.n == 1)) return false;
  if (!problem.has_bias && problem.activation == Activation::kNone) return true;
  // The library fuses nothing into f64 products. If rows are not aligned to 16 bytes, it rounds to 16 bits
  // before it adds the bias, and then again; this makes no difference for ReLU alone. Its gelu uses an
  // approximate tanh with an error of 2^-11. That is enough for 16-bit results and tf32, but not for f32.
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
  // With k = 0 there are no A and B to describe.
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

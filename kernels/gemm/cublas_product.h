// A matrix product for cuBLASLt: it is first described, then given an algorithm, then launched.
#ifndef WARPLINE_KERNELS_GEMM_CUBLAS_PRODUCT_H_
#define WARPLINE_KERNELS_GEMM_CUBLAS_PRODUCT_H_

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/gemm/cublaslt.h"
#include "kernels/variant.h"

namespace warpline {

// A batch of row-major matrices with rows x columns elements, and ld elements between rows. The library is
// column-major, so for it they are columns x rows matrices. Neighbours along the strided batch axis are
// `step` matrices apart.
struct CublasMatrix {
  const void* data = nullptr;
  std::int64_t rows = 0, columns = 0, ld = 0;
  DType dtype = DType::kF32;
  std::int64_t step = 0;

  // Returns the number of elements of one matrix.
  std::int64_t Size() const { return rows * ld; }
  const void* At(std::int64_t matrix) const {
    return static_cast<const std::byte*>(data) + matrix * Size() * static_cast<std::int64_t>(SizeOf(dtype));
  }
};

// D = activation(alpha * op(A) * op(B) + beta * C + bias). The call is repeated for each step of batch.loop.
struct CublasProduct {
  CublasMatrix a, b, c, d;
  bool trans_a = false, trans_b = false;
  bool has_c = false;  // otherwise `c` is `d`, which the library does not read because beta is 0
  Precision precision = Precision::kIeee;
  Activation activation = Activation::kNone;
  const void* bias = nullptr;            // null: no bias
  const StepScalars* scalars = nullptr;  // in device memory; null: alpha is 1 and beta 0
  StridedBatch batch;
};

// Describes the product that computes the problem unchanged.
CublasProduct DescribeCublasProduct(const GemmProblem& problem, const Operands& operands,
                                    const StridedBatch& batch);

// The library's descriptors of a product. `lt` must outlive it.
class CublasCall {
 public:
  CublasCall(const CublasLt& lt, const CublasProduct& product);

  // Writes the algorithms that the heuristic ranks first to `algorithms`, best first, and their number to
  // *found. They use at most `workspace_bytes` of workspace. It is not an error if none is found.
  cudaError_t FindAlgorithms(std::size_t workspace_bytes,
                             std::span<cublasLtMatmulHeuristicResult_t> algorithms, int* found);

  cudaError_t Launch(const cublasLtMatmulAlgo_t& algorithm, void* workspace, std::size_t workspace_bytes,
                     cudaStream_t stream);

  // Launches the algorithm with this rank in the heuristic, from 0, below kCublasAlgorithms. Returns
  // cudaErrorNotSupported if the heuristic has fewer. It is asked only once for each kind of product.
  cudaError_t LaunchRanked(int rank, void* workspace, std::size_t workspace_bytes, cudaStream_t stream);

 private:
  // Calls the library until a call fails; later calls are skipped.
  template <typename Function, typename... Args>
  void Call(Function function, Args... args) {
    if (status_ == CUBLAS_STATUS_SUCCESS) status_ = function(args...);
  }
  template <typename T>
  void SetPreference(cublasLtMatmulPreferenceOpaque_t& preference,
                     cublasLtMatmulPreferenceAttributes_t attribute, const T& value) {
    Call(lt_->preference_set, &preference, attribute, &value, sizeof(value));
  }
  template <typename T>
  void SetProduct(cublasLtMatmulDescAttributes_t attribute, const T& value) {
    Call(lt_->matmul_desc_set, &product_layout_, attribute, &value, sizeof(value));
  }
  void Describe(const CublasMatrix& matrix, cublasLtMatrixLayoutOpaque_t& layout);
  // Returns all inputs of the heuristic, and the rank.
  CublasAlgorithms::Key KeyOf(int rank, std::size_t workspace_bytes) const;
  cudaError_t Error() const;

  const CublasLt& lt_;
  const CublasProduct product_;
  cublasStatus_t status_ = CUBLAS_STATUS_SUCCESS;
  cublasLtMatmulDescOpaque_t product_layout_;
  cublasLtMatrixLayoutOpaque_t a_, b_, c_, d_;
};

}  // namespace warpline

#endif  // WARPLINE_KERNELS_GEMM_CUBLAS_PRODUCT_H_

// cuBLASLt, loaded at run time. Without it, the server still starts and uses our own kernels.
#ifndef WARPLINE_KERNELS_GEMM_CUBLASLT_H_
#define WARPLINE_KERNELS_GEMM_CUBLASLT_H_

#include <cublasLt.h>

#include <cstdint>
#include <memory>
#include <string>

#include "kernels/kept_plans.h"

namespace warpline {

// The algorithm with some rank in the heuristic, if there is one. It is cached, because the library itself
// caches only the first: finding another takes 200 us (docs/benchmarks/2026-11-26-h200-plans.md).
struct RankedAlgorithm {
  bool exists = false;
  cublasLtMatmulAlgo_t algorithm;
};
using CublasAlgorithms = KeptPlans<PlanNumbers<24>, RankedAlgorithm, PlanNumbersHash>;

// Owns one handle, for the device that was current when it was loaded. So there is one CublasLt per device.
// Thread-safe once loaded. The library itself is never unloaded: CUDA would still run its exit handlers.
class CublasLt {
 public:
  // Returns null if the library is not found or not usable; then *why_not says why. Looks in
  // $WARPLINE_CUDA_LIB, in the loader's search path, and in /usr/local/cuda. Removes environment variables
  // that would change `ieee` products. So call it before other threads read the environment, and before
  // anything else can load cuBLAS.
  static std::unique_ptr<CublasLt> Load(std::string* why_not);

  ~CublasLt();
  CublasLt(const CublasLt&) = delete;
  CublasLt& operator=(const CublasLt&) = delete;

  cublasLtHandle_t handle() const { return handle_; }

  // The number of multiprocessors for which kernels are chosen; 0: all of the device.
  std::int32_t multiprocessors() const { return multiprocessors_; }
  void ConfineTo(std::int32_t multiprocessors) { multiprocessors_ = multiprocessors; }

  CublasAlgorithms& algorithms() const { return algorithms_; }

  // The library functions that we use. Descriptors are initialised in place, as the header's inline functions
  // do.
  struct Functions {
    decltype(&cublasLtCreate) create;
    decltype(&cublasLtDestroy) destroy;
    decltype(&cublasLtMatmulDescInit_internal) matmul_desc_init;
    decltype(&cublasLtMatmulDescSetAttribute) matmul_desc_set;
    decltype(&cublasLtMatrixLayoutInit_internal) layout_init;
    decltype(&cublasLtMatrixLayoutSetAttribute) layout_set;
    decltype(&cublasLtMatmulPreferenceInit_internal) preference_init;
    decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set;
    decltype(&cublasLtMatmulAlgoGetHeuristic) get_heuristic;
    decltype(&cublasLtMatmul) matmul;
  };
  const Functions* operator->() const { return &functions_; }

 private:
  explicit CublasLt(const Functions& functions) : functions_(functions) {}

  const Functions functions_;
  cublasLtHandle_t handle_ = nullptr;
  std::int32_t multiprocessors_ = 0;
  mutable CublasAlgorithms algorithms_{/*max_plans=*/1024};
};

}  // namespace warpline

#endif  // WARPLINE_KERNELS_GEMM_CUBLASLT_H_

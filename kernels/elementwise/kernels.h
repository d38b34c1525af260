// Launchers of the elementwise operations: cast, scale, add.
#ifndef WARPLINE_KERNELS_ELEMENTWISE_KERNELS_H_
#define WARPLINE_KERNELS_ELEMENTWISE_KERNELS_H_

#include "kernels/cuda_variants.h"
#include "kernels/elementwise/plan.h"

namespace warpline {

CudaLaunch<ElementwiseProblem> LaunchElementwiseNaive;

// Launchers of the packs of one operation each.
cudaError_t LaunchCast(const ElementwiseProblem& problem, const ElementwisePlan& plan,
                       const Operands& operands, cudaStream_t stream);
cudaError_t LaunchScale(const ElementwiseProblem& problem, const ElementwisePlan& plan,
                        const Operands& operands, cudaStream_t stream);
cudaError_t LaunchAdd(const ElementwiseProblem& problem, const ElementwisePlan& plan,
                      const Operands& operands, cudaStream_t stream);

}  // namespace warpline

#endif  // WARPLINE_KERNELS_ELEMENTWISE_KERNELS_H_

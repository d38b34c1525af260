// A kernel that breaks its context.
#ifndef WARPLINE_TESTS_GPU_POISON_H_
#define WARPLINE_TESTS_GPU_POISON_H_

#include <cuda_runtime_api.h>

namespace warpline {

void LaunchPoison(cudaStream_t stream);

}  // namespace warpline

#endif  // WARPLINE_TESTS_GPU_POISON_H_

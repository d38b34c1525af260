#include "tests/gpu/multiprocessor_ids.h"

namespace warpline {
namespace {

__global__ void WriteMultiprocessorId(unsigned* ids) {
  unsigned id;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(id));
  const long long begin = clock64();
  while (clock64() - begin < 20000) {
  }
  if (threadIdx.x == 0) ids[blockIdx.x] = id;
}

}  // namespace

void LaunchMultiprocessorIds(unsigned* ids, unsigned blocks, cudaStream_t stream) {
  // With 1024 threads each, two blocks fill a multiprocessor.
  WriteMultiprocessorId<<<blocks, 1024, 0, stream>>>(ids);
}

}  // namespace warpline

// Variant `copy`, for transposes that move nothing and reductions with one element per result. It copies
// bytes unchanged, in 16-byte vectors of the output, one per thread. It is a kernel because for large tensors
// it is faster than cudaMemcpyAsync. Also, cudaMemcpyAsync is not asynchronous if both sides are mapped host
// memory.
//
// Limit: device memory. If the addresses of input and output differ modulo 16, a vector of the output is
// assembled from the 4-byte words that contain it.
#include "kernels/launch_grids.h"
#include "kernels/transpose/kernels.h"

namespace warpline {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kVectorBytes = 16;

// `in` and `out` point to the first vector of the output. The first CTA copies the bytes before and after the
// vectors.
struct FlatCopy {
  std::int64_t vectors = 0;
  int before = 0, after = 0;
};

template <bool kAligned>
__device__ uint4 LoadVector(const char* from) {
  if constexpr (kAligned) return *reinterpret_cast<const uint4*>(from);
  const auto skipped = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(from) % 4);
  const auto* words = reinterpret_cast<const std::uint32_t*>(from - skipped);
  const unsigned bits = 8 * skipped;
  const std::uint32_t last = skipped == 0 ? 0 : words[4];
  return {__funnelshift_r(words[0], words[1], bits), __funnelshift_r(words[1], words[2], bits),
          __funnelshift_r(words[2], words[3], bits), __funnelshift_r(words[3], last, bits)};
}

template <bool kAligned>
__global__ void __launch_bounds__(kThreads) CopyVectors(const char* __restrict__ in, char* __restrict__ out,
                                                        FlatCopy copy, std::int64_t first_block) {
  const std::int64_t vector = (first_block + blockIdx.x) * kThreads + threadIdx.x;
  if (vector < copy.vectors) {
    reinterpret_cast<uint4*>(out)[vector] = LoadVector<kAligned>(in + vector * kVectorBytes);
  }
  if (first_block + blockIdx.x > 0) return;
  const int byte = static_cast<int>(threadIdx.x);
  if (byte < copy.before) out[byte - copy.before] = in[byte - copy.before];
  if (byte < copy.after) {
    const std::int64_t from = copy.vectors * kVectorBytes + byte;
    out[from] = in[from];
  }
}

}  // namespace

cudaError_t LaunchFlatCopy(const void* in, void* out, std::int64_t bytes, cudaStream_t stream) {
  const char* from = static_cast<const char*>(in);
  char* to = static_cast<char*>(out);
  auto past_vector = [](const char* address) {
    return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(address) % kVectorBytes);
  };
  std::int64_t before = (kVectorBytes - past_vector(to)) % kVectorBytes;
  const bool aligned = past_vector(from + before) == 0;
  // The words of a vector extend up to 3 bytes beyond it. These bytes must belong to the tensor too.
  const std::int64_t margin = aligned ? 0 : 3;
  if (before < margin) before += kVectorBytes;
  FlatCopy copy;
  copy.vectors = bytes < before + margin ? 0 : (bytes - before - margin) / kVectorBytes;
  if (copy.vectors == 0) before = bytes < before ? bytes : before;
  copy.before = static_cast<int>(before);
  copy.after = static_cast<int>(bytes - before - copy.vectors * kVectorBytes);
  auto* kernel = aligned ? &CopyVectors<true> : &CopyVectors<false>;
  const std::int64_t blocks = copy.vectors == 0 ? 1 : CeilDiv(copy.vectors, kThreads);
  return LaunchGrids(blocks, [&](std::int64_t first, unsigned grid) {
    kernel<<<grid, kThreads, 0, stream>>>(from + copy.before, to + copy.before, copy, first);
  });
}

}  // namespace warpline

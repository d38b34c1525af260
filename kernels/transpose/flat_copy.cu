// Variant `copy` of transposes that move nothing, and of reductions where each result is one element: bytes
// move as they are, in 16-byte vectors of the output, one a thread. A kernel, since for large tensors it is
// faster than cudaMemcpyAsync, and, unlike it, asynchronous where both sides are mapped host memory.
//
// Limit: device memory. Where input and output are differently far into 16 bytes, a vector of the output is
// put together from the words of 4 bytes that hold it.
#include "kernels/launch_grids.h"
#include "kernels/transpose/kernels.h"

namespace warpline {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kVectorBytes = 16;

// `in` and `out` are at the first vector of the output. The bytes before and after the vectors are moved by
// the first CTA.
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
  // The words of a vector reach up to 3 bytes beyond it, which must be the tensor's, too.
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

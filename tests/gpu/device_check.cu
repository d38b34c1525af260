#include "tests/gpu/device_check.h"

namespace warpline {
namespace {

constexpr int kBlocks = 4096;
constexpr int kThreads = 256;

__device__ std::uint64_t Hash(std::uint64_t index) {  // the finaliser of SplitMix64
  std::uint64_t bits = index + 0x9e3779b97f4a7c15u;
  bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9u;
  bits = (bits ^ bits >> 27) * 0x94d049bb133111ebu;
  return bits ^ bits >> 31;
}

template <typename T>
__global__ void Fill(T* data, std::int64_t count) {
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count;
       i += std::int64_t{kBlocks} * kThreads) {
    data[i] = static_cast<T>(Hash(i));
  }
}

// The axes of the output with the strides of the input.
struct Axes {
  int rank = 0;
  std::int64_t dims[kMaxRank] = {};
  std::int64_t in_strides[kMaxRank] = {};
};

template <typename T>
__global__ void CountWrong(const T* out, std::int64_t count, const Axes axes, unsigned long long* wrong) {
  unsigned long long mine = 0;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count;
       i += std::int64_t{kBlocks} * kThreads) {
    std::int64_t rest = i;
    std::int64_t from = 0;
    for (int axis = axes.rank - 1; axis >= 0; --axis) {
      from += rest % axes.dims[axis] * axes.in_strides[axis];
      rest /= axes.dims[axis];
    }
    if (out[i] != static_cast<T>(Hash(from))) ++mine;
  }
  if (mine != 0) atomicAdd(wrong, mine);
}

template <typename Function>
cudaError_t WithElement(std::size_t bytes, Function function) {
  switch (bytes) {
    case 1:
      function(std::uint8_t{});
      break;
    case 2:
      function(std::uint16_t{});
      break;
    case 4:
      function(std::uint32_t{});
      break;
    case 8:
      function(std::uint64_t{});
      break;
    default:
      return cudaErrorNotSupported;
  }
  return cudaGetLastError();
}

}  // namespace

cudaError_t LaunchFill(std::size_t element_bytes, std::int64_t count, void* data, cudaStream_t stream) {
  return WithElement(element_bytes, [&](auto element) {
    Fill<<<kBlocks, kThreads, 0, stream>>>(static_cast<decltype(element)*>(data), count);
  });
}

cudaError_t LaunchCountWrong(const TransposeProblem& problem, const void* out, unsigned long long* wrong,
                             cudaStream_t stream) {
  const Strides strides = RowMajorStrides(problem.shape, problem.row_stride);
  Axes axes;
  axes.rank = problem.shape.rank;
  for (int i = 0; i < axes.rank; ++i) {
    axes.dims[i] = problem.shape[problem.perm[i]];
    axes.in_strides[i] = strides[problem.perm[i]];
  }
  return WithElement(SizeOf(problem.dtype), [&](auto element) {
    CountWrong<<<kBlocks, kThreads, 0, stream>>>(static_cast<const decltype(element)*>(out),
                                                 problem.shape.Count(), axes, wrong);
  });
}

}  // namespace warpline

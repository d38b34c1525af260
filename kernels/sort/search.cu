// Variant `bisect`: a binary search for each needle.
//
// Each CTA keeps evenly spaced keys of x1 in shared memory, and starts each search there. Only the last steps
// read x1 itself. A thread searches for several needles at once, because every step waits for its load.
//
// Limit: the latency of the L2 cache, or of device memory if x1 does not fit into the cache.
#include <algorithm>
#include <bit>
#include <cstdint>

#include "kernels/bad_index.cuh"
#include "kernels/ceil_div.h"
#include "kernels/sort/kernels.h"
#include "kernels/sort/keys.h"

namespace warpline {
namespace {

constexpr int kSearchThreads = 256;
constexpr int kNeedles = 4;        // needles that a thread searches for at once
constexpr int kMaxSamples = 2048;  // 16 KiB of shared memory
constexpr int kBlocksPerSm = 8;
constexpr int kUsualSms = 132;  // if the device did not report its number

struct Search {
  const void* x1;
  const void* x2;
  const void* sorter;
  std::int64_t* places;
  std::int64_t count, needles;
  std::int64_t stride;  // between samples
  int samples, sample_steps;
  int stride_steps;                 // steps to find the position among the elements between two samples
  int element_bytes, sorter_bytes;  // sorter_bytes 0: no sorter
  bool right;
  KeyRule rule;
  BadIndexReport bad_index;

  // CheckSorter reports out-of-range entries of the sorter. Here they count as the first element.
  __device__ __forceinline__ std::int64_t PlaceOf(std::int64_t i) const {
    if (sorter_bytes == 0) return i;
    const std::int64_t place = PlaceAlong(Entry(i), count);
    return place < 0 ? 0 : place;
  }
  __device__ __forceinline__ std::int64_t Entry(std::int64_t i) const {
    return sorter_bytes == 4 ? static_cast<const std::int32_t*>(sorter)[i]
                             : static_cast<const std::int64_t*>(sorter)[i];
  }
  __device__ __forceinline__ bool IsBefore(std::uint64_t key, std::uint64_t needle) const {
    return right ? key <= needle : key < needle;
  }
};

template <typename U>
__device__ __forceinline__ std::uint64_t KeyAt(const void* x, std::int64_t i, const KeyRule& rule) {
  return KeyOf(static_cast<const U*>(x)[i], rule);
}

__device__ __forceinline__ std::uint64_t KeyAt(const Search& search, const void* x, std::int64_t i) {
  switch (search.element_bytes) {
    case 1:
      return KeyAt<std::uint8_t>(x, i, search.rule);
    case 2:
      return KeyAt<std::uint16_t>(x, i, search.rule);
    case 4:
      return KeyAt<std::uint32_t>(x, i, search.rule);
    default:
      return KeyAt<std::uint64_t>(x, i, search.rule);
  }
}

__device__ __forceinline__ void CheckSorter(const Search& search) {
  const std::int64_t threads = std::int64_t{gridDim.x} * kSearchThreads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kSearchThreads + threadIdx.x; i < search.count;
       i += threads) {
    const std::int64_t entry = search.Entry(i);
    if (PlaceAlong(entry, search.count) < 0) ReportBadIndex(search.bad_index, i, entry);
  }
}

__global__ void __launch_bounds__(kSearchThreads) SearchNeedles(const __grid_constant__ Search search) {
  __shared__ std::uint64_t samples[kMaxSamples];
  if (search.sorter_bytes != 0) CheckSorter(search);
  for (int i = threadIdx.x; i < search.samples; i += kSearchThreads) {
    samples[i] = KeyAt(search, search.x1, search.PlaceOf(i * search.stride));
  }
  __syncthreads();
  constexpr std::int64_t kTile = std::int64_t{kSearchThreads} * kNeedles;
  for (std::int64_t first = blockIdx.x * kTile; first < search.needles; first += gridDim.x * kTile) {
    const std::int64_t mine = first + threadIdx.x;
    std::uint64_t needles[kNeedles];
    int sample[kNeedles], sample_end[kNeedles];
#pragma unroll
    for (int n = 0; n < kNeedles; ++n) {
      const std::int64_t at = mine + n * kSearchThreads;
      needles[n] = at < search.needles ? KeyAt(search, search.x2, at) : 0;
      sample[n] = 0;
      sample_end[n] = search.samples;
    }
    for (int step = 0; step < search.sample_steps; ++step) {
#pragma unroll
      for (int n = 0; n < kNeedles; ++n) {
        if (sample[n] >= sample_end[n]) continue;
        const int middle = (sample[n] + sample_end[n]) / 2;
        if (search.IsBefore(samples[middle], needles[n])) {
          sample[n] = middle + 1;
        } else {
          sample_end[n] = middle;
        }
      }
    }

    // The position is after the last sample that comes before the needle, and not after the next sample.
    std::int64_t begin[kNeedles], end[kNeedles];
#pragma unroll
    for (int n = 0; n < kNeedles; ++n) {
      begin[n] = sample[n] == 0 ? 0 : (sample[n] - 1) * search.stride + 1;
      end[n] = sample[n] * search.stride;
      if (end[n] > search.count) end[n] = search.count;
    }
    for (int step = 0; step < search.stride_steps; ++step) {
      std::uint64_t keys[kNeedles];
#pragma unroll
      for (int n = 0; n < kNeedles; ++n) {
        keys[n] = begin[n] < end[n] ? KeyAt(search, search.x1, search.PlaceOf((begin[n] + end[n]) / 2)) : 0;
      }
#pragma unroll
      for (int n = 0; n < kNeedles; ++n) {
        if (begin[n] >= end[n]) continue;
        const std::int64_t middle = (begin[n] + end[n]) / 2;
        if (search.IsBefore(keys[n], needles[n])) {
          begin[n] = middle + 1;
        } else {
          end[n] = middle;
        }
      }
    }
#pragma unroll
    for (int n = 0; n < kNeedles; ++n) {
      const std::int64_t at = mine + n * kSearchThreads;
      if (at < search.needles) search.places[at] = begin[n];
    }
  }
}

}  // namespace

cudaError_t LaunchSearch(const SearchProblem& problem, const Operands& operands, const CudaContext& context,
                         cudaStream_t stream) {
  if (problem.needles == 0) return cudaSuccess;
  Search search{.x1 = operands.in[0],
                .x2 = operands.in[1],
                .sorter = problem.has_sorter ? operands.in[2] : nullptr,
                .places = static_cast<std::int64_t*>(operands.out),
                .count = problem.count,
                .needles = problem.needles,
                .stride = std::max(std::int64_t{1}, CeilDiv(problem.count, kMaxSamples)),
                .samples = 0,
                .sample_steps = 0,
                .stride_steps = 0,
                .element_bytes = static_cast<int>(SizeOf(problem.dtype)),
                .sorter_bytes = problem.has_sorter ? static_cast<int>(SizeOf(problem.sorter_dtype)) : 0,
                .right = problem.right,
                .rule = KeyRuleOf(problem.dtype),
                .bad_index = operands.bad_index};
  search.samples = static_cast<int>(CeilDiv(search.count, search.stride));
  search.sample_steps = std::bit_width(static_cast<unsigned>(search.samples));
  search.stride_steps = std::bit_width(static_cast<std::uint64_t>(search.stride - 1));
  const int sms = context.traits.multiprocessors > 0 ? context.traits.multiprocessors : kUsualSms;
  const std::int64_t entries = problem.has_sorter ? problem.count : 0;
  const std::int64_t work = std::max(CeilDiv(problem.needles, kNeedles), CeilDiv(entries, 2 * kNeedles));
  const auto grid =
      static_cast<unsigned>(std::min(CeilDiv(work, kSearchThreads), std::int64_t{sms} * kBlocksPerSm));
  SearchNeedles<<<grid, kSearchThreads, 0, stream>>>(search);
  return cudaGetLastError();
}

}  // namespace warpline

// Variant `radix`: the radix sort of CUB (CCCL) over all elements at once.
//
// A single row of 4- or 8-byte elements without indices is sorted as it is: CUB converts elements to keys and
// back in registers. Otherwise one kernel writes keys and places, CUB sorts these pairs, and a last kernel
// writes the results. Several rows are sorted by key first. A second sort of the places by row follows, which
// keeps the order of the keys.
//
// Limit: device memory. Each pass over 8 bits of the keys reads and writes all pairs once.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cub/device/dispatch/dispatch_radix_sort.cuh>
#include <type_traits>

#include "kernels/align.h"
#include "kernels/ceil_div.h"
#include "kernels/launch_grids.h"
#include "kernels/sort/kernels.h"
#include "kernels/sort/keys.h"

namespace warpline {
namespace {

// KeyOf and ElementOf with all decisions made in advance, because CUB converts each element in every pass.
// Zeros must not be joined and NaN must not come first. Otherwise KeyOf(ElementOf(key)) == key would not hold
// for a key of all ones.
template <typename U>
struct RadixRule {
  U sign, infinity;
  U positive, negative;  // the bits that differ between elements of this sign and their keys
  U last;                // the element whose key is all ones

  __host__ __device__ __forceinline__ U KeyOfBits(U bits) const {
    const U key = bits ^ ((bits & sign) != 0 ? negative : positive);
    return (bits & ~sign) > infinity ? ~U{0} : key;
  }
  // Both masks have the same sign bit.
  __host__ __device__ __forceinline__ U BitsOfKey(U key) const {
    const U bits = key ^ (((key ^ positive) & sign) != 0 ? negative : positive);
    return key == ~U{0} ? last : bits;
  }
};

template <typename U>
RadixRule<U> RadixRuleOf(const KeyRule& rule) {
  RadixRule<U> radix;
  radix.sign = static_cast<U>(rule.sign);
  radix.infinity = rule.infinity != 0 ? static_cast<U>(rule.infinity) : ~U{0};
  radix.positive = radix.sign;
  radix.negative = rule.infinity != 0 ? ~U{0} : radix.sign;
  if (rule.descending) {
    radix.positive = ~radix.positive;
    radix.negative = ~radix.negative;
  }
  radix.last = ElementOf<U>(~U{0}, rule);
  return radix;
}

// An element of a sort. CUB converts it to a key by a RadixRule, which its kernels get as the "decomposer".
template <typename U>
struct RadixElement {
  U bits;
};

}  // namespace
}  // namespace warpline

CUB_NAMESPACE_BEGIN
namespace detail::radix {

// CUB 3.0 (CUDA 13.0) has no public way to convert keys by a rule that is known only at run time.
template <typename U>
struct traits_t<warpline::RadixElement<U>, false> {
  using Rule = warpline::RadixRule<U>;
  using bit_ordered_type = U;

  struct bit_ordered_conversion_policy {
    static __host__ __device__ __forceinline__ U to_bit_ordered(const Rule& rule, U bits) {
      return rule.KeyOfBits(bits);
    }
    static __host__ __device__ __forceinline__ U from_bit_ordered(const Rule& rule, U key) {
      return rule.BitsOfKey(key);
    }
  };
  struct bit_ordered_inversion_policy {
    static __host__ __device__ __forceinline__ U inverse(const Rule&, U key) { return ~key; }
  };

  template <typename Extractor, typename Decomposer>
  using digit_extractor_t = ShiftDigitExtractor<U>;
  template <typename Extractor>
  static __device__ __forceinline__ ShiftDigitExtractor<U> digit_extractor(int begin_bit, int bits,
                                                                           const Rule&) {
    return ShiftDigitExtractor<U>(static_cast<std::uint32_t>(begin_bit), static_cast<std::uint32_t>(bits));
  }
  static __host__ __device__ __forceinline__ U min_raw_binary_key(const Rule& rule) {
    return rule.BitsOfKey(0);
  }
  static __host__ __device__ __forceinline__ U max_raw_binary_key(const Rule& rule) { return rule.last; }
  static int default_end_bit(const Rule&) { return 8 * static_cast<int>(sizeof(U)); }
};

}  // namespace detail::radix
CUB_NAMESPACE_END

namespace warpline {
namespace {

constexpr int kMapThreads = 256;
constexpr int kMapItems = 8;  // loads that a thread of a mapping kernel has in flight
constexpr std::size_t kRadixAlignment = 256;
constexpr int kDigitBits = 8;

// The smallest tile of CUB's sort on devices of compute capability 8.0 and later.
template <typename Key, typename Value>
constexpr int MinRadixTile() {
  using Hub = cub::detail::radix::policy_hub<Key, Value, std::uint32_t>;
  using On80 = typename Hub::Policy800::OnesweepPolicy;
  using On90 = typename Hub::Policy900::OnesweepPolicy;
  using On100 = typename Hub::Policy1000::OnesweepPolicy;
  return std::min({On80::BLOCK_THREADS * On80::ITEMS_PER_THREAD, On90::BLOCK_THREADS * On90::ITEMS_PER_THREAD,
                   On100::BLOCK_THREADS * On100::ITEMS_PER_THREAD});
}

// Returns an upper bound of CUB's temporary storage, as InvokeOnesweep computes it, without querying a
// device: histograms and a counter for each pass and portion of 2^28 elements, and 256 counters for each tile
// of a portion.
template <typename Key, typename Value>
std::size_t MaxTemporaryBytes(std::int64_t count, int bits, bool keeps_input) {
  constexpr std::int64_t kTile = MinRadixTile<Key, Value>();
  constexpr std::int64_t kMaxPortion = ((std::int64_t{1} << 28) - 1) / kTile * kTile;
  constexpr std::int64_t kDigits = 1 << kDigitBits;
  // With another tile size, portions may be shorter by almost a tile, hence the second term.
  const std::int64_t portions = CeilDiv(count, std::int64_t{1} << 27) + 1;
  const std::int64_t passes = CeilDiv(bits, kDigitBits);
  std::int64_t bytes = portions * passes * (kDigits + 1) * 4;
  bytes += CeilDiv(std::min(count, kMaxPortion + kTile), kTile) * kDigits * 4;
  if (keeps_input) bytes += count * static_cast<std::int64_t>(sizeof(Key));
  return static_cast<std::size_t>(bytes) + 8 * kRadixAlignment;
}

// The offsets of the buffers in the workspace. `keys` and `places` are double buffers.
struct RadixLayout {
  bool direct = false;  // CUB reads x itself
  std::size_t key_bytes = 4;
  std::size_t keys[2] = {}, places[2] = {};
  std::size_t sorted = 0;  // with `direct`: the sorted row, if only a part of it is requested
  std::size_t temporary = 0, temporary_bytes = 0;
  std::size_t bytes = 0;
};

RadixLayout LayoutOf(const SortProblem& problem) {
  RadixLayout layout;
  const std::int64_t count = problem.rows * problem.count;
  const bool pairs = problem.indices || problem.rows > 1;
  const std::size_t element_bytes = SizeOf(problem.dtype);
  layout.key_bytes = std::max<std::size_t>(element_bytes, 4);
  layout.direct =
      !pairs && element_bytes >= 4 && !(problem.nan_first && KeyRuleOf(problem.dtype).infinity != 0);
  const auto allocate = [&](std::size_t bytes) {
    const std::size_t at = layout.bytes;
    layout.bytes += AlignUp(bytes, kRadixAlignment);
    return at;
  };
  const auto elements = static_cast<std::size_t>(count);
  if (layout.direct) {
    if (problem.taken < problem.count) layout.sorted = allocate(elements * layout.key_bytes);
  } else {
    for (std::size_t& keys : layout.keys) keys = allocate(elements * layout.key_bytes);
  }
  if (pairs) {
    for (std::size_t& places : layout.places) places = allocate(elements * sizeof(std::uint32_t));
  }
  const auto bytes_of = [&]<typename U>(std::type_identity<U>) {
    const int bits = 8 * static_cast<int>(element_bytes);
    if (!pairs) return MaxTemporaryBytes<RadixElement<U>, cub::NullType>(count, bits, layout.direct);
    return MaxTemporaryBytes<U, std::uint32_t>(count, bits, false);
  };
  layout.temporary_bytes = layout.key_bytes == 4 ? bytes_of(std::type_identity<std::uint32_t>())
                                                 : bytes_of(std::type_identity<std::uint64_t>());
  if (problem.rows > 1) {
    layout.temporary_bytes =
        std::max(layout.temporary_bytes, MaxTemporaryBytes<std::uint32_t, std::uint32_t>(count, 32, false));
  }
  layout.temporary = allocate(layout.temporary_bytes);
  return layout;
}

std::int64_t MapBlocks(std::int64_t count) {
  return std::min(CeilDiv(count, std::int64_t{kMapThreads} * kMapItems), kMaxGridX);
}

// Calls f(i) for all i in [0, count). A thread makes kMapItems calls at a time.
template <typename F>
__device__ __forceinline__ void ForEachElement(std::int64_t count, F&& f) {
  constexpr std::int64_t kTile = std::int64_t{kMapThreads} * kMapItems;
  for (std::int64_t first = blockIdx.x * kTile; first < count; first += gridDim.x * kTile) {
    const std::int64_t mine = first + threadIdx.x;
    if (first + kTile <= count) {
#pragma unroll
      for (int item = 0; item < kMapItems; ++item) f(mine + item * kMapThreads);
    } else {
      for (std::int64_t i = mine; i < count; i += kMapThreads) f(i);
    }
  }
}

// Writes the keys of all elements, and the places 0, 1, ... unless `places` is null.
template <typename U, typename Key>
__global__ void __launch_bounds__(kMapThreads)
    MapKeys(const U* __restrict__ x, std::int64_t count, KeyRule rule, Key* __restrict__ keys,
            std::uint32_t* __restrict__ places) {
  ForEachElement(count, [&](std::int64_t i) {
    keys[i] = KeyOf(x[i], rule);
    if (places != nullptr) places[i] = static_cast<std::uint32_t>(i);
  });
}

// Writes the row of each place: the keys of the second sort.
__global__ void __launch_bounds__(kMapThreads)
    MapRows(const std::uint32_t* __restrict__ places, std::int64_t elements, std::uint32_t row_count,
            std::uint32_t* __restrict__ rows) {
  ForEachElement(elements, [&](std::int64_t i) { rows[i] = places[i] / row_count; });
}

// Writes the first `taken` results of a single row. An element is made from its key, unless the element is a
// zero or NaN whose bits matter.
template <typename U, typename Key>
__global__ void __launch_bounds__(kMapThreads)
    FinishRow(const U* __restrict__ x, const Key* __restrict__ keys, const std::uint32_t* __restrict__ places,
              std::int64_t taken, KeyRule rule, U* __restrict__ values, std::int64_t* __restrict__ indices) {
  const U zero = KeyOf(U{0}, rule), nan = rule.nan_first ? U{0} : static_cast<U>(~U{0});
  ForEachElement(taken, [&](std::int64_t i) {
    if (values != nullptr) {
      const auto key = static_cast<U>(keys[i]);
      const bool is_exact = places == nullptr || rule.infinity == 0 || (key != zero && key != nan);
      values[i] = is_exact ? ElementOf(key, rule) : x[places[i]];
    }
    if (indices != nullptr) indices[i] = places[i];
  });
}

// Writes the first `taken` results of each row, from the sorted places of all elements.
template <typename U>
__global__ void __launch_bounds__(kMapThreads)
    FinishRows(const U* __restrict__ x, const std::uint32_t* __restrict__ places, std::int64_t rows,
               std::uint32_t row_count, std::uint32_t taken, KeyRule rule, U* __restrict__ values,
               std::int64_t* __restrict__ indices) {
  ForEachElement(rows * taken, [&](std::int64_t i) {
    const std::uint32_t row = static_cast<std::uint32_t>(i) / taken;  // there are fewer than 2^32 results
    const std::uint32_t first = row * row_count;
    const std::uint32_t place = places[first + (static_cast<std::uint32_t>(i) - row * taken)];
    if (values != nullptr) {
      const U bits = x[place];
      values[i] = indices != nullptr ? bits : ElementOf(KeyOf(bits, rule), rule);
    }
    if (indices != nullptr) indices[i] = place - first;
  });
}

struct RadixStorage {
  void* bytes;
  std::size_t size;
};

// Lets CUB sort by bits [0, end_bit) of the keys in ascending order.
template <typename Key, typename Value, typename Rule>
cudaError_t RadixSort(const RadixStorage& storage, cub::DoubleBuffer<Key>& keys,
                      cub::DoubleBuffer<Value>& values, std::int64_t count, int end_bit, bool keeps_input,
                      const Rule& rule, cudaStream_t stream) {
  using Dispatch = cub::DispatchRadixSort<cub::SortOrder::Ascending, Key, Value, std::uint32_t, Rule>;
  const auto call = [&](void* bytes, std::size_t& size) {
    return Dispatch::Dispatch(bytes, size, keys, values, static_cast<std::uint32_t>(count), 0, end_bit,
                              !keeps_input, stream, rule);
  };
  std::size_t size = 0;
  if (cudaError_t error = call(nullptr, size); error != cudaSuccess) return error;
  if (size > storage.size) return cudaErrorNotSupported;
  return call(storage.bytes, size);
}

template <typename Key>
cudaError_t SortElements(const RadixStorage& storage, cub::DoubleBuffer<Key>& keys, std::int64_t count,
                         int end_bit, bool keeps_input, const KeyRule& rule, cudaStream_t stream) {
  cub::DoubleBuffer<RadixElement<Key>> elements(reinterpret_cast<RadixElement<Key>*>(keys.Current()),
                                                reinterpret_cast<RadixElement<Key>*>(keys.Alternate()));
  cub::DoubleBuffer<cub::NullType> no_values;
  const cudaError_t error =
      RadixSort(storage, elements, no_values, count, end_bit, keeps_input, RadixRuleOf<Key>(rule), stream);
  keys.selector ^= elements.selector;
  return error;
}

template <typename U>
cudaError_t LaunchRadix(const SortProblem& problem, const Operands& operands, const RadixLayout& layout,
                        cudaStream_t stream) {
  using Key = std::conditional_t<(sizeof(U) > 4), std::uint64_t, std::uint32_t>;
  const KeyRule rule = KeyRuleOf(problem);
  const std::int64_t count = problem.rows * problem.count;
  const std::int64_t results = problem.rows * problem.taken;
  const int key_bits = 8 * static_cast<int>(sizeof(U));
  const auto* const x = static_cast<const U*>(operands.in[0]);
  auto* const values = problem.values ? static_cast<U*>(operands.out) : nullptr;
  auto* const indices = problem.indices
                            ? static_cast<std::int64_t*>(problem.values ? operands.further[0] : operands.out)
                            : nullptr;
  auto* const workspace = static_cast<std::byte*>(operands.workspace);
  const RadixStorage storage{workspace + layout.temporary, layout.temporary_bytes};

  if constexpr (sizeof(U) >= 4) {
    if (layout.direct) {
      const bool takes_all = problem.taken == problem.count;
      auto* const sorted = takes_all ? values : reinterpret_cast<U*>(workspace + layout.sorted);
      cub::DoubleBuffer<U> keys(const_cast<U*>(x), sorted);  // CUB keeps the input as it is
      if (cudaError_t error = SortElements(storage, keys, count, key_bits, true, rule, stream);
          error != cudaSuccess || takes_all) {
        return error;
      }
      return cudaMemcpyAsync(values, sorted, static_cast<std::size_t>(problem.taken) * sizeof(U),
                             cudaMemcpyDeviceToDevice, stream);
    }
  }

  const auto keys_at = [&](int i) { return reinterpret_cast<Key*>(workspace + layout.keys[i]); };
  const auto places_at = [&](int i) {
    return reinterpret_cast<std::uint32_t*>(workspace + layout.places[i]);
  };
  const bool pairs = indices != nullptr || problem.rows > 1;
  cub::DoubleBuffer<Key> keys(keys_at(0), keys_at(1));
  cub::DoubleBuffer<std::uint32_t> places(pairs ? places_at(0) : nullptr, pairs ? places_at(1) : nullptr);
  const auto grid = [](std::int64_t elements) { return static_cast<unsigned>(MapBlocks(elements)); };
  MapKeys<<<grid(count), kMapThreads, 0, stream>>>(x, count, rule, keys.Current(), places.Current());
  if (cudaError_t error = cudaGetLastError(); error != cudaSuccess) return error;
  const cub::detail::identity_decomposer_t keys_are_ordered;
  if (cudaError_t error =
          pairs ? RadixSort(storage, keys, places, count, key_bits, false, keys_are_ordered, stream)
                : SortElements(storage, keys, count, key_bits, false, KeyRule(), stream);
      error != cudaSuccess) {
    return error;
  }
  if (problem.rows == 1) {
    FinishRow<<<grid(results), kMapThreads, 0, stream>>>(x, keys.Current(), places.Current(), results, rule,
                                                         values, indices);
    return cudaGetLastError();
  }

  // The keys are no longer needed.
  const auto row_count = static_cast<std::uint32_t>(problem.count);
  cub::DoubleBuffer<std::uint32_t> rows(reinterpret_cast<std::uint32_t*>(keys_at(0)),
                                        reinterpret_cast<std::uint32_t*>(keys_at(1)));
  MapRows<<<grid(count), kMapThreads, 0, stream>>>(places.Current(), count, row_count, rows.Current());
  if (cudaError_t error = cudaGetLastError(); error != cudaSuccess) return error;
  const int row_bits = std::bit_width(static_cast<std::uint64_t>(problem.rows - 1));
  if (cudaError_t error = RadixSort(storage, rows, places, count, row_bits, false, keys_are_ordered, stream);
      error != cudaSuccess) {
    return error;
  }
  FinishRows<<<grid(results), kMapThreads, 0, stream>>>(x, places.Current(), problem.rows, row_count,
                                                        static_cast<std::uint32_t>(problem.taken), rule,
                                                        values, indices);
  return cudaGetLastError();
}

}  // namespace

std::size_t SortRadixWorkspaceBytes(const SortProblem& problem) { return LayoutOf(problem).bytes; }

cudaError_t LaunchSortRadix(const SortProblem& problem, const Operands& operands, const CudaContext&,
                            cudaStream_t stream) {
  if (problem.rows == 0 || problem.taken == 0 || !(problem.values || problem.indices)) return cudaSuccess;
  const RadixLayout layout = LayoutOf(problem);
  if (layout.bytes > operands.workspace_bytes) return cudaErrorNotSupported;
  cudaError_t error = cudaSuccess;
  VisitKeyType(problem.dtype, [&]<typename U>(std::type_identity<U>) {
    error = LaunchRadix<U>(problem, operands, layout, stream);
  });
  return error;
}

}  // namespace warpline

// Variant `select`: the first elements of each sorted row, without sorting the row.
//
// A CTA reads a row once, in tiles that it holds in registers. It keeps candidates in shared memory: elements
// whose key is at most a limit. The first limit comes from the smallest keys of the threads. It is chosen so
// that at least `taken` threads have an element within it, but few elements are. When there are too many
// candidates, the CTA sorts them, keeps the first `taken`, and lowers the limit. Tiles are read in the order
// of the row. So a later element that equals the last of `taken` candidates is not needed.
//
// If there are few rows, several CTAs share a row. Each writes the first elements of its part to the
// workspace, and a second launch selects among these.
//
// Limit: device memory for long rows, and the latency of the steps of a CTA for short rows.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/align.h"
#include "kernels/ceil_div.h"
#include "kernels/launch_grids.h"
#include "kernels/sort/kernels.h"
#include "kernels/sort/keys.h"

namespace warpline {
namespace {

constexpr int kWarpSize = 32;
constexpr unsigned kAllLanes = 0xffff'ffff;
constexpr int kMaxThreads = 256;
constexpr int kGroups = 4;  // vectors of a tile that a thread holds
// Maximum candidates that are kept from tile to tile, and when groups are added one by one.
constexpr int kMaxHeld = 512, kMaxHeldByGroups = 256;
static_assert(kMaxThreads >= 2 * kMaxSelected && kMaxHeldByGroups >= kMaxSelected);

// The source of a launch, in rows of `count` elements, and the destinations of its results.
struct Selection {
  const void* x;
  std::int64_t count;
  KeyRule rule;
  int taken;
  int parts;               // per row
  std::int64_t part_size;  // elements

  // With several parts: taken keys and places for each part. Keys have 4 or 8 bytes.
  void* part_keys;
  std::int64_t* part_places;

  // With one part: the results; null if not requested.
  void* values;
  std::int64_t* indices;
  // The positions of x's candidates in their rows of `elements`. Null: x itself contains the elements.
  const std::int64_t* places;
  const void* elements;
  std::int64_t element_count;  // per row
  int element_bytes;
  KeyRule element_rule;
};

// An 8-byte key with its position in the part.
struct WideCandidate {
  std::uint64_t key;
  unsigned place;
};

template <typename U>
struct SelectTypes {
  static constexpr bool kWide = sizeof(U) == 8;
  using Key = std::conditional_t<kWide, std::uint64_t, std::uint32_t>;
  // A 4-byte key in the upper half and its position in the lower half.
  using Candidate = std::conditional_t<kWide, WideCandidate, std::uint64_t>;
  static constexpr int kVector = kWide ? 2 : 4;  // neighbouring elements that a thread loads at once
  using Word = std::conditional_t<sizeof(U) * kVector == 4, unsigned,
                                  std::conditional_t<sizeof(U) * kVector == 8, uint2, uint4>>;
  static constexpr int kItems = kGroups * kVector;
  // There is room for a group in addition to the held candidates. The sort needs a power of two.
  static constexpr int kCapacity = kWide ? 1024 : 2048;
  static_assert(kCapacity >= kMaxHeld + kMaxThreads * kVector);
};

__device__ __forceinline__ std::uint64_t MakeCandidate(std::uint32_t key, unsigned place) {
  return std::uint64_t{key} << 32 | place;
}
__device__ __forceinline__ WideCandidate MakeCandidate(std::uint64_t key, unsigned place) {
  return {key, place};
}
__device__ __forceinline__ std::uint32_t KeyOfCandidate(std::uint64_t candidate) {
  return static_cast<std::uint32_t>(candidate >> 32);
}
__device__ __forceinline__ std::uint64_t KeyOfCandidate(const WideCandidate& candidate) {
  return candidate.key;
}
__device__ __forceinline__ unsigned PlaceOfCandidate(std::uint64_t candidate) {
  return static_cast<unsigned>(candidate);
}
__device__ __forceinline__ unsigned PlaceOfCandidate(const WideCandidate& candidate) {
  return candidate.place;
}
__device__ __forceinline__ bool ComesBefore(std::uint64_t a, std::uint64_t b) { return a < b; }
__device__ __forceinline__ bool ComesBefore(const WideCandidate& a, const WideCandidate& b) {
  return a.key != b.key ? a.key < b.key : a.place < b.place;
}

// Returns 1 + the index of the highest bit that is set in any lane; 0 if no bit is set.
__device__ __forceinline__ int HighestBitOfWarp(std::uint32_t bits) {
  return kWarpSize - __clz(static_cast<int>(__reduce_or_sync(kAllLanes, bits)));
}
__device__ __forceinline__ int HighestBitOfWarp(std::uint64_t bits) {
  const int high = HighestBitOfWarp(static_cast<std::uint32_t>(bits >> 32));
  return high > 0 ? 32 + high : HighestBitOfWarp(static_cast<std::uint32_t>(bits));
}

template <typename U>
struct SelectShared {
  using Types = SelectTypes<U>;

  typename Types::Candidate candidates[Types::kCapacity];
  typename Types::Key minima[kMaxThreads];
  typename Types::Key bound;
  // Counters of new candidates. One counter is in use, and one is cleared for later.
  unsigned counters[3];
};

// Returns a bound that is not exceeded by at least `taken` of the threads' smallest keys, and by not many
// more. All threads must call it.
template <typename U>
__device__ __noinline__ typename SelectTypes<U>::Key FindBound(SelectShared<U>& shared,
                                                               typename SelectTypes<U>::Key least,
                                                               int taken) {
  using Key = typename SelectTypes<U>::Key;
  shared.minima[threadIdx.x] = least;
  __syncthreads();
  if (threadIdx.x < kWarpSize) {
    constexpr int kOwn = kMaxThreads / kWarpSize;
    Key minima[kOwn];
    const Key first = shared.minima[0];
    Key differing = 0;
#pragma unroll
    for (int i = 0; i < kOwn; ++i) {
      const unsigned from = i * kWarpSize + threadIdx.x;
      minima[i] = from < blockDim.x ? shared.minima[from] : ~Key{0};
      differing |= from < blockDim.x ? minima[i] ^ first : Key{0};
    }
    // No minimum exceeds the first bound. Its low bits are ones, starting at the highest bit in which minima
    // differ.
    int bit = HighestBitOfWarp(differing);
    Key bound = first;
    if (bit > 0) bound |= ~Key{0} >> (8 * static_cast<int>(sizeof(Key)) - bit);
    while (--bit >= 0) {
      const Key tried = bound & ~(Key{1} << bit);
      unsigned own_reaching = 0;
#pragma unroll
      for (int i = 0; i < kOwn; ++i) own_reaching += minima[i] <= tried ? 1 : 0;
      const auto reaching = static_cast<int>(__reduce_add_sync(kAllLanes, own_reaching));
      if (reaching < taken) continue;
      bound = tried;
      if (reaching <= taken + taken / 2) break;
    }
    if (threadIdx.x == 0) shared.bound = bound;
  }
  __syncthreads();
  return shared.bound;
}

// Returns how many candidates come before this one.
template <typename U, typename Candidate>
__device__ __forceinline__ int RankOf(const SelectShared<U>& shared, int held, const Candidate& own) {
  int rank = 0;
#pragma unroll 4
  for (int i = 0; i < held; ++i) rank += ComesBefore(shared.candidates[i], own) ? 1 : 0;
  return rank;
}

// Sorts the candidates: by their ranks if each thread has at most one, otherwise by a bitonic network. All
// threads must call it. Begins and ends with a barrier.
template <typename U>
__device__ __noinline__ void SortCandidates(SelectShared<U>& shared, int held) {
  using Types = SelectTypes<U>;
  using Key = typename Types::Key;
  using Candidate = typename Types::Candidate;
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  if (held <= threads) {
    __syncthreads();
    const bool has_one = thread < held;
    const Candidate own = shared.candidates[has_one ? thread : 0];
    const int rank = has_one ? RankOf(shared, held, own) : 0;
    __syncthreads();
    if (has_one) shared.candidates[rank] = own;
    __syncthreads();
    return;
  }
  const int size = 1 << (kWarpSize - __clz(held - 1));
  for (int i = held + thread; i < size; i += threads) {
    shared.candidates[i] = MakeCandidate(~Key{0}, ~0u);
  }
  for (int run = 2; run <= size; run *= 2) {
    for (int stride = run / 2; stride >= 1; stride /= 2) {
      __syncthreads();
      for (int pair = thread; pair < size / 2; pair += threads) {
        const int low = 2 * pair - (pair & (stride - 1));
        const Candidate a = shared.candidates[low], b = shared.candidates[low + stride];
        if (ComesBefore(b, a) == ((low & run) == 0)) {
          shared.candidates[low] = b;
          shared.candidates[low + stride] = a;
        }
      }
    }
  }
  __syncthreads();
}

// Selects from one part of a row. All threads call all functions, and have the same counts.
template <typename U>
class Selector {
 public:
  using Types = SelectTypes<U>;
  using Key = typename Types::Key;
  using Candidate = typename Types::Candidate;
  static constexpr int kVector = Types::kVector;
  static constexpr int kItems = Types::kItems;

  __device__ __forceinline__ Selector(SelectShared<U>& shared, const U* x, std::int64_t count, int taken,
                                      const KeyRule& rule)
      : shared_(shared), x_(x), count_(count), taken_(taken), rule_(rule) {}

  // Finds the candidates of all tiles.
  __device__ __forceinline__ void Run() {
    if (threadIdx.x < 3) shared_.counters[threadIdx.x] = 0;
    __syncthreads();
    const int tile_size = static_cast<int>(blockDim.x) * kItems;
    // Vectors are aligned, so the first may begin before the row.
    const auto misaligned =
        static_cast<int>(reinterpret_cast<std::uintptr_t>(x_) / sizeof(U) % static_cast<unsigned>(kVector));
    bool is_first = true;
    for (std::int64_t tile = -misaligned; tile < count_ && !is_closed_; tile += tile_size) {
      Key keys[kItems];
      LoadTile(tile, tile_size, keys);
      AddTile(tile, is_first, keys);
      is_first = false;
    }
  }

  // Calls store(position, candidate) for the first `taken` candidates in order, or for all if there are
  // fewer. Returns their number.
  template <typename F>
  __device__ __forceinline__ int ForEachTaken(F&& store) {
    __syncthreads();
    const int thread = static_cast<int>(threadIdx.x);
    const int found = min(held_, taken_);
    if (held_ <= static_cast<int>(blockDim.x)) {
      if (thread >= held_) return found;
      const Candidate own = shared_.candidates[thread];
      const int rank = RankOf(shared_, held_, own);
      if (rank < taken_) store(rank, own);
    } else {
      SortCandidates(shared_, held_);
      if (thread < found) store(thread, shared_.candidates[thread]);
    }
    return found;
  }

 private:
  __device__ __forceinline__ std::int64_t PlaceOfGroup(std::int64_t tile, int group) const {
    return tile + (group * static_cast<int>(blockDim.x) + static_cast<int>(threadIdx.x)) * kVector;
  }

  // Elements outside the row get the greatest key.
  __device__ __forceinline__ void LoadTile(std::int64_t tile, int tile_size, Key (&keys)[kItems]) const {
    if (tile >= 0 && tile + tile_size <= count_) {
      typename Types::Word words[kGroups];
#pragma unroll
      for (int group = 0; group < kGroups; ++group) {
        words[group] = __ldcs(reinterpret_cast<const typename Types::Word*>(x_ + PlaceOfGroup(tile, group)));
      }
#pragma unroll
      for (int group = 0; group < kGroups; ++group) {
        U elements[kVector];
        std::memcpy(elements, &words[group], sizeof(elements));
#pragma unroll
        for (int i = 0; i < kVector; ++i) keys[group * kVector + i] = KeyOf(elements[i], rule_);
      }
      return;
    }
#pragma unroll
    for (int group = 0; group < kGroups; ++group) {
      const std::int64_t first = PlaceOfGroup(tile, group);
      U elements[kVector] = {};
      if (first >= 0 && first + kVector <= count_) {
        const auto word = __ldcs(reinterpret_cast<const typename Types::Word*>(x_ + first));
        std::memcpy(elements, &word, sizeof(elements));
      } else {
#pragma unroll
        for (int i = 0; i < kVector; ++i) {
          if (first + i >= 0 && first + i < count_) elements[i] = x_[first + i];
        }
      }
#pragma unroll
      for (int i = 0; i < kVector; ++i) {
        const bool is_in_row = first + i >= 0 && first + i < count_;
        keys[group * kVector + i] = is_in_row ? Key{KeyOf(elements[i], rule_)} : ~Key{0};
      }
    }
  }

  __device__ __forceinline__ void AddTile(std::int64_t tile, bool is_first, const Key (&keys)[kItems]) {
    Key least = keys[0];
#pragma unroll
    for (int i = 1; i < kItems; ++i) least = min(least, keys[i]);
    if (is_first) LowerLimit(least);
    bool added = TryAdd<0, kGroups>(tile, keys, least, kMaxHeld);
    if (!added && !is_first && LowerLimit(least)) added = TryAdd<0, kGroups>(tile, keys, least, kMaxHeld);
    if (!added) AddGroups<0>(tile, keys);
    if (limit_is_wanted_ && held_ >= taken_) ExcludeLimit(limit_);
  }

  // From now on, elements with this key are not candidates.
  __device__ __forceinline__ void ExcludeLimit(Key key) {
    is_closed_ = key == 0;
    limit_ = key - 1;
    limit_is_wanted_ = false;
  }

  // Adds the elements of these groups whose keys are at most the limit. If there would be more than
  // `max_held` candidates, adds none and returns false.
  template <int kFirst, int kEnd>
  __device__ __forceinline__ bool TryAdd(std::int64_t tile, const Key (&keys)[kItems], Key least,
                                         int max_held) {
    unsigned mask = 0;
    if (least <= limit_) {
#pragma unroll
      for (int i = kFirst * kVector; i < kEnd * kVector; ++i) {
        const std::int64_t place = PlaceOfGroup(tile, i / kVector) + i % kVector;
        const bool is_candidate = keys[i] <= limit_ && place >= 0 && place < count_;
        mask |= is_candidate ? 1u << i : 0;
      }
    }
    unsigned& counter = shared_.counters[turn_];
    unsigned slot = mask != 0 ? atomicAdd(&counter, static_cast<unsigned>(__popc(mask))) : 0;
    __syncthreads();
    const auto added = static_cast<int>(counter);
    // All threads have read the previous turn's counter. It is used again after the next barrier.
    const int last_turn = turn_ == 0 ? 2 : turn_ - 1;
    if (threadIdx.x == 0) shared_.counters[last_turn] = 0;
    turn_ = turn_ == 2 ? 0 : turn_ + 1;
    if (held_ + added > max_held) return false;
    slot += static_cast<unsigned>(held_);
    if (mask != 0) {
#pragma unroll
      for (int i = kFirst * kVector; i < kEnd * kVector; ++i) {
        if ((mask >> i & 1) == 0) continue;
        const std::int64_t place = PlaceOfGroup(tile, i / kVector) + i % kVector;
        shared_.candidates[slot++] = MakeCandidate(keys[i], static_cast<unsigned>(place));
      }
    }
    held_ += added;
    return true;
  }

  // Adds the groups of a tile one by one, in the order of the row. There is always room for one group.
  template <int kGroup>
  __device__ __forceinline__ void AddGroups(std::int64_t tile, const Key (&keys)[kItems]) {
    if constexpr (kGroup < kGroups) {
      if (is_closed_) return;
      Key least = keys[kGroup * kVector];
#pragma unroll
      for (int i = 1; i < kVector; ++i) least = min(least, keys[kGroup * kVector + i]);
      TryAdd<kGroup, kGroup + 1>(tile, keys, least, Types::kCapacity);
      if (held_ > kMaxHeldByGroups) Prune();
      AddGroups<kGroup + 1>(tile, keys);
    }
  }

  // Lowers the limit to a bound that at least `taken` elements of this tile do not exceed. Returns false if
  // the limit is already as low.
  __device__ __forceinline__ bool LowerLimit(Key least) {
    const Key bound = FindBound(shared_, least, taken_);
    if (bound >= limit_) return false;
    limit_ = bound;
    limit_is_wanted_ = true;
    return true;
  }

  // Keeps the first `taken` candidates. There must be more.
  __device__ __forceinline__ void Prune() {
    SortCandidates(shared_, held_);
    held_ = taken_;
    ExcludeLimit(KeyOfCandidate(shared_.candidates[taken_ - 1]));
  }

  SelectShared<U>& shared_;
  const U* const x_;
  const std::int64_t count_;
  const int taken_;
  const KeyRule& rule_;
  int held_ = 0;  // candidates
  int turn_ = 0;  // index of the counter in use
  // Elements with greater keys are no candidates.
  Key limit_ = ~Key{0};
  // False if there are `taken` candidates whose keys are at most limit_ + 1.
  bool limit_is_wanted_ = true;
  bool is_closed_ = false;  // no element can become a candidate
};

// An element can be made from its key. But if positions are requested, its exact bits are loaded.
template <typename V>
__device__ __forceinline__ void StoreValue(const Selection& selection, std::int64_t row, std::int64_t at,
                                           std::int64_t place, std::uint64_t key) {
  static_cast<V*>(selection.values)[at] =
      selection.indices != nullptr
          ? static_cast<const V*>(selection.elements)[row * selection.element_count + place]
          : ElementOf(static_cast<V>(key), selection.element_rule);
}

__device__ __forceinline__ void StoreResult(const Selection& selection, std::int64_t row, int position,
                                            std::int64_t place, std::uint64_t key) {
  const std::int64_t at = row * selection.taken + position;
  if (selection.places != nullptr) place = selection.places[row * selection.count + place];
  if (selection.indices != nullptr) selection.indices[at] = place;
  if (selection.values == nullptr) return;
  switch (selection.element_bytes) {
    case 1:
      return StoreValue<std::uint8_t>(selection, row, at, place, key);
    case 2:
      return StoreValue<std::uint16_t>(selection, row, at, place, key);
    case 4:
      return StoreValue<std::uint32_t>(selection, row, at, place, key);
    default:
      return StoreValue<std::uint64_t>(selection, row, at, place, key);
  }
}

// Uses one CTA for each part of each row.
template <typename U>
__global__ void __launch_bounds__(kMaxThreads, 6)
    SelectParts(const __grid_constant__ Selection selection, std::int64_t first_block) {
  using Types = SelectTypes<U>;
  using Key = typename Types::Key;
  __shared__ SelectShared<U> shared;
  const std::int64_t block = first_block + blockIdx.x;
  const std::int64_t row = selection.parts == 1 ? block : block / selection.parts;
  const std::int64_t first = (block - row * selection.parts) * selection.part_size;
  const std::int64_t count = min(selection.part_size, selection.count - first);
  const U* const x = static_cast<const U*>(selection.x) + row * selection.count + first;
  Selector<U> selector(shared, x, count, selection.taken, selection.rule);
  selector.Run();
  if (selection.parts == 1) {
    selector.ForEachTaken([&](int position, const typename Types::Candidate& candidate) {
      StoreResult(selection, row, position, PlaceOfCandidate(candidate), KeyOfCandidate(candidate));
    });
    return;
  }
  Key* const keys = static_cast<Key*>(selection.part_keys) + block * selection.taken;
  std::int64_t* const places = selection.part_places + block * selection.taken;
  const int found = selector.ForEachTaken([&](int position, const typename Types::Candidate& candidate) {
    keys[position] = KeyOfCandidate(candidate);
    places[position] = first + PlaceOfCandidate(candidate);
  });
  // Only the last part of a row may have fewer elements. Its padding comes after all candidates.
  const int position = static_cast<int>(threadIdx.x);
  if (position >= found && position < selection.taken) {
    keys[position] = ~Key{0};
    places[position] = 0;
  }
}

// Each row is split among several CTAs if there are fewer than this many rows per SM, and rows have at least
// 2 * kMinPart elements.
constexpr int kMinBlocksPerSm = 8;
constexpr int kBlocksPerSm = 32;  // about this many CTAs share all rows, because they end at different times
constexpr std::int64_t kMinPart = 4096;  // elements: at least 32 for each element that is taken
constexpr int kUsualSms = 132;           // if the device did not report its number
constexpr std::size_t kSelectAlignment = 256;

struct PartPlan {
  int parts = 1;
  std::int64_t part_size = 0;
  std::size_t key_bytes = 0, place_bytes = 0;  // for all candidates; 0: one part
};

PartPlan PlanParts(const SortProblem& problem, const DeviceTraits& traits) {
  PartPlan plan{.part_size = problem.count};
  const std::int64_t sms = traits.multiprocessors > 0 ? traits.multiprocessors : kUsualSms;
  if (problem.rows >= sms * kMinBlocksPerSm || problem.count < 2 * kMinPart) return plan;
  const std::int64_t wanted = std::min(CeilDiv(sms * kBlocksPerSm, problem.rows), problem.count / kMinPart);
  plan.part_size = problem.count / wanted / kMinPart * kMinPart;
  plan.parts = static_cast<int>(CeilDiv(problem.count, plan.part_size));
  if (plan.parts == 1) return plan;
  const auto candidates = static_cast<std::size_t>(problem.rows * plan.parts * problem.taken);
  plan.key_bytes = AlignUp(candidates * (SizeOf(problem.dtype) == 8 ? 8 : 4), kSelectAlignment);
  plan.place_bytes = candidates * sizeof(std::int64_t);
  return plan;
}

template <typename U>
cudaError_t LaunchParts(const Selection& selection, std::int64_t rows, cudaStream_t stream) {
  const std::int64_t vectors =
      CeilDiv(std::min(selection.part_size, selection.count), SelectTypes<U>::kItems);
  const auto wanted = static_cast<unsigned>(std::min<std::int64_t>(vectors, kMaxThreads));
  const auto least = static_cast<unsigned>(std::max(kWarpSize, 2 * selection.taken));
  const unsigned threads = std::bit_ceil(std::max(wanted, least));
  return LaunchGrids(rows * selection.parts, [&](std::int64_t first, unsigned grid) {
    SelectParts<U><<<grid, threads, 0, stream>>>(selection, first);
  });
}

template <typename U>
cudaError_t LaunchSelection(Selection selection, std::int64_t rows, cudaStream_t stream) {
  if (cudaError_t error = LaunchParts<U>(selection, rows, stream);
      error != cudaSuccess || selection.parts == 1) {
    return error;
  }
  // The candidates of a row are in the order of their parts. So equal candidates are in the order of their
  // positions.
  selection.x = selection.part_keys;
  selection.places = selection.part_places;
  selection.count = selection.part_size = std::int64_t{selection.parts} * selection.taken;
  selection.parts = 1;
  selection.rule = KeyRule();
  return LaunchParts<typename SelectTypes<U>::Key>(selection, rows, stream);
}

}  // namespace

std::size_t SelectWorkspaceBytes(const SortProblem& problem, const DeviceTraits& traits) {
  const PartPlan plan = PlanParts(problem, traits);
  return plan.key_bytes + plan.place_bytes;
}

cudaError_t LaunchSelect(const SortProblem& problem, const Operands& operands, const CudaContext& context,
                         cudaStream_t stream) {
  if (problem.taken > kMaxSelected) return cudaErrorNotSupported;
  if (problem.rows == 0 || problem.taken == 0 || !(problem.values || problem.indices)) return cudaSuccess;
  const PartPlan plan = PlanParts(problem, context.traits);
  if (plan.key_bytes + plan.place_bytes > operands.workspace_bytes) return cudaErrorNotSupported;
  auto* const workspace = static_cast<std::byte*>(operands.workspace);
  const KeyRule rule = KeyRuleOf(problem);
  Selection selection{.x = operands.in[0],
                      .count = problem.count,
                      .rule = rule,
                      .taken = static_cast<int>(problem.taken),
                      .parts = plan.parts,
                      .part_size = plan.part_size,
                      .part_keys = workspace,
                      .part_places = nullptr,
                      .values = problem.values ? operands.out : nullptr,
                      .indices = nullptr,
                      .places = nullptr,
                      .elements = operands.in[0],
                      .element_count = problem.count,
                      .element_bytes = static_cast<int>(SizeOf(problem.dtype)),
                      .element_rule = rule};
  if (plan.parts > 1) selection.part_places = reinterpret_cast<std::int64_t*>(workspace + plan.key_bytes);
  if (problem.indices) {
    selection.indices = static_cast<std::int64_t*>(problem.values ? operands.further[0] : operands.out);
  }
  cudaError_t error = cudaSuccess;
  VisitKeyType(problem.dtype, [&]<typename U>(std::type_identity<U>) {
    error = LaunchSelection<U>(selection, problem.rows, stream);
  });
  return error;
}

}  // namespace warpline

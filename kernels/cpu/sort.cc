// Sorts and selects by the standard library, with keys (kernels/sort/keys.h). Keys are sorted alone, or
// together with the positions of their elements. The positions make all entries different, so any sort is
// stable.
#include <algorithm>
#include <bit>
#include <compare>
#include <cstdint>
#include <functional>
#include <span>

#include "kernels/cpu/launchers.h"
#include "kernels/cpu/looks.h"
#include "kernels/sort/keys.h"

namespace warpline::cpu {
namespace {

template <typename U>
struct PlacedKey {
  U key;
  std::uint64_t place;

  auto operator<=>(const PlacedKey&) const = default;  // NOLINT(modernize-use-nullptr)
};

// Keys of up to 32 bits are packed with their positions into one integer, if these fit into 32 bits too.
struct PackedKey {
  std::uint64_t packed = 0;

  PackedKey() = default;
  PackedKey(std::uint32_t key, std::uint64_t place) : packed(std::uint64_t{key} << 32 | place) {}
  auto operator<=>(const PackedKey&) const = default;  // NOLINT(modernize-use-nullptr)
};

template <typename U>
struct BareKey {
  U key;

  BareKey() = default;
  BareKey(U from, std::uint64_t) : key(from) {}
  auto operator<=>(const BareKey&) const = default;  // NOLINT(modernize-use-nullptr)
};

template <typename U>
U KeyIn(const PlacedKey<U>& entry) {
  return entry.key;
}
template <typename U>
U KeyIn(const BareKey<U>& entry) {
  return entry.key;
}
std::uint64_t PlaceIn(const PackedKey& entry) { return entry.packed & 0xffff'ffff; }
template <typename U>
std::uint64_t PlaceIn(const PlacedKey<U>& entry) {
  return entry.place;
}

// Calls an algorithm of the standard library with how it is to compare entries: only an exception from a
// comparison can stop it. Returns false if it was stopped.
template <typename Entry, typename Algorithm>
bool Stoppable(Looks& looks, std::span<Entry> entries, Algorithm&& algorithm) {
  struct Stopped {};
  constexpr std::size_t kShort = std::size_t{1} << 16;  // takes some milliseconds without checks
  if (entries.size() <= kShort) {
    algorithm(std::less<Entry>());
    return !looks.Stop(64 * static_cast<std::int64_t>(entries.size()));
  }
  try {
    algorithm([&](const Entry& a, const Entry& b) {
      constexpr std::int64_t kWork = 4;
      if (looks.Stop(kWork)) throw Stopped();
      return a < b;
    });
  } catch (const Stopped&) {
    return false;
  }
  return true;
}

template <typename Entry>
bool SortAll(Looks& looks, std::span<Entry> entries) {
  return Stoppable(looks, entries, [&](auto before) { std::sort(entries.begin(), entries.end(), before); });
}

// Moves the entries of a sorted row to the places `kth`, which ascend. Each is looked for only behind the one
// before it.
template <typename Entry>
bool Select(Looks& looks, std::span<Entry> entries, std::span<const std::int64_t> kth) {
  auto begin = entries.begin();
  const auto end = entries.end();
  for (const std::int64_t k : kth) {
    const auto place = entries.begin() + k;
    // One pass is enough for the last place, and nearly so for one of the first places: a heap has these.
    const bool is_near = place - begin <= (end - begin) / 256;
    const bool goes_on = Stoppable(looks, std::span<Entry>(begin, end), [&](auto before) {
      if (place + 1 == end) {
        std::iter_swap(place, std::max_element(begin, end, before));
      } else if (is_near) {
        std::partial_sort(begin, place + 1, end, before);
      } else {
        std::nth_element(begin, place, end, before);
      }
    });
    if (!goes_on) return false;
    begin = place + 1;
  }
  return true;
}

// Finds the first sorted entries of a row, as many as fit into `first`. Returns false if it was stopped.
template <typename Entry, typename U>
bool FirstOf(Looks& looks, const U* row, std::int64_t count, const KeyRule& rule, std::span<Entry> first,
             std::span<const std::int64_t> kth) {
  const auto taken = static_cast<std::int64_t>(first.size());
  const auto entry_at = [&](std::int64_t i) {
    return Entry{KeyOf(row[i], rule), static_cast<std::uint64_t>(i)};
  };
  const bool reads = InPieces(looks, taken, 2, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) first[static_cast<std::size_t>(i)] = entry_at(i);
  });
  if (!reads) return false;
  if (!kth.empty()) return Select(looks, first, kth);
  if (taken == count) return SortAll(looks, first);
  // A heap of the first entries so far, with the last of them at the front.
  const std::int64_t heap_work = 8 * std::bit_width(first.size());
  for (std::int64_t i = 1; i <= taken; ++i) {
    std::push_heap(first.begin(), first.begin() + i);
    if (looks.Stop(heap_work)) return false;
  }
  for (std::int64_t i = taken; i < count; ++i) {
    const Entry entry = entry_at(i);
    if (looks.Stop(1)) return false;
    if (!(entry < first.front())) continue;
    std::pop_heap(first.begin(), first.end());
    first.back() = entry;
    std::push_heap(first.begin(), first.end());
    if (looks.Stop(heap_work)) return false;
  }
  return SortAll(looks, first);
}

template <typename Entry, typename U>
void SortRows(const SortProblem& problem, const Operands& operands) {
  const KeyRule rule = KeyRuleOf(problem);
  const auto* x = static_cast<const U*>(operands.in[0]);
  const std::span<Entry> first(static_cast<Entry*>(operands.workspace),
                               static_cast<std::size_t>(problem.taken));
  auto* values = problem.values ? static_cast<U*>(operands.out) : nullptr;
  auto* places = static_cast<std::int64_t*>(problem.values ? operands.further[0] : operands.out);
  Looks looks(operands.interest);
  for (std::int64_t row = 0; row < problem.rows; ++row, x += problem.count) {
    if (!FirstOf(looks, x, problem.count, rule, first, problem.Kth())) return;
    const bool ends = InPieces(looks, problem.taken, 4, [&](std::int64_t begin, std::int64_t end) {
      for (const Entry& entry :
           first.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin))) {
        if constexpr (std::is_same_v<Entry, BareKey<U>>) {
          *values++ = ElementOf(KeyIn(entry), rule);
        } else {
          if (problem.values) *values++ = x[PlaceIn(entry)];
          *places++ = static_cast<std::int64_t>(PlaceIn(entry));
        }
      }
    });
    if (!ends) return;
  }
}

bool Packs(const SortProblem& problem) {
  return SizeOf(problem.dtype) <= 4 && problem.count <= std::int64_t{1} << 32;
}

}  // namespace

std::size_t SortWorkspaceBytes(const SortProblem& problem, const DeviceTraits&) {
  std::size_t entry = SizeOf(problem.dtype);
  if (problem.indices) entry = Packs(problem) ? sizeof(PackedKey) : sizeof(PlacedKey<std::uint64_t>);
  return static_cast<std::size_t>(problem.taken) * entry;
}

void Sort(const SortProblem& problem, const Operands& operands) {
  if (problem.taken == 0) return;
  VisitKeyType(problem.dtype, [&]<typename U>(std::type_identity<U>) {
    if (!problem.indices) return SortRows<BareKey<U>, U>(problem, operands);
    if (!Packs(problem)) return SortRows<PlacedKey<U>, U>(problem, operands);
    if constexpr (sizeof(U) <= 4) SortRows<PackedKey, U>(problem, operands);
  });
}

}  // namespace warpline::cpu

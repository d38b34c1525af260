// Searches: a bisection for each needle.
#include <algorithm>
#include <bit>
#include <cstdint>

#include "kernels/cpu/indices.h"
#include "kernels/cpu/launchers.h"
#include "kernels/cpu/looks.h"
#include "kernels/sort/keys.h"

namespace warpline::cpu {
namespace {

// key_at(i): returns the key of element i in sorted order.
template <typename U, typename KeyAt>
void SearchBy(const SearchProblem& problem, const Operands& operands, Looks& looks, const KeyAt& key_at) {
  const KeyRule rule = KeyRuleOf(problem.dtype);
  const auto* needles = static_cast<const U*>(operands.in[1]);
  auto* y = static_cast<std::int64_t*>(operands.out);
  // Each bisection step may miss the caches.
  const std::int64_t work = 8 * std::bit_width(static_cast<std::uint64_t>(problem.count)) + 1;
  for (std::int64_t i = 0; i < problem.needles; ++i) {
    if (looks.Stop(work)) return;
    const U needle = KeyOf(needles[i], rule);
    std::int64_t low = 0, high = problem.count;  // the position is in [low, high]
    while (low < high) {
      const std::int64_t middle = low + (high - low) / 2;
      const U key = key_at(middle);
      const bool is_before = problem.right ? !(needle < key) : key < needle;
      (is_before ? low : high) = is_before ? middle + 1 : middle;
    }
    y[i] = low;
  }
}

}  // namespace

void Search(const SearchProblem& problem, const Operands& operands) {
  VisitKeyType(problem.dtype, [&]<typename U>(std::type_identity<U>) {
    const KeyRule rule = KeyRuleOf(problem.dtype);
    const auto* x = static_cast<const U*>(operands.in[0]);
    Looks looks(operands.interest);
    if (!problem.has_sorter) {
      return SearchBy<U>(problem, operands, looks, [&](std::int64_t i) { return KeyOf(x[i], rule); });
    }
    VisitIndexType(problem.sorter_dtype, [&]<typename Index>(std::type_identity<Index>) {
      const auto* sorter = static_cast<const Index*>(operands.in[2]);
      if (!CheckIndices(sorter, problem.count, problem.count, operands.bad_index, looks)) return;
      SearchBy<U>(problem, operands, looks, [&](std::int64_t i) {
        const std::int64_t place = PlaceOf(LoadIndex(sorter + i), problem.count);
        return KeyOf(x[std::max(place, std::int64_t{0})], rule);
      });
    });
  });
}

}  // namespace warpline::cpu

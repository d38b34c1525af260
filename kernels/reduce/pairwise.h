// Pairwise accumulation: first blocks of neighbours, then pairs of blocks, pairs of pairs and so on. The
// rounding error of a sum of n terms grows with log n; in a single loop it would grow with n (N. Higham, "The
// accuracy of floating point summation", 1993).
#ifndef WARPLINE_KERNELS_REDUCE_PAIRWISE_H_
#define WARPLINE_KERNELS_REDUCE_PAIRWISE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace warpline {

// Monoid: see monoids.h. Elements must be added in the order of their indices, and are combined in that
// order.
template <typename Monoid>
class Pairwise {
 public:
  using Acc = typename Monoid::Acc;
  static constexpr std::int64_t kBlock = 128;

  void Add(typename Monoid::Value x) {
    Monoid::Add(block_, std::move(x), count_);
    if (++count_ % kBlock == 0) Carry();
  }

  // Returns the accumulator of all elements so far.
  Acc Total() const {
    Acc total = block_;
    const std::int64_t blocks = count_ / kBlock;
    for (std::size_t level = 0; blocks >> level != 0; ++level) {
      if ((blocks >> level & 1) != 0) total = Monoid::Combine(levels_[level], total);
    }
    return total;
  }

 private:
  // Carries like adding one to a binary number. The earlier blocks contain count_ - kBlock elements.
  void Carry() {
    const std::int64_t before = count_ / kBlock - 1;
    Acc carried = std::exchange(block_, Monoid::Identity());
    std::size_t level = 0;
    for (; (before >> level & 1) != 0; ++level) carried = Monoid::Combine(levels_[level], carried);
    levels_[level] = std::move(carried);
  }

  std::int64_t count_ = 0;
  Acc block_ = Monoid::Identity();
  // Level i holds 2^i blocks if bit i of the number of blocks is set: 2^63 elements in blocks of 2^7. Unused
  // levels are not initialised: most results have few elements.
  std::array<Acc, 56> levels_;
};

}  // namespace warpline

#endif  // WARPLINE_KERNELS_REDUCE_PAIRWISE_H_

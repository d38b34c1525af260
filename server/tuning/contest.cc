#include "server/tuning/contest.h"

#include <algorithm>
#include <numeric>

namespace warpline {
namespace {

constexpr int kRounds = 7, kFinalRounds = 9;
// After the first round, and after the third, when a time has proved itself.
constexpr double kFarBehind = 1.5, kBehind = 1.1;

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

}  // namespace

Contest::Contest(std::size_t candidates) : seconds_(candidates), taking_part_(candidates) {
  std::iota(taking_part_.begin(), taking_part_.end(), std::size_t{0});
  candidates == 1 ? Settle(0) : BeginRound();
}

void Contest::BeginRound() {
  order_ = taking_part_;
  std::shuffle(order_.begin(), order_.end(), random_);
  position_ = 0;
}

void Contest::Took(double seconds) {
  seconds_[next()].push_back(seconds);
  Advance();
}

void Contest::Failed() {
  const std::size_t candidate = next();
  if (candidate == 0) return Settle(0);
  std::erase(taking_part_, candidate);
  Advance();
}

void Contest::Advance() {
  if (++position_ == order_.size()) EndRound();
}

void Contest::EndRound() {
  ++rounds_;
  const std::size_t fastest = Fastest();
  if (taking_part_.size() == 1) return Settle(0);
  if (final_) {
    if (rounds_ < kFinalRounds) return BeginRound();
    return Settle(Seconds(fastest) < kMargin * Seconds(0) ? fastest : 0);
  }
  if (rounds_ == kRounds) return fastest == 0 ? Settle(0) : BeginFinal(fastest);
  if (rounds_ == 1) DropSlowerThan(kFarBehind * Seconds(fastest));
  if (rounds_ == 3) DropSlowerThan(kBehind * Seconds(fastest));
  if (taking_part_.size() == 1) return Settle(0);
  BeginRound();
}

std::size_t Contest::Fastest() const {
  return *std::min_element(taking_part_.begin(), taking_part_.end(),
                           [&](std::size_t a, std::size_t b) { return Seconds(a) < Seconds(b); });
}

void Contest::DropSlowerThan(double seconds) {
  std::erase_if(taking_part_,
                [&](std::size_t candidate) { return candidate != 0 && Seconds(candidate) > seconds; });
}

void Contest::BeginFinal(std::size_t challenger) {
  taking_part_ = {0, challenger};
  for (std::size_t candidate : taking_part_) seconds_[candidate].clear();
  final_ = true;
  rounds_ = 0;
  BeginRound();
}

void Contest::Settle(std::size_t winner) {
  settled_ = true;
  winner_ = winner;
}

double Contest::Seconds(std::size_t candidate) const { return Median(seconds_[candidate]); }

}  // namespace warpline

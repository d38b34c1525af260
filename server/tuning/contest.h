// Which of several ways to run a problem is the fastest, decided by times that come one by one.
#ifndef WARPLINE_SERVER_TUNING_CONTEST_H_
#define WARPLINE_SERVER_TUNING_CONTEST_H_

#include <cstddef>
#include <random>
#include <vector>

namespace warpline {

// Candidate 0 is what runs without tuning, and stays unless another one is faster by more than the times
// differ by chance. All are timed in rounds, each in an order of its own, so that nobody always follows the
// same neighbour; who is far behind drops out. The fastest of them and candidate 0 are then timed anew: the
// times that made it the fastest of many flatter it.
class Contest {
 public:
  // The winner's time must be below this ratio of candidate 0's time.
  static constexpr double kMargin = 0.98;

  // At least one candidate.
  explicit Contest(std::size_t candidates);

  bool settled() const { return settled_; }
  // Whom to time; valid until settled.
  std::size_t next() const { return order_[position_]; }
  // The time of the candidate that next() names.
  void Took(double seconds);
  // It cannot run, or not rightly: it takes no further part. If it is candidate 0, there is no contest.
  void Failed();

  // Once settled.
  std::size_t winner() const { return winner_; }
  // The median of the last rounds in which it took part. Unit: seconds; 0: it never did.
  double Seconds(std::size_t candidate) const;

 private:
  void Advance();
  void EndRound();
  void BeginRound();
  // Returns the fastest of the candidates that still take part.
  std::size_t Fastest() const;
  void DropSlowerThan(double seconds);
  void BeginFinal(std::size_t challenger);
  void Settle(std::size_t winner);

  std::vector<std::vector<double>> seconds_;  // by candidate
  std::vector<std::size_t> taking_part_;
  std::vector<std::size_t> order_;  // of the round
  std::size_t position_ = 0;
  int rounds_ = 0;  // that have ended, of this part
  bool final_ = false, settled_ = false;
  std::size_t winner_ = 0;
  std::mt19937 random_{1};
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_TUNING_CONTEST_H_

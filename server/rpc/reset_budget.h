// How many calls a connection may reset.
#ifndef WARPLINE_SERVER_RPC_RESET_BUDGET_H_
#define WARPLINE_SERVER_RPC_RESET_BUDGET_H_

#include <algorithm>

#include "absl/time/time.h"

namespace warpline {

// The rule: a connection starts with a budget of 1000 calls. A call that is cancelled before the server has
// answered it (by the client, or by the deadline that the client set) takes one from it. A call that is
// answered gives one back, and so does every hundredth of a second; there are never more than 1000. A
// connection whose budget is spent is cut.
//
// So a client may cancel every second call that it makes for ever, and 1000 more at once, while one that only
// opens streams and resets them is cut after about 1000. Not thread-safe.
class ResetBudget {
 public:
  struct Options {
    double calls = 1000;
    double regained_per_second = 100;
  };

  ResetBudget(const Options& options, absl::Time now)
      : options_(options), left_(options.calls), counted_(now) {}

  void CountAnswered(int calls) { left_ = std::min(left_ + calls, options_.calls); }

  // Returns false if this call is beyond the budget.
  bool CountReset(absl::Time now) {
    const double seconds = std::max(0.0, absl::ToDoubleSeconds(now - counted_));
    left_ = std::min(left_ + seconds * options_.regained_per_second, options_.calls);
    counted_ = now;
    left_ -= 1;
    return left_ >= 0;
  }

 private:
  Options options_;
  double left_;
  absl::Time counted_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_RESET_BUDGET_H_

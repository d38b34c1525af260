// A budget that refills with time.
#ifndef WARPLINE_SERVER_BASE_TOKEN_BUCKET_H_
#define WARPLINE_SERVER_BASE_TOKEN_BUCKET_H_

#include <algorithm>
#include <chrono>

#include "server/base/clock.h"

namespace warpline {

// A token bucket that starts full and may go into debt. Take always takes a token, so a user who keeps taking
// waits longer until the bucket has tokens again, but never longer than debt_max / per_second. Not
// thread-safe.
class TokenBucket {
 public:
  struct Options {
    double capacity = 0;    // tokens
    double per_second = 0;  // tokens that are added
    double debt_max = 0;    // tokens
  };

  TokenBucket(const Options& options, MonotonicTime now)
      : options_(options), tokens_(options.capacity), refilled_(now) {}

  // Takes one token. Returns false if there was none; the bucket then owes a token, up to debt_max.
  bool Take(MonotonicTime now) {
    const bool had_one = has_token(now);
    // If no debt is allowed, a partial token is not taken, so that it can become a whole one.
    if (had_one || options_.debt_max > 0) tokens_ = std::max(tokens_ - 1, -options_.debt_max);
    return had_one;
  }
  // Gives tokens back; the bucket never holds more than its capacity.
  void Put(double tokens) { tokens_ = std::min(tokens_ + tokens, options_.capacity); }
  // Returns true if a token could be taken now.
  bool has_token(MonotonicTime now) {
    Refill(now);
    return tokens_ >= 1;
  }
  bool is_full(MonotonicTime now) {
    Refill(now);
    return tokens_ >= options_.capacity;
  }

 private:
  void Refill(MonotonicTime now) {
    if (now <= refilled_) return;
    Put(std::chrono::duration<double>(now - refilled_).count() * options_.per_second);
    refilled_ = now;
  }

  Options options_;
  double tokens_;
  MonotonicTime refilled_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_BASE_TOKEN_BUCKET_H_

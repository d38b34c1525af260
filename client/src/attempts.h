// The rules for retries: whether and when a failed call is made again.
#ifndef WARPLINE_CLIENT_SRC_ATTEMPTS_H_
#define WARPLINE_CLIENT_SRC_ATTEMPTS_H_

#include <optional>
#include <stop_token>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace warpline::client {

// Returns InvalidArgument unless the timeout is finite and above zero.
absl::Status CheckTimeout(absl::Duration timeout);

// The attempts of one call. Not thread-safe.
class Attempts {
 public:
  // No attempt follows once `closed` is requested. A call is not `repeatable` if a second attempt would find
  // a different state. Such a call is made again only if the server has refused it.
  Attempts(int max_retries, absl::Time deadline, std::stop_token closed = {}, bool repeatable = true)
      : max_retries_(max_retries), deadline_(deadline), closed_(std::move(closed)), repeatable_(repeatable) {}

  absl::Time deadline() const { return deadline_; }
  // The number of failed attempts that were followed by another one.
  int failed() const { return failed_; }
  // How long to wait before the next attempt after this error; nothing if there must be no other attempt.
  std::optional<absl::Duration> DelayAfter(const absl::Status& status);

 private:
  int max_retries_;
  absl::Time deadline_;
  std::stop_token closed_;
  bool repeatable_;
  int failed_ = 0;
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_ATTEMPTS_H_

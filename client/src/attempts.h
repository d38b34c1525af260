// The rules for retries: whether and when a failed call is made again.
#ifndef WARPLINE_CLIENT_SRC_ATTEMPTS_H_
#define WARPLINE_CLIENT_SRC_ATTEMPTS_H_

#include <optional>
#include <stop_token>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace warpline::client {

// InvalidArgument unless it is finite and above zero.
absl::Status CheckTimeout(absl::Duration timeout);

// The attempts of one call. Not thread-safe.
class Attempts {
 public:
  // None follows once `closed` is requested. If the call is not `repeatable`, because another would find
  // another state, one follows only if the server has refused the call.
  Attempts(int max_retries, absl::Time deadline, std::stop_token closed = {}, bool repeatable = true)
      : max_retries_(max_retries), deadline_(deadline), closed_(std::move(closed)), repeatable_(repeatable) {}

  absl::Time deadline() const { return deadline_; }
  // How many have failed so that another followed.
  int failed() const { return failed_; }
  // How long to wait before the next attempt after this error; nothing if there is to be none.
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

// Calls of one operation that nobody waits for.
#ifndef WARPLINE_TESTS_TESTING_CALL_ASYNC_H_
#define WARPLINE_TESTS_TESTING_CALL_ASYNC_H_

#include <functional>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "warpline/client.h"

namespace warpline::testing {

template <typename Args>
void CallAsync(client::Client& client, const Args& args, absl::Duration timeout,
               const client::CallOptions& options,
               std::function<void(const absl::StatusOr<client::RunResult>&)> done) {
  client::RunArgs run = client::OneStep(args);
  run.destinations = {options.destination};
  client.RunAsync(run, timeout, options, std::move(done));
}

}  // namespace warpline::testing

#endif  // WARPLINE_TESTS_TESTING_CALL_ASYNC_H_

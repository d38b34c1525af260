// The result of a run of the C interface.
#ifndef WARPLINE_CLIENT_ABI_RESULT_H_
#define WARPLINE_CLIENT_ABI_RESULT_H_

#include <memory>
#include <vector>

#include "client/abi/array.h"
#include "client/abi/tensor.h"
#include "warpline/requests.h"
#include "warpline/warpline.h"

struct warpline_result {
  warpline_result() = default;
  // Moves the outputs out of `run`.
  explicit warpline_result(warpline::client::RunResult& run);

  const pid_t process = getpid();
  std::vector<std::unique_ptr<warpline_array>> arrays;  // null: the array stays on the server, or was taken
  std::vector<std::unique_ptr<warpline_tensor>> tensors;
  warpline::v1::Execution execution;
};

#endif  // WARPLINE_CLIENT_ABI_RESULT_H_

// The errors of programs of one step.
#ifndef WARPLINE_CLIENT_SRC_ONE_STEP_H_
#define WARPLINE_CLIENT_SRC_ONE_STEP_H_

#include "absl/status/status.h"
#include "warpline/requests.h"

namespace warpline::client {

// An error of this call, as RunArgs::one_step says.
absl::Status InOneStep(const RunArgs& args, const absl::Status& status);

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_ONE_STEP_H_

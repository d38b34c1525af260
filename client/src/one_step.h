// Errors of programs that have only one step.
#ifndef WARPLINE_CLIENT_SRC_ONE_STEP_H_
#define WARPLINE_CLIENT_SRC_ONE_STEP_H_

#include "absl/status/status.h"
#include "warpline/requests.h"

namespace warpline::client {

// Rewrites an error of this call as RunArgs::one_step describes.
absl::Status InOneStep(const RunArgs& args, const absl::Status& status);

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_ONE_STEP_H_

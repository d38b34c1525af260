// Makes the backend that the flags select, or that the machine supports.
#ifndef WARPLINE_SERVER_DAEMON_MAKE_BACKEND_H_
#define WARPLINE_SERVER_DAEMON_MAKE_BACKEND_H_

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/device/backend.h"
#include "server/observe/metrics.h"
#include "server/settings/options.h"

namespace warpline {

// Errors are those of the backend that --backend names. With "auto" the cpu backend is used if no GPU can be,
// and the log says why. `context_lost` is called, on any thread, when the GPU is lost for this process. The
// metrics outlive the backend.
absl::StatusOr<std::unique_ptr<Backend>> MakeBackend(const ServerOptions& options, Metrics& metrics,
                                                     std::function<void(const absl::Status&)> context_lost);

}  // namespace warpline

#endif  // WARPLINE_SERVER_DAEMON_MAKE_BACKEND_H_

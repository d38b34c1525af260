// Tells systemd, if it is what started the process, how far it is: sd_notify(3).
#ifndef WARPLINE_SERVER_BASE_SERVICE_MANAGER_H_
#define WARPLINE_SERVER_BASE_SERVICE_MANAGER_H_

#include <string>

#include "absl/status/status.h"

namespace warpline {

// Sends `state`, lines as "READY=1" or "STOPPING=1", to the socket that $NOTIFY_SOCKET names. Without the
// variable it does nothing. The protocol is of a dozen lines and stable, and systemd's own manual recommends
// to write them rather than to depend on its library, which containers lack.
absl::Status NotifyServiceManager(const std::string& state);

}  // namespace warpline

#endif  // WARPLINE_SERVER_BASE_SERVICE_MANAGER_H_

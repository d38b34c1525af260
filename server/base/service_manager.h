// Tells systemd, if it has started the process, about the state of the service: sd_notify(3).
#ifndef WARPLINE_SERVER_BASE_SERVICE_MANAGER_H_
#define WARPLINE_SERVER_BASE_SERVICE_MANAGER_H_

#include <string>

#include "absl/status/status.h"

namespace warpline {

// Sends `state`, lines such as "READY=1" or "STOPPING=1", to the socket in $NOTIFY_SOCKET. Does nothing
// without this variable. The protocol is stable and needs only a dozen lines, and systemd's manual recommends
// implementing it instead of depending on its library, which containers lack.
absl::Status NotifyServiceManager(const std::string& state);

}  // namespace warpline

#endif  // WARPLINE_SERVER_BASE_SERVICE_MANAGER_H_

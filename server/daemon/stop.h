// The end of the daemon: accepted work is finished first.
#ifndef WARPLINE_SERVER_DAEMON_STOP_H_
#define WARPLINE_SERVER_DAEMON_STOP_H_

#include "server/base/signals.h"
#include "server/daemon/core.h"
#include "server/daemon/device_failure.h"
#include "server/daemon/doors.h"
#include "server/settings/options.h"

namespace warpline {

// Tells the service manager. If that fails, only logs a warning.
void Notify(const std::string& state);

// Ends the service, in the steps of docs/restarts.md, after the signal with this number. Returns when core
// and doors are no longer used. Otherwise it ends the process: with exit code 0 if only a connection is left,
// 1 if work is left, and 2 if the device has failed.
void Stop(int number, const ServerOptions& options, Signals& signals, Core& core, Doors& doors,
          DeviceFailure& failure);

}  // namespace warpline

#endif  // WARPLINE_SERVER_DAEMON_STOP_H_

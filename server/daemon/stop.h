// The end of the daemon: what was accepted is finished.
#ifndef WARPLINE_SERVER_DAEMON_STOP_H_
#define WARPLINE_SERVER_DAEMON_STOP_H_

#include "server/base/stop_signals.h"
#include "server/daemon/core.h"
#include "server/daemon/device_failure.h"
#include "server/daemon/doors.h"
#include "server/settings/options.h"

namespace warpline {

// Tells the service manager; one that does not listen is no reason to stop, nor to be silent about it.
void Notify(const std::string& state);

// Ends the service, in the steps of docs/restarts.md, after the signal of this number. Returns when nobody
// uses core and doors any more. Else it ends the process: with 0 if only a connection is left, with 1 if work
// is, and with 2 without a device.
void Stop(int number, const ServerOptions& options, StopSignals& signals, Core& core, Doors& doors,
          DeviceFailure& failure);

}  // namespace warpline

#endif  // WARPLINE_SERVER_DAEMON_STOP_H_

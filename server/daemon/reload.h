// SIGHUP: reads settings and files again.
#ifndef WARPLINE_SERVER_DAEMON_RELOAD_H_
#define WARPLINE_SERVER_DAEMON_RELOAD_H_

#include "server/daemon/access.h"
#include "server/daemon/core.h"
#include "server/daemon/services.h"
#include "server/settings/command_line.h"

namespace warpline {

// Reads tokens and certificates, opens the file of the access log anew, and takes over the settings of `next`
// that may change while the server runs: --max-jobs, --max-device-seconds, --max-ttl, --grace and
// --drain-delay. Logs each setting that has changed, with a warning if it takes effect only after a restart.
// If `next` has errors, all settings stay as they are, and the errors are logged. `line` has the settings in
// use.
void Reload(const CommandLine& next, CommandLine& line, const Access& access, Core& core, Services& services);

}  // namespace warpline

#endif  // WARPLINE_SERVER_DAEMON_RELOAD_H_

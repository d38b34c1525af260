#include "server/daemon/device_failure.h"

#include <signal.h>
#include <unistd.h>

#include <cstdlib>

#include "server/observe/log.h"

namespace warpline {

void DeviceFailure::Report(const std::string& what, const std::string& reason) {
  Log("error", what + ": the process will exit", {{"reason", reason}});
  if (stopped_) std::_Exit(2);
  happened_ = true;
  kill(getpid(), SIGTERM);
}

}  // namespace warpline

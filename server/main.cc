// warplined: connects the parts and controls the life of the process.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "cmake/version.h"
#include "server/base/descriptor_limit.h"
#include "server/base/free_memory.h"
#include "server/base/stop_signals.h"
#include "server/base/usable_cpus.h"
#include "server/daemon/access.h"
#include "server/daemon/core.h"
#include "server/daemon/device_failure.h"
#include "server/daemon/doors.h"
#include "server/daemon/new_token.h"
#include "server/daemon/services.h"
#include "server/daemon/stop.h"
#include "server/observe/crash_report.h"
#include "server/observe/log.h"
#include "server/observe/metrics.h"
#include "server/rpc/library_log.h"
#include "server/settings/check_config.h"
#include "server/settings/command_line.h"
#include "server/settings/options.h"

namespace warpline {
namespace {

int Fail(const absl::Status& status) {
  Log("error", std::string(status.message()));
  return 1;
}

// Waits for a stop signal, and returns its number. Once the server has been idle for a second, memory that
// the allocator has kept after bursts of large messages is returned to the kernel.
int AwaitStop(StopSignals& signals, const Metrics& metrics) {
  double trimmed_at = 0;
  double last_seen = 0;
  for (;;) {
    if (const int number = signals.Await(absl::Seconds(1)); number != 0) return number;
    const double started = metrics.RequestsStarted();
    const bool idle = started == last_seen && metrics.requests_in_flight.Value() == 0;
    if (idle && started != trimmed_at) {
      ReturnFreeMemory();
      trimmed_at = started;
    }
    last_seen = started;
  }
}

void WarnOfPlaintext(const ServerOptions& options) {
  for (const std::string& address : options.AddressesBeyondLoopback()) {
    Log("warning", "--insecure: plaintext beyond loopback, for everybody who reaches it",
        {{"address", address}});
  }
}

// The parts are made in this order, so the last one to be destroyed is the first.
int Serve(const ServerOptions& options) {
  StopSignals signals;
  TakeOverLibraryLogs();
  const Machine machine{.cpus = options.Cpus(UsableCpus()), .descriptors = RaiseDescriptorLimit()};
  Metrics metrics;
  metrics.SetBuildInfo(kVersion, kRevision, WARPLINE_CUDA_VERSION);
  // First, so that an error in its files is reported before anything that takes long.
  const absl::StatusOr<Access> access = Access::Open(options, metrics);
  if (!access.ok()) return Fail(access.status());
  DeviceFailure failure;
  const auto core = Core::Create(options, machine, *access, failure, metrics);
  if (!core.ok()) return Fail(core.status());
  Services services(options, machine, *access, **core, metrics);
  const auto doors = Doors::Open(options, machine, *access, **core, services, failure, metrics);
  if (!doors.ok()) return Fail(doors.status());
  if (access->certificates == nullptr) WarnOfPlaintext(options);
  std::printf("%s\n", (*doors)->ReadyLine(*(*core)->backend).c_str());
  std::fflush(stdout);
  Notify("READY=1");
  Stop(AwaitStop(signals, metrics), options, signals, **core, **doors, failure);
  return 0;
}

int Main(int argc, char** argv) {
  ReportCrashes(argv[0]);
  // gRPC uses Abseil's mutexes, and the distribution builds these with the deadlock detection of debug
  // builds. With it, every lock of every thread goes through one global lock.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);

  const absl::StatusOr<CommandLine> line = ParseCommandLine(argc, argv, std::getenv);
  if (!line.ok()) {
    std::fprintf(stderr, "warplined: %s\n", std::string(line.status().message()).c_str());
    return 2;
  }
  switch (line->action) {
    case CommandLine::Action::kHelp:
      std::fputs(HelpText(line->options).c_str(), stdout);
      return 0;
    case CommandLine::Action::kVersion:
      std::printf("warplined %s (%s, CUDA %s)\n", kVersion, kRevision, WARPLINE_CUDA_VERSION);
      return 0;
    case CommandLine::Action::kNewToken:
      PrintNewToken(line->new_token);
      return 0;
    case CommandLine::Action::kCheckConfig:
      return CheckConfig(*line);
    case CommandLine::Action::kServe:
      LogSettings(line->settings);
      return Serve(line->options);
  }
  return 1;
}

}  // namespace
}  // namespace warpline

int main(int argc, char** argv) { return warpline::Main(argc, argv); }

// warplined: connects the parts and controls the life of the process.
#include <grpcpp/version_info.h>
#include <signal.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "cmake/version.h"
#include "server/base/descriptor_limit.h"
#include "server/base/free_memory.h"
#include "server/base/signals.h"
#include "server/base/usable_cpus.h"
#include "server/daemon/access.h"
#include "server/daemon/core.h"
#include "server/daemon/device_failure.h"
#include "server/daemon/doors.h"
#include "server/daemon/new_token.h"
#include "server/daemon/ports.h"
#include "server/daemon/reload.h"
#include "server/daemon/services.h"
#include "server/daemon/stop.h"
#include "server/observe/crash_report.h"
#include "server/observe/log.h"
#include "server/observe/metrics.h"
#include "server/rpc/library_log.h"
#include "server/rpc/polling_choice.h"
#include "server/settings/check_config.h"
#include "server/settings/command_line.h"
#include "server/settings/options.h"

namespace warpline {
namespace {

int Fail(const absl::Status& status) {
  Log("error", std::string(status.message()));
  return 1;
}

// Reads the command line, the environment and the file.
using ReadSettings = std::function<CommandLine()>;

// Waits for a signal, and returns its number. Once the server has been idle for a second, memory that
// the allocator has kept after bursts of large messages is returned to the kernel.
int AwaitSignal(Signals& signals, const Metrics& metrics) {
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
int Serve(CommandLine line, const ReadSettings& read_settings) {
  const ServerOptions& options = line.options;
  Signals signals;
  TakeOverLibraryLogs();
  LetOurThreadsRead();
  const Machine machine{.cpus = options.Cpus(UsableCpus()), .descriptors = RaiseDescriptorLimit()};
  Metrics metrics;
  metrics.SetBuildInfo(kVersion, kRevision, WARPLINE_CUDA_VERSION);
  // First, so that an error in its files is reported before anything that takes long.
  const absl::StatusOr<Access> access = Access::Open(options, metrics);
  if (!access.ok()) return Fail(access.status());
  absl::StatusOr<Ports> ports = Ports::Bind(options);
  if (!ports.ok()) return Fail(ports.status());
  DeviceFailure failure;
  const auto core = Core::Create(options, machine, *access, failure, metrics);
  if (!core.ok()) return Fail(core.status());
  Services services(options, machine, *access, /*has_regions=*/!ports->regions.empty(), **core, metrics);
  const auto doors =
      Doors::Open(options, machine, *access, *std::move(ports), **core, services, failure, metrics);
  if (!doors.ok()) return Fail(doors.status());
  if (access->certificates == nullptr) WarnOfPlaintext(options);
  std::printf("%s\n", (*doors)->ReadyLine(*(*core)->backend).c_str());
  std::fflush(stdout);
  Notify("READY=1");
  int signal = AwaitSignal(signals, metrics);
  for (; signal == SIGHUP; signal = AwaitSignal(signals, metrics)) {
    Reload(read_settings(), line, *access, **core, services);
  }
  Stop(signal, options, signals, **core, **doors, failure);
  return 0;
}

int Main(int argc, char** argv) {
  ReportCrashes(argv[0]);
  // gRPC uses Abseil's mutexes, and the distribution builds these with the deadlock detection of debug
  // builds. With it, every lock of every thread goes through one global lock.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);

  const ReadSettings read_settings = [argc, argv] { return ParseCommandLine(argc, argv, std::getenv); };
  const CommandLine line = read_settings();
  if (!line.errors.empty() && line.action != CommandLine::Action::kCheckConfig) {
    PrintErrors(line.errors);
    return 2;
  }
  SetLogFormat(line.options.log_format == "json" ? LogFormat::kJson : LogFormat::kLogfmt);
  switch (line.action) {
    case CommandLine::Action::kHelp:
      std::fputs(HelpText(line.options).c_str(), stdout);
      return 0;
    case CommandLine::Action::kVersion:
      std::printf("warplined %s (%s, CUDA %s, gRPC %s)\n", kVersion, kRevision, WARPLINE_CUDA_VERSION,
                  GRPC_CPP_VERSION_STRING);
      return 0;
    case CommandLine::Action::kNewToken:
      PrintNewToken(line.new_token);
      return 0;
    case CommandLine::Action::kCheckConfig:
      return CheckConfig(line);
    case CommandLine::Action::kServe:
      LogSettings(line.settings);
      return Serve(line, read_settings);
  }
  return 1;
}

}  // namespace
}  // namespace warpline

int main(int argc, char** argv) { return warpline::Main(argc, argv); }

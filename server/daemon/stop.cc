#include "server/daemon/stop.h"

#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/base/clock.h"
#include "server/base/service_manager.h"
#include "server/observe/log.h"

namespace warpline {
namespace {

// The time for calls to end with an error status after a device has failed.
constexpr absl::Duration kToFail = absl::Seconds(1);
// The time for clients to close connections whose calls have ended; a tenth of the grace period if that is
// less.
constexpr absl::Duration kToClose = absl::Seconds(1);

// Continues to serve for `delay`: load balancers must first see the changed health, and clients still send
// calls.
void ServeOn(absl::Duration delay, const DeviceFailure& failure) {
  const absl::Time until = absl::Now() + delay;
  while (absl::Now() < until && !failure.happened()) absl::SleepFor(absl::Milliseconds(20));
}

// Arrays of streamed calls are transferred by other calls, over open connections. So clients are asked to
// leave only when the streamed calls have ended, or half of the time has passed. Everything else is served as
// before. Uploads and results whose client seems to be gone are not waited for.
void EndStreamedCalls(StreamedCalls& calls, TensorStore& tensors, absl::Time deadline,
                      const DeviceFailure& failure) {
  constexpr absl::Duration kGone = absl::Seconds(2);
  calls.Drain();
  const absl::Time until = absl::Now() + (deadline - absl::Now()) / 2;
  while (calls.count() > 0 && absl::Now() < until && !failure.happened()) {
    calls.EndIdle(kGone);
    tensors.DropIdleResults(kGone);
    absl::SleepFor(absl::Milliseconds(5));
  }
  calls.EndWaiting();  // their clients cannot upload anything more
}

[[noreturn]] void ExitWithWork(const DeviceFailure& failure, const std::string& reason) {
  Log("error", "exiting with work unfinished", {{"reason", failure.happened() ? "device" : reason}});
  std::_Exit(failure.happened() ? 2 : 1);  // lanes may hang on the device
}

// Ends the calls. Returns false if calls or their jobs are still there.
bool Drain(Core& core, Doors& doors, absl::Time deadline) {
  // Work for calls that have been accepted is still admitted, including uploads in progress.
  const bool ended = doors.rpc->Drain(deadline);
  core.tensors->DropIdleResults(absl::ZeroDuration());  // nobody can fetch them any more
  return ended && core.admission->AwaitIdle(After(deadline - absl::Now()));
}

}  // namespace

void Notify(const std::string& state) {
  const absl::Status status = NotifyServiceManager(state);
  if (!status.ok())
    Log("warning", "the service manager was not told", {{"reason", std::string(status.message())}});
}

void Stop(int number, const ServerOptions& options, Signals& signals, Core& core, Doors& doors,
          DeviceFailure& failure) {
  const absl::Time deadline = absl::Now() + options.grace;
  const bool failed_at_first = failure.happened();
  // A user at a terminal does not want to wait, and a server without its device has nothing to serve.
  const absl::Duration delay =
      number == SIGINT || failed_at_first ? absl::ZeroDuration() : options.drain_delay;
  Log("info", "stopping: not serving, for health checks; resident tensors end with this process",
      {{"signal", number == SIGINT ? "SIGINT" : "SIGTERM"},
       {"grace", absl::FormatDuration(options.grace)},
       {"drain_delay", absl::FormatDuration(delay)},
       {"resident_tensors", absl::StrCat(core.tensors->size())}});
  doors.ready = false;
  Notify("STOPPING=1");
  doors.rpc->SetServing(false);
  const auto urgent = [&failure, failed_at_first] { return !failed_at_first && failure.happened(); };
  const FurtherSignal further(signals, urgent, [&failure] {
    if (failure.happened()) absl::SleepFor(kToFail);
    ExitWithWork(failure, "a further signal");
  });
  ServeOn(delay, failure);
  EndStreamedCalls(*core.streamed, *core.tensors, deadline, failure);
  const absl::Time work_deadline = failure.happened() ? absl::Now() + kToFail : deadline;
  const bool drained = Drain(core, doors, work_deadline - std::min(kToClose, options.grace / 10));
  if (failure.happened() || (!drained && core.scheduler->IsBusy()))
    ExitWithWork(failure, "the grace is over");
  // The remaining connections are idle.
  if (!drained || !doors.rpc->Shutdown(work_deadline)) {
    Log("info", "stopped; a client did not close its connection");
    std::_Exit(0);
  }
  Log("info", "stopped");
  failure.SetStopped();  // cleanup on a device may hang forever
}

}  // namespace warpline

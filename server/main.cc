// warplined: the wiring, and the life of the process.
#include <signal.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "cmake/version.h"
#include "proto/wire/scanner.h"
#include "server/base/descriptor_limit.h"
#include "server/base/free_memory.h"
#include "server/base/service_manager.h"
#include "server/base/stop_signals.h"
#include "server/base/usable_cpus.h"
#include "server/base/usable_memory.h"
#include "server/base/worker_pool.h"
#include "server/check_config.h"
#include "server/command_line.h"
#include "server/device/attempts.h"
#include "server/device/watchdog.h"
#include "server/identity/identities.h"
#include "server/make_backend.h"
#include "server/memory/region_store.h"
#include "server/memory/staging_pool.h"
#include "server/memory/streamed_call.h"
#include "server/memory/tensor_store.h"
#include "server/new_token.h"
#include "server/observe/access_log.h"
#include "server/observe/crash_report.h"
#include "server/observe/http_server.h"
#include "server/observe/log.h"
#include "server/observe/metrics.h"
#include "server/observe/owner_metrics.h"
#include "server/options.h"
#include "server/plan/plan_cache.h"
#include "server/rpc/chunk_window.h"
#include "server/rpc/identify.h"
#include "server/rpc/incoming_call.h"
#include "server/rpc/inflater.h"
#include "server/rpc/info_service.h"
#include "server/rpc/kernel_service.h"
#include "server/rpc/library_log.h"
#include "server/rpc/region_server.h"
#include "server/rpc/region_service.h"
#include "server/rpc/rpc_server.h"
#include "server/rpc/tensor_service.h"
#include "server/rpc/tls_credentials.h"
#include "server/schedule/admission.h"
#include "server/schedule/fair_budget.h"
#include "server/schedule/fair_workers.h"
#include "server/schedule/owner_limits.h"
#include "server/schedule/scheduler.h"
#include "server/tls/certificate_store.h"
#include "server/tune.h"

namespace warpline {
namespace {

int Fail(const absl::Status& status) {
  Log("error", std::string(status.message()));
  return 1;
}

std::vector<std::size_t> OfEachDevice(const Backend& backend, std::size_t DeviceInfo::*bytes) {
  std::vector<std::size_t> each;
  for (const DeviceInfo& device : backend.devices()) each.push_back(device.*bytes);
  return each;
}

// Each region has a connection, and at first its memfd: together an eighth of all descriptors, which
// MaxConnections leaves.
std::size_t MaxRegions(std::int64_t descriptors) {
  return static_cast<std::size_t>(std::clamp<std::int64_t>(descriptors / 16, 16, 4096));
}

// A path that is longer than those of sockets may be is an error only if it was asked for.
std::vector<std::string> RegionPaths(const ServerOptions& options, std::int64_t region_bytes) {
  std::vector<std::string> paths;
  if (region_bytes == 0) return paths;
  for (std::string& path : options.RegionPaths()) {
    if (path == options.regions || path.size() < sizeof(sockaddr_un::sun_path)) {
      paths.push_back(std::move(path));
    } else {
      Log("warning", "no shared regions beside this socket: the path would be too long", {{"path", path}});
    }
  }
  return paths;
}

// A service manager that does not listen is no reason to stop, nor to be silent about it.
void Notify(const std::string& state) {
  const absl::Status status = NotifyServiceManager(state);
  if (!status.ok())
    Log("warning", "the service manager was not told", {{"reason", std::string(status.message())}});
}

// The memory of the plans that are known: enough for some ten thousand kinds of requests.
constexpr std::size_t kPlanCacheBytes = std::size_t{32} << 20;

// Waits for a stop signal, and returns its number. Memory that bursts of large messages left with the
// allocator goes back to the kernel once the server has been idle for a second.
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

// The time in which load balancers see that the server's health has changed, and clients still come.
void ServeOn(absl::Duration delay, const std::atomic<bool>& device_failed) {
  const absl::Time until = absl::Now() + delay;
  while (absl::Now() < until && !device_failed) absl::SleepFor(absl::Milliseconds(20));
}

// The ranges of calls whose arrays travel apart come by other calls, on connections that are open. So these
// connections are told to leave when such calls have ended, or half of the time is over. Everything else is
// served as before. Uploads and results whose client seems to be gone are not waited for.
void EndStreamedCalls(StreamedCalls& calls, TensorStore& tensors, absl::Time deadline,
                      const std::atomic<bool>& device_failed) {
  constexpr absl::Duration kGone = absl::Seconds(2);
  calls.Drain();
  const absl::Time until = absl::Now() + (deadline - absl::Now()) / 2;
  while (calls.count() > 0 && absl::Now() < until && !device_failed) {
    calls.EndIdle(kGone);
    tensors.DropIdleResults(kGone);
    absl::SleepFor(absl::Milliseconds(5));
  }
  calls.EndWaiting();  // their clients can bring nothing more
}

// For calls to end with the status of a device that has failed.
constexpr absl::Duration kToFail = absl::Seconds(1);

// For what may wait, and what clients can cause in any amount: messages that are inflated, and lists. Each
// thread keeps a core busy, so that more would only be slower. On a machine with few cores they would take
// the time of the threads that receive calls.
constexpr int kBackgroundThreads = 2, kBackgroundNice = 10;

int Serve(const ServerOptions& options) {
  StopSignals signals;
  TakeOverLibraryLogs();
  const std::int64_t descriptors = RaiseDescriptorLimit();
  const int cpus = UsableCpus();
  Metrics metrics;
  // First of all, so that a mistake in these files shows before anything takes long.
  std::unique_ptr<CertificateStore> certificates;
  if (options.tls.configured()) {
    auto opened = CertificateStore::Open(
        options.tls, [&](const Certificates& current) { metrics.SetCertificateExpiry(current.not_after); });
    if (!opened.ok()) return Fail(opened.status());
    certificates = *std::move(opened);
    const std::shared_ptr<const Certificates> current = certificates->current();
    Log("info", "TLS",
        {{"subject", current->subject},
         {"expires", absl::FormatTime(absl::RFC3339_sec, current->not_after, absl::UTCTimeZone())},
         {"client_certificates", certificates->verifies_clients() ? "required" : "none"}});
  }
  std::unique_ptr<Identities> identities;
  LimitsOf limits_of;
  std::function<std::string(OwnerId)> name_of;
  std::unique_ptr<OwnerMetrics> owner_metrics;
  if (!options.tokens.empty() || !options.tls.client_ca.empty()) {
    auto opened = Identities::Open({.file = options.tokens});
    if (!opened.ok()) return Fail(opened.status());
    identities = *std::move(opened);
    limits_of = [&identities](OwnerId owner) { return identities->LimitsOf(owner); };
    name_of = [&identities](OwnerId owner) { return identities->NameOf(owner); };
    owner_metrics = std::make_unique<OwnerMetrics>(options.owner_label_limit, name_of, metrics);
  }
  std::unique_ptr<AccessLog> access_log;
  if (!options.access_log.empty()) {
    auto opened = AccessLog::Open(options.access_log, metrics);
    if (!opened.ok()) return Fail(opened.status());
    access_log = *std::move(opened);
  }
  // Its context is lost, or it hangs: only another process can help.
  std::atomic<bool> device_failed = false, stopped = false;
  const auto fail = [&](const std::string& what, const std::string& reason) {
    Log("error", what + ": the process will exit", {{"reason", reason}});
    if (stopped) std::_Exit(2);  // nobody waits for signals any more
    device_failed = true;
    kill(getpid(), SIGTERM);
  };
  const auto attempts = std::make_shared<Attempts>();
  // Before the backend, so that it goes after the last attempt.
  std::unique_ptr<DeviceWatchdog> watchdog;
  auto backend = MakeBackend(options, metrics, attempts, [&](const absl::Status& status) {
    fail("GPU context lost", std::string(status.message()));
  });
  if (!backend.ok()) return Fail(backend.status());
  const bool cuda = (*backend)->name() == "cuda";
  // The cpu backend measures its rates at the first question: now, while nothing else runs.
  static_cast<void>((*backend)->EstimateSeconds(Program()));
  for (const DeviceInfo& device : (*backend)->devices()) {
    Log("info", "device",
        {{"ordinal", absl::StrCat(device.ordinal)},
         {"name", device.name},
         {"cc", device.compute_capability},
         {"resident_bytes", absl::StrCat(device.resident_bytes)},
         {"upload_bytes", absl::StrCat(device.upload_bytes)}});
    metrics.SetDeviceInfo(device.ordinal, device.name, device.compute_capability);
  }
  metrics.SetBuildInfo(kVersion, kRevision, WARPLINE_CUDA_VERSION);

  if (options.PinnedBytes(cuda) < 4 * options.max_inline_bytes) {
    Log("warning", "--pinned-bytes is less than 4 x --max-inline-bytes: requests of full size do not fit");
  }
  const std::int64_t tiny_bytes = options.TinyPinnedBytes(cuda);
  auto staging_memory =
      (*backend)->AllocateHost(static_cast<std::size_t>(tiny_bytes + options.PinnedBytes(cuda)));
  if (!staging_memory.ok()) return Fail(staging_memory.status());
  StagingPool pool(staging_memory->bytes(), static_cast<std::size_t>(tiny_bytes), metrics);
  Admission admission({.max_jobs = options.max_jobs,
                       .max_bytes = options.MaxJobBytes(),
                       .limits_of = limits_of,
                       .owner_metrics = owner_metrics.get()},
                      metrics);
  // A quarter: the rest is left for requests, however many transfers there are and however slow.
  FairBudget transfers({.total = options.MaxJobBytes() / 4, .what = "bytes for transfers"});
  const auto allocate = [&](int device, std::size_t bytes) {
    return (*backend)->AllocateResident(device, bytes);
  };
  StreamedCalls streamed({.device_bytes = OfEachDevice(**backend, &DeviceInfo::upload_bytes),
                          .chunk_bytes = ChunkWindow::kChunkBytes},
                         allocate, transfers, admission, metrics);
  // Before those whose tasks and jobs use tensors, so that it goes after them.
  TensorStore tensors({.max_ttl = options.max_ttl,
                       .device_bytes = OfEachDevice(**backend, &DeviceInfo::resident_bytes),
                       .limits_of = limits_of,
                       .owner_metrics = owner_metrics.get()},
                      allocate, metrics);
  const auto available = static_cast<std::int64_t>(AvailableMemoryBytes());
  RegionStore regions({.max_bytes = static_cast<std::size_t>(options.RegionBytes(available)),
                       .max_bytes_per_owner = options.region_bytes_per_owner,
                       .max_regions = MaxRegions(descriptors),
                       .max_regions_per_owner = static_cast<std::size_t>(options.regions_per_owner),
                       .limits_of = limits_of,
                       .owner_metrics = owner_metrics.get()},
                      metrics);
  // Registering memory with the devices takes long, and is done for one client after the other.
  WorkerPool registering(1);
  // On the CPU a job takes as long as others leave it no core; a job there always ends.
  if (cuda) {
    watchdog = WatchDevices(static_cast<int>((*backend)->devices().size()), options.device_timeout, *attempts,
                            [&](const std::string& stall) { fail("device hangs", stall); });
  }
  WorkerPool workers(options.Workers(cpus));
  auto scheduler = Scheduler::Create({.lanes_per_device = options.Lanes(cuda),
                                      .lanes_kept = options.LanesKept(cuda),
                                      .short_seconds = options.ShortSeconds(cuda),
                                      .short_bytes = options.ShortBytes(cuda),
                                      .running_seconds_max = options.RunningSecondsMax(cuda),
                                      .spin = cuda ? options.Look(cpus) : absl::ZeroDuration(),
                                      .limits_of = limits_of,
                                      .owner_metrics = owner_metrics.get(),
                                      .watchdog = watchdog.get()},
                                     **backend, pool, workers, metrics);
  if (!scheduler.ok()) return Fail(scheduler.status());
  PlanCache plans(kPlanCacheBytes, metrics);
  FairWorkers compilers(options.Compilers(cpus));
  FairWorkers background(kBackgroundThreads, kBackgroundNice);
  KernelService kernels(
      {.max_inline_bytes = options.max_inline_bytes, .max_device_seconds = options.MaxDeviceSeconds(cuda)},
      {**backend, plans, compilers, workers, admission, pool, **scheduler, tensors, streamed, regions,
       options.send_timeout, name_of, owner_metrics.get()},
      metrics);
  TensorService tensor_service(
      {**backend, tensors, transfers, admission, pool, workers, compilers, background}, metrics);
  const std::vector<std::string> region_paths = RegionPaths(options, options.RegionBytes(available));
  RegionService region_service(regions, !region_paths.empty());
  InfoService::OwnLimits own_limits;
  own_limits.upload_bytes = [&](const Caller& caller) { return streamed.MaxBytesOf(caller.claimant); };
  if (!region_paths.empty()) {
    own_limits.region_bytes = [&](const Caller& caller) { return regions.MaxBytesOf(caller); };
  }
  const InfoService info({.version = kVersion, .revision = kRevision}, options, **backend, own_limits);

  const auto handle = [&](std::size_t codec) {
    return [&kernels, codec](UnaryCall& call) { kernels.Handle(call, kernels.codecs()[codec]); };
  };
  std::optional<CallLog> call_log;
  if (access_log != nullptr) call_log.emplace(CallLog{*access_log, name_of});
  Inflater inflater(admission, background);
  WorkerPool crew(options.Crew(cpus), options.Look(cpus));
  const std::shared_ptr<grpc::ServerCredentials> credentials =
      certificates != nullptr ? NewTlsCredentials(*certificates) : nullptr;
  auto server = RpcServer::Start(
      {.listen = options.listen,
       .proxy_listen = options.proxy_listen,
       .credentials = credentials,
       .threads = options.RpcThreads(cpus),
       .helpers = options.TransferThreads(cpus),
       .look = options.Look(cpus),
       .crew = crew.size() > 0 ? &crew : nullptr,
       .identify = IdentifyBy(identities.get()),
       .log = access_log != nullptr ? &*call_log : nullptr,
       .max_connections = options.MaxConnections(descriptors),
       .max_message_bytes = options.max_inline_bytes + static_cast<std::int64_t>(kMaxHeaderBytes),
       .memory_quota_bytes = options.GrpcMemoryBytes(),
       .max_streams_per_connection = options.max_streams,
       .send_timeout = options.send_timeout,
       .max_connection_age = options.max_connection_age,
       .echo = options.echo},
      {.transpose = handle(0),
       .gemm = handle(1),
       .reduce = handle(2),
       .run = handle(3),
       .get_info = [&](UnaryCall& call) { info.GetInfo(call); },
       .echo = Echo,
       .tensors = &tensor_service,
       .regions = &region_service},
      inflater, metrics);
  if (!server.ok()) return Fail(server.status());
  std::unique_ptr<RegionServer> region_server;
  if (!region_paths.empty()) {
    auto started = RegionServer::Start({.paths = region_paths, .max_connections = MaxRegions(descriptors)},
                                       regions, **backend, registering);
    if (!started.ok()) return Fail(started.status());
    region_server = *std::move(started);
    Log("info", "shared regions",
        {{"sockets", absl::StrJoin(region_paths, ",")},
         {"bytes", absl::StrCat(options.RegionBytes(available))}});
  }
  std::atomic<bool> ready = true;
  std::unique_ptr<HttpServer> http;
  if (!options.metrics_listen.empty()) {
    auto started = HttpServer::Start(options.metrics_listen, certificates.get(),
                                     {.metrics = [&] { return metrics.Scrape(); },
                                      .alive = [&] { return !device_failed.load(); },
                                      .ready = [&] { return ready.load(); },
                                      .knows = options.tokens.empty() ? nullptr : KnowsToken(*identities)},
                                     ServerOptions::MaxHttpConnections(descriptors));
    if (!started.ok()) return Fail(started.status());
    http = std::move(*started);
  }
  if (certificates == nullptr) {
    for (const std::string& address : options.AddressesBeyondLoopback()) {
      Log("warning", "--insecure: plaintext beyond loopback, for everybody who reaches it",
          {{"address", address}});
    }
  }
  const std::string proxies = absl::StrJoin((*server)->proxy_addresses(), ",");
  std::printf("READY grpc=%s metrics=%s backend=%s%s%s\n", absl::StrJoin((*server)->addresses(), ",").c_str(),
              http != nullptr ? http->address().c_str() : "none", std::string((*backend)->name()).c_str(),
              proxies.empty() ? "" : " proxy=", proxies.c_str());
  std::fflush(stdout);
  Notify("READY=1");

  const int number = AwaitStop(signals, metrics);
  const absl::Time deadline = absl::Now() + options.grace;
  // Whoever sits at a terminal does not want to wait, and a server without its device has nothing to serve.
  const absl::Duration delay = number == SIGINT || device_failed ? absl::ZeroDuration() : options.drain_delay;
  Log("info", "stopping: not serving, for health checks; resident tensors end with this process",
      {{"signal", number == SIGINT ? "SIGINT" : "SIGTERM"},
       {"grace", absl::FormatDuration(options.grace)},
       {"drain_delay", absl::FormatDuration(delay)},
       {"resident_tensors", absl::StrCat(tensors.size())}});
  ready = false;
  Notify("STOPPING=1");
  (*server)->SetServing(false);
  const auto urgent = [&device_failed, at_first = device_failed.load()] {
    return !at_first && device_failed;
  };
  const FurtherSignal further(signals, urgent, [&device_failed] {
    if (device_failed) absl::SleepFor(kToFail);
    Log("error", "exiting with work unfinished", {{"reason", device_failed ? "device" : "a further signal"}});
    std::_Exit(device_failed ? 2 : 1);
  });
  ServeOn(delay, device_failed);
  EndStreamedCalls(streamed, tensors, deadline, device_failed);
  const absl::Time work_deadline = device_failed ? absl::Now() + kToFail : deadline;
  // Work that comes with accepted calls is still admitted, including uploads in progress.
  const bool ended = (*server)->Drain(work_deadline);
  tensors.DropIdleResults(absl::ZeroDuration());  // nobody can fetch them any more
  const bool drained = ended && admission.AwaitIdle(After(work_deadline - absl::Now()));
  // The connections that are left are idle.
  const bool closed = (*server)->Shutdown(drained ? work_deadline : absl::Now());
  if (!drained || device_failed) {
    Log("error", "exiting with work unfinished");
    std::_Exit(device_failed ? 2 : 1);  // lanes may hang on the device
  }
  if (!closed) {
    Log("info", "stopped; a client did not close its connection");
    std::_Exit(0);
  }
  Log("info", "stopped");
  stopped = true;  // what is tried on a device may never end
  return 0;
}

int Main(int argc, char** argv) {
  ReportCrashes(argv[0]);
  // gRPC's mutexes are Abseil's, and the distribution builds those with the search for deadlocks of debug
  // builds: every lock of every thread then goes through one global lock.
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
    case CommandLine::Action::kTune:
      return Tune(line->options, line->tune);
    case CommandLine::Action::kServe:
      LogSettings(line->settings);
      return Serve(line->options);
  }
  return 1;
}

}  // namespace
}  // namespace warpline

int main(int argc, char** argv) { return warpline::Main(argc, argv); }

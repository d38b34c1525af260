#include "server/flags.h"

#include <CLI/CLI.hpp>
#include <utility>

#include "absl/strings/str_cat.h"

namespace warpline {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr std::int64_t kGiB = std::int64_t{1} << 30;

}  // namespace

void AddFlag(CLI::App& app, const std::string& name, const char* value, SetValue set, const char* help) {
  const std::string flag = absl::StrCat("--", name);
  const auto take = [flag, set = std::move(set)](const std::string& text) {
    const absl::Status status = set(text);
    if (!status.ok()) throw CLI::ValidationError(absl::StrCat(flag, "=", text, ": ", status.message()));
  };
  // A value that may be left out: else the word after `--flag=` would be taken for it.
  app.add_option_function<std::string>(flag, take, help)
      ->type_name(value)
      ->expected(0, 1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

void AddFlags(CLI::App& app, ServerOptions& o) {
  const auto group = [&app](const char* name) { app.option_defaults()->group(name); };
  const auto add = [&app](const std::string& name, const char* value, SetValue set, const char* help) {
    AddFlag(app, name, value, std::move(set), help);
  };
  const auto add_switch = [&app](const std::string& name, bool& variable, const char* help) {
    AddFlag(app, name, "", Switch(variable), help);
  };

  group("Addresses");
  add("listen", "ADDR[,ADDR]", Addresses(o.listen),
      "gRPC: host:port (port 0: a free one) or unix:/path. Default 127.0.0.1:50051.");
  add("proxy-listen", "ADDR[,ADDR]", Addresses(o.proxy_listen),
      "gRPC for proxies: each connection must begin with a header of PROXY protocol version 2, which names "
      "the "
      "client; with --tls-cert, TLS follows on TCP. Whoever can connect there can claim any address "
      "(docs/sharing.md). Default none.");
  add("metrics-listen", "ADDR", MetricsAddress(o.metrics_listen),
      "HTTP (with --tls-cert, HTTPS) /metrics, /healthz, /readyz: host:port; empty: none. Default "
      "127.0.0.1:9400.");
  add("regions", "PATH", Path(o.regions),
      "A unix socket for clients on this host that share memory, beside PATH.regions of each unix:PATH in "
      "--listen. Default none.");
  add_switch(
      "insecure", o.insecure,
      "Allow --listen and --metrics-listen beyond loopback without TLS, where everybody in between can read "
      "and change what is sent, and everybody who reaches the port may use the server. Default off.");

  group("Identity and TLS");
  add("tls-cert", "FILE", Path(o.tls.cert),
      "PEM: the server's certificate, then those between it and the root. Both ports then speak TLS 1.2 or "
      "1.3 and nothing else; unix sockets stay as they are. Files are read again when they change. Default "
      "none.");
  add("tls-key", "FILE", Path(o.tls.key),
      "PEM: the certificate's private key, without a pass phrase. Default none.");
  add("tls-client-ca", "FILE", Path(o.tls.client_ca),
      "PEM: CAs. gRPC and /metrics are then only for clients with a certificate that one of them has signed; "
      "/healthz and /readyz for all. Default none: clients need no certificate.");
  add("tokens", "FILE", Path(o.tokens),
      "TOML: who may use the server and how much of it (docs/identity.md). gRPC and /metrics then want a "
      "token of this file, or a certificate with --tls-client-ca; health checks want none. Read again when "
      "it changes. Default none: everybody who reaches the server.");
  add("owner-label-limit", "N", Integer(o.owner_label_limit, 0, 10000),
      "Owners with warpline_owner_ metrics of their own, the first that come, 0 to 10000; others share those "
      "of \"other\". Default 50.");

  group("Devices");
  add("backend", "NAME", OneOf(o.backend, {"auto", "cuda", "cpu"}),
      "auto, cuda or cpu. Default auto: cuda where there is a GPU.");
  add("devices", "LIST", Ordinals(o.devices),
      "all (default): those that are neither full nor unusable; or CUDA ordinals like 0,2, an error if one "
      "of them is.");
  add("lanes", "N", Integer(o.lanes, 0, 64),
      "Lanes a device, 1 to 64; 0 (default): 8 on cuda, cores up to 4 on cpu. On cuda a quarter is kept for "
      "jobs of 100 us and 2 MiB at most; the cpu has one lane more, for jobs of 10 ms at most.");
  add("kept-multiprocessors", "N", Integer(o.kept_multiprocessors, 0, 1024),
      "Multiprocessors of each GPU on which long kernels do not run, so that short jobs need not wait for a "
      "block of one to end; in whole 8 on compute capability 9.0. No program is a CUDA graph then, "
      "so that small products take longer. All that compute gets slower by their share. "
      "0 (default): none. Without an effect on cpu.");
  add("graph-cache-entries", "N", Integer(o.graph_cache_entries, 1, 100000),
      "Captured CUDA graphs a lane keeps, 1 to 100000. Default 256.");
  add("timing-sample", "N", Integer(o.timing_sample, 0, 1000000),
      "Time transfers and kernels of one job in N on the device, and of each job on a lane that has timed "
      "none for 100 ms; 0: none. On a shared device the times include contention. Default 128.");
  add("tuning", "MODE", OneOf(o.tuning, {"off", "read", "write"}),
      "Which variant runs where a request leaves it open. read: what --tuning-file has found to be the "
      "fastest, if it has; write: and what it does not have is tried while the GPU is idle, and added to it; "
      "off: by rules alone, as for requests that ask for reproducible results. Default read. Without an "
      "effect on cpu.");
  add("tuning-file", "FILE", Path(o.tuning_file),
      "TOML: the fastest variants of problems, by kind of GPU (docs/tuning.md). With --tuning=write it is "
      "made if it "
      "is not there, and its folder must be writable. Default: that of the package, "
      "../share/warpline/tuning/tuned.toml beside the program's folder, if it is there; with write none.");
  add("device-timeout", "DURATION", Time(o.device_timeout, absl::ZeroDuration(), absl::Hours(1)),
      "A job that runs on a GPU for so long, and 10 x its estimate and those of the jobs beside it, ends the "
      "process; 0s to 1h, 0s: never. Default 10s. Without an effect on cpu.");

  group("Memory");
  add("max-inline-bytes", "BYTES", Bytes(o.max_inline_bytes, 4096, kGiB),
      "Tensors of one request together, and of one response; 4K to 1G. Default 256M.");
  add("pinned-bytes", "BYTES", BytesOrZero(o.pinned_bytes, kMiB, 256 * kGiB),
      "Staging memory, taken at start; 1M to 256G, at least 4 x max-inline-bytes for requests of full size. "
      "0 (default): 8 x max-inline-bytes on cuda (pinned), 4 x on cpu (not touched before use).");
  add("device-bytes", "BYTES", BytesOrAuto(o.device_bytes, 64 * kMiB),
      "Memory of each device, taken at start: 48M for each lane, the rest for a pool from which larger "
      "programs take what they need while they run; those that find it full wait. 64M to 1024G, an error if "
      "the device has less free beside 128M and 64M for each lane, which later allocations need. auto "
      "(default): lanes x (2 x max-inline-bytes + 64M + 48M), or what a device that others use has free. On "
      "the cpu, scratch memory, taken when it is used: 2 x (2 x max-inline-bytes + 64M), or half of what the "
      "machine or the cgroup has.");
  add("resident-bytes", "BYTES", BytesOrAuto(o.resident_bytes, 0),
      "Memory of each device for resident tensors, taken as they are made; 0 to 1024G, 0: none. auto "
      "(default): half of what is left of the device at start when everything else has its memory; on the "
      "cpu, half of what is left of the machine's or the cgroup's. In whole 32M on cuda.");
  add("max-ttl", "DURATION", Time(o.max_ttl, absl::Minutes(10), absl::Hours(8760)),
      "The longest lease of a resident tensor, which each use renews; 10m to 8760h. Default 24h.");
  add("region-bytes", "BYTES", BytesOrAuto(o.region_bytes, 0),
      "Shared regions together, which are the clients' own memory, page-locked on cuda; 0 to 1024G, 0: none. "
      "auto (default): a quarter of what the machine or the cgroup has available at start.");
  add("region-bytes-per-owner", "BYTES", BytesOrAuto(o.region_bytes_per_owner, 0),
      "Shared regions of one owner; 0 to 1024G. auto (default): as many as of all.");
  add("regions-per-owner", "N", Integer(o.regions_per_owner, 1, 100000),
      "Shared regions of one owner, 1 to 100000. Default 1024.");
  add("grpc-memory-bytes", "BYTES", BytesOrZero(o.grpc_memory_bytes, 16 * kMiB, 1024 * kGiB),
      "gRPC's buffers for messages being received, over all connections; 16M to 1024G. Beyond it connections "
      "are cut. 0 (default): 6 x max-inline-bytes.");

  group("Limits of requests and connections");
  add("max-jobs", "N", Integer(o.max_jobs, 1, 1000000),
      "Requests admitted and unanswered, 1 to 1000000. Default 1024.");
  add("max-job-bytes", "BYTES", BytesOrZero(o.max_job_bytes, kMiB, 1024 * kGiB),
      "Bytes of admitted requests and their results; 1M to 1024G, at least 2 x max-inline-bytes. 0 "
      "(default): 4 x max-inline-bytes.");
  add("max-device-seconds", "SECONDS", Number(o.max_device_seconds, 86400),
      "Time that a request may take on a device, as estimated from its sizes and variants; 0 to 86400, 0: no "
      "limit. Default: 10 on cuda, 120 on cpu.");
  add("max-streams", "N", Integer(o.max_streams, 1, 10000),
      "Concurrent calls a connection, 1 to 10000; more wait in the client. Default 128.");
  add("max-connections", "N", Integer(o.max_connections, 0, 1000000),
      "Open connections, 1 to 1000000; for each beyond, an idle one is closed, or if there is none, the new "
      "one "
      "(docs/sharing.md). Each takes two descriptors. 0 (default): as many as the limit of descriptors "
      "(ulimit -n, raised to the hard limit at start) allows, "
      "at most 10000.");
  add("send-timeout", "DURATION", Time(o.send_timeout, absl::Seconds(1), absl::Hours(1)),
      "A response that its client has not taken whole after so long is given up, and a request of which "
      "fewer "
      "than 64K come in so long; 1s to 1h. Default 30s.");

  group("Threads");
  add("rpc-threads", "N", Integer(o.rpc_threads, 0, 64),
      "Threads that receive calls, 1 to 64; all but the first only help while many are in progress. 0 "
      "(default): 2 from 8 usable CPUs if they poll, else 1.");
  add("transfer-threads", "N", Integer(o.transfer_threads, 0, 64),
      "Threads that send and receive too while several Puts and Gets are in progress, 1 to 64. 0 (default): "
      "half of the usable CPUs less one, at most 7.");
  add("poll", "MODE", OneOf(o.poll, {"auto", "on", "off"}),
      "on: a thread that receives calls looks for the next one for 100 us before it sleeps, which saves the "
      "time of waking it up and uses up to a CPU for each under load; off: it sleeps at once; auto "
      "(default): on from 4 usable CPUs (affinity and cgroup quota).");

  group("Life of the process");
  add("grace", "DURATION", Time(o.grace, absl::ZeroDuration(), absl::Hours(1)),
      "Time from SIGTERM or SIGINT on for accepted work to end; 0s to 1h. A further signal ends the process "
      "at once. Default 30s.");
  add("drain-delay", "DURATION", Time(o.drain_delay, absl::ZeroDuration(), absl::Hours(1)),
      "A part of the grace in which the server still serves all that comes, while its health is NOT_SERVING "
      "already: the time in which load balancers notice. After SIGTERM only. 0s to --grace. Default 0s.");
  add("max-connection-age", "DURATION", Time(o.max_connection_age, absl::ZeroDuration(), absl::Hours(240)),
      "Clients are asked to leave a connection that is so old, give or take a tenth, so that they spread "
      "over servers that were added; no call is lost, but for one that goes on for another hour. 0s "
      "(default): never; 1s to 240h.");
  add("access-log", "FILE", Path(o.access_log),
      "A line in logfmt for each call that has ended, appended to the file; - writes to stderr. Lines that "
      "cannot be written are dropped and counted (warpline_access_log_lines_total). Default none.");
  add_switch("echo", o.echo,
             "Serve EchoService, the ceiling that `warpline bench --op echo` measures. Default off.");
}

}  // namespace warpline

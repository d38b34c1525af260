#include "server/settings/flags.h"

#include <CLI/CLI.hpp>
#include <utility>

#include "absl/strings/str_cat.h"

namespace warpline {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr std::int64_t kGiB = std::int64_t{1} << 30;

}  // namespace

void AddFlag(CLI::App& app, FlagErrors& errors, const std::string& name, const char* value, SetValue set,
             const char* help) {
  const std::string flag = absl::StrCat("--", name);
  const auto take = [&errors, flag, set = std::move(set)](const std::string& text) {
    const absl::Status status = set(text);
    if (!status.ok()) errors.push_back(absl::StrCat(flag, "=", text, ": ", status.message()));
  };
  // The value is optional, because CLI11 would otherwise use the next word as the value of an empty
  // `--flag=`.
  app.add_option_function<std::string>(flag, take, help)
      ->type_name(value)
      ->expected(0, 1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

namespace {

class FlagAdder {
 public:
  FlagAdder(CLI::App& app, FlagErrors& errors, const char* group) : app_(app), errors_(errors) {
    app_.option_defaults()->group(group);
  }
  void Add(const std::string& name, const char* value, SetValue set, const char* help) {
    AddFlag(app_, errors_, name, value, std::move(set), help);
  }
  void AddSwitch(const std::string& name, bool& variable, const char* help) {
    AddFlag(app_, errors_, name, "", Switch(variable), help);
  }

 private:
  CLI::App& app_;
  FlagErrors& errors_;
};

void AddAddresses(FlagAdder flags, ServerOptions& o) {
  flags.Add("listen", "ADDR[,ADDR]", Addresses(o.listen),
            "gRPC: host:port (port 0: any free port) or unix:/path. Default 127.0.0.1:50051.");
  flags.Add(
      "proxy-listen", "ADDR[,ADDR]", Addresses(o.proxy_listen),
      "gRPC for proxies: each connection must begin with a PROXY protocol v2 header that names the client; "
      "with --tls-cert, TLS follows on TCP. Anyone who can connect here can claim any address "
      "(docs/sharing.md). Default none.");
  flags.Add(
      "metrics-listen", "ADDR", MetricsAddress(o.metrics_listen),
      "HTTP (HTTPS with --tls-cert) for /metrics, /healthz and /readyz: host:port; empty: none. Default "
      "127.0.0.1:9400.");
  flags.Add(
      "regions", "PATH", Path(o.regions),
      "A unix socket for clients on this host that share memory, beside PATH.regions of each unix:PATH in "
      "--listen. Default none.");
  flags.AddSwitch(
      "insecure", o.insecure,
      "Allow --listen and --metrics-listen beyond loopback without TLS. Anyone on the network path can then "
      "read and change requests, and anyone who can connect may use the server. Default off.");
}

void AddIdentityAndTls(FlagAdder flags, ServerOptions& o) {
  flags.Add(
      "tls-cert", "FILE", Path(o.tls.cert),
      "PEM: the server's certificate and its intermediates. TCP ports then accept TLS 1.2 and 1.3 only; unix "
      "sockets stay unencrypted. Files are read again when they change. Default none.");
  flags.Add("tls-key", "FILE", Path(o.tls.key),
            "PEM: the certificate's private key, without a passphrase. Default none.");
  flags.Add(
      "tls-client-ca", "FILE", Path(o.tls.client_ca),
      "PEM: CAs. Clients of gRPC and /metrics then need a certificate signed by one of them; /healthz and "
      "/readyz do not. Default none: clients need no certificate.");
  flags.Add(
      "tokens", "FILE", Path(o.tokens),
      "TOML: who may use the server and how much of it (docs/identity.md). gRPC and /metrics then need a "
      "token from this file, or a certificate with --tls-client-ca; health checks do not. Read again when it "
      "changes. Default none: anyone who can connect may use the server.");
}

void AddDevices(FlagAdder flags, ServerOptions& o) {
  flags.Add("backend", "NAME", OneOf(o.backend, {"auto", "cuda", "cpu"}),
            "auto, cuda or cpu. Default auto: cuda if there is a GPU.");
  flags.Add("devices", "LIST", DeviceNames(o.devices),
            "all (default): every GPU that is usable and has free memory; or CUDA ordinals and UUIDs "
            "(nvidia-smi -L) "
            "such as 0,GPU-1a2b. One that cannot be used is an error.");
  flags.Add(
      "lanes", "N", Integer(o.lanes, 0, 64),
      "Lanes per device, 1 to 64; 0 (default): 8 on cuda, one per core up to 4 on cpu. On cuda a quarter is "
      "reserved for jobs of at most 100 us and 2 MiB; cpu has one extra lane for jobs of at most 10 ms.");
  flags.Add(
      "kept-multiprocessors", "N", Integer(o.kept_multiprocessors, 0, 1024),
      "Multiprocessors of each GPU that long kernels do not use, so that short jobs do not wait for them; a "
      "multiple of 8 on compute capability 9.0. CUDA graphs are then off, so small products take longer, and "
      "large jobs have fewer multiprocessors. 0 (default): none. No effect on cpu.");
  flags.Add(
      "timing-sample", "N", Integer(o.timing_sample, 0, 1000000),
      "Measure device times of one job in N, and of a job on any lane that has measured none for 100 ms; 0: "
      "never. On a shared device the times include contention. Default 128.");
  flags.Add(
      "device-timeout", "DURATION", Time(o.device_timeout, absl::ZeroDuration(), absl::Hours(1)),
      "The process ends if a job on a GPU runs longer than this plus 10 x its estimate and those of the jobs "
      "beside it; 0s to 1h, 0s: never. Default 10s. No effect on cpu.");
}

void AddMemory(FlagAdder flags, ServerOptions& o) {
  flags.Add(
      "max-inline-bytes", "BYTES", Bytes(o.max_inline_bytes, 4096, kGiB),
      "Tensors in one request together, and in one response; 4K to 1G. The host's memory follows from it: "
      "staging memory of 8 x as much on cuda (pinned at start) and 4 x on cpu (touched when used), at least "
      "1M; 4 x for admitted requests and their results; 6 x for gRPC's buffers, beyond which connections are "
      "closed. Default 256M.");
  flags.Add(
      "device-bytes", "BYTES", BytesOrAuto(o.device_bytes, 64 * kMiB),
      "Memory of each device, allocated at start: 48M for each lane, the rest for a pool that larger "
      "programs use while they run and wait for when it is full. 64M to 1024G; it is an error if the device "
      "has less free besides 128M and 64M for each lane. auto (default): lanes x (2 x max-inline-bytes + 64M "
      "+ 48M), or what is free on a shared device. On cpu, scratch memory, allocated when used: 2 x (2 x "
      "max-inline-bytes + 64M), or half of the memory of the machine or cgroup.");
  flags.Add(
      "resident-bytes", "BYTES", BytesOrAuto(o.resident_bytes, 0),
      "Memory of each device for resident tensors, allocated as they are created; 0 to 1024G, 0: none. auto "
      "(default): half of what is free on the device after everything else has its memory; on cpu, half of "
      "what is left of the machine or cgroup. A multiple of 32M on cuda.");
  flags.Add(
      "upload-bytes", "BYTES", BytesOrAuto(o.upload_bytes, 0),
      "Memory of each device for large operands and results of requests that travel apart from their "
      "messages, allocated as they are announced; 0 to 1024G, 0: none. A client that is alone may have three "
      "quarters "
      "of it (docs/sharing.md). auto (default): a quarter of what is free on the device after everything "
      "else "
      "has its memory; on cpu, an eighth of what is left of the machine or cgroup. A multiple of 32M on "
      "cuda.");
  flags.Add("max-ttl", "DURATION", Time(o.max_ttl, absl::Minutes(10), absl::Hours(8760)),
            "The longest lease of a resident tensor; each use renews it; 10m to 8760h. Default 24h.");
  flags.Add(
      "region-bytes", "BYTES", BytesOrAuto(o.region_bytes, 0),
      "Shared regions of all clients together (the clients' own memory, page-locked on cuda), who share it "
      "fairly (docs/sharing.md): each may take three quarters of what the others leave; 0 to 1024G, 0: none. "
      "auto (default): a quarter of the memory of the machine or cgroup that is free at start.");
}

void AddLimitsOfRequestsAndConnections(FlagAdder flags, ServerOptions& o) {
  flags.Add("max-jobs", "N", Integer(o.max_jobs, 1, 1000000),
            "Requests that are admitted and not yet answered, 1 to 1000000. Default 1024.");
  flags.Add(
      "max-device-seconds", "SECONDS", Number(o.max_device_seconds, 86400),
      "Estimated device time of one request, from its sizes and variants; 0 to 86400, 0: no limit. Default: "
      "10 on cuda, 120 on cpu.");
  flags.Add(
      "max-connections", "N", Integer(o.max_connections, 0, 1000000),
      "Open connections, 1 to 1000000. When all are in use, a new connection replaces an idle one, or is "
      "closed if none is idle (docs/sharing.md). Each takes two file descriptors. 0 (default): as many as "
      "the descriptor limit allows (ulimit -n, raised to the hard limit at start), at most 10000.");
  flags.Add(
      "send-timeout", "DURATION", Time(o.send_timeout, absl::Seconds(1), absl::Hours(1)),
      "Time limit for a client to receive a response, for each 64 KiB of a request to arrive, and for each "
      "1 MiB of its large arrays in ranges; 1s to 1h. "
      "Default 30s.");
}

void AddThreads(FlagAdder flags, ServerOptions& o) {
  flags.Add(
      "cpus", "N", Integer(o.cpus, 0, 1024),
      "CPUs to count on, 1 to 1024. From them follow the threads that receive calls (2 from 8 CPUs on, else "
      "1), that transfer (half, less one, at most 7), that copy (half, at most 8) and that plan requests of "
      "new kinds (a quarter, at most 4). From 4 CPUs on, receiving threads poll for 100 us before they "
      "sleep, "
      "which can use one CPU each under load. 0 (default): those that the process may use (affinity and "
      "cgroup quota).");
}

void AddLifeOfTheProcess(FlagAdder flags, ServerOptions& o) {
  flags.Add(
      "grace", "DURATION", Time(o.grace, absl::ZeroDuration(), absl::Hours(1)),
      "Time after SIGTERM or SIGINT for accepted work to finish; 0s to 1h. A second signal ends the process "
      "at once. Default 30s.");
  flags.Add("drain-delay", "DURATION", Time(o.drain_delay, absl::ZeroDuration(), absl::Hours(1)),
            "The first part of the grace, in which the server still serves everything while health says "
            "NOT_SERVING, so that load balancers notice. After SIGTERM only. 0s to --grace. Default 0s.");
  flags.Add(
      "max-connection-age", "DURATION", Time(o.max_connection_age, absl::ZeroDuration(), absl::Hours(240)),
      "Ask clients to leave a connection of this age, give or take a tenth, so that they spread over added "
      "servers. No call is lost unless it runs for another hour. 0s (default): never; 1s to 240h.");
  flags.Add("access-log", "FILE", Path(o.access_log),
            "A line for each finished call, appended to the file; - means stderr. Lines that cannot be "
            "written are dropped and counted (warpline_access_log_lines_total). SIGHUP opens the file anew. "
            "Default "
            "none.");
  flags.Add(
      "log-format", "NAME", OneOf(o.log_format, {"logfmt", "json"}),
      "Of the log on stderr and of --access-log: logfmt (default), or json, an object of strings in each "
      "line.");
  flags.AddSwitch("echo", o.echo,
                  "Serve EchoService, the ceiling that `warpline bench --op echo` measures. Default off.");
}

}  // namespace

void AddFlags(CLI::App& app, FlagErrors& errors, ServerOptions& o) {
  AddAddresses(FlagAdder(app, errors, "Addresses"), o);
  AddIdentityAndTls(FlagAdder(app, errors, "Identity and TLS"), o);
  AddDevices(FlagAdder(app, errors, "Devices"), o);
  AddMemory(FlagAdder(app, errors, "Memory"), o);
  AddLimitsOfRequestsAndConnections(FlagAdder(app, errors, "Limits of requests and connections"), o);
  AddThreads(FlagAdder(app, errors, "Threads"), o);
  AddLifeOfTheProcess(FlagAdder(app, errors, "Life of the process"), o);
}

}  // namespace warpline

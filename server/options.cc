#include "server/options.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <span>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "kernels/status_macros.h"
#include "server/base/parse_bytes.h"

namespace warpline {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr std::int64_t kGiB = std::int64_t{1} << 30;

absl::Status BadFlag(const char* flag, const std::string& value, const std::string& want) {
  return absl::InvalidArgumentError(absl::StrCat("--", flag, "=", value, ": must be ", want));
}

struct Flag {
  const char* name;
  const char* value;  // what stands behind the =; empty: a switch
  const char* help;
  std::function<absl::Status(const Flag&, const std::string&, ServerOptions&)> set;
};

template <typename T>
auto IntFlag(T ServerOptions::*member, std::int64_t least, std::int64_t most) {
  return [=](const Flag& flag, const std::string& text, ServerOptions& options) -> absl::Status {
    std::int64_t value = 0;
    if (!absl::SimpleAtoi(text, &value) || value < least || value > most) {
      return BadFlag(flag.name, text, absl::StrCat("a number from ", least, " to ", most));
    }
    options.*member = static_cast<T>(value);
    return absl::OkStatus();
  };
}

// Decimal, a fraction allowed.
auto NumberFlag(double ServerOptions::*member, double most) {
  return [=](const Flag& flag, const std::string& text, ServerOptions& options) -> absl::Status {
    double value = 0;
    if (!absl::SimpleAtod(text, &value) || !(value >= 0 && value <= most)) {
      return BadFlag(flag.name, text, absl::StrCat("a number from 0 to ", most));
    }
    options.*member = value;
    return absl::OkStatus();
  };
}

enum class Zero : std::uint8_t { kRefused, kMeansDefault };

auto BytesFlag(std::int64_t ServerOptions::*member, std::int64_t least, std::int64_t most,
               Zero zero = Zero::kMeansDefault) {
  return [=](const Flag& flag, const std::string& text, ServerOptions& options) -> absl::Status {
    const absl::StatusOr<std::int64_t> value = ParseBytes(text);
    const bool allowed_zero = value.ok() && *value == 0 && zero == Zero::kMeansDefault;
    if (!value.ok() || (*value < least && !allowed_zero) || *value > most) {
      return BadFlag(flag.name, text,
                     absl::StrCat("a number of bytes (suffix K, M or G) from ", least, " to ", most));
    }
    options.*member = *value;
    return absl::OkStatus();
  };
}

auto DurationFlag(absl::Duration ServerOptions::*member, absl::Duration least, absl::Duration most) {
  return [=](const Flag& flag, const std::string& text, ServerOptions& options) -> absl::Status {
    absl::Duration value;
    if (!absl::ParseDuration(text, &value) || value < least || value > most) {
      return BadFlag(flag.name, text,
                     absl::StrCat("a duration with its unit, from ", absl::FormatDuration(least), " to ",
                                  absl::FormatDuration(most)));
    }
    options.*member = value;
    return absl::OkStatus();
  };
}

// host:port, the port a number that there is.
bool IsHostAndPort(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  int port = 0;
  return colon != std::string::npos && colon > 0 && absl::SimpleAtoi(address.substr(colon + 1), &port) &&
         port >= 0 && port <= 65535;
}

absl::Status SetListen(const Flag& flag, const std::string& text, ServerOptions& options) {
  options.listen = absl::StrSplit(text, ',');
  for (const std::string& address : options.listen) {
    if (absl::StartsWith(address, "unix:") ? address.size() == 5 : !IsHostAndPort(address)) {
      return BadFlag(flag.name, text, "host:port (port 0 to 65535) or unix:/path");
    }
  }
  return absl::OkStatus();
}

absl::Status SetMetricsListen(const Flag& flag, const std::string& text, ServerOptions& options) {
  if (!text.empty() && (!IsHostAndPort(text) || absl::StrContains(text, ","))) {
    return BadFlag(flag.name, text, "one host:port (port 0 to 65535) or empty");
  }
  options.metrics_listen = text;
  return absl::OkStatus();
}

absl::Status SetBackend(const Flag& flag, const std::string& text, ServerOptions& options) {
  if (text != "auto" && text != "cuda" && text != "cpu") return BadFlag(flag.name, text, "auto, cuda or cpu");
  options.backend = text;
  return absl::OkStatus();
}

// Nothing for "auto".
absl::StatusOr<std::optional<std::int64_t>> BytesOrAuto(const Flag& flag, const std::string& text,
                                                        const char* least) {
  if (text == "auto") return std::nullopt;
  const absl::StatusOr<std::int64_t> value = ParseBytes(text);
  if (value.ok() && *value >= *ParseBytes(least) && *value <= 1024 * kGiB) return *value;
  return BadFlag(flag.name, text,
                 absl::StrCat("auto, or a number of bytes (suffix K, M or G) from ", least, " to 1024G"));
}

absl::Status SetDeviceBytes(const Flag& flag, const std::string& text, ServerOptions& options) {
  ASSIGN_OR_RETURN(const std::optional<std::int64_t> bytes, BytesOrAuto(flag, text, "64M"));
  options.device_bytes = bytes.value_or(0);
  return absl::OkStatus();
}

absl::Status SetResidentBytes(const Flag& flag, const std::string& text, ServerOptions& options) {
  ASSIGN_OR_RETURN(options.resident_bytes, BytesOrAuto(flag, text, "0"));
  return absl::OkStatus();
}

absl::Status SetRegions(const Flag& flag, const std::string& text, ServerOptions& options) {
  if (text.empty()) return BadFlag(flag.name, text, "a path");
  options.regions = text;
  return absl::OkStatus();
}

absl::Status SetRegionBytes(const Flag& flag, const std::string& text, ServerOptions& options) {
  ASSIGN_OR_RETURN(options.region_bytes, BytesOrAuto(flag, text, "0"));
  return absl::OkStatus();
}

absl::Status SetRegionBytesPerOwner(const Flag& flag, const std::string& text, ServerOptions& options) {
  ASSIGN_OR_RETURN(options.region_bytes_per_owner, BytesOrAuto(flag, text, "0"));
  return absl::OkStatus();
}

absl::Status SetPoll(const Flag& flag, const std::string& text, ServerOptions& options) {
  if (text != "auto" && text != "on" && text != "off") return BadFlag(flag.name, text, "auto, on or off");
  options.poll = text;
  return absl::OkStatus();
}

absl::Status SetDevices(const Flag& flag, const std::string& text, ServerOptions& options) {
  options.devices.clear();
  if (text == "all") return absl::OkStatus();
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    int ordinal = 0;
    if (!absl::SimpleAtoi(part, &ordinal) || ordinal < 0)
      return BadFlag(flag.name, text, "all, or ordinals like 0,1");
    if (std::count(options.devices.begin(), options.devices.end(), ordinal) > 0)
      return BadFlag(flag.name, text, "each ordinal once");
    options.devices.push_back(ordinal);
  }
  return absl::OkStatus();
}

auto SwitchFlag(bool ServerOptions::*member) {
  return [=](const Flag& flag, const std::string& text, ServerOptions& options) -> absl::Status {
    if (!text.empty() && text != "true" && text != "false") return BadFlag(flag.name, text, "true or false");
    options.*member = text != "false";
    return absl::OkStatus();
  };
}

absl::Status SetAccessLog(const Flag& flag, const std::string& text, ServerOptions& options) {
  if (text.empty()) return BadFlag(flag.name, text, "a path, or - for stderr");
  options.access_log = text;
  return absl::OkStatus();
}

absl::Status SetTokens(const Flag& flag, const std::string& text, ServerOptions& options) {
  if (text.empty()) return BadFlag(flag.name, text, "a path");
  options.tokens = text;
  return absl::OkStatus();
}

// Names of owners, in the file and in labels.
bool IsTokenName(const std::string& name) {
  return !name.empty() && name.size() <= 64 && name.front() != '-' &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-';
         });
}

auto TlsFileFlag(std::string TlsFiles::*member) {
  return [=](const Flag& flag, const std::string& text, ServerOptions& options) -> absl::Status {
    if (text.empty()) return BadFlag(flag.name, text, "a path");
    options.tls.*member = text;
    return absl::OkStatus();
  };
}

const std::vector<Flag>& Flags() {
  static const std::vector<Flag>* const flags = new std::vector<Flag>{
      {"listen", "ADDR[,ADDR]",
       "gRPC: host:port (port 0: a free one) or unix:/path. Default 127.0.0.1:50051.", SetListen},
      {"metrics-listen", "ADDR",
       "HTTP (with --tls-cert, HTTPS) /metrics, /healthz, /readyz: host:port; empty: none. Default "
       "127.0.0.1:9400.",
       SetMetricsListen},
      {"tls-cert", "FILE",
       "PEM: the server's certificate, then those between it and the root. Both ports then speak TLS 1.2 or "
       "1.3 and nothing else; unix sockets stay as they are. Files are read again when they change. Default "
       "none.",
       TlsFileFlag(&TlsFiles::cert)},
      {"tls-key", "FILE", "PEM: the certificate's private key, without a pass phrase. Default none.",
       TlsFileFlag(&TlsFiles::key)},
      {"tls-client-ca", "FILE",
       "PEM: CAs. gRPC and /metrics are then only for clients with a certificate that one of them has "
       "signed; /healthz and /readyz for all. Default none: clients need no certificate.",
       TlsFileFlag(&TlsFiles::client_ca)},
      {"tokens", "FILE",
       "TOML: who may use the server and how much of it (docs/identity.md). gRPC and /metrics then want a "
       "token of this file, or a certificate with --tls-client-ca; health checks want none. Read again when "
       "it "
       "changes. Default none: everybody who reaches the server.",
       SetTokens},
      {"owner-label-limit", "N",
       "Owners with warpline_owner_ metrics of their own, the first that come, 0 to 10000; others share "
       "those of \"other\". Default 50.",
       IntFlag(&ServerOptions::owner_label_limit, 0, 10000)},
      {"insecure", "",
       "Allow --listen and --metrics-listen beyond loopback without TLS, where everybody in between can read "
       "and change what is sent, and everybody who reaches the port may use the server. Default off.",
       SwitchFlag(&ServerOptions::insecure)},
      {"backend", "NAME", "auto, cuda or cpu. Default auto: cuda where there is a GPU.", SetBackend},
      {"devices", "LIST",
       "all (default): those that are neither full nor unusable; or CUDA ordinals like 0,2, an error if one "
       "of them is.",
       SetDevices},
      {"lanes", "N",
       "Lanes a device, 1 to 64; 0 (default): 8 on cuda, cores up to 4 on cpu. On cuda a quarter is kept for "
       "jobs of 100 us and 2 MiB at most.",
       IntFlag(&ServerOptions::lanes, 0, 64)},
      {"max-inline-bytes", "BYTES",
       "Tensors of one request together, and of one response; 4K to 1G. Default 256M.",
       BytesFlag(&ServerOptions::max_inline_bytes, 4096, kGiB, Zero::kRefused)},
      {"pinned-bytes", "BYTES",
       "Staging memory, taken at start; 1M to 256G, at least 4 x max-inline-bytes for requests of full size. "
       "0 (default): 8 x max-inline-bytes on cuda (pinned), 4 x on cpu (not touched before use).",
       BytesFlag(&ServerOptions::pinned_bytes, kMiB, 256 * kGiB)},
      {"device-bytes", "BYTES",
       "Memory of each device, taken at start: 48M for each lane, the rest for a pool from which larger "
       "programs take what they need while they run; those that find it full wait. 64M to 1024G, an error if "
       "the device has less free beside 128M and 64M for each lane, which later allocations need. auto "
       "(default): lanes x (2 x max-inline-bytes + 64M + 48M), or what a device that others use has free. On "
       "the cpu, scratch memory, taken when it is used: 2 x (2 x max-inline-bytes + 64M), or half of what "
       "the machine or the cgroup has.",
       SetDeviceBytes},
      {"resident-bytes", "BYTES",
       "Memory of each device for resident tensors, taken as they are made; 0 to 1024G, 0: none. auto "
       "(default): half of what is left of the device at start when everything else has its memory; on the "
       "cpu, half of what is left of the machine's or the cgroup's. In whole 32M on cuda.",
       SetResidentBytes},
      {"max-ttl", "DURATION",
       "The longest lease of a resident tensor, which each use renews; 10m to 8760h. Default 24h.",
       DurationFlag(&ServerOptions::max_ttl, absl::Minutes(10), absl::Hours(8760))},
      {"regions", "PATH",
       "A unix socket for clients on this host that share memory, beside PATH.regions of each unix:PATH in "
       "--listen. Default none.",
       SetRegions},
      {"region-bytes", "BYTES",
       "Shared regions together, which are the clients' own memory, page-locked on cuda; 0 to 1024G, 0: "
       "none. "
       "auto (default): a quarter of what the machine or the cgroup has available at start.",
       SetRegionBytes},
      {"region-bytes-per-owner", "BYTES",
       "Shared regions of one owner; 0 to 1024G. auto (default): as many as of all.", SetRegionBytesPerOwner},
      {"regions-per-owner", "N", "Shared regions of one owner, 1 to 100000. Default 1024.",
       IntFlag(&ServerOptions::regions_per_owner, 1, 100000)},
      {"max-jobs", "N", "Requests admitted and unanswered, 1 to 1000000. Default 1024.",
       IntFlag(&ServerOptions::max_jobs, 1, 1000000)},
      {"max-job-bytes", "BYTES",
       "Bytes of admitted requests and their results; 1M to 1024G, at least 2 x max-inline-bytes. "
       "0 (default): 4 x max-inline-bytes.",
       BytesFlag(&ServerOptions::max_job_bytes, kMiB, 1024 * kGiB)},
      {"grpc-memory-bytes", "BYTES",
       "gRPC's buffers for messages being received, over all connections; 16M to 1024G. Beyond it "
       "connections are cut. "
       "0 (default): 6 x max-inline-bytes.",
       BytesFlag(&ServerOptions::grpc_memory_bytes, 16 * kMiB, 1024 * kGiB)},
      {"max-device-seconds", "SECONDS",
       "Time that a request may take on a device, as estimated from its sizes and variants; 0 to 86400, "
       "0: no limit. Default 60.",
       NumberFlag(&ServerOptions::max_device_seconds, 86400)},
      {"max-streams", "N", "Concurrent calls a connection, 1 to 10000; more wait in the client. Default 128.",
       IntFlag(&ServerOptions::max_streams, 1, 10000)},
      {"max-connections", "N",
       "Open connections, 1 to 1000000; those beyond are closed at once. Each takes two descriptors. 0 "
       "(default): "
       "as many as the limit of descriptors (ulimit -n, raised to the hard limit at start) allows, at most "
       "10000.",
       IntFlag(&ServerOptions::max_connections, 0, 1000000)},
      {"rpc-threads", "N",
       "Threads that receive calls, 1 to 64; all but the first only help while many are in progress. 0 "
       "(default): 2 from 8 usable CPUs if they poll, else 1.",
       IntFlag(&ServerOptions::rpc_threads, 0, 64)},
      {"transfer-threads", "N",
       "Threads that send and receive too while several Puts and Gets are in progress, 1 to 64. 0 (default): "
       "half of the usable CPUs less one, at most 7.",
       IntFlag(&ServerOptions::transfer_threads, 0, 64)},
      {"poll", "MODE",
       "on: a thread that receives calls looks for the next one for 100 us before it sleeps, which saves the "
       "time of waking it up and uses up to a CPU for each under load; off: it sleeps at once; auto "
       "(default): on "
       "from 4 usable CPUs (affinity and cgroup quota).",
       SetPoll},
      {"graph-cache-entries", "N", "Captured CUDA graphs a lane keeps, 1 to 100000. Default 256.",
       IntFlag(&ServerOptions::graph_cache_entries, 1, 100000)},
      {"timing-sample", "N",
       "Time transfers and kernels of one job in N on the device, and of each job on a lane that has timed "
       "none for "
       "100 ms; 0: none. On a shared device the times include contention. Default 128.",
       IntFlag(&ServerOptions::timing_sample, 0, 1000000)},
      {"send-timeout", "DURATION",
       "A response that its client has not taken whole after so long is given up; 1s to 1h. Default 30s.",
       DurationFlag(&ServerOptions::send_timeout, absl::Seconds(1), absl::Hours(1))},
      {"device-timeout", "DURATION",
       "A device that makes no progress for so long and 10 x the longest estimate of its jobs ends the "
       "process; "
       "0s to 1h, 0s: never. Default 10s.",
       DurationFlag(&ServerOptions::device_timeout, absl::ZeroDuration(), absl::Hours(1))},
      {"grace", "DURATION",
       "Time from SIGTERM or SIGINT on for accepted work to end; 0s to 1h. A further signal ends the process "
       "at once. Default 30s.",
       DurationFlag(&ServerOptions::grace, absl::ZeroDuration(), absl::Hours(1))},
      {"drain-delay", "DURATION",
       "A part of the grace in which the server still serves all that comes, while its health is NOT_SERVING "
       "already: the time in which load balancers notice. After SIGTERM only. 0s to --grace. Default 0s.",
       DurationFlag(&ServerOptions::drain_delay, absl::ZeroDuration(), absl::Hours(1))},
      {"max-connection-age", "DURATION",
       "Clients are asked to leave a connection that is so old, give or take a tenth, so that they spread "
       "over "
       "servers that were added; no call is lost, but for one that goes on for another hour. 0s (default): "
       "never; 1s to 240h.",
       DurationFlag(&ServerOptions::max_connection_age, absl::ZeroDuration(), absl::Hours(240))},
      {"access-log", "FILE",
       "A line in logfmt for each call that has ended, appended to the file; - writes to stderr. Lines that "
       "cannot be written are dropped and counted (warpline_access_log_lines_total). Default none.",
       SetAccessLog},
      {"echo", "", "Serve EchoService, the ceiling that `warpline bench --op echo` measures. Default off.",
       SwitchFlag(&ServerOptions::echo)},
  };
  return *flags;
}

absl::Status Validate(const ServerOptions& options) {
  RETURN_IF_ERROR(options.CheckTls());
  if (options.MaxJobBytes() < 2 * options.max_inline_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("--max-job-bytes=", options.MaxJobBytes(),
                     ": must be at least 2 x --max-inline-bytes = ", 2 * options.max_inline_bytes));
  }
  if (options.drain_delay > options.grace) {
    return absl::InvalidArgumentError(
        absl::StrCat("--drain-delay=", absl::FormatDuration(options.drain_delay),
                     ": must be at most --grace = ", absl::FormatDuration(options.grace)));
  }
  if (options.max_connection_age > absl::ZeroDuration() && options.max_connection_age < absl::Seconds(1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--max-connection-age=", absl::FormatDuration(options.max_connection_age),
                     ": must be 0s or at least 1s"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CommandLine> ParseCommandLine(int argc, const char* const* argv) {
  CommandLine line;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--help" || argument == "-h") {
      line.action = CommandLine::Action::kHelp;
      continue;
    }
    if (argument == "--version") {
      line.action = CommandLine::Action::kVersion;
      continue;
    }
    if (argument.rfind("--", 0) != 0)
      return absl::InvalidArgumentError(absl::StrCat(argument, ": unknown argument"));
    const std::size_t equals = argument.find('=');
    const std::string name = argument.substr(2, equals == std::string::npos ? equals : equals - 2);
    if (name == "new-token") {
      line.action = CommandLine::Action::kNewToken;
      line.new_token = equals != std::string::npos ? argument.substr(equals + 1) : ++i < argc ? argv[i] : "";
      if (IsTokenName(line.new_token)) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "--new-token=", line.new_token,
          ": must be a name of 1 to 64 letters, digits, '.', '_' and '-', which does not begin with '-'"));
    }
    const auto& flags = Flags();
    const auto flag = std::find_if(flags.begin(), flags.end(), [&](const Flag& f) { return f.name == name; });
    if (flag == flags.end())
      return absl::InvalidArgumentError(absl::StrCat("--", name, ": unknown flag; see --help"));
    std::string value;
    if (equals != std::string::npos) {
      value = argument.substr(equals + 1);
    } else if (*flag->value != '\0') {
      if (i + 1 == argc) return absl::InvalidArgumentError(absl::StrCat("--", name, ": needs a value"));
      value = argv[++i];
    }
    RETURN_IF_ERROR(flag->set(*flag, value, line.options));
  }
  RETURN_IF_ERROR(Validate(line.options));
  return line;
}

std::string HelpText(const ServerOptions& options) {
  std::string text =
      "warplined: owns the GPUs of this node and serves transpose, gemm and reduce over gRPC.\n\n"
      "Usage: warplined [--flag=value ...]\n\n";
  for (const Flag& flag : Flags()) {
    absl::StrAppend(&text, "  --", flag.name, *flag.value != '\0' ? "=" : "", flag.value, "\n        ",
                    flag.help, "\n");
  }
  absl::StrAppend(
      &text,
      "  --new-token=NAME\n        Make a token and exit: prints the token to stderr, and to stdout what the "
      "file "
      "of --tokens is to have.\n  --version\n  --help\n\nWorst-case host memory with these flags: ",
      options.WorstCaseMemoryBytes(false) / kMiB, " MiB on cpu, ", options.WorstCaseMemoryBytes(true) / kMiB,
      " MiB on cuda\n(gRPC buffers + admitted requests + staging memory, on cpu + scratch memory,\n"
      "beside some 100 MiB of program; shared regions are the clients' memory).\n"
      "When it is ready it prints one line to stdout: READY grpc=<addr> metrics=<addr> backend=<name>\n");
  return text;
}

}  // namespace warpline

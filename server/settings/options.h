// Every limit of the daemon; server/settings/flags.cc has their units, ranges and meaning.
#ifndef WARPLINE_SERVER_SETTINGS_OPTIONS_H_
#define WARPLINE_SERVER_SETTINGS_OPTIONS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/tls/tls_files.h"

namespace warpline {

struct ServerOptions {
  std::vector<std::string> listen = {"127.0.0.1:50051"};
  std::vector<std::string> proxy_listen;          // for proxies that speak PROXY protocol
  std::string metrics_listen = "127.0.0.1:9400";  // empty: none
  TlsFiles tls;                                   // for both, except unix sockets
  std::string tokens;                             // file of owners; empty: no identities
  bool insecure = false;                          // allows both beyond loopback without TLS
  std::string backend = "auto";                   // auto, cuda or cpu
  std::vector<std::string> devices;               // CUDA ordinals or UUIDs; empty: all
  int lanes = 0;                                  // per device; 0: depends on the backend
  int kept_multiprocessors = 0;                   // per device, for short jobs
  std::int64_t max_inline_bytes = std::int64_t{256} << 20;
  // The memory to use of each device. Not set: the wanted amount, or what is free on the device.
  std::optional<std::int64_t> device_bytes;
  // The memory of resident tensors on each device. Not set: half of what is left when everything else has its
  // memory.
  std::optional<std::int64_t> resident_bytes;
  absl::Duration max_ttl = absl::Hours(24);  // of resident tensors
  // The memory of uploads and streamed results on each device. Not set: a quarter of what is left when
  // everything else has its memory; on the cpu backend an eighth.
  std::optional<std::int64_t> upload_bytes;
  // Path of a region socket, in addition to those of the unix sockets in `listen`; empty: none.
  std::string regions;
  // The memory of all shared regions together. Not set: a quarter of the memory that is available at start.
  std::optional<std::int64_t> region_bytes;
  std::int64_t max_jobs = 1024;
  // The maximum estimated device time of one request; 0: no limit; not set: depends on the backend.
  std::optional<double> max_device_seconds;
  int max_connections = 0;  // 0: depends on the limit of descriptors
  int cpus = 0;             // to use; 0: those that the process may use
  int timing_sample = 128;
  absl::Duration send_timeout = absl::Seconds(30);
  absl::Duration device_timeout = absl::Seconds(10);  // plus 10 x the estimate; 0: no watchdog
  absl::Duration grace = absl::Seconds(30);
  absl::Duration drain_delay = absl::ZeroDuration();         // a part of grace
  absl::Duration max_connection_age = absl::ZeroDuration();  // 0: none
  bool echo = false;
  std::string access_log;             // file, or "-" for stderr; empty: none
  std::string log_format = "logfmt";  // or json

  // `available` is the memory that is free at start.
  std::int64_t RegionBytes(std::int64_t available) const;
  // Returns the addresses that other hosts can reach, each as "--listen=ADDRESS" or
  // "--metrics-listen=ADDRESS": all except unix sockets, 127.0.0.0/8, ::1 and the name localhost.
  std::vector<std::string> AddressesBeyondLoopback() const;
  // Returns an error for each flag that contradicts another one: flag, value and limit, as in
  // "--drain-delay=31s: must be at most --grace = 30s". It is also an error if an address beyond loopback has
  // no TLS and --insecure was not given.
  std::vector<std::string> Contradictions() const;
  // Returns the paths of all region sockets.
  std::vector<std::string> RegionPaths() const;
  // The memory for admitted requests and their results, and for gRPC's buffers.
  std::int64_t MaxJobBytes() const { return 4 * max_inline_bytes; }
  // Newer versions of gRPC refuse calls when little is left: every call with 24 KiB.
  std::int64_t GrpcMemoryBytes() const { return std::max<std::int64_t>(6 * max_inline_bytes, 4 << 20); }
  // Returns the number of lanes of each device, including those for short jobs.
  int Lanes(bool cuda) const;
  // Returns how many of these lanes are for short jobs.
  int LanesKept(bool cuda) const;
  // The limits that define a short job; see Scheduler::Options.
  double ShortSeconds(bool cuda) const;
  std::size_t ShortBytes(bool cuda) const;
  double RunningSecondsMax(bool cuda) const;
  double MaxDeviceSeconds(bool cuda) const;
  std::int64_t PinnedBytes(bool cuda) const;
  // Returns the memory of each device for its lanes and the pool that they share; on the cpu backend, the
  // scratch memory. If `device_bytes` is not set, this is the wanted amount.
  std::int64_t DeviceBytes(bool cuda) const;
  // Staging memory for tiny slots, in addition to PinnedBytes.
  std::int64_t TinyPinnedBytes(bool cuda) const;
  // Returns the CPUs that the numbers of threads below follow from. `usable`: those that the process may use.
  int Cpus(int usable) const { return cpus != 0 ? cpus : usable; }
  int RpcThreads(int cpus) const;
  // Number of threads that help to receive and send while several large transfers are in progress.
  int TransferThreads(int cpus) const;
  // Number of threads that copy payloads. `cpus` is the number of CPUs that the process can use
  // (server/base/usable_cpus.h).
  int Workers(int cpus) const;
  // Number of threads that compile requests of new kinds.
  int Compilers(int cpus) const;
  // Number of threads that plan and run small requests when several are in progress.
  int Crew(int cpus) const;
  // How long a thread that handles single requests polls for the next one before it sleeps.
  absl::Duration Look(int cpus) const;
  // `descriptors` is the process's limit.
  int MaxConnections(std::int64_t descriptors) const;
  static std::size_t MaxHttpConnections(std::int64_t descriptors);
  // Returns the memory of resident tensors on the cpu backend. By default this is half of the memory that is
  // available at start, after subtracting staging memory and scratch memory.
  std::int64_t CpuResidentBytes(std::int64_t available) const;
  // Returns the same for uploads; the default is an eighth.
  std::int64_t CpuUploadBytes(std::int64_t available) const;
  // Returns the maximum host memory of gRPC's buffers, staging memory, admitted requests and shared regions
  // together. On the cpu backend it includes scratch memory, resident tensors and uploads. Unit: bytes.
  std::int64_t WorstCaseMemoryBytes(bool cuda, std::int64_t available) const;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_SETTINGS_OPTIONS_H_

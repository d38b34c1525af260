// Every metric of the daemon, declared in one place. Only metrics.cc knows of prometheus-cpp.
//
// Thread-safe. Handles are cheap to copy and live as long as the Metrics. Look series with run-time labels up
// once and keep the handle.
#ifndef WARPLINE_SERVER_OBSERVE_METRICS_H_
#define WARPLINE_SERVER_OBSERVE_METRICS_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "kernels/problem.h"
#include "server/observe/request_kind.h"

namespace prometheus {
class Counter;
class Gauge;
class Histogram;
class Registry;
}  // namespace prometheus

namespace warpline {

class Counter {
 public:
  explicit Counter(prometheus::Counter* impl = nullptr) : impl_(impl) {}
  void Add(double value = 1) const;
  double Value() const;

 private:
  prometheus::Counter* impl_;
};

class Gauge {
 public:
  explicit Gauge(prometheus::Gauge* impl = nullptr) : impl_(impl) {}
  void Set(double value) const;
  void Add(double value) const;
  double Value() const;

 private:
  prometheus::Gauge* impl_;
};

// Observing a null handle does nothing.
class Histogram {
 public:
  explicit Histogram(prometheus::Histogram* impl = nullptr) : impl_(impl) {}
  void Observe(double value) const;

 private:
  prometheus::Histogram* impl_;
};

// The place of a request's tensors: all in the message, all in regions, all on the device, some in streams,
// or mixed.
enum class RequestSource : std::uint8_t { kInline, kRegion, kResident, kStream, kMixed };
inline constexpr std::array kAllRequestSources = {RequestSource::kInline, RequestSource::kRegion,
                                                  RequestSource::kResident, RequestSource::kStream,
                                                  RequestSource::kMixed};
std::string_view Name(RequestSource source);

// The timed parts of a request. The metric calls them stages.
enum class Phase : std::uint8_t { kPlan, kAdmission, kQueue, kCopyIn, kDevice, kRespond };
inline constexpr int kPhases = 6;

// The memory with the operands of a timed kernel: the device's; the host's, which the kernel accesses over
// the bus; or, for pieces, the device's while copies of the same job run at the same time.
enum class KernelMemory : std::uint8_t { kDevice, kHost, kPieces };
inline constexpr int kKernelMemories = 3;

// The series of one op, variant, dtype, memory and device. All three count the same jobs, so that rate(bytes)
// / rate(seconds) is the achieved bandwidth.
struct KernelSeries {
  Histogram seconds;
  Counter bytes;
  Counter flops;
};

// The series of one device and direction of transfer.
struct TransferSeries {
  Counter bytes;
  Counter seconds;
};

// The series of one gRPC method.
struct MethodSeries {
  Counter started;
  Counter handled_ok, handled_cancelled;
  Histogram handling_seconds;
};

// The series of one owner, with the label from OwnerMetrics.
struct OwnerSeries {
  std::string label;
  Counter requests_ok;
  Counter device_seconds;
  Gauge jobs, bytes;  // admitted
  Gauge resident_bytes, region_bytes;
  // The used fraction of the owner's quotas, from 0 to 1. It is above 1 if a quota was reduced, and 0 without
  // a quota.
  Gauge resident_quota_ratio, region_quota_ratio;
};

struct GraphCacheSeries {
  Counter hits, misses, evictions, instantiations;
  Gauge entries;
};

struct PlanCacheSeries {
  Counter hits, misses, evictions;
  Gauge entries;
};

class Metrics {
 public:
  Metrics();
  ~Metrics();

  // Requests.
  void CountRequest(RequestKind kind, RequestSource source, std::string_view code, double seconds);
  // The same for code OK, without a lookup.
  void CountSuccess(RequestKind kind, RequestSource source, double seconds);
  Gauge requests_in_flight;
  std::array<std::array<Histogram, kPhases>, kAllRequestKinds.size()> phase_seconds;
  Histogram& phase(RequestKind kind, Phase phase) {
    return phase_seconds[static_cast<std::size_t>(kind)][static_cast<std::size_t>(phase)];
  }
  // `reason` is "jobs", "bytes", "share", "unread", "quota", "plans", "uploads", "streams", "draining" or
  // "unauthenticated".
  void CountRejection(std::string_view reason);
  // `type` is "unary", "client_stream", "server_stream" or "bidi_stream".
  MethodSeries Method(const std::string& service, const std::string& method,
                      const std::string& type = "unary");
  void CountHandled(const std::string& service, const std::string& method, std::string_view code,
                    const std::string& type = "unary");

  // See OwnerMetrics, which limits the number of owners.
  OwnerSeries Owner(const std::string& label);
  void CountOwnerRequest(const std::string& label, std::string_view code);

  // Returns how many requests have started, over all methods. A caller can compare this with an earlier value
  // to see whether anything has happened.
  double RequestsStarted() const;

  PlanCacheSeries plan_cache;

  // Resident tensors.
  Gauge resident_tensors;
  Counter leases_expired;
  Gauge ResidentBytes(int device);
  Gauge UploadBytes(int device);
  Counter PeerCopyBytes(int device);

  // Shared regions.
  Gauge regions, region_bytes;

  // Memory and queues.
  Counter HostCopyBytes(const std::string& site);
  Gauge queue_depth;
  Gauge admission_bytes_used, admission_bytes_limit;
  Gauge pinned_bytes_used, pinned_bytes_free;
  Gauge DeviceMemoryBytes(int device, const std::string& state);
  Counter Allocations(const std::string& kind);

  // Devices.
  Gauge Lanes(int device);
  Gauge LaneBusy(int device);
  KernelSeries Kernel(Op op, std::string_view variant, DType dtype, KernelMemory memory, int device);
  // The shortest possible time divided by the measured time. Not a part of KernelSeries, because only some
  // kernels have it.
  Histogram RoofRatio(Op op, std::string_view variant, DType dtype, int device);
  TransferSeries Transfer(int device, const std::string& direction);
  GraphCacheSeries graph_cache;

  void SetBuildInfo(const std::string& version, const std::string& revision, const std::string& cuda);
  void SetDeviceInfo(int device, const std::string& name, const std::string& cc);
  // `state` is "written" or "dropped".
  Counter AccessLogLines(const std::string& state);
  // Sets when the server's own certificate expires. This metric exists only with TLS.
  void SetCertificateExpiry(absl::Time not_after);

  // Returns all metrics in the Prometheus text format.
  std::string Scrape() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  std::array<Counter, kAllRequestKinds.size()> requests_ok_;
  std::array<std::array<Histogram, kAllRequestSources.size()>, kAllRequestKinds.size()> request_seconds_;
  Histogram& request_seconds(RequestKind kind, RequestSource source) {
    return request_seconds_[static_cast<std::size_t>(kind)][static_cast<std::size_t>(source)];
  }
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_OBSERVE_METRICS_H_

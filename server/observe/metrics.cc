#include "server/observe/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include "server/observe/process_collector.h"

namespace warpline {
namespace {

template <typename T>
using Family = prometheus::Family<T>;

// Requests take from tens of microseconds (a small one on an idle GPU) to seconds (256 MiB each way).
const prometheus::Histogram::BucketBoundaries kRequestSeconds = {
    25e-6, 50e-6, 75e-6, 100e-6, 150e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3,
    10e-3, 25e-3, 50e-3, 0.1,    0.25,   0.5,    1,      2.5,  5,      10};
// Stages and kernels take a microsecond or more.
const prometheus::Histogram::BucketBoundaries kStageSeconds = {
    1e-6,   2.5e-6, 5e-6,  10e-6, 25e-6, 50e-6, 100e-6, 250e-6, 500e-6, 1e-3,
    2.5e-3, 5e-3,   10e-3, 25e-3, 50e-3, 0.1,   0.25,   1,      5};
const prometheus::Histogram::BucketBoundaries kRatio = {0.05, 0.1, 0.2,  0.3, 0.4,  0.5, 0.6,
                                                        0.7,  0.8, 0.85, 0.9, 0.95, 1.0};

constexpr std::string_view kPhaseNames[kPhases] = {"plan",    "admission", "queue",
                                                   "copy_in", "device",    "respond"};

std::string Str(std::string_view text) { return std::string(text); }

}  // namespace

void Counter::Add(double value) const {
  if (impl_ != nullptr) impl_->Increment(value);
}
double Counter::Value() const { return impl_->Value(); }
void Gauge::Set(double value) const { impl_->Set(value); }
void Gauge::Add(double value) const { impl_->Increment(value); }
double Gauge::Value() const { return impl_->Value(); }
void Histogram::Observe(double value) const {
  if (impl_ != nullptr) impl_->Observe(value);
}

struct Metrics::Impl {
  prometheus::Registry registry;
  ProcessCollector process;

  Family<prometheus::Counter>& NewCounter(const char* name, const char* help) {
    return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
  }
  Family<prometheus::Gauge>& NewGauge(const char* name, const char* help) {
    return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
  }
  Family<prometheus::Histogram>& NewHistogram(const char* name, const char* help) {
    return prometheus::BuildHistogram().Name(name).Help(help).Register(registry);
  }

  Family<prometheus::Counter>& requests =
      NewCounter("warpline_requests_total", "Requests answered, by operation and gRPC status code.");
  Family<prometheus::Histogram>& request_seconds = NewHistogram(
      "warpline_request_duration_seconds",
      "From the whole request having been received to the response being handed to gRPC. Source: "
      "where its tensors lie; inline if it was refused before that was known.");
  Family<prometheus::Histogram>& stage_seconds =
      NewHistogram("warpline_stage_duration_seconds", "Wall time of one stage of a request.");
  Family<prometheus::Counter>& rejected =
      NewCounter("warpline_rejected_total", "Requests refused at admission, by reason.");
  Family<prometheus::Counter>& host_copy_bytes =
      NewCounter("warpline_host_copy_bytes_total",
                 "Payload bytes copied by the daemon in host memory, by site. Copies inside gRPC and the "
                 "kernel do not count.");
  Family<prometheus::Gauge>& admission_bytes =
      NewGauge("warpline_admission_bytes", "Bytes of requests and results admitted (used) and the limit.");
  Family<prometheus::Gauge>& pinned_bytes = NewGauge(
      "warpline_pinned_bytes", "Staging memory, by state; a used slot is rounded up to a power of two.");
  Family<prometheus::Gauge>& device_memory =
      NewGauge("warpline_device_memory_bytes", "Device memory held by the daemon, by state.");
  Family<prometheus::Counter>& allocations = NewCounter(
      "warpline_allocations_total", "Allocations of device or page-locked memory and of events, by kind.");
  Family<prometheus::Gauge>& lanes = NewGauge("warpline_lanes", "Lanes of a device.");
  Family<prometheus::Gauge>& lane_busy =
      NewGauge("warpline_lane_busy", "Lanes of a device that run a job now.");
  Family<prometheus::Histogram>& kernel_seconds = NewHistogram(
      "warpline_kernel_duration_seconds",
      "Device time of one step, of the sampled jobs, without what timing adds to it and without time "
      "of the host. With other lanes on the device it includes contention. memory: where the operands "
      "are; \"device\", \"host\" (the kernel waits for the bus), or \"pieces\" (a job cut into pieces: "
      "the sum over its kernels, beside its copies, the launch and the timing of each included).");
  Family<prometheus::Counter>& kernel_bytes =
      NewCounter("warpline_kernel_bytes_total",
                 "Least bytes that the steps timed in warpline_kernel_duration_seconds must move.");
  Family<prometheus::Counter>& kernel_flops = NewCounter(
      "warpline_kernel_flops_total", "Operations of the steps timed in warpline_kernel_duration_seconds.");
  Family<prometheus::Histogram>& roof_ratio = NewHistogram(
      "warpline_kernel_roof_ratio",
      "Achieved share of the roof, min(compute roof of the dtype, intensity x copy roof), both measured at "
      "start; "
      "sampled jobs that had the device to themselves. Above 1 is possible: data may stay in L2.");
  Family<prometheus::Counter>& transfer_bytes =
      NewCounter("warpline_transfer_bytes_total", "Bytes over the bus, of the sampled jobs.");
  Family<prometheus::Counter>& transfer_seconds =
      NewCounter("warpline_transfer_seconds_total",
                 "Time of the transfers counted in warpline_transfer_bytes_total. Of a job that was cut into "
                 "pieces, from the first of a direction to the last, waits for kernels included.");
  Family<prometheus::Counter>& grpc_started =
      NewCounter("grpc_server_started_total", "RPCs started on the server.");
  Family<prometheus::Counter>& grpc_handled =
      NewCounter("grpc_server_handled_total", "RPCs completed on the server, by code.");
  Family<prometheus::Histogram>& grpc_seconds =
      NewHistogram("grpc_server_handling_seconds", "From the start of an RPC to its end.");
  Family<prometheus::Counter>& owner_requests =
      NewCounter("warpline_owner_requests_total", "Requests answered, by owner and gRPC status code.");
  Family<prometheus::Counter>& owner_device_seconds = NewCounter(
      "warpline_owner_device_seconds_total",
      "Device time that the owner's jobs were charged, which its share of the devices is counted by: from "
      "launch to completion or, beside other jobs, what such a job takes alone.");
  Family<prometheus::Gauge>& owner_jobs =
      NewGauge("warpline_owner_jobs", "Requests of the owner that are admitted and not yet answered.");
  Family<prometheus::Gauge>& owner_bytes =
      NewGauge("warpline_owner_admission_bytes", "Bytes of these requests and their results.");
  Family<prometheus::Gauge>& owner_resident_bytes =
      NewGauge("warpline_owner_resident_bytes", "Memory of the owner's resident tensors, on all devices.");
  Family<prometheus::Gauge>& owner_region_bytes =
      NewGauge("warpline_owner_region_bytes", "Bytes of the owner's shared regions.");
  Family<prometheus::Gauge>& owner_quota_ratio =
      NewGauge("warpline_owner_quota_used_ratio",
               "How much of a quota the owner uses, as of its last tensor or region: resident-bytes, on the "
               "device where it is the most, and region-bytes. 0 without a quota, and of \"other\".");
  Family<prometheus::Counter>& access_log_lines =
      NewCounter("warpline_access_log_lines_total",
                 "Lines of the access log, by what became of them. Without --access-log there are none.");
  Family<prometheus::Gauge>& build_info = NewGauge("warpline_build_info", "Always 1.");
  Family<prometheus::Gauge>& device_info = NewGauge("warpline_device_info", "Always 1.");
  Family<prometheus::Gauge>& certificate_expiry =
      NewGauge("warpline_tls_certificate_expiry_timestamp_seconds",
               "When the server's certificate expires, as Unix time. Absent without TLS.");

  Family<prometheus::Gauge>& upload_bytes = NewGauge(
      "warpline_upload_bytes", "Device memory of uploads and streamed results of requests, as charged.");
  Family<prometheus::Counter>& peer_copy_bytes =
      NewCounter("warpline_peer_copy_bytes_total",
                 "Bytes of operands that were copied to this device from another one, for requests whose "
                 "operands lie on several devices.");
  Family<prometheus::Gauge>& resident_bytes = NewGauge(
      "warpline_resident_bytes", "Memory of resident tensors, those that are dropped but in use included.");

  static prometheus::Labels KernelLabels(Op op, std::string_view variant, DType dtype, int device) {
    return {{"op", Str(Name(op))},
            {"variant", Str(variant)},
            {"dtype", Str(Name(dtype))},
            {"device", std::to_string(device)}};
  }
  static prometheus::Labels MethodLabels(const std::string& service, const std::string& method,
                                         const std::string& type) {
    return {{"grpc_type", type}, {"grpc_service", service}, {"grpc_method", method}};
  }
};

std::string_view Name(RequestKind kind) {
  switch (kind) {
    case RequestKind::kTranspose:
      return "transpose";
    case RequestKind::kGemm:
      return "gemm";
    case RequestKind::kReduce:
      return "reduce";
    case RequestKind::kRun:
      return "run";
  }
  return "?";
}

std::string_view Name(RequestSource source) {
  switch (source) {
    case RequestSource::kInline:
      return "inline";
    case RequestSource::kRegion:
      return "region";
    case RequestSource::kResident:
      return "resident";
    case RequestSource::kStream:
      return "stream";
    case RequestSource::kMixed:
      return "mixed";
  }
  return "?";
}

Metrics::Metrics() : impl_(std::make_unique<Impl>()) {
  Impl& i = *impl_;
  auto gauge = [&](const char* name, const char* help) { return Gauge(&i.NewGauge(name, help).Add({})); };
  auto counter = [&](const char* name, const char* help) {
    return Counter(&i.NewCounter(name, help).Add({}));
  };
  requests_in_flight = gauge("warpline_requests_in_flight", "Requests received and not yet answered.");
  queue_depth = gauge("warpline_queue_depth", "Jobs that wait for a lane or for staging memory.");
  admission_bytes_used = Gauge(&i.admission_bytes.Add({{"state", "used"}}));
  admission_bytes_limit = Gauge(&i.admission_bytes.Add({{"state", "limit"}}));
  pinned_bytes_used = Gauge(&i.pinned_bytes.Add({{"state", "used"}}));
  pinned_bytes_free = Gauge(&i.pinned_bytes.Add({{"state", "free"}}));
  graph_cache.hits =
      counter("warpline_graph_cache_hits_total", "Jobs of a program of which the lane has a graph.");
  graph_cache.misses =
      counter("warpline_graph_cache_misses_total",
              "Jobs of a program that could be a graph and is none yet: it becomes one when it comes again.");
  graph_cache.evictions = counter("warpline_graph_cache_evictions_total", "Graphs dropped for lack of room.");
  graph_cache.entries = gauge("warpline_graph_cache_entries", "Graphs that lanes keep, all together.");
  graph_cache.instantiations = counter("warpline_graph_instantiations_total", "Graphs made.");
  plan_cache.hits = counter("warpline_plan_cache_hits_total", "Requests whose plan was known.");
  plan_cache.misses =
      counter("warpline_plan_cache_misses_total", "Requests that had to be parsed and validated.");
  plan_cache.evictions = counter("warpline_plan_cache_evictions_total", "Plans dropped for lack of room.");
  plan_cache.entries = gauge("warpline_plan_cache_entries", "Plans known.");
  resident_tensors =
      gauge("warpline_resident_tensors", "Resident tensors, those that are dropped but in use included.");
  regions = gauge("warpline_regions", "Shared regions, those that are being opened included.");
  region_bytes = gauge("warpline_region_bytes", "Bytes of shared regions, which are page-locked on cuda.");
  leases_expired = counter("warpline_leases_expired_total", "Resident tensors whose lease has ended.");
  // These series exist, at 0, from the start. If a series began with its first event, its rate would not
  // include that event.
  for (const char* reason : {"jobs", "bytes", "share", "unread", "quota", "plans", "streams", "uploads",
                             "draining", "unauthenticated"})
    i.rejected.Add({{"reason", reason}});
  for (RequestKind kind : kAllRequestKinds) {
    const auto index = static_cast<std::size_t>(kind);
    const std::string op = Str(Name(kind));
    requests_ok_[index] = Counter(&i.requests.Add({{"op", op}, {"code", "OK"}}));
    for (RequestSource source : kAllRequestSources) {
      request_seconds(kind, source) =
          Histogram(&i.request_seconds.Add({{"op", op}, {"source", Str(Name(source))}}, kRequestSeconds));
    }
    for (int phase = 0; phase < kPhases; ++phase) {
      phase_seconds[index][phase] =
          Histogram(&i.stage_seconds.Add({{"op", op}, {"stage", Str(kPhaseNames[phase])}}, kStageSeconds));
    }
  }
}

Metrics::~Metrics() = default;

void Metrics::CountRequest(RequestKind kind, RequestSource source, std::string_view code, double seconds) {
  impl_->requests.Add({{"op", Str(Name(kind))}, {"code", Str(code)}}).Increment();
  request_seconds(kind, source).Observe(seconds);
}

void Metrics::CountSuccess(RequestKind kind, RequestSource source, double seconds) {
  requests_ok_[static_cast<std::size_t>(kind)].Add();
  request_seconds(kind, source).Observe(seconds);
}

void Metrics::CountRejection(std::string_view reason) {
  impl_->rejected.Add({{"reason", Str(reason)}}).Increment();
}

MethodSeries Metrics::Method(const std::string& service, const std::string& method, const std::string& type) {
  const auto labels = Impl::MethodLabels(service, method, type);
  auto ok_labels = labels, cancelled_labels = labels;
  ok_labels["grpc_code"] = "OK";
  cancelled_labels["grpc_code"] = "CANCELLED";
  return {Counter(&impl_->grpc_started.Add(labels)), Counter(&impl_->grpc_handled.Add(ok_labels)),
          Counter(&impl_->grpc_handled.Add(cancelled_labels)),
          Histogram(&impl_->grpc_seconds.Add(labels, kRequestSeconds))};
}

void Metrics::CountHandled(const std::string& service, const std::string& method, std::string_view code,
                           const std::string& type) {
  auto labels = Impl::MethodLabels(service, method, type);
  labels["grpc_code"] = Str(code);
  impl_->grpc_handled.Add(labels).Increment();
}

OwnerSeries Metrics::Owner(const std::string& label) {
  const prometheus::Labels labels = {{"owner", label}};
  return {.label = label,
          .requests_ok = Counter(&impl_->owner_requests.Add({{"owner", label}, {"code", "OK"}})),
          .device_seconds = Counter(&impl_->owner_device_seconds.Add(labels)),
          .jobs = Gauge(&impl_->owner_jobs.Add(labels)),
          .bytes = Gauge(&impl_->owner_bytes.Add(labels)),
          .resident_bytes = Gauge(&impl_->owner_resident_bytes.Add(labels)),
          .region_bytes = Gauge(&impl_->owner_region_bytes.Add(labels)),
          .resident_quota_ratio =
              Gauge(&impl_->owner_quota_ratio.Add({{"owner", label}, {"quota", "resident-bytes"}})),
          .region_quota_ratio =
              Gauge(&impl_->owner_quota_ratio.Add({{"owner", label}, {"quota", "region-bytes"}}))};
}

void Metrics::CountOwnerRequest(const std::string& label, std::string_view code) {
  impl_->owner_requests.Add({{"owner", label}, {"code", Str(code)}}).Increment();
}

double Metrics::RequestsStarted() const {
  double started = 0;
  for (const prometheus::MetricFamily& family : impl_->grpc_started.Collect()) {
    for (const prometheus::ClientMetric& metric : family.metric) started += metric.counter.value;
  }
  return started;
}

Counter Metrics::HostCopyBytes(const std::string& site) {
  return Counter(&impl_->host_copy_bytes.Add({{"site", site}}));
}

Gauge Metrics::UploadBytes(int device) {
  return Gauge(&impl_->upload_bytes.Add({{"device", std::to_string(device)}}));
}

Counter Metrics::PeerCopyBytes(int device) {
  return Counter(&impl_->peer_copy_bytes.Add({{"device", std::to_string(device)}}));
}

Gauge Metrics::ResidentBytes(int device) {
  return Gauge(&impl_->resident_bytes.Add({{"device", std::to_string(device)}}));
}

Gauge Metrics::DeviceMemoryBytes(int device, const std::string& state) {
  return Gauge(&impl_->device_memory.Add({{"device", std::to_string(device)}, {"state", state}}));
}

Counter Metrics::Allocations(const std::string& kind) {
  return Counter(&impl_->allocations.Add({{"kind", kind}}));
}

Gauge Metrics::Lanes(int device) { return Gauge(&impl_->lanes.Add({{"device", std::to_string(device)}})); }
Gauge Metrics::LaneBusy(int device) {
  return Gauge(&impl_->lane_busy.Add({{"device", std::to_string(device)}}));
}

namespace {

std::string Name(KernelMemory memory) {
  switch (memory) {
    case KernelMemory::kDevice:
      return "device";
    case KernelMemory::kHost:
      return "host";
    case KernelMemory::kPieces:
      return "pieces";
  }
  return "";
}

}  // namespace

KernelSeries Metrics::Kernel(Op op, std::string_view variant, DType dtype, KernelMemory memory, int device) {
  auto labels = Impl::KernelLabels(op, variant, dtype, device);
  labels["memory"] = Name(memory);
  return {Histogram(&impl_->kernel_seconds.Add(labels, kStageSeconds)),
          Counter(&impl_->kernel_bytes.Add(labels)), Counter(&impl_->kernel_flops.Add(labels))};
}

Histogram Metrics::RoofRatio(Op op, std::string_view variant, DType dtype, int device) {
  return Histogram(&impl_->roof_ratio.Add(Impl::KernelLabels(op, variant, dtype, device), kRatio));
}

TransferSeries Metrics::Transfer(int device, const std::string& direction) {
  const prometheus::Labels labels = {{"device", std::to_string(device)}, {"direction", direction}};
  return {Counter(&impl_->transfer_bytes.Add(labels)), Counter(&impl_->transfer_seconds.Add(labels))};
}

void Metrics::SetBuildInfo(const std::string& version, const std::string& revision, const std::string& cuda) {
  impl_->build_info.Add({{"version", version}, {"revision", revision}, {"cuda", cuda}}).Set(1);
}

void Metrics::SetDeviceInfo(int device, const std::string& name, const std::string& cc) {
  impl_->device_info.Add({{"device", std::to_string(device)}, {"name", name}, {"cc", cc}}).Set(1);
}

Counter Metrics::AccessLogLines(const std::string& state) {
  return Counter(&impl_->access_log_lines.Add({{"state", state}}));
}

void Metrics::SetCertificateExpiry(absl::Time not_after) {
  impl_->certificate_expiry.Add({}).Set(static_cast<double>(absl::ToUnixSeconds(not_after)));
}

std::string Metrics::Scrape() const {
  auto families = impl_->registry.Collect();
  auto process = impl_->process.Collect();
  families.insert(families.end(), process.begin(), process.end());
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace warpline

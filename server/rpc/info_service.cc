#include "server/rpc/info_service.h"

#include <algorithm>
#include <vector>

#include "kernels/problem.h"
#include "kernels/shape.h"
#include "proto/rules/program_rules.h"
#include "proto/rules/tensor_rules.h"
#include "server/rpc/tensor_service.h"
#include "server/rpc/unary_call.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline {

InfoService::InfoService(const Build& build, const ServerOptions& options, const Backend& backend,
                         OwnLimits limits)
    : limits_(std::move(limits)), cuda_(backend.name() == "cuda") {
  v1::GetInfoResponse info;
  info.set_version(build.version);
  info.set_revision(build.revision);
  info.set_backend(std::string(backend.name()));
  for (const DeviceInfo& device : backend.devices()) {
    v1::Device& to = *info.add_devices();
    to.set_ordinal(device.ordinal);
    to.set_name(device.name);
    to.set_compute_capability(device.compute_capability);
    to.set_lanes(options.Lanes(cuda_));
    to.set_memory_bytes(device.memory_bytes);
    to.set_resident_bytes(static_cast<std::int64_t>(device.resident_bytes));
    to.set_replica_bytes(static_cast<std::int64_t>(device.replica_bytes));
  }
  const std::vector<VariantInfo> variants = backend.Variants();
  for (Op op : kAllOps) {
    v1::Operation& operation = *info.add_operations();
    operation.set_name(std::string(Name(op)));
    for (const VariantInfo& variant : variants) {
      if (variant.op != op) continue;
      v1::Variant& to = *operation.add_variants();
      to.set_name(std::string(variant.name));
      to.set_summary(std::string(variant.summary));
      to.set_reproducible(variant.reproducible);
      for (DType dtype : variant.dtypes) to.add_data_types(ToProto(dtype));
      for (std::string_view name : variant.configurations) to.add_configurations(std::string(name));
    }
    for (DType dtype : kAllDTypes) {
      const bool any = std::any_of(variants.begin(), variants.end(), [&](const VariantInfo& variant) {
        return variant.op == op &&
               std::find(variant.dtypes.begin(), variant.dtypes.end(), dtype) != variant.dtypes.end();
      });
      if (any) operation.add_data_types(ToProto(dtype));
    }
  }
  info.mutable_limits()->set_max_inline_bytes(options.max_inline_bytes);
  info.mutable_limits()->set_max_job_bytes(options.MaxJobBytes());
  info.mutable_limits()->set_max_rank(kMaxRank);
  info.mutable_limits()->set_max_steps(kMaxSteps);
  info.mutable_limits()->set_max_inputs(static_cast<std::int32_t>(kMaxInputs));
  info.mutable_limits()->set_max_nodes(kMaxMapNodes);
  info.mutable_limits()->set_max_chunk_bytes(kMaxChunkBytes);
  response_ = info.SerializeAsString();
  SetLimits(options);
}

void InfoService::SetLimits(const ServerOptions& options) {
  v1::GetInfoResponse info;
  info.mutable_limits()->set_max_jobs(options.max_jobs);
  info.mutable_limits()->set_max_device_seconds(options.MaxDeviceSeconds(cuda_));
  info.mutable_limits()->set_max_ttl_seconds(absl::ToDoubleSeconds(options.max_ttl));
  MutexLock lock(&mutex_);
  changing_ = info.SerializeAsString();
}

void InfoService::GetInfo(UnaryCall& call) const {
  // A parser merges adjacent messages of the same field into one.
  v1::GetInfoResponse own;
  own.mutable_limits()->set_max_upload_bytes(static_cast<std::int64_t>(limits_.upload_bytes(call.caller())));
  if (limits_.region_bytes != nullptr) {
    own.mutable_limits()->set_max_region_bytes(
        static_cast<std::int64_t>(limits_.region_bytes(call.caller())));
  }
  std::string response = response_;
  {
    MutexLock lock(&mutex_);
    response += changing_;
  }
  const grpc::Slice slice(response + own.SerializeAsString());
  call.Respond(grpc::ByteBuffer(&slice, 1));
}

void Echo(UnaryCall& call) {
  const MessageSlices slices = call.TakeRequest();
  call.Respond(grpc::ByteBuffer(slices.slices().data(), slices.size()));
}

}  // namespace warpline

#include "client/abi/tensor.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/abi/client.h"
#include "client/abi/error.h"
#include "client/abi/process.h"
#include "client/abi/result.h"
#include "kernels/status_macros.h"

using warpline::abi::CheckRequestId;
using warpline::abi::FreeInItsProcess;
using warpline::abi::Guarded;
using warpline::abi::HostArray;
using warpline::abi::KnownPart;
using warpline::abi::TextOf;
using warpline::abi::TimeoutOf;
using warpline::abi::ToHostArray;

namespace {

struct ArrayType {
  warpline::DType dtype;
  warpline::Shape shape{};
};

absl::StatusOr<ArrayType> ToArrayType(const DLDataType& dtype, int32_t ndim, const int64_t* shape) {
  ASSIGN_OR_RETURN(const warpline::DType type, warpline::abi::ToDType(dtype));
  if (ndim < 0 || ndim > warpline::kMaxRank) {
    return absl::InvalidArgumentError(absl::StrCat(ndim, " axes; the limit is ", warpline::kMaxRank));
  }
  ArrayType array{.dtype = type};
  for (int i = 0; i < ndim; ++i) array.shape.Append(shape[i]);
  return array;
}

}  // namespace

const DLTensor* warpline_tensor_type(const warpline_tensor* tensor) { return tensor->type.get(); }

const char* warpline_tensor_id(const warpline_tensor* tensor) { return tensor->tensor.id().c_str(); }

int32_t warpline_tensor_device(const warpline_tensor* tensor) { return tensor->tensor.device(); }

uint64_t warpline_tensor_missing_bytes(const warpline_tensor* tensor) {
  return tensor->tensor.info().missing_bytes;
}

double warpline_tensor_lease_seconds(const warpline_tensor* tensor) {
  return absl::ToDoubleSeconds(tensor->tensor.info().ttl);
}

void warpline_tensor_release(warpline_tensor* tensor) {
  if (!tensor->let_go.exchange(true)) tensor->tensor.Release();
}

void warpline_tensor_drop(warpline_tensor* tensor) {
  if (tensor->process != getpid()) return;
  if (!tensor->let_go.exchange(true)) tensor->tensor.Drop();
}

void warpline_tensor_free(warpline_tensor* tensor) { FreeInItsProcess(tensor); }

namespace {

warpline::client::Progress ProgressOf(const warpline_transfer_options& options, std::size_t total) {
  if (options.progress == nullptr) return nullptr;
  return [tell = options.progress, data = options.progress_data, total](std::size_t bytes) {
    tell(data, bytes, total);
  };
}

}  // namespace

warpline_error* warpline_put(warpline_client* client, const DLTensor* array,
                             const warpline_transfer_options* options, warpline_tensor** out) {
  return Guarded([&]() -> absl::Status {
    RETURN_IF_ERROR(client->Check());
    ASSIGN_OR_RETURN(const warpline_transfer_options given, KnownPart(options));
    RETURN_IF_ERROR(CheckRequestId(given.request_id));
    ASSIGN_OR_RETURN(const HostArray host, ToHostArray(*array, "array"));
    ASSIGN_OR_RETURN(const warpline::client::ConstArray operand, ToConstArray(host));
    ASSIGN_OR_RETURN(
        warpline::client::Tensor tensor,
        client->client.Put(operand, TimeoutOf(given.timeout),
                           {.ttl = absl::Seconds(given.ttl),
                            .channels = given.channels,
                            .device = given.device == 0 ? std::nullopt : std::optional(given.device - 1),
                            .request_id = TextOf(given.request_id),
                            .progress = ProgressOf(given, host.bytes)}));
    *out = new warpline_tensor(std::move(tensor));
    return absl::OkStatus();
  });
}

warpline_error* warpline_get(warpline_client* client, const warpline_tensor* tensor, const DLTensor* to,
                             const warpline_transfer_options* options, warpline_array** out) {
  return Guarded([&]() -> absl::Status {
    RETURN_IF_ERROR(client->Check());
    ASSIGN_OR_RETURN(const warpline_transfer_options given, KnownPart(options));
    RETURN_IF_ERROR(CheckRequestId(given.request_id));
    std::optional<HostArray> host;
    warpline::client::Destination destination;
    if (to != nullptr) {
      ASSIGN_OR_RETURN(host, ToHostArray(*to, "to"));
      RETURN_IF_ERROR(CheckWritable(*host, "to"));
      if (host->IsDense()) destination = {.data = host->data, .bytes = host->bytes};
    }
    ASSIGN_OR_RETURN(warpline::client::Array array,
                     client->client.Get(tensor->tensor, TimeoutOf(given.timeout),
                                        {.destination = destination,
                                         .channels = given.channels,
                                         .request_id = TextOf(given.request_id),
                                         .progress = ProgressOf(given, tensor->tensor.bytes())}));
    if (!host.has_value()) {
      *out = new warpline_array(std::move(array));
      return absl::OkStatus();
    }
    if (array.dtype() != host->dtype || array.shape() != host->shape) {
      return absl::InvalidArgumentError(
          absl::StrCat("to: ", std::string(Name(host->dtype)), ToString(host->shape), ", but the tensor is ",
                       std::string(Name(array.dtype())), ToString(array.shape())));
    }
    if (array.data() != host->data) Scatter(array.data(), *host);
    return absl::OkStatus();
  });
}

warpline_error* warpline_drop(warpline_client* client, const char* id, double timeout) {
  return Guarded([&]() -> absl::Status {
    RETURN_IF_ERROR(client->Check());
    return client->client.Drop(id, absl::Seconds(timeout));
  });
}

warpline_error* warpline_renew(warpline_client* client, const char* id, double ttl, double timeout,
                               warpline_tensor** out) {
  return Guarded([&]() -> absl::Status {
    RETURN_IF_ERROR(client->Check());
    const std::optional<absl::Duration> length = ttl == 0 ? std::nullopt : std::optional(absl::Seconds(ttl));
    ASSIGN_OR_RETURN(warpline::client::TensorInfo info,
                     client->client.Renew(id, length, absl::Seconds(timeout)));
    if (out != nullptr) *out = new warpline_tensor(warpline::client::Tensor(std::move(info)));
    return absl::OkStatus();
  });
}

warpline_error* warpline_list(warpline_client* client, double timeout, warpline_result** out) {
  return Guarded([&]() -> absl::Status {
    RETURN_IF_ERROR(client->Check());
    ASSIGN_OR_RETURN(std::vector<warpline::client::TensorInfo> tensors,
                     client->client.ListTensors(absl::Seconds(timeout)));
    auto result = std::make_unique<warpline_result>();
    for (warpline::client::TensorInfo& info : tensors) {
      result->arrays.push_back(nullptr);
      result->tensors.push_back(std::make_unique<warpline_tensor>(warpline::client::Tensor(std::move(info))));
    }
    *out = result.release();
    return absl::OkStatus();
  });
}

warpline_error* warpline_attach(warpline_client* client, const char* id, int32_t renew, double timeout,
                                warpline_tensor** out) {
  return Guarded([&]() -> absl::Status {
    RETURN_IF_ERROR(client->Check());
    ASSIGN_OR_RETURN(warpline::client::Tensor tensor,
                     client->client.Attach(id, absl::Seconds(timeout), {.renew = renew != 0}));
    *out = new warpline_tensor(std::move(tensor));
    return absl::OkStatus();
  });
}

warpline_error* warpline_region_open(warpline_client* client, size_t bytes, double timeout,
                                     warpline_region** out) {
  return Guarded([&]() -> absl::Status {
    RETURN_IF_ERROR(client->Check());
    ASSIGN_OR_RETURN(warpline::client::Region region,
                     client->client.OpenRegion(bytes, absl::Seconds(timeout)));
    *out = new warpline_region{.region = std::move(region)};
    return absl::OkStatus();
  });
}

warpline_error* warpline_empty(warpline_client* client, DLDataType dtype, int32_t ndim, const int64_t* shape,
                               double timeout, warpline_array** out) {
  return Guarded([&]() -> absl::Status {
    RETURN_IF_ERROR(client->Check());
    ASSIGN_OR_RETURN(const ArrayType type, ToArrayType(dtype, ndim, shape));
    ASSIGN_OR_RETURN(warpline::client::Array array,
                     client->client.Empty(type.dtype, type.shape, absl::Seconds(timeout)));
    *out = new warpline_array(std::move(array));
    return absl::OkStatus();
  });
}

warpline_error* warpline_region_allocate(warpline_region* region, DLDataType dtype, int32_t ndim,
                                         const int64_t* shape, warpline_array** out) {
  return Guarded([&]() -> absl::Status {
    if (region->process != getpid()) {
      return absl::FailedPreconditionError("a forked child does not have the memory of this region");
    }
    ASSIGN_OR_RETURN(const ArrayType type, ToArrayType(dtype, ndim, shape));
    ASSIGN_OR_RETURN(warpline::client::Array array, region->region.Allocate(type.dtype, type.shape));
    *out = new warpline_array(std::move(array));
    return absl::OkStatus();
  });
}

void warpline_region_free(warpline_region* region) { FreeInItsProcess(region); }

#include "server/rpc/tensor_requests.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"
#include "server/base/errors.h"
#include "server/rpc/codec/tensor_info.h"

namespace warpline {
namespace {

constexpr int kMaxPage = 1000;
// The maximum number of ids in one request: a whole page of a list.
constexpr int kMaxIds = 1000;

absl::Status CheckId(const std::string& id) {
  return id.empty() ? FieldError("id", "missing") : absl::OkStatus();
}

// Returns the ids of a request that may name many.
template <typename Request>
absl::StatusOr<std::vector<std::string>> IdsOf(const Request& request) {
  if (!request.id().empty()) return FieldError("ids", "given together with id");
  if (request.ids_size() > kMaxIds) {
    return FieldError("ids", absl::StrCat(request.ids_size(), " are above the limit of ", kMaxIds));
  }
  return std::vector<std::string>(request.ids().begin(), request.ids().end());
}

}  // namespace

absl::StatusOr<TensorStore::Info> CreateTensor(const v1::CreateRequest& request, const Caller& caller,
                                               int devices, TensorStore& tensors) {
  ASSIGN_OR_RETURN(const TensorSpec spec, SpecOf(request));
  const absl::StatusOr<absl::Duration> ttl = tensors.Ttl(request.ttl_seconds());
  RETURN_IF_ERROR(InField("ttl_seconds", ttl.status()));
  if (request.has_device() && (request.device() < 0 || request.device() >= devices)) {
    return FieldError("device", absl::StrCat(request.device(), " is not in 0..", devices - 1));
  }
  const int device = request.has_device() ? request.device() : tensors.DeviceFor(caller, spec.bytes);
  return tensors.Create(caller, spec, *ttl, device);
}

absl::StatusOr<std::vector<Buffer>> DropTensors(const v1::DropRequest& request, OwnerId owner,
                                                TensorStore& tensors) {
  if (request.ids_size() > 0) {
    ASSIGN_OR_RETURN(const std::vector<std::string> ids, IdsOf(request));
    return tensors.DropEach(owner, ids);
  }
  RETURN_IF_ERROR(CheckId(request.id()));
  absl::StatusOr<Buffer> dropped = tensors.Drop(owner, request.id());
  RETURN_IF_ERROR(InField("id", dropped.status()));
  return std::vector<Buffer>{*std::move(dropped)};
}

bool FreesAtOnce(std::span<const Buffer> memory) {
  constexpr std::size_t kBytes = std::size_t{1} << 20, kBlocks = 16;
  std::size_t bytes = 0;
  for (const Buffer& each : memory) bytes += each.bytes().size();
  return bytes <= kBytes && memory.size() <= kBlocks;
}

absl::StatusOr<v1::RenewResponse> RenewTensors(const v1::RenewRequest& request, OwnerId owner,
                                               TensorStore& tensors) {
  std::optional<absl::Duration> ttl;
  if (request.ttl_seconds() != 0) {
    const absl::StatusOr<absl::Duration> asked = tensors.Ttl(request.ttl_seconds());
    RETURN_IF_ERROR(InField("ttl_seconds", asked.status()));
    ttl = *asked;
  }
  v1::RenewResponse response;
  if (request.ids_size() > 0) {
    ASSIGN_OR_RETURN(const std::vector<std::string> ids, IdsOf(request));
    for (const absl::Duration length : tensors.RenewEach(owner, ids, ttl)) {
      response.add_ttl_seconds(absl::ToDoubleSeconds(length));
    }
    return response;
  }
  RETURN_IF_ERROR(CheckId(request.id()));
  const absl::StatusOr<TensorStore::Info> info = tensors.Renew(owner, request.id(), ttl);
  RETURN_IF_ERROR(InField("id", info.status()));
  *response.mutable_tensor() = ToProto(*info);
  return response;
}

absl::StatusOr<v1::ListResponse> ListTensors(const v1::ListRequest& request, OwnerId owner,
                                             const TensorStore& tensors) {
  if (request.page_size() < 0) {
    return FieldError("page_size", absl::StrCat(request.page_size(), "; the least is 0"));
  }
  const int page = request.page_size() == 0 ? kMaxPage : std::min(request.page_size(), kMaxPage);
  const std::vector<TensorStore::Info> infos =
      tensors.List(owner, request.page_token(), static_cast<std::size_t>(page) + 1);
  v1::ListResponse response;
  for (const TensorStore::Info& info : infos) {
    if (response.tensors_size() < page) *response.add_tensors() = ToProto(info);
  }
  // A page token is the last id of a page. One more tensor than a page was asked for, to see whether there
  // are more.
  if (infos.size() > static_cast<std::size_t>(page)) {
    response.set_next_page_token(response.tensors(page - 1).resident().id());
  }
  return response;
}

absl::StatusOr<AskedRange> FindAsked(const v1::GetRequest& request, OwnerId owner, TensorStore& tensors) {
  RETURN_IF_ERROR(CheckId(request.id()));
  if (request.offset() < 0) return FieldError("offset", absl::StrCat(request.offset(), "; the least is 0"));
  if (request.length() < 0) return FieldError("length", absl::StrCat(request.length(), "; the least is 0"));
  auto reading = tensors.Read(owner, request.id());
  RETURN_IF_ERROR(InField("id", reading.status()));
  const std::size_t size = reading->info.spec.bytes;
  const auto offset = static_cast<std::size_t>(request.offset());
  const auto length = static_cast<std::size_t>(request.length());
  if (offset > size) {
    return FieldError("offset", absl::StrCat(offset, " is beyond the tensor's ", size, " bytes"));
  }
  if (length > size - offset) {
    return FieldError("length",
                      absl::StrCat(length, " bytes from ", offset, " on end beyond the tensor's ", size));
  }
  return AskedRange{*std::move(reading), {offset, length == 0 ? size : offset + length}};
}

}  // namespace warpline

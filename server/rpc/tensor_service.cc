#include "server/rpc/tensor_service.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"
#include "server/base/errors.h"
#include "server/rpc/answer.h"
#include "server/rpc/codec/tensor_info.h"
#include "server/rpc/get_stream.h"
#include "server/rpc/put_stream.h"
#include "server/rpc/unary_call.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline {
namespace {

constexpr int kMaxPage = 1000;
// Tensors that are being made at one time.
constexpr int kMaxCreating = 256;

absl::Status CheckId(const std::string& id) {
  return id.empty() ? FieldError("id", "missing") : absl::OkStatus();
}

}  // namespace

TensorService::TensorService(const Engine& engine, Metrics& metrics)
    : engine_(engine),
      put_schema_(ScanSchema::For(
          v1::PutRequest::descriptor(),
          {.payload = v1::PutRequest::descriptor()->FindFieldByNumber(v1::PutRequest::kDataFieldNumber)})),
      put_site_(metrics, "put") {}

void TensorService::Create(UnaryCall& call) {
  if (creating_.fetch_add(1) >= kMaxCreating) {
    creating_.fetch_sub(1);
    return call.RespondError(
        WithRetryAfter(absl::ResourceExhaustedError(absl::StrCat("the server is full: ", kMaxCreating,
                                                                 " tensors wait for their memory")),
                       absl::Milliseconds(50)));
  }
  // A worker's, because memory that the device does not have at hand takes milliseconds.
  engine_.workers.Post([this, &call] {
    const absl::Cleanup done = [this] { creating_.fetch_sub(1); };
    AnswerCall<v1::CreateRequest, v1::CreateResponse>(
        call, [&](const v1::CreateRequest& request) -> absl::StatusOr<v1::CreateResponse> {
          ASSIGN_OR_RETURN(const TensorSpec spec, SpecOf(request));
          const absl::StatusOr<absl::Duration> ttl = engine_.tensors.Ttl(request.ttl_seconds());
          RETURN_IF_ERROR(InField("ttl_seconds", ttl.status()));
          const auto devices = static_cast<int>(engine_.backend.devices().size());
          if (request.has_device() && (request.device() < 0 || request.device() >= devices)) {
            return FieldError("device", absl::StrCat(request.device(), " is not in 0..", devices - 1));
          }
          const int device = request.has_device() ? request.device() : engine_.tensors.RoomiestDevice();
          ASSIGN_OR_RETURN(const TensorStore::Info info,
                           engine_.tensors.Create(call.caller().owner, spec, *ttl, device));
          v1::CreateResponse response;
          *response.mutable_tensor() = ToProto(info);
          // A client that has given up does not know of it.
          call.OnNotSent([this, owner = call.caller().owner, id = info.id] {
            static_cast<void>(engine_.tensors.Drop(owner, id));
          });
          return response;
        });
  });
}

void TensorService::Drop(UnaryCall& call) {
  AnswerCall<v1::DropRequest, v1::DropResponse>(
      call, [&](const v1::DropRequest& request) -> absl::StatusOr<v1::DropResponse> {
        RETURN_IF_ERROR(CheckId(request.id()));
        absl::StatusOr<Buffer> dropped = engine_.tensors.Drop(call.caller().owner, request.id());
        RETURN_IF_ERROR(InField("id", dropped.status()));
        // Giving gigabytes back to the system takes a while.
        engine_.workers.Post([memory = *std::move(dropped)] {});
        return v1::DropResponse();
      });
}

void TensorService::Renew(UnaryCall& call) {
  AnswerCall<v1::RenewRequest, v1::RenewResponse>(
      call, [&](const v1::RenewRequest& request) -> absl::StatusOr<v1::RenewResponse> {
        RETURN_IF_ERROR(CheckId(request.id()));
        std::optional<absl::Duration> ttl;
        if (request.ttl_seconds() != 0) {
          const absl::StatusOr<absl::Duration> asked = engine_.tensors.Ttl(request.ttl_seconds());
          RETURN_IF_ERROR(InField("ttl_seconds", asked.status()));
          ttl = *asked;
        }
        const absl::StatusOr<TensorStore::Info> info =
            engine_.tensors.Renew(call.caller().owner, request.id(), ttl);
        RETURN_IF_ERROR(InField("id", info.status()));
        v1::RenewResponse response;
        *response.mutable_tensor() = ToProto(*info);
        return response;
      });
}

void TensorService::List(UnaryCall& call) {
  AnswerCall<v1::ListRequest, v1::ListResponse>(
      call, [&](const v1::ListRequest& request) -> absl::StatusOr<v1::ListResponse> {
        if (request.page_size() < 0) {
          return FieldError("page_size", absl::StrCat(request.page_size(), "; the least is 0"));
        }
        const int page = request.page_size() == 0 ? kMaxPage : std::min(request.page_size(), kMaxPage);
        const std::vector<TensorStore::Info> infos = engine_.tensors.List(
            call.caller().owner, request.page_token(), static_cast<std::size_t>(page) + 1);
        v1::ListResponse response;
        for (const TensorStore::Info& info : infos) {
          if (response.tensors_size() < page) *response.add_tensors() = ToProto(info);
        }
        // A token is where to go on: the last id. One more than a page tells whether there are more.
        if (infos.size() > static_cast<std::size_t>(page)) {
          response.set_next_page_token(response.tensors(page - 1).resident().id());
        }
        return response;
      });
}

std::unique_ptr<MessageStream::Handler> TensorService::NewPut(const Caller& caller) {
  return std::make_unique<PutStream>(engine_, put_schema_, put_site_, caller);
}

std::unique_ptr<MessageStream::Handler> TensorService::NewGet(const Caller& caller) {
  return std::make_unique<GetStream>(engine_, caller);
}

}  // namespace warpline

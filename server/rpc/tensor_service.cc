#include "server/rpc/tensor_service.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/status_macros.h"
#include "server/base/errors.h"
#include "server/rpc/answer.h"
#include "server/rpc/codec/tensor_info.h"
#include "server/rpc/get_stream.h"
#include "server/rpc/put_stream.h"
#include "server/rpc/tensor_requests.h"
#include "server/rpc/unary_call.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline {
namespace {

// The maximum number of calls in progress. A page of a list takes some 100 KB, and a request about many
// tensors 40 KB.
constexpr int kMaxCreating = 256;
constexpr int kMaxListing = 64;
constexpr int kMaxMany = 64;

}  // namespace

TensorService::TensorService(const Engine& engine, Metrics& metrics)
    : engine_(engine),
      put_schema_(PutSchema()),
      put_site_(metrics, "put"),
      creating_({.total = kMaxCreating, .what = "tensors that wait for their memory"}),
      listing_({.total = kMaxListing, .what = "lists that are being made"}),
      many_({.total = kMaxMany, .what = "requests about many tensors in progress"}) {}

void TensorService::Create(UnaryCall& call) {
  absl::StatusOr<FairBudget::Part> place = creating_.Take(call.caller().claimant);
  if (!place.ok()) return call.RespondError(place.status());
  // Not on this thread: allocating memory that is not ready on the device takes milliseconds.
  engine_.compilers.Post(call.caller().claimant, [this, &call, place = *std::move(place)] {
    AnswerCall<v1::CreateRequest, v1::CreateResponse>(
        call, [&](const v1::CreateRequest& request) -> absl::StatusOr<v1::CreateResponse> {
          const auto devices = static_cast<int>(engine_.backend.devices().size());
          ASSIGN_OR_RETURN(const TensorStore::Info info,
                           CreateTensor(request, call.caller(), devices, engine_.tensors));
          v1::CreateResponse response;
          *response.mutable_tensor() = ToProto(info);
          // A client that has given up does not know the id.
          call.OnNotSent([this, owner = call.caller().owner, id = info.id] {
            static_cast<void>(engine_.tensors.Drop(owner, id));
          });
          return response;
        });
  });
}

// Many ids take too long for the thread that receives calls.
template <typename Request, typename Answer>
void TensorService::AnswerForIds(UnaryCall& call, const Answer& answer) {
  Request request;
  if (!ParseCall(call, request)) return;
  if (request.ids_size() == 0) return answer(request);
  absl::StatusOr<FairBudget::Part> place = many_.Take(call.caller().claimant);
  if (!place.ok()) return call.RespondError(place.status());
  engine_.background.Post(call.caller().claimant, [answer, place = *std::move(place),
                                                   request = std::move(request)] { answer(request); });
}

// The answer waits until the memory is free, so that a client that drops one tensor can make another.
void TensorService::Drop(UnaryCall& call) {
  AnswerForIds<v1::DropRequest>(
      call, [this, &call, owner = call.caller().owner](const v1::DropRequest& request) {
        if (!request.id().empty() && engine_.tensors.IsStreamedResult(owner, request.id())) {
          call.BelongToAnother();
        }
        absl::StatusOr<std::vector<Buffer>> dropped = DropTensors(request, owner, engine_.tensors);
        if (!dropped.ok()) return call.RespondError(dropped.status());
        const auto free_and_answer = [&call](std::vector<Buffer>& memory) {
          v1::DropResponse response;
          response.set_dropped(static_cast<std::int64_t>(memory.size()));
          memory.clear();
          RespondWith<v1::DropResponse>(call, response);
        };
        if (FreesAtOnce(*dropped)) return free_and_answer(*dropped);
        engine_.workers.Post(
            [free_and_answer, memory = *std::move(dropped)]() mutable { free_and_answer(memory); });
      });
}

void TensorService::Renew(UnaryCall& call) {
  AnswerForIds<v1::RenewRequest>(call,
                                 [this, &call, owner = call.caller().owner](const v1::RenewRequest& request) {
                                   RespondWith(call, RenewTensors(request, owner, engine_.tensors));
                                 });
}

// A page takes a millisecond, which is too long for the thread that receives calls.
void TensorService::List(UnaryCall& call) {
  absl::StatusOr<FairBudget::Part> place = listing_.Take(call.caller().claimant);
  if (!place.ok()) return call.RespondError(place.status());
  engine_.background.Post(call.caller().claimant, [this, &call, place = *std::move(place)] {
    AnswerCall<v1::ListRequest, v1::ListResponse>(call, [&](const v1::ListRequest& request) {
      return ListTensors(request, call.caller().owner, engine_.tensors);
    });
  });
}

std::unique_ptr<MessageStream::Handler> TensorService::NewPut(const Caller& caller) {
  return std::make_unique<PutStream>(engine_, put_schema_, put_site_, caller);
}

std::unique_ptr<MessageStream::Handler> TensorService::NewGet(const Caller& caller) {
  return std::make_unique<GetStream>(engine_, caller);
}

}  // namespace warpline

#include "server/rpc/unary_call.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "server/base/errors.h"
#include "server/rpc/code_name.h"
#include "server/rpc/inflate.h"
#include "server/rpc/rpc_status.h"
#include "server/rpc/send_watchdog.h"

namespace warpline {
namespace {

constexpr char kRequestIdKey[] = "x-request-id";
constexpr std::size_t kRequestIdLength = 128;

// Unique within the process by the counter, between processes by the random part.
std::string NewRequestId() {
  static const std::uint32_t process = std::random_device{}();
  static std::atomic<std::uint64_t> next = 0;
  return absl::StrCat(absl::Hex(process, absl::kZeroPad8), "-",
                      absl::Hex(next.fetch_add(1), absl::kZeroPad8));
}

std::string RequestId(const grpc::ServerContext& context) {
  const auto found = context.client_metadata().find(kRequestIdKey);
  if (found == context.client_metadata().end()) return NewRequestId();
  const grpc::string_ref& id = found->second;
  const bool usable = !id.empty() && id.size() <= kRequestIdLength &&
                      std::all_of(id.begin(), id.end(), [](char c) { return c > ' ' && c < 0x7f; });
  return usable ? std::string(id.data(), id.size()) : NewRequestId();
}

}  // namespace

void UnaryCall::Listen(const UnaryMethod& method, grpc::ServerCompletionQueue* queue, const Server& server) {
  new UnaryCall(method, queue, server);  // deletes itself
}

UnaryCall::UnaryCall(const UnaryMethod& method, grpc::ServerCompletionQueue* queue, const Server& server)
    : method_(method), queue_(queue), server_(server) {
  server_.counts.AddObject();
  context_.AsyncNotifyWhenDone(&done_tag_);
  method_.request_next(&context_, &request_, &writer_, queue_, &main_tag_);
}

void UnaryCall::MainTag::Proceed(bool ok) {
  if (call.received_ok_) {  // the response has left us, or never will
    call.sending_.End();
    call.whole_.End();
    call.server_.watchdog.Remove(call);
    call.Unref();
  } else if (ok) {
    call.received_ok_ = true;
    call.OnReceived();
  } else {  // the server is shutting down; the done tag is not returned for a call that never was
    call.Delete();
  }
}

void UnaryCall::DoneTag::Proceed(bool) {
  if (call.context_.IsCancelled()) {
    call.cancelled_.store(true, std::memory_order_relaxed);
    // Moved out, so that what it holds goes even if the call lives on.
    if (auto hook = std::exchange(call.on_cancel_, nullptr)) hook();
  }
  call.Unref();
}

void UnaryCall::OnReceived() {
  received_ = MonotonicClock::now();
  counted_ = server_.counts.AddReceived();
  Ref();  // one for the response, one for the done tag
  Listen(method_, queue_, server_);
  request_id_ = RequestId(context_);
  number_ = nvtx::RequestNumber::Next();
  whole_ = nvtx::SpanningRange(method_.name.c_str(), number_);
  nvtx::Mark(request_id_.c_str(), number_);
  // Once, so that from here on no change of the wall clock matters.
  deadline_ = After(absl::FromChrono(context_.deadline()) - absl::Now());
  owner_ = absl::Hash<std::string>()(context_.peer());
  server_.metrics.requests_in_flight.Add(1);
  method_.series.started.Add();
  method_.handle(*this);
}

absl::StatusOr<std::vector<grpc::Slice>> UnaryCall::TakeRequest() {
  ReceivedMessage message = SlicesOf(request_);
  request_.Clear();
  if (message.compressed) return Inflate(message.slices, server_.max_message_bytes);
  return std::move(message.slices);
}

void UnaryCall::Respond(const grpc::ByteBuffer& response) { Finish(&response, grpc::Status::OK); }

void UnaryCall::RespondError(const absl::Status& status) {
  if (const auto delay = RetryAfterOf(status); delay.has_value()) {
    context_.AddTrailingMetadata("grpc-retry-pushback-ms", absl::StrCat(absl::ToInt64Milliseconds(*delay)));
  }
  Finish(nullptr, ToGrpcStatus(status, request_id_));
}

void UnaryCall::Finish(const grpc::ByteBuffer* response, const grpc::Status& status) {
  server_.metrics.requests_in_flight.Add(-1);
  method_.series.handling_seconds.Observe(SecondsSince(received_));
  if (status.ok()) {
    method_.series.handled_ok.Add();
  } else {
    server_.metrics.CountHandled(method_.service, method_.name, CodeName(status.error_code()));
  }
  sending_ = nvtx::SpanningRange(nvtx::Name::kSend, number_);
  server_.watchdog.Add(*this);
  if (response != nullptr) {
    writer_.Finish(*response, status, &main_tag_);
  } else {
    writer_.FinishWithError(status, &main_tag_);
  }
}

void UnaryCall::Unref() {
  if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) Delete();
}

void UnaryCall::Delete() {
  CallCounts& counts = server_.counts;
  const bool counted = counted_;
  delete this;
  if (counted) counts.RemoveReceived();
  counts.RemoveObject();
}

}  // namespace warpline

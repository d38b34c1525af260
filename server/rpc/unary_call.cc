#include "server/rpc/unary_call.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/base/errors.h"
#include "server/rpc/code_name.h"
#include "server/rpc/inflate.h"
#include "server/rpc/request_id.h"
#include "server/rpc/rpc_status.h"
#include "server/rpc/send_watchdog.h"

namespace warpline {

void UnaryCall::Start(const UnaryMethod& method, const Server& server,
                      std::unique_ptr<IncomingCall> incoming) {
  (new UnaryCall(method, server, std::move(incoming)))->Begin();  // deletes itself
}

UnaryCall::UnaryCall(const UnaryMethod& method, const Server& server, std::unique_ptr<IncomingCall> incoming)
    : method_(method),
      server_(server),
      incoming_(std::move(incoming)),
      request_id_(RequestId(incoming_->context())),
      number_(nvtx::RequestNumber::Next()),
      received_(absl::Now()),
      deadline_(absl::FromChrono(incoming_->context().deadline())),
      in_progress_(server.counts.AddInProgress()) {
  incoming_->OnDone(&done_tag_);
}

void UnaryCall::Begin() {
  whole_ = nvtx::SpanningRange(method_.name.c_str(), number_);
  nvtx::Mark(request_id_.c_str(), number_);
  server_.metrics.requests_in_flight.Add(1);
  method_.series.started.Add();
  if (!in_progress_ && !method_.while_draining) {
    server_.metrics.CountRejection("draining");
    return RespondError(absl::UnavailableError("the server is draining"));
  }
  incoming_->stream().Read(&request_, &read_tag_);
}

void UnaryCall::DoneTag::Proceed(bool ok) {
  if (!ok) {
    call.cancelled_.store(true, std::memory_order_relaxed);
    // Moved out, so that what it holds goes even if the call lives on.
    if (auto hook = std::exchange(call.on_cancel_, nullptr)) hook();
  }
  call.Unref();
}

void UnaryCall::OnRead(bool ok) {
  if (!ok) {
    // The client sent no message, or was cancelled while it did: the end of the call will tell.
    cut_short_ = true;
    return RespondError(absl::InvalidArgumentError("the call ended without a message"));
  }
  received_ = absl::Now();
  if (!method_.takes_message) return Handle();
  ReceivedMessage message = SlicesOf(request_);
  request_.Clear();
  if (!message.compressed) {
    message_ = std::move(message.slices);
    return Handle();
  }
  const absl::Status started =
      server_.inflater.Start(std::move(message.slices), server_.max_message_bytes, incoming_->queue(),
                             [this](absl::StatusOr<Inflater::Inflated> inflated) {
                               if (!inflated.ok()) return RespondError(inflated.status());
                               message_ = std::move(inflated->slices);
                               provisional_ticket_ = std::move(inflated->ticket);
                               Handle();
                             });
  if (!started.ok()) RespondError(started);
}

void UnaryCall::Handle() {
  // While a message is inflated its client may go. OnCancel would be set too late for that.
  if (cancelled()) return RespondError(absl::CancelledError("the client cancelled the call"));
  method_.handle(*this);
}

void UnaryCall::Respond(const grpc::ByteBuffer& response) { Finish(&response, grpc::Status::OK); }

void UnaryCall::RespondError(const absl::Status& status) {
  if (const auto delay = RetryAfterOf(status); delay.has_value()) {
    incoming_->context().AddTrailingMetadata("grpc-retry-pushback-ms",
                                             absl::StrCat(absl::ToInt64Milliseconds(*delay)));
  }
  Finish(nullptr, ToGrpcStatus(status, request_id_));
}

void UnaryCall::Finish(const grpc::ByteBuffer* response, const grpc::Status& status) {
  // What the handler did not use, it does not need.
  message_.clear();
  provisional_ticket_.Return();
  server_.metrics.requests_in_flight.Add(-1);
  method_.series.handling_seconds.Observe(absl::ToDoubleSeconds(absl::Now() - received_));
  if (!cut_short_) CountHandled(status.error_code());
  sending_ = nvtx::SpanningRange(nvtx::Name::kSend, number_);
  // gRPC orders what is done here before what OnSent does, but a sanitizer sees only the watchdog's lock do
  // so.
  grpc::GenericServerAsyncReaderWriter& stream = incoming_->stream();
  server_.watchdog.Add(*this);
  if (response != nullptr) {
    stream.WriteAndFinish(*response, grpc::WriteOptions(), status, &sent_tag_);
  } else {
    stream.Finish(status, &sent_tag_);
  }
}

void UnaryCall::OnSent(bool ok) {
  sending_.End();
  whole_.End();
  if (cut_short_) CountHandled(ok ? grpc::StatusCode::INVALID_ARGUMENT : grpc::StatusCode::CANCELLED);
  if (ok) incoming_->SetAnswered();
  server_.watchdog.Remove(*this);
  Unref();
}

void UnaryCall::CountHandled(grpc::StatusCode code) {
  if (code == grpc::StatusCode::OK) {
    method_.series.handled_ok.Add();
  } else {
    server_.metrics.CountHandled(method_.service, method_.name, CodeName(code));
  }
}

void UnaryCall::Unref() {
  if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) Delete();
}

void UnaryCall::Delete() {
  CallCounts& counts = server_.counts;
  const bool in_progress = in_progress_;
  // It counts as an object until the last, so that the counts are still there.
  const std::unique_ptr<IncomingCall> incoming = std::move(incoming_);
  delete this;
  if (in_progress) counts.RemoveInProgress();
}

}  // namespace warpline

#include "server/rpc/unary_call.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/errors.h"
#include "server/rpc/code_name.h"
#include "server/rpc/inflate.h"
#include "server/rpc/request_id.h"
#include "server/rpc/rpc_status.h"
#include "server/rpc/send_watchdog.h"
#include "server/rpc/tls_credentials.h"

namespace warpline {
namespace {

// Larger responses are sent by the thread that has them: this takes a while, in which the polling thread
// would receive nothing.
constexpr std::size_t kPostedBytes = 64 << 10;

}  // namespace

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
      received_(MonotonicClock::now()),
      // Converted once, so that later changes of the wall clock have no effect. absl::Now() notices a change
      // up to two seconds later than gRPC, which asks the kernel. Until then all deadlines would be wrong.
      deadline_(After(absl::FromChrono(incoming_->context().deadline() - std::chrono::system_clock::now()))) {
  server_.counts.AddBusy();
  incoming_->OnDone(&done_tag_);
}

void UnaryCall::Begin() {
  whole_ = nvtx::SpanningRange(method_.name.c_str(), number_);
  nvtx::Mark(request_id_.c_str(), number_);
  if (!incoming_->in_time() && !method_.while_draining) {
    server_.metrics.CountRejection("draining");
    return RespondError(absl::UnavailableError("the server is draining"));
  }
  std::optional<grpc::ByteBuffer> message = incoming_->TakeMessage();
  if (!message.has_value()) {
    // The client sent no message, or cancelled while it was sending. The end of the call will show which.
    cut_short_ = true;
    return RespondError(absl::InvalidArgumentError("the call ended without a message"));
  }
  Receive(*message);
}

void UnaryCall::DoneTag::Proceed(bool ok) {
  if (!ok) {
    std::function<void()> hook;
    {
      MutexLock lock(&call.cancel_mutex_);
      call.cancelled_.store(true, std::memory_order_relaxed);
      // Moved out, so that its captures are destroyed even if the call lives on.
      hook = std::exchange(call.on_cancel_, nullptr);
    }
    if (hook) hook();
  }
  call.Unref();
}

std::string UnaryCall::Client() const { return PeerIdentity(*incoming_->context().auth_context()); }

void UnaryCall::OnCancel(std::function<void()> hook) {
  {
    MutexLock lock(&cancel_mutex_);
    if (!cancelled()) {
      on_cancel_ = std::move(hook);
      return;
    }
  }
  hook();
}

void UnaryCall::Receive(grpc::ByteBuffer& request) {
  end_.request_bytes = request.Length();
  if (!method_.takes_message) return Handle();
  const std::size_t limit = std::min(server_.max_message_bytes, method_.max_message_bytes);
  if (const std::size_t bytes = request.Length(); bytes > limit) {
    return RespondError(
        absl::ResourceExhaustedError(absl::StrCat("the message has ", bytes, " bytes, limit ", limit)));
  }
  ReceivedMessage message = SlicesOf(request);
  request.Clear();
  if (!message.compressed) {
    message_ = std::move(message.slices);
    return Handle();
  }
  if (!incoming_->identified()) return RespondError(CompressedUnidentified());
  const absl::Status started =
      server_.inflater.Start(std::move(message.slices), limit, caller(), incoming_->thread().queue(),
                             [this](absl::StatusOr<Inflater::Inflated> inflated) {
                               if (!inflated.ok()) return RespondError(inflated.status());
                               message_ = std::move(inflated->slices);
                               provisional_ticket_ = std::move(inflated->ticket);
                               Handle();
                             });
  if (!started.ok()) RespondError(started);
}

void UnaryCall::Handle() {
  if (server_.crew != nullptr && method_.computes && crowded()) {
    server_.crew->Post([this] { method_.handle(*this); });
  } else {
    method_.handle(*this);
  }
}

void UnaryCall::Respond(grpc::ByteBuffer response) { Finish(std::move(response), grpc::Status::OK); }

void UnaryCall::RespondError(const absl::Status& error) {
  const absl::Status status = WithSpreadRetryAfter(error);
  if (const auto delay = RetryAfterOf(status); delay.has_value()) {
    incoming_->context().AddTrailingMetadata("grpc-retry-pushback-ms",
                                             absl::StrCat(absl::ToInt64Milliseconds(*delay)));
  }
  Finish(std::nullopt, ToGrpcStatus(status, request_id_));
}

void UnaryCall::Finish(std::optional<grpc::ByteBuffer> response, grpc::Status status) {
  // The handler no longer needs unused parts of the message.
  message_.Clear();
  provisional_ticket_.Return();
  if (awaits_device_) server_.counts.AddBusy();
  incoming_->EndInFlight();
  method_.series.handling_seconds.Observe(SecondsSince(received_));
  if (!cut_short_) CountHandled(status.error_code());
  sending_ = nvtx::SpanningRange(nvtx::Name::kSend, number_);
  end_.code = status.error_code();
  if (response.has_value()) end_.response_bytes = response->Length();
  if (incoming_->logged()) end_.reason = status.error_message();
  const bool posted = !response.has_value() || response->Length() <= kPostedBytes;
  response_ = std::move(response);
  status_ = std::move(status);
  if (posted && !PollingThread::OnPollingThread() && incoming_->thread().TryPost([this] { Send(); })) return;
  Send();
}

void UnaryCall::SendMetadataAndWait(const std::string& key, const std::string& value,
                                    std::function<void()> stalled) {
  {
    MutexLock lock(&metadata_mutex_);
    sending_metadata_ = true;
    on_stalled_ = std::move(stalled);
  }
  server_.watchdog.Add(*this);
  Ref();
  AddMetadata(key, value);
  incoming_->stream().SendInitialMetadata(&metadata_tag_);
}

void UnaryCall::StopWaiting() {
  {
    MutexLock lock(&metadata_mutex_);
    on_stalled_ = nullptr;
  }
  server_.watchdog.Remove(*this);
}

void UnaryCall::GiveUp() {
  std::function<void()> stalled;
  {
    MutexLock lock(&metadata_mutex_);
    stalled = std::exchange(on_stalled_, nullptr);
  }
  stalled ? stalled() : incoming_->context().TryCancel();
}

void UnaryCall::OnMetadataSent() {
  bool send = false;
  {
    MutexLock lock(&metadata_mutex_);
    sending_metadata_ = false;
    send = send_after_it_;
  }
  if (send) Send();
  Unref();
}

void UnaryCall::Send() {
  {
    MutexLock lock(&metadata_mutex_);
    send_after_it_ = sending_metadata_;
    if (send_after_it_) return;
  }
  grpc::GenericServerAsyncReaderWriter& stream = incoming_->stream();
  // The call may be deleted, or its response slot needed, before gRPC returns from here.
  const std::optional<grpc::ByteBuffer> response = std::exchange(response_, std::nullopt);
  const grpc::Status status = std::exchange(status_, grpc::Status());
  // gRPC orders the code before this line before OnSent, but a sanitizer sees only the order by the
  // watchdog's lock.
  server_.watchdog.Add(*this);
  if (response.has_value()) {
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
  if (!ok && on_not_sent_) on_not_sent_();
  server_.watchdog.Remove(*this);
  if (!ok) end_.code = grpc::StatusCode::CANCELLED;
  end_.request_bytes += request_bytes_apart_;
  if (end_.code == grpc::StatusCode::OK) end_.response_bytes += response_bytes_apart_;
  if (!belongs_to_another_ || end_.code != grpc::StatusCode::OK) incoming_->LogEnd(request_id_, end_);
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
  server_.counts.RemoveBusy();
  // It counts as in progress until the end, so that everything it uses still exists.
  const std::unique_ptr<IncomingCall> incoming = std::move(incoming_);
  delete this;
}

}  // namespace warpline

#include "server/rpc/message_stream.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/base/errors.h"
#include "server/rpc/code_name.h"
#include "server/rpc/inflate.h"
#include "server/rpc/request_id.h"
#include "server/rpc/rpc_status.h"
#include "server/rpc/slices.h"

namespace warpline {

void OpenStreams::FinishIdle() {
  MutexLock lock(&mutex_);
  finished_idle_ = true;
  for (MessageStream* stream : streams_) FinishWhatMust(*stream);
}

void OpenStreams::FinishAll() {
  MutexLock lock(&mutex_);
  finished_all_ = true;
  for (MessageStream* stream : streams_) FinishWhatMust(*stream);
}

void OpenStreams::FinishWhatMust(MessageStream& stream) {
  if (finished_all_ || (finished_idle_ && !stream.method_.is_work)) {
    stream.Finish(absl::UnavailableError("the server is stopping"));
  }
}

void OpenStreams::Add(MessageStream& stream) {
  MutexLock lock(&mutex_);
  streams_.insert(&stream);
  FinishWhatMust(stream);
}

void OpenStreams::Remove(MessageStream& stream) {
  MutexLock lock(&mutex_);
  streams_.erase(&stream);
}

void MessageStream::Start(const Method& method, const Server& server,
                          std::unique_ptr<IncomingCall> incoming) {
  (new MessageStream(method, server, std::move(incoming)))->Begin();  // deletes itself
}

MessageStream::MessageStream(const Method& method, const Server& server,
                             std::unique_ptr<IncomingCall> incoming)
    : method_(method),
      server_(server),
      incoming_(std::move(incoming)),
      handler_(method.make_handler(incoming_->caller())),
      request_id_(RequestId(incoming_->context())),
      begun_(MonotonicClock::now()),
      in_progress_(method.is_work && server.counts.AddInProgress()) {
  incoming_->OnDone(&done_tag_);
}

MessageStream::~MessageStream() = default;

void MessageStream::Begin() {
  server_.open.Add(*this);
  if (method_.is_work) {
    method_.series.started.Add();
    server_.watchdog.Add(*this);
    server_.helpers->Add();
    if (!in_progress_) {
      server_.metrics.CountRejection("draining");
      return Finish(absl::UnavailableError("the server is draining"));
    }
  }
  if (const absl::Status place = incoming_->TakeSlowPlace(); !place.ok()) {
    server_.metrics.CountRejection("streams");
    return Finish(place);
  }
  MutexLock lock(&mutex_);
  ReadNext();
}

bool MessageStream::is_over() {
  MutexLock lock(&mutex_);
  return over_;
}

void MessageStream::Pause() {
  MutexLock lock(&mutex_);
  paused_ = true;
}

void MessageStream::Resume() {
  {
    MutexLock lock(&mutex_);
    paused_ = false;
    ReadNext();
  }
  Touch(handler_->least_progress());  // the time until now does not count against the client
}

void MessageStream::Send(const grpc::ByteBuffer& message) {
  MutexLock lock(&mutex_);
  if (over_ || status_.has_value()) return;
  unsent_.push_back(message);
  WriteNext();
}

void MessageStream::Finish(const absl::Status& status) {
  MutexLock lock(&mutex_);
  if (over_ || status_.has_value()) return;
  status_ = WithSpreadRetryAfter(status);
  WriteNext();
}

void MessageStream::ReadNext() {
  if (over_ || reading_ || paused_ || read_all_ || status_.has_value() || writing_ || !unsent_.empty())
    return;
  reading_ = true;
  ++references_;
  incoming_->stream().Read(&request_, &read_tag_);
}

void MessageStream::WriteNext() {
  if (over_ || writing_ || finishing_) return;
  if (!unsent_.empty()) {
    writing_ = true;
    ++references_;
    const grpc::ByteBuffer message = std::move(unsent_.front());
    unsent_.pop_front();
    sent_bytes_ = message.Length();
    incoming_->stream().Write(message, &written_tag_);
  } else if (status_.has_value()) {
    finishing_ = true;
    ++references_;
    if (const auto delay = RetryAfterOf(*status_); delay.has_value()) {
      incoming_->context().AddTrailingMetadata("grpc-retry-pushback-ms",
                                               absl::StrCat(absl::ToInt64Milliseconds(*delay)));
    }
    incoming_->stream().Finish(ToGrpcStatus(*status_, request_id_), &finished_tag_);
  }
}

void MessageStream::OnRead(bool ok) {
  if (!ok) {
    bool over = false;
    {
      MutexLock lock(&mutex_);
      reading_ = false;
      read_all_ = true;
      over = over_ || status_.has_value();
      // The reference of the read is passed on to this operation.
      if (!over && method_.confirms_end) return incoming_->stream().SendInitialMetadata(&confirmed_tag_);
    }
    if (!over) TellLastMessage();
    return Unref();
  }
  {
    MutexLock lock(&mutex_);
    all_received_ += request_.Length();
  }
  Touch(request_.Length());
  ReceivedMessage message = SlicesOf(request_);
  request_.Clear();
  if (!message.compressed) {
    OnMessage(std::move(message.slices));
    return Unref();
  }
  if (!incoming_->identified()) {
    Finish(CompressedUnidentified());
    return Unref();
  }
  // The reference of the read is passed on to the inflation.
  const absl::Status started = server_.inflater.Start(
      std::move(message.slices), handler_->max_message_bytes(), incoming_->caller(),
      incoming_->thread().queue(), [this](absl::StatusOr<Inflater::Inflated> inflated) {
        if (inflated.ok()) {
          OnMessage(std::move(inflated->slices));
        } else {
          Finish(inflated.status());
        }
        Unref();
      });
  if (started.ok()) return;
  Finish(started);
  Unref();
}

void MessageStream::OnConfirmed(bool ok) {
  if (ok) TellLastMessage();
  Unref();
}

void MessageStream::TellLastMessage() {
  MutexLock turn(&handler_mutex_);
  if (!is_over()) handler_->OnLastMessage(*this);
}

void MessageStream::OnMessage(MessageSlices slices) {
  std::size_t bytes = 0;
  for (const grpc::Slice& slice : slices) bytes += slice.size();
  if (const std::size_t limit = handler_->max_message_bytes(); bytes > limit) {
    return Finish(
        absl::ResourceExhaustedError(absl::StrCat("the message has ", bytes, " bytes, limit ", limit)));
  }
  {
    MutexLock turn(&handler_mutex_);
    if (!is_over()) handler_->OnMessage(*this, std::move(slices));
  }
  MutexLock lock(&mutex_);
  reading_ = false;
  ReadNext();
}

void MessageStream::OnWritten(bool ok) {
  std::size_t sent_bytes = 0;
  {
    MutexLock lock(&mutex_);
    if (ok) incoming_->SetAnswered();
    writing_ = false;
    sent_bytes = sent_bytes_;
    if (ok) all_sent_ += sent_bytes_;
    WriteNext();
    ReadNext();
  }
  if (ok) {
    Touch(sent_bytes);
    handler_->OnSent(*this);
  }
  Unref();
}

void MessageStream::OnFinished(bool ok) {
  if (ok) {
    MutexLock lock(&mutex_);
    incoming_->SetAnswered();
  }
  Unref();
}

void MessageStream::OnDone(bool completed) {
  std::deque<grpc::ByteBuffer> unsent;  // destroyed without the lock: its slices may call back here
  {
    MutexLock lock(&mutex_);
    over_ = true;
    completed_ = completed;
    unsent.swap(unsent_);
  }
  // Remove the stream from all lists before it can be deleted.
  server_.open.Remove(*this);
  if (method_.is_work) {
    server_.watchdog.Remove(*this);
    server_.helpers->Remove();
    CountEnd();
  }
  if (incoming_->logged()) LogEnd();
  {
    MutexLock turn(&handler_mutex_);
    handler_->OnEnd(*this);
  }
  unsent.clear();
  Unref();
}

void MessageStream::Touch(std::size_t bytes) {
  if (!method_.is_work) return;
  {
    MutexLock lock(&mutex_);
    progress_ += bytes;
    if (over_ || progress_ < handler_->least_progress()) return;
    progress_ = 0;
  }
  server_.watchdog.Touch(*this);
}

void MessageStream::CountEnd() {
  method_.series.handling_seconds.Observe(SecondsSince(begun_));
  absl::StatusCode code = absl::StatusCode::kCancelled;
  {
    MutexLock lock(&mutex_);
    if (status_.has_value()) code = status_->code();
  }
  if (code == absl::StatusCode::kOk) {
    method_.series.handled_ok.Add();
  } else {
    server_.metrics.CountHandled(method_.service, method_.name, CodeName(static_cast<grpc::StatusCode>(code)),
                                 method_.type);
  }
}

void MessageStream::LogEnd() {
  IncomingCall::End end{.code = grpc::StatusCode::CANCELLED};
  {
    MutexLock lock(&mutex_);
    if (status_.has_value() && completed_) {
      end.code = static_cast<grpc::StatusCode>(status_->code());
      end.reason = std::string(status_->message());
    }
    end.request_bytes = all_received_;
    end.response_bytes = all_sent_;
  }
  if (end.code == grpc::StatusCode::OK && handler_->belongs_to_another()) return;
  incoming_->LogEnd(request_id_, end);
}

void MessageStream::Ref() {
  MutexLock lock(&mutex_);
  ++references_;
}

void MessageStream::Unref() {
  bool last = false;
  {
    MutexLock lock(&mutex_);
    last = --references_ == 0;
  }
  if (!last) return;
  CallCounts& counts = server_.counts;
  const bool in_progress = in_progress_;
  // It counts as an object until the end, so that the counts still exist.
  const std::unique_ptr<IncomingCall> incoming = std::move(incoming_);
  delete this;
  if (in_progress) counts.RemoveInProgress();
}

}  // namespace warpline

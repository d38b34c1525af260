#include "server/rpc/message_stream.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/rpc/inflate.h"
#include "server/rpc/request_id.h"
#include "server/rpc/rpc_status.h"
#include "server/rpc/slices.h"

namespace warpline {
void OpenStreams::FinishAll() {
  MutexLock lock(&mutex_);
  finished_ = true;
  for (MessageStream* stream : streams_) stream->Finish(absl::UnavailableError("the server is stopping"));
}

void OpenStreams::Add(MessageStream& stream) {
  MutexLock lock(&mutex_);
  streams_.insert(&stream);
  if (finished_) stream.Finish(absl::UnavailableError("the server is stopping"));
}

void OpenStreams::Remove(MessageStream& stream) {
  MutexLock lock(&mutex_);
  streams_.erase(&stream);
}

void MessageStream::Start(const Server& server, std::unique_ptr<IncomingCall> incoming,
                          std::unique_ptr<Handler> handler) {
  (new MessageStream(server, std::move(incoming), std::move(handler)))->Begin();  // deletes itself
}

MessageStream::MessageStream(const Server& server, std::unique_ptr<IncomingCall> incoming,
                             std::unique_ptr<Handler> handler)
    : server_(server),
      incoming_(std::move(incoming)),
      handler_(std::move(handler)),
      request_id_(RequestId(incoming_->context())) {
  incoming_->OnDone(&done_tag_);
}

MessageStream::~MessageStream() = default;

void MessageStream::Begin() {
  server_.open.Add(*this);
  MutexLock lock(&mutex_);
  ReadNext();
}

void MessageStream::Send(const std::string& message) {
  MutexLock lock(&mutex_);
  if (over_ || status_.has_value()) return;
  unsent_.push_back(message);
  WriteNext();
}

void MessageStream::Finish(const absl::Status& status) {
  MutexLock lock(&mutex_);
  if (over_ || status_.has_value()) return;
  status_ = status;
  WriteNext();
}

void MessageStream::ReadNext() {
  if (over_ || reading_ || read_all_ || status_.has_value() || writing_ || !unsent_.empty()) return;
  reading_ = true;
  ++references_;
  incoming_->stream().Read(&request_, &read_tag_);
}

void MessageStream::WriteNext() {
  if (over_ || writing_ || finishing_) return;
  if (!unsent_.empty()) {
    writing_ = true;
    ++references_;
    incoming_->stream().Write(ToByteBuffer(unsent_.front()), &written_tag_);
    unsent_.pop_front();
  } else if (status_.has_value()) {
    finishing_ = true;
    ++references_;
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
      over = over_;
    }
    if (!over) handler_->OnLastMessage(*this);
    return Unref();
  }
  ReceivedMessage message = SlicesOf(request_);
  request_.Clear();
  if (!message.compressed) {
    OnMessage(message.slices);
    return Unref();
  }
  // The reference of the read goes on to the inflation.
  const absl::Status started =
      server_.inflater.Start(std::move(message.slices), kMaxMessageBytes, incoming_->thread().queue(),
                             [this](const absl::StatusOr<Inflater::Inflated>& inflated) {
                               if (inflated.ok()) {
                                 OnMessage(inflated->slices);
                               } else {
                                 Finish(inflated.status());
                               }
                               Unref();
                             });
  if (started.ok()) return;
  Finish(started);
  Unref();
}

void MessageStream::OnMessage(const std::vector<grpc::Slice>& slices) {
  std::size_t bytes = 0;
  for (const grpc::Slice& slice : slices) bytes += slice.size();
  if (bytes > kMaxMessageBytes) {
    return Finish(absl::ResourceExhaustedError(
        absl::StrCat("the message has ", bytes, " bytes, limit ", kMaxMessageBytes)));
  }
  bool over = false;
  {
    MutexLock lock(&mutex_);
    over = over_;
  }
  if (!over) handler_->OnMessage(*this, ToString(slices));
  MutexLock lock(&mutex_);
  reading_ = false;
  ReadNext();
}

void MessageStream::OnWritten(bool ok) {
  if (ok) incoming_->SetAnswered();
  {
    MutexLock lock(&mutex_);
    writing_ = false;
    WriteNext();
    ReadNext();
  }
  Unref();
}

void MessageStream::OnFinished(bool ok) {
  if (ok) incoming_->SetAnswered();
  Unref();
}

void MessageStream::OnDone(bool) {
  {
    MutexLock lock(&mutex_);
    over_ = true;
    unsent_.clear();
  }
  // Nobody may find it any more, before it can go.
  server_.open.Remove(*this);
  handler_->OnEnd(*this);
  Unref();
}

void MessageStream::Unref() {
  bool last = false;
  {
    MutexLock lock(&mutex_);
    last = --references_ == 0;
  }
  if (last) delete this;
}

}  // namespace warpline

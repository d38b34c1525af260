#include "server/rpc/get_stream.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"
#include "server/base/errors.h"
#include "server/rpc/codec/tensor_info.h"
#include "server/rpc/owning_slice.h"
#include "server/rpc/slices.h"

namespace warpline {

class GetStream::Sending {
 public:
  Sending(GetStream& get, MessageStream& stream, std::size_t number)
      : get_(&get), stream_(&stream), hold_(stream), number_(number) {}
  Sending(Sending&& other) noexcept
      : get_(std::exchange(other.get_, nullptr)),
        stream_(other.stream_),
        hold_(std::move(other.hold_)),
        number_(other.number_) {}
  Sending& operator=(Sending&&) = delete;
  ~Sending() {
    if (get_ == nullptr) return;
    // This is inside gRPC, perhaps under its locks.
    WorkerPool& workers = get_->engine_.workers;
    workers.Post([get = get_, stream = stream_, hold = std::move(hold_), number = number_] {
      get->OnChunkSent(*stream, number);
    });
  }

 private:
  GetStream* get_;
  MessageStream* stream_;
  MessageStream::Hold hold_;
  std::size_t number_;
};

void GetStream::OnMessage(MessageStream& stream, std::vector<grpc::Slice> message) {
  MutexLock lock(&mutex_);
  if (begun_ || ended_) return;  // gRPC's own clients send one
  v1::GetRequest request;
  if (!request.ParseFromString(ToString(message))) {
    ended_ = true;
    return stream.Finish(absl::InvalidArgumentError("the message is no warpline.v1.GetRequest"));
  }
  if (const absl::Status status = Begin(request); !status.ok()) {
    ended_ = true;
    return stream.Finish(status);
  }
  begun_ = true;
  Advance(stream);
}

void GetStream::OnLastMessage(MessageStream& stream) {
  MutexLock lock(&mutex_);
  if (begun_ || ended_) return;
  ended_ = true;
  stream.Finish(absl::InvalidArgumentError("the call ended without a message"));
}

void GetStream::OnEnd(MessageStream&) {
  MutexLock lock(&mutex_);
  ended_ = true;
}

absl::Status GetStream::Begin(const v1::GetRequest& request) {
  if (request.id().empty()) return FieldError("id", "missing");
  if (request.offset() < 0) return FieldError("offset", absl::StrCat(request.offset(), "; the least is 0"));
  if (request.length() < 0) return FieldError("length", absl::StrCat(request.length(), "; the least is 0"));
  auto reading = engine_.tensors.Read(kAnonymous, request.id());
  RETURN_IF_ERROR(InField("id", reading.status()));
  reading_ = *std::move(reading);
  const std::size_t size = reading_.info.spec.bytes;
  const auto offset = static_cast<std::size_t>(request.offset()),
             length = static_cast<std::size_t>(request.length());
  if (offset > size) {
    return FieldError("offset", absl::StrCat(offset, " is beyond the tensor's ", size, " bytes"));
  }
  if (length > size - offset) {
    return FieldError("length",
                      absl::StrCat(length, " bytes from ", offset, " on end beyond the tensor's ", size));
  }
  range_ = {offset, length == 0 ? size : offset + length};
  const bool on_host = reading_.memory.place().kind == Place::Kind::kHost;
  ASSIGN_OR_RETURN(window_,
                   ChunkWindow::Open(range_.size(), on_host, connection_, engine_.admission, engine_.pool));
  states_.assign(window_.size(), State::kFree);
  return absl::OkStatus();
}

// An empty range has one chunk too, so that there is a message.
std::size_t GetStream::chunks() const {
  return std::max<std::size_t>((range_.size() + ChunkWindow::kChunkBytes - 1) / ChunkWindow::kChunkBytes, 1);
}

ByteRange GetStream::ChunkAt(std::size_t number) const {
  const std::size_t begin = range_.begin + number * ChunkWindow::kChunkBytes;
  return {begin, std::min(begin + ChunkWindow::kChunkBytes, range_.end)};
}

void GetStream::Advance(MessageStream& stream) {
  while (!ended_ && next_to_fill_ < chunks() && states_[next_to_fill_ % states_.size()] == State::kFree) {
    StartFilling(stream, next_to_fill_++);
  }
  while (!ended_ && next_to_send_ < next_to_fill_ &&
         states_[next_to_send_ % states_.size()] == State::kFilled) {
    SendChunk(stream, next_to_send_++);
  }
  if (ended_ || next_to_send_ < chunks()) return;
  ended_ = true;
  stream.Finish(absl::OkStatus());
}

void GetStream::StartFilling(MessageStream& stream, std::size_t number) {
  const std::size_t place = number % states_.size();
  const ByteRange chunk = ChunkAt(number);
  if (reading_.memory.place().kind == Place::Kind::kHost || chunk.size() == 0) {
    states_[place] = State::kFilled;
    return;
  }
  states_[place] = State::kFilling;
  const Transfer transfer{.direction = Transfer::Direction::kToHost,
                          .device = reading_.memory.place().device,
                          .on_host = window_.chunk(place, chunk.size()),
                          .on_device = reading_.memory.bytes().subspan(chunk.begin, chunk.size())};
  // On a worker, as a copy that cannot be started ends at once.
  engine_.workers.Post([this, &stream, hold = MessageStream::Hold(stream), number, transfer]() mutable {
    engine_.backend.Start(transfer, [this, &stream, hold = std::move(hold), number](
                                        const absl::Status& status) { OnFilled(stream, number, status); });
  });
}

void GetStream::OnFilled(MessageStream& stream, std::size_t number, const absl::Status& status) {
  MutexLock lock(&mutex_);
  states_[number % states_.size()] = State::kFilled;
  if (!status.ok() && !ended_) {
    ended_ = true;
    stream.Finish(status);
  }
  Advance(stream);
}

void GetStream::SendChunk(MessageStream& stream, std::size_t number) {
  const ByteRange chunk = ChunkAt(number);
  std::vector<grpc::Slice> slices;
  slices.emplace_back(GetResponseHead(number == 0 ? &reading_.info : nullptr, chunk.begin, chunk.size()));
  if (chunk.size() > 0) {
    const bool on_host = reading_.memory.place().kind == Place::Kind::kHost;
    const std::span<std::byte> bytes = on_host ? reading_.memory.bytes().subspan(chunk.begin, chunk.size())
                                               : window_.chunk(number % states_.size(), chunk.size());
    slices.push_back(SliceOver(bytes, Sending(*this, stream, number)));
  }
  stream.Send(grpc::ByteBuffer(slices.data(), slices.size()));
}

void GetStream::OnChunkSent(MessageStream& stream, std::size_t number) {
  MutexLock lock(&mutex_);
  states_[number % states_.size()] = State::kFree;
  Advance(stream);
}

}  // namespace warpline

#include "server/rpc/get_stream.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "proto/rules/known_fields.h"
#include "server/base/mutex.h"
#include "server/rpc/chunk_window.h"
#include "server/rpc/codec/tensor_info.h"
#include "server/rpc/owning_slice.h"
#include "server/rpc/polling_helpers.h"
#include "server/rpc/slices.h"
#include "server/rpc/tensor_requests.h"
#include "server/store/tensor_store.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline {

// The state of the transfer. Slices that gRPC holds, and copies on the device, share this state, not the
// stream: gRPC may keep the slices of a cancelled call for as long as the call exists.
class GetStream::Chunks : public std::enable_shared_from_this<Chunks> {
 public:
  Chunks(const TensorService::Engine& engine, MessageStream& stream, AskedRange asked, ChunkWindow window)
      : engine_(engine),
        window_(std::move(window)),
        reading_(std::move(asked.reading)),
        range_(asked.range),
        stream_(&stream),
        states_(window_.size(), State::kFree) {}

  void Begin() {
    MutexLock lock(&mutex_);
    Advance();
  }
  // gRPC has taken a chunk. Sending the next one copies it into the socket, and meanwhile the calling thread
  // receives nothing. So a worker sends it, unless the calling thread only serves transfers.
  void OnSent() {
    if (PollingHelpers::OnHelper()) {
      MutexLock lock(&mutex_);
      sending_ = false;
      return Advance();
    }
    engine_.workers.Post([self = shared_from_this()] {
      MutexLock lock(&self->mutex_);
      self->sending_ = false;
      self->Advance();
    });
  }
  // After this the stream is no longer used.
  void Abandon() {
    MutexLock lock(&mutex_);
    stream_ = nullptr;
  }

 private:
  enum class State { kFree, kFilling, kFilled };
  // Keeps a chunk while gRPC has it. Destroyed inside gRPC, perhaps with locks held.
  class Sending {
   public:
    Sending(std::shared_ptr<Chunks> chunks, std::size_t number)
        : chunks_(std::move(chunks)), number_(number) {}
    Sending(Sending&&) noexcept = default;
    Sending& operator=(Sending&&) = delete;
    ~Sending() {
      if (chunks_ == nullptr) return;
      WorkerPool& workers = chunks_->engine_.workers;
      workers.Post(
          [chunks = std::move(chunks_), number = number_] { chunks->OnState(number, State::kFree); });
    }

   private:
    std::shared_ptr<Chunks> chunks_;
    std::size_t number_;
  };

  bool on_host() const { return reading_.memory.place().kind == Place::Kind::kHost; }
  State& StateOf(std::size_t number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return states_[number % states_.size()];
  }
  // An empty range has one chunk too, so that there is a message to send.
  std::size_t count() const {
    return std::max<std::size_t>((range_.size() + ChunkWindow::kChunkBytes - 1) / ChunkWindow::kChunkBytes,
                                 1);
  }
  ByteRange At(std::size_t number) const {
    const std::size_t begin = range_.begin + number * ChunkWindow::kChunkBytes;
    return {begin, std::min(begin + ChunkWindow::kChunkBytes, range_.end)};
  }
  std::span<std::byte> InTensor(const ByteRange& chunk) const {
    return reading_.memory.bytes().subspan(chunk.begin, chunk.size());
  }
  std::span<std::byte> Staged(std::size_t number) const {
    return window_.chunk(number % window_.size(), At(number).size());
  }

  // Fills and sends the chunks for which there is room, and ends the stream after the last one.
  void Advance() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const StreamedCall* const call = reading_.call.get();
    if (stream_ != nullptr && call != nullptr && call->has_expired()) {
      stream_->Finish(absl::NotFoundError(
          absl::StrCat("the result has expired: less than ", call->min_progress(),
                       " bytes of the results of its request were read within the send timeout")));
      stream_ = nullptr;
    }
    while (stream_ != nullptr && next_to_fill_ < count() && StateOf(next_to_fill_) == State::kFree) {
      Fill(next_to_fill_++);
    }
    if (stream_ != nullptr && !sending_ && next_to_send_ < next_to_fill_ &&
        StateOf(next_to_send_) == State::kFilled) {
      sending_ = true;
      Send(next_to_send_++);
    }
    if (stream_ == nullptr || next_to_send_ < count()) return;
    stream_->Finish(absl::OkStatus());
    stream_ = nullptr;
  }

  void Fill(std::size_t number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const ByteRange chunk = At(number);
    if (on_host() || chunk.size() == 0) {
      StateOf(number) = State::kFilled;
      return;
    }
    StateOf(number) = State::kFilling;
    const Transfer transfer{.direction = Transfer::Direction::kToHost,
                            .device = reading_.memory.place().device,
                            .on_host = Staged(number),
                            .on_device = InTensor(chunk)};
    // On a worker, because a copy that cannot be started calls back at once.
    engine_.workers.Post([self = shared_from_this(), number, transfer]() mutable {
      Backend& backend = self->engine_.backend;
      backend.Start(transfer, [self = std::move(self), number](const absl::Status& status) mutable {
        if (!status.ok()) return self->Fail(status);
        // Sending copies a chunk into the socket. This takes too long for the device's completion thread.
        WorkerPool& workers = self->engine_.workers;
        workers.Post([self = std::move(self), number] { self->OnState(number, State::kFilled); });
      });
    });
  }

  void Send(std::size_t number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const ByteRange chunk = At(number);
    std::vector<grpc::Slice> slices;
    slices.emplace_back(GetResponseHead(number == 0 ? &reading_.info : nullptr, chunk.begin, chunk.size()));
    if (chunk.size() > 0) {
      slices.push_back(
          SliceOver(on_host() ? InTensor(chunk) : Staged(number), Sending(shared_from_this(), number)));
    }
    if (reading_.call != nullptr) reading_.call->OnSent(reading_.result, chunk);
    stream_->Send(grpc::ByteBuffer(slices.data(), slices.size()));
  }

  void OnState(std::size_t number, State state) {
    MutexLock lock(&mutex_);
    StateOf(number) = state;
    Advance();
  }

  void Fail(const absl::Status& status) {
    MutexLock lock(&mutex_);
    if (stream_ == nullptr) return;
    stream_->Finish(status);
    stream_ = nullptr;
  }

  const TensorService::Engine& engine_;
  const ChunkWindow window_;
  // Destroyed before the window: the end of the server waits for the window's ticket.
  const TensorStore::Reading reading_;
  const ByteRange range_;

  Mutex mutex_;
  MessageStream* stream_ ABSL_GUARDED_BY(mutex_);  // null once it has ended
  // The states of the chunks in the window. Chunk n of the range is at index n modulo the number of chunks in
  // the window.
  std::vector<State> states_ ABSL_GUARDED_BY(mutex_);
  bool sending_ ABSL_GUARDED_BY(mutex_) = false;  // gRPC has not taken the last chunk yet
  std::size_t next_to_fill_ ABSL_GUARDED_BY(mutex_) = 0;
  std::size_t next_to_send_ ABSL_GUARDED_BY(mutex_) = 0;
};

GetStream::GetStream(const TensorService::Engine& engine, const Caller& caller)
    : engine_(engine), caller_(caller) {}

GetStream::~GetStream() = default;

void GetStream::OnMessage(MessageStream& stream, MessageSlices message) {
  if (chunks_ != nullptr) return;  // gRPC's own clients send only one message
  v1::GetRequest request;
  if (!request.ParseFromString(ToString(message.slices()))) {
    return stream.Finish(absl::InvalidArgumentError("the message is not a valid warpline.v1.GetRequest"));
  }
  if (const absl::Status known = CheckAllKnown(request); !known.ok()) return stream.Finish(known);
  absl::StatusOr<AskedRange> asked = FindAsked(request, caller_.owner, engine_.tensors);
  if (!asked.ok()) return stream.Finish(asked.status());
  belongs_to_another_ = asked->reading.call != nullptr;
  const bool on_host = asked->reading.memory.place().kind == Place::Kind::kHost;
  absl::StatusOr<ChunkWindow> window =
      ChunkWindow::Open(asked->range.size(), on_host, caller_, asked->reading.call, engine_.transfers,
                        engine_.admission, engine_.pool);
  if (!window.ok()) return stream.Finish(window.status());
  chunks_ = std::make_shared<Chunks>(engine_, stream, *std::move(asked), *std::move(window));
  chunks_->Begin();
}

std::size_t GetStream::least_progress() const { return ChunkWindow::kChunkBytes; }

void GetStream::OnLastMessage(MessageStream& stream) {
  // Nothing happens here if the stream has ended with an error.
  if (chunks_ == nullptr) stream.Finish(absl::InvalidArgumentError("the call ended without a message"));
}

void GetStream::OnSent(MessageStream&) {
  if (chunks_ != nullptr) chunks_->OnSent();
}

void GetStream::OnEnd(MessageStream&) {
  if (chunks_ != nullptr) chunks_->Abandon();
}

}  // namespace warpline

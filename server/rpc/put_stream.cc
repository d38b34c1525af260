#include "server/rpc/put_stream.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "kernels/status_macros.h"
#include "server/rpc/slices.h"

namespace warpline {
namespace {

// Removes the first `bytes` bytes of `pieces` and returns them.
std::vector<std::span<const std::byte>> TakeFront(std::vector<std::span<const std::byte>>& pieces,
                                                  std::size_t bytes) {
  std::vector<std::span<const std::byte>> front;
  std::size_t whole = 0;
  for (std::span<const std::byte>& piece : pieces) {
    if (bytes == 0) break;
    const std::size_t size = std::min(bytes, piece.size());
    front.push_back(piece.first(size));
    piece = piece.subspan(size);
    bytes -= size;
    if (piece.empty()) ++whole;
  }
  pieces.erase(pieces.begin(), pieces.begin() + static_cast<std::ptrdiff_t>(whole));
  return front;
}

}  // namespace

void PutStream::OnMessage(MessageStream& stream, MessageSlices message) {
  const absl::Status accepted = Accept(stream, std::move(message));
  if (accepted.ok()) return;
  MutexLock lock(&mutex_);
  Fail(stream, accepted);
}

absl::Status PutStream::Accept(MessageStream& stream, MessageSlices message) {
  const auto slices = std::make_shared<const MessageSlices>(std::move(message));
  const std::vector<std::span<const std::byte>> spans = SpansOf(slices->slices());
  ASSIGN_OR_RETURN(const PutMessage read, ReadPutMessage(schema_, spans));
  MutexLock lock(&mutex_);
  if (ended_) return absl::OkStatus();
  if (!sequence_.has_begun()) {
    RETURN_IF_ERROR(sequence_.Begin(read.request));
    RETURN_IF_ERROR(OpenWindow());
  }
  ASSIGN_OR_RETURN(const ByteRange range, sequence_.Extend(read));
  std::vector<std::span<const std::byte>> pieces;
  ForEachPiece(spans, read.data, [&](std::span<const std::byte> piece) { pieces.push_back(piece); });
  for (std::size_t at = range.begin; at < range.end;) {
    const std::size_t bytes = std::min(range.end - at, ChunkWindow::kChunkBytes);
    waiting_.push_back({slices, TakeFront(pieces, bytes), {at, at + bytes}});
    at += bytes;
  }
  Advance(stream);
  return absl::OkStatus();
}

absl::Status PutStream::OpenWindow() {
  belongs_to_another_ = writing().call() != nullptr;
  const std::size_t left = writing().size() - writing().range().begin;
  ASSIGN_OR_RETURN(window_, ChunkWindow::Open(left, on_host(), caller_, writing().call(), engine_.transfers,
                                              engine_.admission, engine_.pool));
  for (std::size_t i = 0; i < window_.size(); ++i) free_.push_back(i);
  return absl::OkStatus();
}

void PutStream::Advance(MessageStream& stream) {
  while (!waiting_.empty() && !free_.empty()) {
    Chunk chunk = std::move(waiting_.front());
    waiting_.pop_front();
    StartCopy(stream, std::move(chunk));
  }
  const bool full = !waiting_.empty() || free_.empty();
  if (full == paused_) return;
  paused_ = full;
  full ? stream.Pause() : stream.Resume();
}

void PutStream::StartCopy(MessageStream& stream, Chunk chunk) {
  const std::size_t index = free_.back();
  free_.pop_back();
  const std::span<std::byte> to = writing().memory().bytes().subspan(chunk.to.begin, chunk.to.size());
  const int device = writing().memory().place().device;
  const bool direct = on_host();
  const std::span<std::byte> staged = direct ? to : window_.chunk(index, to.size());
  engine_.workers.Post([this, &stream, hold = MessageStream::Hold(stream), chunk = std::move(chunk), index,
                        to, staged, device, direct]() mutable {
    CopyPayload(site_, staged.data(), chunk.pieces);
    chunk = Chunk();
    if (direct) return OnCopied(stream, index, absl::OkStatus());
    engine_.backend.Start(
        {.direction = Transfer::Direction::kToDevice, .device = device, .on_host = staged, .on_device = to},
        [this, &stream, hold = std::move(hold), index](const absl::Status& status) {
          OnCopied(stream, index, status);
        });
  });
}

void PutStream::OnCopied(MessageStream& stream, std::size_t index, const absl::Status& status) {
  MutexLock lock(&mutex_);
  free_.push_back(index);
  if (!status.ok()) return Fail(stream, status);
  if (!ended_) Advance(stream);
  EndIfDone(stream);
}

void PutStream::OnLastMessage(MessageStream& stream) {
  MutexLock lock(&mutex_);
  if (!sequence_.has_begun() && !ended_) {
    return Fail(stream, absl::InvalidArgumentError("the call ended without a message"));
  }
  received_all_ = true;
  EndIfDone(stream);
}

void PutStream::OnEnd(MessageStream& stream) {
  MutexLock lock(&mutex_);
  ended_ = true;
  waiting_.clear();
  EndIfDone(stream);
}

void PutStream::Fail(MessageStream& stream, const absl::Status& status) {
  ended_ = true;
  waiting_.clear();
  stream.Finish(status);
  EndIfDone(stream);
}

void PutStream::EndIfDone(MessageStream& stream) {
  if (free_.size() < window_.size()) return;  // the device or a worker may still write
  if (ended_) {
    writing().Abandon();
    window_ = ChunkWindow();
    free_.clear();
    return;
  }
  if (!received_all_ || !waiting_.empty() || stream.is_over()) return;
  v1::PutResponse response;
  response.set_missing_bytes(static_cast<std::int64_t>(writing().Commit()));
  ended_ = true;
  window_ = ChunkWindow();
  free_.clear();
  stream.Send(ToByteBuffer(response.SerializeAsString()));
  stream.Finish(absl::OkStatus());
}

}  // namespace warpline

// TensorService.Put: writes the chunks of a call to a range of a tensor.
#ifndef WARPLINE_SERVER_RPC_PUT_STREAM_H_
#define WARPLINE_SERVER_RPC_PUT_STREAM_H_

#include <cstddef>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "proto/wire/scanner.h"
#include "server/base/mutex.h"
#include "server/memory/copy_payload.h"
#include "server/rpc/chunk_window.h"
#include "server/rpc/message_stream.h"
#include "server/rpc/put_sequence.h"
#include "server/rpc/tensor_service.h"
#include "server/store/tensor_store.h"

namespace warpline {

// Messages are cut into chunks. Workers copy these out of gRPC's slices while further messages are received.
// They copy directly into a tensor on the host, otherwise to staging memory, from which the device fetches
// them meanwhile. At most one window of chunks is in progress; the stream is not read until there is room.
class PutStream final : public MessageStream::Handler {
 public:
  // `schema` is PutSchema(). All arguments outlive the stream.
  PutStream(const TensorService::Engine& engine, const ScanSchema& schema, CopySite& site,
            const Caller& caller)
      : engine_(engine),
        schema_(schema),
        site_(site),
        caller_(caller),
        sequence_(engine.tensors, caller.owner) {}

  std::size_t max_message_bytes() const override { return kMaxChunkBytes + (64 << 10); }
  std::size_t least_progress() const override { return ChunkWindow::kChunkBytes; }
  bool belongs_to_another() const override { return belongs_to_another_; }
  void OnMessage(MessageStream& stream, MessageSlices message) override;
  void OnLastMessage(MessageStream& stream) override;
  void OnEnd(MessageStream& stream) override;

 private:
  // Some bytes of a message, in the order of the tensor.
  struct Chunk {
    std::shared_ptr<const MessageSlices> message;
    std::vector<std::span<const std::byte>> pieces;  // of the message
    ByteRange to;                                    // in the tensor
  };

  absl::Status Accept(MessageStream& stream, MessageSlices message);
  // Opens a window that suits the rest of the tensor.
  absl::Status OpenWindow() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  TensorStore::Writing& writing() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return sequence_.writing(); }
  const TensorStore::Writing& writing() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return sequence_.writing();
  }
  bool on_host() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return writing().memory().place().kind == Place::Kind::kHost;
  }
  // Starts chunks while there is room. Resumes reading of the stream if no chunk is waiting then.
  void Advance(MessageStream& stream) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void StartCopy(MessageStream& stream, Chunk chunk) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnCopied(MessageStream& stream, std::size_t index, const absl::Status& status);
  // Ends everything that can end now.
  void EndIfDone(MessageStream& stream) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Fail(MessageStream& stream, const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const TensorService::Engine& engine_;
  const ScanSchema& schema_;
  CopySite& site_;
  const Caller caller_;
  bool belongs_to_another_ = false;  // set by the first message

  Mutex mutex_;
  ChunkWindow window_ ABSL_GUARDED_BY(mutex_);
  // Declared after the window, so that it is destroyed first. By then nothing is written to it any more.
  PutSequence sequence_ ABSL_GUARDED_BY(mutex_);
  std::deque<Chunk> waiting_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::size_t> free_ ABSL_GUARDED_BY(mutex_);  // chunks of the window
  bool paused_ ABSL_GUARDED_BY(mutex_) = false;
  bool received_all_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;  // everything that arrives now is ignored
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_PUT_STREAM_H_

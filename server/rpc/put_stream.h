// TensorService.Put: from the chunks of a call to a range of a tensor.
#ifndef WARPLINE_SERVER_RPC_PUT_STREAM_H_
#define WARPLINE_SERVER_RPC_PUT_STREAM_H_

#include <cstddef>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "proto/wire/scanner.h"
#include "server/base/mutex.h"
#include "server/memory/copy_payload.h"
#include "server/memory/tensor_store.h"
#include "server/rpc/chunk_window.h"
#include "server/rpc/message_stream.h"
#include "server/rpc/tensor_service.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline {

// Messages are cut into chunks. Workers copy these out of gRPC's slices while further messages are received:
// to where the tensor lies, if that is on the host, or else to staging memory, from where the device fetches
// them meanwhile. At most a window of chunks is under way; the client is not read until there is room.
class PutStream final : public MessageStream::Handler {
 public:
  // `schema` is PutRequest's, with `data` as its payload. All of it outlives the stream.
  PutStream(const TensorService::Engine& engine, const ScanSchema& schema, CopySite& site,
            const Caller& caller)
      : engine_(engine), schema_(schema), site_(site), caller_(caller) {}

  std::size_t max_message_bytes() const override { return kMaxChunkBytes + (64 << 10); }
  std::size_t least_progress() const override { return ChunkWindow::kChunkBytes; }
  void OnMessage(MessageStream& stream, std::vector<grpc::Slice> message) override;
  void OnLastMessage(MessageStream& stream) override;
  void OnEnd(MessageStream& stream) override;

 private:
  // Some bytes of a message, in the order of the tensor.
  struct Chunk {
    std::shared_ptr<const std::vector<grpc::Slice>> message;
    std::vector<std::span<const std::byte>> pieces;  // of the message
    ByteRange to;                                    // in the tensor
  };

  absl::Status Accept(MessageStream& stream, std::vector<grpc::Slice> message);
  absl::Status Begin(const v1::PutRequest& first) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Continue(const v1::PutRequest& next) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool on_host() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return writing_.memory().place().kind == Place::Kind::kHost;
  }
  // Starts the chunks for which there is room, and has the stream read on if that is all of them.
  void Advance(MessageStream& stream) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void StartCopy(MessageStream& stream, Chunk chunk) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnCopied(MessageStream& stream, std::size_t index, const absl::Status& status);
  // Ends what can be ended now.
  void EndIfDone(MessageStream& stream) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Fail(MessageStream& stream, const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const TensorService::Engine& engine_;
  const ScanSchema& schema_;
  CopySite& site_;
  const Caller caller_;

  Mutex mutex_;
  std::string id_ ABSL_GUARDED_BY(mutex_);  // empty before the first message
  ChunkWindow window_ ABSL_GUARDED_BY(mutex_);
  // After the window, so that it goes first: nothing is written to it any more by then.
  TensorStore::Writing writing_ ABSL_GUARDED_BY(mutex_);
  std::deque<Chunk> waiting_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::size_t> free_ ABSL_GUARDED_BY(mutex_);  // chunks of the window
  bool paused_ ABSL_GUARDED_BY(mutex_) = false;
  bool received_all_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;  // whatever comes now does not count
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_PUT_STREAM_H_

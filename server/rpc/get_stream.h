// TensorService.Get: from a range of a tensor to the chunks of a call.
#ifndef WARPLINE_SERVER_RPC_GET_STREAM_H_
#define WARPLINE_SERVER_RPC_GET_STREAM_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "server/base/mutex.h"
#include "server/memory/tensor_store.h"
#include "server/rpc/chunk_window.h"
#include "server/rpc/message_stream.h"
#include "server/rpc/tensor_service.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline {

// gRPC sends chunks from where they lie: in the tensor itself, if that is on the host, or else in staging
// memory, which the device fills meanwhile. At most a window of chunks is under way.
class GetStream final : public MessageStream::Handler {
 public:
  GetStream(const TensorService::Engine& engine, OwnerId connection)
      : engine_(engine), connection_(connection) {}

  void OnMessage(MessageStream& stream, std::vector<grpc::Slice> message) override;
  void OnLastMessage(MessageStream& stream) override;
  void OnEnd(MessageStream& stream) override;

 private:
  enum class State { kFree, kFilling, kFilled };
  class Sending;  // keeps a chunk while gRPC has it

  absl::Status Begin(const v1::GetRequest& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  ByteRange ChunkAt(std::size_t number) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::size_t chunks() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Fills and sends the chunks for which there is room, and ends the stream behind the last.
  void Advance(MessageStream& stream) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void StartFilling(MessageStream& stream, std::size_t number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnFilled(MessageStream& stream, std::size_t number, const absl::Status& status);
  void SendChunk(MessageStream& stream, std::size_t number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnChunkSent(MessageStream& stream, std::size_t number);

  const TensorService::Engine& engine_;
  const OwnerId connection_;

  Mutex mutex_;
  bool begun_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;  // nothing is started any more
  TensorStore::Reading reading_ ABSL_GUARDED_BY(mutex_);
  ByteRange range_ ABSL_GUARDED_BY(mutex_);
  ChunkWindow window_ ABSL_GUARDED_BY(mutex_);
  // Of the chunks of the window: chunk n of the range is in place n modulo their number.
  std::vector<State> states_ ABSL_GUARDED_BY(mutex_);
  std::size_t next_to_fill_ ABSL_GUARDED_BY(mutex_) = 0;
  std::size_t next_to_send_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_GET_STREAM_H_

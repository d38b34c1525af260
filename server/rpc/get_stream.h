// TensorService.Get: sends a range of a tensor as the chunks of a call.
#ifndef WARPLINE_SERVER_RPC_GET_STREAM_H_
#define WARPLINE_SERVER_RPC_GET_STREAM_H_

#include <memory>
#include <vector>

#include "server/rpc/message_stream.h"
#include "server/rpc/tensor_service.h"

namespace warpline {

// gRPC sends chunks directly from their memory: the tensor itself if it is on the host, otherwise staging
// memory, which the device fills meanwhile. At most one window of chunks is in progress.
class GetStream final : public MessageStream::Handler {
 public:
  GetStream(const TensorService::Engine& engine, const Caller& caller);
  ~GetStream() override;

  std::size_t least_progress() const override;
  bool belongs_to_another() const override { return belongs_to_another_; }
  void OnMessage(MessageStream& stream, MessageSlices message) override;
  void OnLastMessage(MessageStream& stream) override;
  void OnSent(MessageStream& stream) override;
  void OnEnd(MessageStream& stream) override;

 private:
  class Chunks;
  const TensorService::Engine& engine_;
  const Caller caller_;
  bool belongs_to_another_ = false;  // set by the first message
  std::shared_ptr<Chunks> chunks_;   // from the first message on
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_GET_STREAM_H_

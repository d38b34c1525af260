// The tags that the completion queues of the server return.
#ifndef WARPLINE_SERVER_RPC_COMPLETION_TAG_H_
#define WARPLINE_SERVER_RPC_COMPLETION_TAG_H_

namespace warpline {

class CompletionTag {
 public:
  // Runs on a thread that polls the queue. Must not block. Tags that take turns run one at a time. `ok` is
  // gRPC's result of the operation.
  virtual void Proceed(bool ok) = 0;
  // Returns false if the tag may run at the same time as other tags of the queue.
  virtual bool takes_turns() const { return true; }

 protected:
  ~CompletionTag() = default;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_COMPLETION_TAG_H_

// The tags that the completion queues of the server return.
#ifndef WARPLINE_SERVER_RPC_COMPLETION_TAG_H_
#define WARPLINE_SERVER_RPC_COMPLETION_TAG_H_

namespace warpline {

class CompletionTag {
 public:
  // Runs on a thread that polls the queue, one of those that take turns at a time, and must not
  // block. `ok` is what gRPC says of the operation.
  virtual void Proceed(bool ok) = 0;
  // False if it may run beside other tags of the queue.
  virtual bool takes_turns() const { return true; }

 protected:
  ~CompletionTag() = default;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_COMPLETION_TAG_H_

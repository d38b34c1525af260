// A call of messages in both directions, for services whose messages are small.
#ifndef WARPLINE_SERVER_RPC_MESSAGE_STREAM_H_
#define WARPLINE_SERVER_RPC_MESSAGE_STREAM_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "server/base/mutex.h"
#include "server/rpc/completion_tag.h"
#include "server/rpc/incoming_call.h"
#include "server/rpc/inflater.h"

namespace warpline {

class MessageStream;

// The streams that are open, so that the end of a server can end them. Thread-safe. It outlives them.
class OpenStreams {
 public:
  // Ends every stream, and from now on each new one at once, with UNAVAILABLE.
  void FinishAll();

 private:
  friend class MessageStream;
  void Add(MessageStream& stream);
  void Remove(MessageStream& stream);

  Mutex mutex_;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  absl::flat_hash_set<MessageStream*> streams_ ABSL_GUARDED_BY(mutex_);
};

// Reads one message after the other, each only when the answers to those before have been taken, and writes
// what it is given. Compressed messages are inflated by the workers. It deletes itself at its end.
class MessageStream {
 public:
  // What one kind of stream does. It belongs to its stream. All calls come while a tag of the queue proceeds,
  // one at a time.
  class Handler {
   public:
    virtual ~Handler() = default;
    virtual void OnMessage(MessageStream& stream, const std::string& message) = 0;
    // The client has sent its last message. The stream ends only with Finish.
    virtual void OnLastMessage(MessageStream& stream) = 0;
    // The stream is over. It must not be used any more once this has returned.
    virtual void OnEnd(MessageStream&) {}
  };
  // What all streams of a server share. It outlives them.
  struct Server {
    Inflater& inflater;
    OpenStreams& open;
  };
  // The largest message, decompressed.
  static constexpr std::size_t kMaxMessageBytes = 64 << 10;

  static void Start(const Server& server, std::unique_ptr<IncomingCall> incoming,
                    std::unique_ptr<Handler> handler);

  // Both may be called from any thread until OnEnd has returned. Messages are sent in order, and before the
  // status. After Finish, and after the client has gone, they do nothing.
  void Send(const std::string& message);
  void Finish(const absl::Status& status);

 private:
  template <void (MessageStream::*on_event)(bool)>
  struct Tag final : CompletionTag {
    explicit Tag(MessageStream& stream) : stream(stream) {}
    void Proceed(bool ok) override { (stream.*on_event)(ok); }
    MessageStream& stream;
  };

  MessageStream(const Server& server, std::unique_ptr<IncomingCall> incoming,
                std::unique_ptr<Handler> handler);
  ~MessageStream();
  void Begin();
  void OnRead(bool ok);
  void OnMessage(const std::vector<grpc::Slice>& slices);
  void OnWritten(bool ok);
  void OnFinished(bool ok);
  void OnDone(bool ok);
  // Starts what is to be done next, if nothing is in its way.
  void ReadNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WriteNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Drops one reference, and deletes this with the last. The mutex must not be held.
  void Unref();

  const Server& server_;
  const std::unique_ptr<IncomingCall> incoming_;
  const std::unique_ptr<Handler> handler_;
  const std::string request_id_;
  Tag<&MessageStream::OnRead> read_tag_{*this};
  Tag<&MessageStream::OnWritten> written_tag_{*this};
  Tag<&MessageStream::OnFinished> finished_tag_{*this};
  Tag<&MessageStream::OnDone> done_tag_{*this};
  grpc::ByteBuffer request_;

  Mutex mutex_;
  // One for each tag that gRPC has not returned, and one while a message is inflated.
  int references_ ABSL_GUARDED_BY(mutex_) = 1;
  std::deque<std::string> unsent_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Status> status_ ABSL_GUARDED_BY(mutex_);  // of Finish
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool finishing_ ABSL_GUARDED_BY(mutex_) = false;
  bool read_all_ ABSL_GUARDED_BY(mutex_) = false;
  bool over_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_MESSAGE_STREAM_H_

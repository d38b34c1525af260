// A call with a stream of messages in both directions.
#ifndef WARPLINE_SERVER_RPC_MESSAGE_STREAM_H_
#define WARPLINE_SERVER_RPC_MESSAGE_STREAM_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "server/base/clock.h"
#include "server/base/mutex.h"
#include "server/base/owner.h"
#include "server/observe/metrics.h"
#include "server/rpc/call_counts.h"
#include "server/rpc/completion_tag.h"
#include "server/rpc/incoming_call.h"
#include "server/rpc/inflater.h"
#include "server/rpc/message_slices.h"
#include "server/rpc/polling_helpers.h"
#include "server/rpc/send_watchdog.h"

namespace warpline {

class MessageStream;

// The open streams, so that the server can end them when it stops. Thread-safe. It outlives them.
class OpenStreams {
 public:
  // End all open streams with UNAVAILABLE, and later ones as soon as they begin. FinishIdle spares streams
  // that are work (Method::is_work).
  void FinishIdle();
  void FinishAll();

 private:
  friend class MessageStream;
  void Add(MessageStream& stream);
  void Remove(MessageStream& stream);
  void FinishWhatMust(MessageStream& stream) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Mutex mutex_;
  bool finished_idle_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_all_ ABSL_GUARDED_BY(mutex_) = false;
  absl::flat_hash_set<MessageStream*> streams_ ABSL_GUARDED_BY(mutex_);
};

// Reads one message after the other, and writes the messages that it is given. A message is read only when
// the answers to the earlier ones have been taken. Compressed messages are inflated by the workers. It
// deletes itself at its end.
class MessageStream final : private SendWatchdog::Call {
 public:
  // The behavior of one kind of stream. The handler belongs to its stream. Its functions are called one at a
  // time, except OnSent, which may be called at the same time as others.
  class Handler {
   public:
    virtual ~Handler() = default;
    // The maximum bytes of a decompressed message. A larger message ends the stream with RESOURCE_EXHAUSTED.
    virtual std::size_t max_message_bytes() const { return 64 << 10; }
    // For streams that are work: the minimum bytes that a client must send or receive within the send
    // timeout. Fewer bytes do not count as progress.
    virtual std::size_t least_progress() const { return 1; }
    // True for a transfer that belongs to another call, whose log line counts its bytes.
    virtual bool belongs_to_another() const { return false; }
    virtual void OnMessage(MessageStream& stream, MessageSlices message) = 0;
    // The client has sent its last message. The stream ends only with Finish. Unless Method::confirms_end is
    // set, this may also be called when the client has gone.
    virtual void OnLastMessage(MessageStream& stream) = 0;
    // gRPC has taken a message.
    virtual void OnSent(MessageStream&) {}
    // The stream is over. It must not be used after this has returned, unless there is a Hold.
    virtual void OnEnd(MessageStream&) {}
  };
  // A method of the server. It outlives its calls.
  struct Method {
    std::string service, name;
    std::string type = "bidi_stream";  // as in gRPC's metrics
    std::function<std::unique_ptr<Handler>(const Caller& caller)> make_handler;
    // Work is counted, a drain waits for it, and new work is refused during a drain. It is given up when its
    // client is too slow. Other streams may last as long as the server.
    bool is_work = false;
    // See UnaryMethod::open_to_all.
    bool open_to_all = false;
    // True if the effect of the last message must not happen when the client has cancelled instead. gRPC
    // reports both in the same way, but it accepts an answer only after a real end of the messages. So
    // nothing may be sent before that end.
    bool confirms_end = false;
    MethodSeries series = MethodSeries();
  };
  // The state that all streams of a server share. It outlives the streams.
  struct Server {
    Metrics& metrics;
    SendWatchdog& watchdog;
    CallCounts& counts;
    Inflater& inflater;
    OpenStreams& open;
    // Set once, before the first stream.
    std::unique_ptr<PollingHelpers>& helpers;
  };
  // Keeps the stream and its handler alive, even after the stream is over.
  class Hold {
   public:
    explicit Hold(MessageStream& stream) : stream_(&stream) { stream.Ref(); }
    Hold(Hold&& other) noexcept : stream_(std::exchange(other.stream_, nullptr)) {}
    Hold& operator=(Hold&&) = delete;
    ~Hold() {
      if (stream_ != nullptr) stream_->Unref();
    }

   private:
    MessageStream* stream_;
  };

  static void Start(const Method& method, const Server& server, std::unique_ptr<IncomingCall> incoming);

  // Any thread may call these until OnEnd has returned, or under a Hold. Messages are sent in order, and
  // before the status. After Finish, and after the client has gone, these functions do nothing.
  void Send(const grpc::ByteBuffer& message);
  void Finish(const absl::Status& status);
  // Returns whether gRPC has reported that the stream is over. This may be later than its actual end.
  bool is_over();
  // Call Pause in OnMessage: no further message is read until Resume.
  void Pause();
  void Resume();
  const std::string& request_id() const override { return request_id_; }

 private:
  friend class OpenStreams;
  template <void (MessageStream::*on_event)(bool)>
  struct Tag final : CompletionTag {
    explicit Tag(MessageStream& stream) : stream(stream) {}
    void Proceed(bool ok) override { (stream.*on_event)(ok); }
    bool takes_turns() const override { return false; }
    MessageStream& stream;
  };

  MessageStream(const Method& method, const Server& server, std::unique_ptr<IncomingCall> incoming);
  ~MessageStream();
  void Begin();
  void OnRead(bool ok);
  void OnMessage(MessageSlices slices);
  void TellLastMessage();
  void OnConfirmed(bool ok);
  void OnWritten(bool ok);
  void OnFinished(bool ok);
  void OnDone(bool ok);
  // Start the next read or write, if nothing prevents it.
  void ReadNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WriteNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Ref() override;
  // Drops one reference, and deletes the stream with the last one. The mutex must not be held.
  void Unref() override;
  void GiveUp() override { incoming_->context().TryCancel(); }
  // Records that `bytes` bytes were received or sent.
  void Touch(std::size_t bytes);
  void CountEnd();
  void LogEnd();

  const Method& method_;
  const Server& server_;
  std::unique_ptr<IncomingCall> incoming_;
  const std::unique_ptr<Handler> handler_;
  const std::string request_id_;
  Tag<&MessageStream::OnRead> read_tag_{*this};
  Tag<&MessageStream::OnConfirmed> confirmed_tag_{*this};
  Tag<&MessageStream::OnWritten> written_tag_{*this};
  Tag<&MessageStream::OnFinished> finished_tag_{*this};
  Tag<&MessageStream::OnDone> done_tag_{*this};
  grpc::ByteBuffer request_;
  const MonotonicTime begun_;
  const bool in_progress_;

  Mutex handler_mutex_;  // held while the handler is called, except OnSent; locked before mutex_
  Mutex mutex_ ABSL_ACQUIRED_AFTER(handler_mutex_);
  // One for each tag that gRPC has not returned, one during an inflation, and one for each Hold.
  int references_ ABSL_GUARDED_BY(mutex_) = 1;
  std::deque<grpc::ByteBuffer> unsent_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Status> status_ ABSL_GUARDED_BY(mutex_);  // the argument of Finish
  std::size_t sent_bytes_ ABSL_GUARDED_BY(mutex_) = 0;          // of the message that is being written
  std::size_t all_received_ ABSL_GUARDED_BY(mutex_) = 0, all_sent_ ABSL_GUARDED_BY(mutex_) = 0;
  std::size_t progress_ ABSL_GUARDED_BY(mutex_) = 0;  // bytes since the watchdog was last told
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  bool paused_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool finishing_ ABSL_GUARDED_BY(mutex_) = false;
  bool read_all_ ABSL_GUARDED_BY(mutex_) = false;
  bool over_ ABSL_GUARDED_BY(mutex_) = false;
  bool completed_ ABSL_GUARDED_BY(mutex_) = false;  // ended without cancellation
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_MESSAGE_STREAM_H_

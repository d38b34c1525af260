// One unary RPC, as raw bytes.
#ifndef WARPLINE_SERVER_RPC_UNARY_CALL_H_
#define WARPLINE_SERVER_RPC_UNARY_CALL_H_

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/base/clock.h"
#include "server/base/mutex.h"
#include "server/base/owner.h"
#include "server/base/worker_pool.h"
#include "server/observe/metrics.h"
#include "server/observe/nvtx.h"
#include "server/rpc/call_counts.h"
#include "server/rpc/completion_tag.h"
#include "server/rpc/incoming_call.h"
#include "server/rpc/inflater.h"
#include "server/rpc/message_slices.h"
#include "server/rpc/send_watchdog.h"

namespace warpline {

class UnaryCall;

// A method as the server knows it. It outlives its calls.
struct UnaryMethod {
  std::string service;
  std::string name;
  // Runs while a tag of the completion queue proceeds, when the request's message is whole, and must not
  // block. It leads to exactly one Respond or RespondError.
  std::function<void(UnaryCall&)> handle;
  // True if `handle` takes the message. A message that is not taken is not decompressed either.
  bool takes_message = true;
  // The largest message, decompressed, where that is less than the server's; larger ones are refused before
  // any of it is copied or parsed.
  std::size_t max_message_bytes = std::numeric_limits<std::size_t>::max();
  // True if `handle` has more to do than to answer. If other calls are in progress, `handle` then runs on a
  // thread of the crew, so that the polling thread goes on receiving.
  bool computes = false;
  // True if callers need not say who they are, even where callers are asked.
  bool open_to_all = false;
  // True if the method is served to the end. Calls of other methods are refused if they come once the server
  // drains.
  bool while_draining = false;
  MethodSeries series = MethodSeries();
};

// From the message of a call on, the message is decompressed, and the call is handled and answered. It
// deletes itself once gRPC has let go of it, and the watchdog too. Everything runs while a tag of its
// completion queue proceeds, except `handle`, which the crew may run, and Respond and RespondError, which any
// one thread may call.
class UnaryCall final : private SendWatchdog::Call {
 public:
  // The state that all calls of a server share. It outlives the calls.
  struct Server {
    Metrics& metrics;
    SendWatchdog& watchdog;
    CallCounts& counts;
    Inflater& inflater;
    std::size_t max_message_bytes;
    // The threads for calls that compute; null if there are none. It outlives the calls.
    WorkerPool* crew;
  };

  static void Start(const UnaryMethod& method, const Server& server, std::unique_ptr<IncomingCall> incoming);

  // The request's bytes, decompressed. The caller now holds the only reference. Once.
  MessageSlices TakeRequest() { return std::move(message_); }
  // Gives back what was admitted for the decompression of the message. Whoever asks for the real ticket does
  // so just after this.
  void ReturnProvisionalTicket() { provisional_ticket_.Return(); }
  const std::string& request_id() const override { return request_id_; }
  nvtx::RequestNumber number() const { return number_; }
  MonotonicTime deadline() const { return deadline_; }  // kNever if the client set none
  // When the message was whole.
  MonotonicTime received() const { return received_; }
  const Caller& caller() const { return incoming_->caller(); }
  // Returns who the client is by its certificate (see PeerIdentity in tls_credentials.h).
  std::string Client() const;
  // Returns whether other calls are in progress, so that the thread that handles this call has more to do.
  bool crowded() const { return server_.counts.busy() > 1; }
  // From here to its answer the call waits for a device, for so long that it keeps no thread of ours busy:
  // other calls are not crowded by it. Once, before the answer.
  void AwaitDevice() {
    awaits_device_ = true;
    server_.counts.RemoveBusy();
  }
  // True from when the client cancelled or the deadline passed.
  const std::atomic<bool>& cancelled() const { return cancelled_; }
  // The hook is called while a tag of the queue proceeds, when that happens before the response; or at once
  // if it has happened. Set it inside `handle`.
  void OnCancel(std::function<void()> hook);

  // Adds an entry to the initial metadata, which go with the answer. Before the answer.
  void AddMetadata(const std::string& key, const std::string& value) {
    incoming_->context().AddInitialMetadata(key, value);
  }
  // Sends the initial metadata with this entry, ahead of the answer. From here on the call waits for its
  // client: `stalled` is called if the send timeout passes without Touch. Once.
  void SendMetadataAndWait(const std::string& key, const std::string& value, std::function<void()> stalled);
  void Touch() { server_.watchdog.Touch(*this); }
  // It does not wait any more. Before the answer, if it has waited.
  void StopWaiting();
  // Bytes of the call that travel in others: its line in the log counts them, those of the response only if
  // the call ends with OK, and the lines of the others are left out.
  void CountRequestApart(std::size_t bytes) { request_bytes_apart_ = bytes; }
  void CountResponseApart(std::size_t bytes) { response_bytes_apart_ = bytes; }
  // The call has no line in the log if it ends with OK.
  void BelongToAnother() { belongs_to_another_ = true; }

  // The hook is called if the client is found not to have got the response that comes next. Set it before
  // Respond.
  void OnNotSent(std::function<void()> hook) { on_not_sent_ = std::move(hook); }
  // Ends the call. After this it may be gone.
  void Respond(grpc::ByteBuffer response);
  void RespondError(const absl::Status& status);

 private:
  struct SentTag final : CompletionTag {
    explicit SentTag(UnaryCall& call) : call(call) {}
    void Proceed(bool ok) override { call.OnSent(ok); }
    UnaryCall& call;
  };
  struct MetadataTag final : CompletionTag {
    explicit MetadataTag(UnaryCall& call) : call(call) {}
    void Proceed(bool) override { call.OnMetadataSent(); }
    UnaryCall& call;
  };
  struct DoneTag final : CompletionTag {
    explicit DoneTag(UnaryCall& call) : call(call) {}
    void Proceed(bool ok) override;
    UnaryCall& call;
  };

  UnaryCall(const UnaryMethod& method, const Server& server, std::unique_ptr<IncomingCall> incoming);
  void Begin();
  void Receive(grpc::ByteBuffer& request);
  void OnSent(bool ok);
  void OnMetadataSent();
  void Handle();
  void Finish(std::optional<grpc::ByteBuffer> response, grpc::Status status);
  void Send();
  void CountHandled(grpc::StatusCode code);
  void Ref() override { references_.fetch_add(1, std::memory_order_relaxed); }
  void Unref() override;
  void GiveUp() override;
  void Delete();

  const UnaryMethod& method_;
  const Server& server_;
  std::unique_ptr<IncomingCall> incoming_;
  SentTag sent_tag_{*this};
  MetadataTag metadata_tag_{*this};
  DoneTag done_tag_{*this};
  MessageSlices message_;
  Ticket provisional_ticket_;
  std::optional<grpc::ByteBuffer> response_;
  std::function<void()> on_not_sent_;
  grpc::Status status_;
  std::string request_id_;
  IncomingCall::End end_;
  [[no_unique_address]] nvtx::RequestNumber number_;
  [[no_unique_address]] nvtx::SpanningRange whole_, sending_;
  MonotonicTime received_;
  MonotonicTime deadline_;
  Mutex cancel_mutex_;
  std::function<void()> on_cancel_ ABSL_GUARDED_BY(cancel_mutex_);
  std::atomic<bool> cancelled_ = false;
  // gRPC must have taken the metadata before it is given the answer.
  Mutex metadata_mutex_;
  bool sending_metadata_ ABSL_GUARDED_BY(metadata_mutex_) = false;
  bool send_after_it_ ABSL_GUARDED_BY(metadata_mutex_) = false;
  std::function<void()> on_stalled_ ABSL_GUARDED_BY(metadata_mutex_);  // while the call waits
  std::size_t request_bytes_apart_ = 0, response_bytes_apart_ = 0;
  bool belongs_to_another_ = false;
  bool awaits_device_ = false;
  bool cut_short_ = false;           // the message never became whole
  std::atomic<int> references_ = 2;  // one for the response, one for the done tag
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_UNARY_CALL_H_

// One unary RPC, with messages as raw bytes.
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

// A method of the server. It outlives its calls.
struct UnaryMethod {
  std::string service;
  std::string name;
  // Called when the request's message is complete, while a tag of the completion queue proceeds. Must not
  // block. Leads to exactly one Respond or RespondError.
  std::function<void(UnaryCall&)> handle;
  // True if `handle` uses the message. Otherwise the message is not even decompressed.
  bool takes_message = true;
  // The maximum size of a decompressed message, if that is less than the server's limit. Larger messages are
  // refused before any part is copied or parsed.
  std::size_t max_message_bytes = std::numeric_limits<std::size_t>::max();
  // True if `handle` does more than answer. If other calls are in progress, `handle` then runs on a thread of
  // the crew, so that the polling thread can continue to receive.
  bool computes = false;
  // True if callers need not identify themselves, even if other methods require it.
  bool open_to_all = false;
  // True if the method is served until the end. Calls of other methods are refused if they arrive after the
  // server began to drain.
  bool while_draining = false;
  MethodSeries series = MethodSeries();
};

// Decompresses the message of a call, then lets it be handled and answered. It deletes itself once gRPC and
// the watchdog have released it. Everything runs while a tag of its completion queue proceeds, except
// `handle`, which the crew may run, and Respond and RespondError, which any single thread may call.
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

  // Returns the request's bytes, decompressed. The caller then has the only reference. Call once.
  MessageSlices TakeRequest() { return std::move(message_); }
  // Returns the ticket for the decompression of the message. Call this just before requesting the real
  // ticket.
  void ReturnProvisionalTicket() { provisional_ticket_.Return(); }
  const std::string& request_id() const override { return request_id_; }
  nvtx::RequestNumber number() const { return number_; }
  MonotonicTime deadline() const { return deadline_; }  // kNever if the client set none
  // When the message was complete.
  MonotonicTime received() const { return received_; }
  const Caller& caller() const { return incoming_->caller(); }
  // Returns the client's identity by its certificate (see PeerIdentity in tls_credentials.h).
  std::string Client() const;
  // Returns whether other calls are in progress, so that the thread that handles this call has more to do.
  bool crowded() const { return server_.counts.busy() > 1; }
  // From now until its answer the call waits for a device, so long that it keeps no thread of ours busy: it
  // does not make other calls crowded. Call once, before the answer.
  void AwaitDevice() {
    awaits_device_ = true;
    server_.counts.RemoveBusy();
  }
  // True once the client has cancelled or the deadline has passed.
  const std::atomic<bool>& cancelled() const { return cancelled_; }
  // Sets a hook for the cancellation. It is called while a tag of the queue proceeds, if the call is
  // cancelled before the response, or at once if it already has been. Set it inside `handle`.
  void OnCancel(std::function<void()> hook);

  // Adds an entry to the initial metadata, which are sent with the answer. Call it before the answer.
  void AddMetadata(const std::string& key, const std::string& value) {
    incoming_->context().AddInitialMetadata(key, value);
  }
  // Sends the initial metadata with this entry, before the answer. From now on the call waits for its client:
  // `stalled` is called if the send timeout passes without Touch. Call once.
  void SendMetadataAndWait(const std::string& key, const std::string& value, std::function<void()> stalled);
  void Touch() { server_.watchdog.Touch(*this); }
  // Ends the wait. Must be called before the answer if the call has waited.
  void StopWaiting();
  // Counts bytes of this call that other calls transfer. This call's log line includes them (those of the
  // response only if the call ends with OK), and the other calls have no lines.
  void CountRequestApart(std::size_t bytes) { request_bytes_apart_ = bytes; }
  void CountResponseApart(std::size_t bytes) { response_bytes_apart_ = bytes; }
  // The call gets no log line if it ends with OK.
  void BelongToAnother() { belongs_to_another_ = true; }

  // Sets a hook that is called if the client turns out not to have received the next response. Set it before
  // Respond.
  void OnNotSent(std::function<void()> hook) { on_not_sent_ = std::move(hook); }
  // Ends the call, which may be deleted by this.
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
  // gRPC must have taken the metadata before it gets the answer.
  Mutex metadata_mutex_;
  bool sending_metadata_ ABSL_GUARDED_BY(metadata_mutex_) = false;
  bool send_after_it_ ABSL_GUARDED_BY(metadata_mutex_) = false;
  std::function<void()> on_stalled_ ABSL_GUARDED_BY(metadata_mutex_);  // set while the call waits
  std::size_t request_bytes_apart_ = 0, response_bytes_apart_ = 0;
  bool belongs_to_another_ = false;
  bool awaits_device_ = false;
  bool cut_short_ = false;           // the message never became complete
  std::atomic<int> references_ = 2;  // one for the response, one for the done tag
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_UNARY_CALL_H_

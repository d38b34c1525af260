// One unary RPC on the asynchronous completion-queue API, as raw bytes.
#ifndef WARPLINE_SERVER_RPC_UNARY_CALL_H_
#define WARPLINE_SERVER_RPC_UNARY_CALL_H_

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/async_unary_call.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <list>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/base/clock.h"
#include "server/observe/metrics.h"
#include "server/observe/nvtx.h"
#include "server/schedule/owner.h"

namespace warpline {

class SendWatchdog;
class UnaryCall;

// A method as the server knows it: how to ask gRPC for its next call, and what to do with one.
struct UnaryMethod {
  std::string service;
  std::string name;
  using Writer = grpc::ServerAsyncResponseWriter<grpc::ByteBuffer>;
  std::function<void(grpc::ServerContext*, grpc::ByteBuffer*, Writer*, grpc::ServerCompletionQueue*,
                     void* tag)>
      request_next;
  // Runs on the completion-queue thread; must not block; leads to exactly one Respond or RespondError.
  std::function<void(UnaryCall&)> handle;
  MethodSeries series;
};

// What a completion queue returns as a tag.
class CompletionTag {
 public:
  virtual void Proceed(bool ok) = 0;

 protected:
  ~CompletionTag() = default;
};

// How many call objects there are. Thread-safe; every request counts, so without a lock, and only the end of
// a server waits.
class CallCounts {
 public:
  void AddObject() { objects_.fetch_add(1, std::memory_order_relaxed); }
  void RemoveObject() { objects_.fetch_sub(1, std::memory_order_release); }
  // Whether the call counts: late ones do not.
  bool AddReceived() {
    if (late_.load(std::memory_order_relaxed)) return false;
    received_.fetch_add(1, std::memory_order_relaxed);
    return true;
  }
  void RemoveReceived() { received_.fetch_sub(1, std::memory_order_release); }
  // Each waits until there are none, until the deadline at most; whether that came about. From the first of
  // these on calls are late, so that clients who go on trying do not keep a server from its end.
  bool AwaitNoReceived(absl::Time deadline) {
    late_.store(true, std::memory_order_relaxed);
    return AwaitZero(received_, deadline);
  }
  bool AwaitNoObjects(absl::Time deadline) { return AwaitZero(objects_, deadline); }

 private:
  static bool AwaitZero(const std::atomic<int>& count, absl::Time deadline) {
    while (count.load(std::memory_order_acquire) != 0) {
      if (absl::Now() >= deadline) return false;
      absl::SleepFor(absl::Milliseconds(1));
    }
    return true;
  }
  std::atomic<int> objects_ = 0;   // received calls and those that wait for one
  std::atomic<int> received_ = 0;  // from when the request was received until gRPC has let go of the call
  std::atomic<bool> late_ = false;
};

// Deletes itself once gRPC has let go of it, and the watchdog too. Everything else runs on the thread of its
// completion queue, except Respond and RespondError, which any one thread may call.
class UnaryCall {
 public:
  // What all calls of a server share; outlives them.
  struct Server {
    Metrics& metrics;
    SendWatchdog& watchdog;
    CallCounts& counts;
    std::size_t max_message_bytes;
  };

  // Makes a call object that waits for the method's next call.
  static void Listen(const UnaryMethod& method, grpc::ServerCompletionQueue* queue, const Server& server);

  // The request's bytes; the caller now holds the only reference. Once. RESOURCE_EXHAUSTED or
  // INVALID_ARGUMENT for a compressed message that is too large or broken.
  absl::StatusOr<std::vector<grpc::Slice>> TakeRequest();
  const std::string& request_id() const { return request_id_; }
  nvtx::RequestNumber number() const { return number_; }
  MonotonicTime deadline() const { return deadline_; }  // kNever if the client set none
  MonotonicTime received() const { return received_; }
  // The connection that it came over; calls from one address count as one connection where a transport gives
  // no more (unix sockets).
  OwnerId owner() const { return owner_; }
  // Whether another event waited for the thread that received this call.
  bool crowded() const { return crowded_; }
  // True from when the client cancelled or the deadline passed.
  const std::atomic<bool>& cancelled() const { return cancelled_; }
  // Called on the queue's thread when that happens before the response. Set it inside `handle`.
  void OnCancel(std::function<void()> hook) { on_cancel_ = std::move(hook); }

  // Ends the call. After this it may be gone.
  void Respond(const grpc::ByteBuffer& response);
  void RespondError(const absl::Status& status);

 private:
  friend class SendWatchdog;
  struct MainTag final : CompletionTag {
    explicit MainTag(UnaryCall& call) : call(call) {}
    void Proceed(bool ok) override;
    UnaryCall& call;
  };
  struct DoneTag final : CompletionTag {
    explicit DoneTag(UnaryCall& call) : call(call) {}
    void Proceed(bool ok) override;
    UnaryCall& call;
  };

  UnaryCall(const UnaryMethod& method, grpc::ServerCompletionQueue* queue, const Server& server);
  void OnReceived();
  void Finish(const grpc::ByteBuffer* response, const grpc::Status& status);
  void Ref() { references_.fetch_add(1, std::memory_order_relaxed); }
  void Unref();
  void Delete();

  const UnaryMethod& method_;
  grpc::ServerCompletionQueue* const queue_;
  const Server& server_;
  MainTag main_tag_{*this};
  DoneTag done_tag_{*this};
  grpc::ServerContext context_;
  grpc::ByteBuffer request_;
  UnaryMethod::Writer writer_{&context_};
  std::string request_id_;
  [[no_unique_address]] nvtx::RequestNumber number_;
  [[no_unique_address]] nvtx::SpanningRange whole_, sending_;
  MonotonicTime received_;
  MonotonicTime deadline_ = kNever;
  OwnerId owner_ = 0;
  bool crowded_ = false;
  std::function<void()> on_cancel_;
  std::atomic<bool> cancelled_ = false;
  bool received_ok_ = false;
  bool counted_ = false;
  std::atomic<int> references_ = 1;
  // Of the watchdog.
  std::list<UnaryCall*>::iterator watched_;
  std::chrono::steady_clock::time_point sending_since_;
  bool given_up_ = false;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_UNARY_CALL_H_

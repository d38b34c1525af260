// One unary RPC on the asynchronous completion-queue API, as raw bytes.
#ifndef WARPLINE_SERVER_RPC_UNARY_CALL_H_
#define WARPLINE_SERVER_RPC_UNARY_CALL_H_

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/async_unary_call.h>

#include <atomic>
#include <functional>
#include <list>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/observe/metrics.h"

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

// Deletes itself once gRPC has let go of it. Everything runs on the thread of its completion queue, except
// Respond and RespondError, which any one thread may call.
class UnaryCall {
 public:
  // What all calls of a server share; outlives them.
  struct Server {
    Metrics& metrics;
    SendWatchdog& watchdog;
  };

  // Makes a call object that waits for the method's next call.
  static void Listen(const UnaryMethod& method, grpc::ServerCompletionQueue* queue, const Server& server);

  // The request's bytes as received; the caller now holds the only reference. Once.
  std::vector<grpc::Slice> TakeRequest();
  const std::string& request_id() const { return request_id_; }
  absl::Time deadline() const { return deadline_; }
  absl::Time received() const { return received_; }
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

  const UnaryMethod& method_;
  grpc::ServerCompletionQueue* const queue_;
  const Server& server_;
  MainTag main_tag_{*this};
  DoneTag done_tag_{*this};
  grpc::ServerContext context_;
  grpc::ByteBuffer request_;
  UnaryMethod::Writer writer_{&context_};
  std::string request_id_;
  absl::Time received_;
  absl::Time deadline_;
  std::function<void()> on_cancel_;
  std::atomic<bool> cancelled_ = false;
  bool received_ok_ = false;
  std::atomic<int> references_ = 1;
  // Of the watchdog.
  std::list<UnaryCall*>::iterator watched_;
  absl::Time sending_since_;
  bool given_up_ = false;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_UNARY_CALL_H_

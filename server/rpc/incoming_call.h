// A call of any method, accepted when its headers have arrived.
#ifndef WARPLINE_SERVER_RPC_INCOMING_CALL_H_
#define WARPLINE_SERVER_RPC_INCOMING_CALL_H_

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/base/clock.h"
#include "server/base/owner.h"
#include "server/observe/access_log.h"
#include "server/observe/metrics.h"
#include "server/rpc/call_counts.h"
#include "server/rpc/completion_tag.h"
#include "server/rpc/connection.h"
#include "server/rpc/connections.h"
#include "server/rpc/polling_thread.h"
#include "server/rpc/uploads.h"
#include "server/schedule/fair_budget.h"

namespace warpline {

class IncomingCall;

// The refusal of a compressed message from an unidentified caller: otherwise anybody could make the server
// inflate messages.
absl::Status CompressedUnidentified();

// Answers a call: takes ownership of the call and makes sure that it ends.
using CallHandler = std::function<void(std::unique_ptr<IncomingCall>)>;

// A path that the server serves.
struct ServedPath {
  CallHandler handler;
  // True if anyone may call the path, even if callers must identify themselves elsewhere.
  bool open_to_all = false;
  // The metrics of a unary method; null for other methods. If set, the call's only message is read before the
  // handler is called. A call that ends before that never reaches the handler.
  const MethodSeries* reads_message = nullptr;
  // True if calls of a unary method are read even once the server drains.
  bool while_draining = false;
};

// The log of calls that have ended.
struct CallLog {
  AccessLog& lines;
  std::function<std::string(OwnerId)> name_of;  // null if there are no identities
};

// How the owner of a call is determined.
struct Authentication {
  // Returns the owner of the call, or UNAUTHENTICATED.
  std::function<absl::StatusOr<OwnerId>(const grpc::ServerContext&)> identify;
  // Ends a call that was refused.
  std::function<void(std::unique_ptr<IncomingCall>, const absl::Status&)> refuse;
};

// gRPC's context and stream of one call, and a notice when the client has gone. It belongs to the code that
// answers the call. That code deletes it when gRPC has returned the tags of all operations on the stream, and
// OnDone's tag. A call that can no longer be answered is dropped before that: its connection has ended, or
// its client cancelled it before its message arrived. Everything except the end of a stream runs while a tag
// of its thread's queue proceeds.
class IncomingCall final : private Upload {
 public:
  // The state that all calls of a server share. It outlives the calls.
  struct Server {
    grpc::AsyncGenericService& service;
    // The served methods, by path ("/package.Service/Method").
    const absl::flat_hash_map<std::string, ServedPath>& methods;
    // The handler of unknown paths.
    const CallHandler& unknown_method;
    // Null: callers are not identified, and each peer has its own share.
    const Authentication* authentication;
    Metrics& metrics;
    CallCounts& counts;
    Connections& connections;
    // Calls that may last as long as their clients like: streams and slow uploads.
    FairBudget& slow_calls;
    // The first thread is steady and accepts all calls. The others are on demand: when there are many calls,
    // they take their share of them, from the headers on.
    const std::vector<std::unique_ptr<PollingThread>>& threads;
    const CallLog* log;  // null: there is none
  };
  // The facts that the handler of a call knows when the call ends.
  struct End {
    grpc::StatusCode code = grpc::StatusCode::UNKNOWN;
    std::string reason;
    std::size_t request_bytes = 0, response_bytes = 0;
  };

  // Makes a call object that waits for the next call. When the call arrives, it creates its successor and
  // passes the call to the handler.
  static void Await(const Server& server);
  ~IncomingCall();
  IncomingCall(const IncomingCall&) = delete;
  IncomingCall& operator=(const IncomingCall&) = delete;

  grpc::ServerContext& context() { return context_; }
  const std::string& path() const { return context_.method(); }
  grpc::GenericServerAsyncReaderWriter& stream() { return stream_; }
  // The thread whose queue has the events of the call.
  PollingThread& thread() { return thread_; }
  const Caller& caller() const { return caller_; }
  // False if callers must identify themselves, but this path is open to all.
  bool identified() const { return identified_; }

  // Reserves a place among the calls that may last as long as their clients like, until the call ends.
  // RESOURCE_EXHAUSTED if there is none. Call once.
  absl::Status TakeSlowPlace();
  // Returns false if the server had begun to drain when the call arrived. Only for unary methods.
  bool in_time() const { return in_progress_.has_value(); }
  // Returns the message of a unary method, if the client has sent one and it was read. Call once.
  std::optional<grpc::ByteBuffer> TakeMessage() { return std::exchange(message_, std::nullopt); }
  // Stops counting the call in warpline_requests_in_flight. Only for unary methods.
  void EndInFlight() { in_flight_.reset(); }

  // `tag` proceeds when gRPC has finished the call: with false if the call was cancelled, by the client, by
  // its deadline or by the loss of the connection, and with true if it ended normally. Called once, by the
  // handler.
  void OnDone(CompletionTag* tag) { on_done_ = tag; }
  // Returns whether the end of the call must be logged.
  bool logged() const { return server_.log != nullptr; }
  // Logs that the call has ended, if calls are logged. Call once.
  void LogEnd(const std::string& request_id, const End& end);
  // Marks the call as answered. A call that is cancelled before that counts against its peer.
  void SetAnswered() { answered_ = true; }

 private:
  struct AcceptedTag final : CompletionTag {
    explicit AcceptedTag(IncomingCall& call) : call(call) {}
    void Proceed(bool ok) override;
    IncomingCall& call;
  };
  struct DoneTag final : CompletionTag {
    explicit DoneTag(IncomingCall& call) : call(call) {}
    void Proceed(bool ok) override;
    IncomingCall& call;
  };
  struct ReadTag final : CompletionTag {
    explicit ReadTag(IncomingCall& call) : call(call) {}
    void Proceed(bool ok) override { call.OnRead(ok); }
    IncomingCall& call;
  };

  IncomingCall(const Server& server, PollingThread& thread);
  // Runs on the call's own thread.
  void Accept();
  void HandOver(const CallHandler& handler);
  void Read();
  void OnRead(bool ok);
  // Gives up a call that nobody answers: it is deleted when gRPC has released it.
  void Drop();
  void CountCancelled();
  absl::StatusOr<Caller> FindCaller(bool open_to_all);
  void GiveUp() override { context_.TryCancel(); }
  void OnSlow() override;
  // Reads the client's `traceparent` and sends it back with the status. So whoever gets the answer knows that
  // the call's log line can be found by it.
  void EchoTraceParent();

  // The first member, so that it is destroyed last: the call is counted until all its other members are
  // destroyed.
  struct Counted {
    explicit Counted(CallCounts& counts) : counts(counts) { counts.AddObject(); }
    ~Counted() { counts.RemoveObject(); }
    CallCounts& counts;
  } counted_;
  struct InProgress {
    explicit InProgress(CallCounts& counts) : counts(counts) {}
    ~InProgress() { counts.RemoveInProgress(); }
    CallCounts& counts;
  };
  std::optional<InProgress> in_progress_;
  struct InFlight {
    explicit InFlight(Gauge& gauge) : gauge(gauge) { gauge.Add(1); }
    ~InFlight() { gauge.Add(-1); }
    Gauge& gauge;
  };
  std::optional<InFlight> in_flight_;
  const Server& server_;
  PollingThread& thread_;
  AcceptedTag accepted_tag_{*this};
  DoneTag done_tag_{*this};
  ReadTag read_tag_{*this};
  std::shared_ptr<Connection> connection_;  // from Accept on
  const ServedPath* served_ = nullptr;      // null if there is no such path
  grpc::ByteBuffer request_;
  std::optional<grpc::ByteBuffer> message_;
  grpc::GenericServerContext context_;
  grpc::GenericServerAsyncReaderWriter stream_{&context_};
  Caller caller_;
  bool identified_ = true;
  std::string trace_parent_;
  MonotonicTime begun_ = {};
  CompletionTag* on_done_ = nullptr;
  bool accepted_ = false;
  bool dropped_ = false;
  bool refused_ = false;  // it had no token, or a wrong one
  bool slow_ = false;     // as an upload that takes long
  FairBudget::Part slow_place_;
  bool done_ = false;
  bool cancelled_ = false;
  bool answered_ = false;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_INCOMING_CALL_H_

// A call of any method, accepted at its headers.
#ifndef WARPLINE_SERVER_RPC_INCOMING_CALL_H_
#define WARPLINE_SERVER_RPC_INCOMING_CALL_H_

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/base/clock.h"
#include "server/observe/access_log.h"
#include "server/rpc/call_counts.h"
#include "server/rpc/completion_tag.h"
#include "server/rpc/connections.h"
#include "server/rpc/polling_thread.h"
#include "server/schedule/owner.h"

namespace warpline {

class IncomingCall;

// The refusal of a compressed message from who has not said who he is: inflating it would be work for
// anybody.
absl::Status CompressedUnidentified();

// What answers a call: it takes the call over and sees to it that the call ends.
using CallHandler = std::function<void(std::unique_ptr<IncomingCall>)>;

// A path that is served.
struct ServedPath {
  CallHandler handler;
  // Whether anybody may call it, also where callers are asked who they are.
  bool open_to_all = false;
};

// Where calls that have ended are noted.
struct CallLog {
  AccessLog& lines;
  std::function<std::string(OwnerId)> name_of;  // null where there are no identities
};

// How the owner of a call is found out.
struct Authentication {
  // Whose it is, or UNAUTHENTICATED.
  std::function<absl::StatusOr<OwnerId>(const grpc::ServerContext&)> identify;
  // Ends the call of whom it refuses.
  std::function<void(std::unique_ptr<IncomingCall>, const absl::Status&)> refuse;
};

// gRPC's context and stream of one call, and when the client is gone. It belongs to whoever answers the call,
// who deletes it when gRPC has returned the tags of all operations on the stream, and OnDone's too.
// Everything but the end of a stream runs while a tag of its thread's queue proceeds.
class IncomingCall {
 public:
  // What all calls of a server share. It outlives them.
  struct Server {
    grpc::AsyncGenericService& service;
    // By path ("/package.Service/Method").
    const absl::flat_hash_map<std::string, ServedPath>& methods;
    // The handler of paths that are not there.
    const CallHandler& unknown_method;
    // Null: nobody is asked, and each connection has a share of its own.
    const Authentication* authentication;
    CallCounts& counts;
    Connections& connections;
    // The first one is steady and accepts all calls; the others are on demand and get their share of them,
    // from the headers on, when there are many.
    const std::vector<std::unique_ptr<PollingThread>>& threads;
    const CallLog* log;  // null: there is none
  };
  // What its handler knows at the end of a call.
  struct End {
    grpc::StatusCode code = grpc::StatusCode::UNKNOWN;
    std::string reason;
    std::size_t request_bytes = 0, response_bytes = 0;
  };

  // Makes a call object that waits for the next call, has another take its place when that comes, and gives
  // the call to its handler.
  static void Await(const Server& server);
  ~IncomingCall();
  IncomingCall(const IncomingCall&) = delete;
  IncomingCall& operator=(const IncomingCall&) = delete;

  grpc::ServerContext& context() { return context_; }
  const std::string& path() const { return context_.method(); }
  grpc::GenericServerAsyncReaderWriter& stream() { return stream_; }
  // The one whose queue has the events of the call.
  PollingThread& thread() { return thread_; }
  // Without authentication each connection has a share: two that are open at one time have different ones.
  const Caller& caller() const { return caller_; }
  // False where callers are asked who they are, but not by this path.
  bool identified() const { return identified_; }

  // `tag` proceeds when the call is over for gRPC: with false if it was cancelled, by the client, by its
  // deadline or by the loss of the connection, and with true if it came to its end. Once, by the handler.
  void OnDone(CompletionTag* tag) { on_done_ = tag; }
  // Whether anybody wants to know of the end.
  bool logged() const { return server_.log != nullptr; }
  // Notes that the call has ended, if calls are logged. Once.
  void LogEnd(const std::string& request_id, const End& end);
  // Says that an answer was sent. A call that was cancelled before counts against its connection.
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

  IncomingCall(const Server& server, PollingThread& thread);
  // On its own thread.
  void Accept();
  // Whose the call is; without authentication, the connection's.
  absl::StatusOr<Caller> FindCaller(bool open_to_all);
  // Takes the client's `traceparent` over and sends it back with the status, so that whoever has the answer
  // knows that the call's line can be found by it.
  void EchoTraceParent();

  // The first member, so that the call no longer counts when everything else of it is gone.
  struct Counted {
    explicit Counted(CallCounts& counts) : counts(counts) { counts.AddObject(); }
    ~Counted() { counts.RemoveObject(); }
    CallCounts& counts;
  } counted_;
  const Server& server_;
  PollingThread& thread_;
  AcceptedTag accepted_tag_{*this};
  DoneTag done_tag_{*this};
  grpc::GenericServerContext context_;
  grpc::GenericServerAsyncReaderWriter stream_{&context_};
  Caller caller_;
  bool identified_ = true;
  std::string trace_parent_;
  MonotonicTime begun_ = {};
  CompletionTag* on_done_ = nullptr;
  bool accepted_ = false;
  bool done_ = false;
  bool cancelled_ = false;
  bool answered_ = false;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_INCOMING_CALL_H_

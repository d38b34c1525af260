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
#include "server/rpc/call_counts.h"
#include "server/rpc/completion_tag.h"
#include "server/rpc/connections.h"
#include "server/rpc/polling_thread.h"
#include "server/schedule/owner.h"

namespace warpline {

class IncomingCall;

// What answers a call: it takes the call over and sees to it that the call ends.
using CallHandler = std::function<void(std::unique_ptr<IncomingCall>)>;

// gRPC's context and stream of one call, and when the client is gone. It belongs to whoever answers the call,
// who deletes it when gRPC has returned the tags of all operations on the stream, and OnDone's too.
// Everything but the end of a stream runs while a tag of its thread's queue proceeds.
class IncomingCall {
 public:
  // What all calls of a server share. It outlives them.
  struct Server {
    grpc::AsyncGenericService& service;
    // The handlers by path ("/package.Service/Method").
    const absl::flat_hash_map<std::string, CallHandler>& methods;
    // The handler of paths that are not there.
    const CallHandler& unknown_method;
    CallCounts& counts;
    Connections& connections;
    // The first one is steady and accepts all calls; the others are on demand and get their share of them,
    // from the headers on, when there are many.
    const std::vector<std::unique_ptr<PollingThread>>& threads;
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
  // The same for all calls of a connection. Two connections that are open at one time have different ones.
  OwnerId connection() const { return connection_; }

  // `tag` proceeds when the call is over for gRPC: with false if it was cancelled, by the client, by its
  // deadline or by the loss of the connection, and with true if it came to its end. Once, by the handler.
  void OnDone(CompletionTag* tag) { on_done_ = tag; }
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
  OwnerId connection_ = 0;
  CompletionTag* on_done_ = nullptr;
  bool accepted_ = false;
  bool done_ = false;
  bool cancelled_ = false;
  bool answered_ = false;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_INCOMING_CALL_H_

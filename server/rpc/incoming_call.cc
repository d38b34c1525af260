#include "server/rpc/incoming_call.h"

#include <grpc/grpc_security.h>

#include <cstdint>

namespace warpline {
namespace {

// Answered calls are reported to their connection in batches of this size, for the thread as a whole: finding
// the connection takes some 200 ns. A connection with many calls gets its share, on average.
constexpr int kAnsweredBatch = 16;

// Each connection has a security context of its own, without credentials too. Nothing else of a call tells
// which connection it came by: its peer is "unknown" if it was reset before gRPC had passed its headers on.
const void* ConnectionOf(grpc::GenericServerContext& context) {
  grpc_auth_context* const identity = grpc_call_auth_context(context.c_call());
  grpc_auth_context_release(identity);
  return identity;
}

}  // namespace

void IncomingCall::Await(const Server& server, grpc::ServerCompletionQueue& queue) {
  new IncomingCall(server, queue);  // its handler owns it, or it deletes itself
}

IncomingCall::IncomingCall(const Server& server, grpc::ServerCompletionQueue& queue)
    : counted_(server.counts), server_(server), queue_(queue) {
  context_.AsyncNotifyWhenDone(&done_tag_);
  server_.service.RequestCall(&context_, &stream_, &queue_, &queue_, &accepted_tag_);
}

IncomingCall::~IncomingCall() {
  if (!accepted_) return;
  thread_local int answered = 0;
  if (answered_ && ++answered == kAnsweredBatch) {
    answered = 0;
    server_.connections.CountAnswered(ConnectionOf(context_), kAnsweredBatch);
  } else if (!answered_ && cancelled_) {
    server_.connections.CountReset(ConnectionOf(context_));
  }
}

void IncomingCall::AcceptedTag::Proceed(bool ok) {
  std::unique_ptr<IncomingCall> owned(&call);
  if (!ok) return;  // the server is shutting down; the done tag is not returned for a call that never was
  call.accepted_ = true;
  call.connection_ = static_cast<OwnerId>(reinterpret_cast<std::uintptr_t>(ConnectionOf(call.context_)));
  if (call.server_.connections.wants_peers()) {
    call.server_.connections.LearnPeer(ConnectionOf(call.context_), call.context_.peer());
  }
  Await(call.server_, call.queue_);
  const auto method = call.server_.methods.find(call.path());
  const CallHandler& handler =
      method != call.server_.methods.end() ? method->second : call.server_.unknown_method;
  handler(std::move(owned));
  // Whoever answers the call waits for this, so the call is still there.
  if (call.done_) call.on_done_->Proceed(!call.cancelled_);
}

void IncomingCall::DoneTag::Proceed(bool) {
  call.done_ = true;
  call.cancelled_ = call.context_.IsCancelled();
  // The relief may be faster with this tag than the polling thread is with the one before it.
  if (call.on_done_ != nullptr) call.on_done_->Proceed(!call.cancelled_);
}

}  // namespace warpline

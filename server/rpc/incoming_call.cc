#include "server/rpc/incoming_call.h"

#include <grpc/grpc_security.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

#include "absl/time/clock.h"
#include "server/rpc/code_name.h"

namespace warpline {
namespace {

// https://www.w3.org/TR/trace-context/: version, trace, parent and flags, in lower-case hexadecimal digits.
constexpr char kTraceParent[] = "traceparent";

bool IsTraceParent(std::string_view text) {
  constexpr std::string_view kForm = "xx-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx-xxxxxxxxxxxxxxxx-xx";
  return std::equal(text.begin(), text.end(), kForm.begin(), kForm.end(), [](char c, char form) {
    return form == '-' ? c == '-' : (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
  });
}

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

// With fewer calls in progress further threads gain nothing (docs/benchmarks/2026-11-22-h200-load.md).
constexpr int kMany = 16;

PollingThread& ThreadOfNextCall(const IncomingCall::Server& server) {
  if (server.threads.size() == 1 || server.counts.in_progress() < kMany) return *server.threads.front();
  thread_local std::size_t next = 0;
  return *server.threads[next++ % server.threads.size()];
}

}  // namespace

absl::Status CompressedUnidentified() {
  return absl::UnimplementedError("without credentials this method takes no compressed messages");
}

void IncomingCall::Await(const Server& server) {
  new IncomingCall(server, ThreadOfNextCall(server));  // its handler owns it, or it deletes itself
}

IncomingCall::IncomingCall(const Server& server, PollingThread& thread)
    : counted_(server.counts), server_(server), thread_(thread) {
  context_.AsyncNotifyWhenDone(&done_tag_);
  server_.service.RequestCall(&context_, &stream_, &thread.queue(), &server.threads.front()->queue(),
                              &accepted_tag_);
}

IncomingCall::~IncomingCall() {
  if (!accepted_) return;
  thread_.RemoveCall();
  thread_local int answered = 0;
  if (answered_ && ++answered == kAnsweredBatch) {
    answered = 0;
    server_.connections.CountAnswered(ConnectionOf(context_), kAnsweredBatch);
  } else if (!answered_ && cancelled_) {
    server_.connections.CountReset(ConnectionOf(context_));
  }
}

void IncomingCall::AcceptedTag::Proceed(bool ok) {
  if (!ok) {  // the server is shutting down; the done tag is not returned for a call that never was
    delete &call;
    return;
  }
  Await(call.server_);
  call.accepted_ = true;
  call.thread_.AddCall();
  if (&call.thread_ == call.server_.threads.front().get()) {
    call.Accept();
  } else {
    call.thread_.Post([&call = call] { call.Accept(); });
  }
}

absl::StatusOr<Caller> IncomingCall::FindCaller(bool open_to_all) {
  identified_ = server_.authentication == nullptr || !open_to_all;
  if (server_.authentication == nullptr || open_to_all) {
    return Caller{.share = static_cast<OwnerId>(reinterpret_cast<std::uintptr_t>(ConnectionOf(context_)))};
  }
  const absl::StatusOr<OwnerId> owner = server_.authentication->identify(context_);
  if (!owner.ok()) return owner.status();
  return Caller{.owner = *owner, .share = *owner};
}

void IncomingCall::EchoTraceParent() {
  const auto& metadata = context_.client_metadata();
  const auto found = metadata.find(kTraceParent);
  if (found == metadata.end()) return;
  const std::string_view value(found->second.data(), found->second.size());
  if (!IsTraceParent(value)) return;
  trace_parent_ = value;
  context_.AddTrailingMetadata(kTraceParent, trace_parent_);
}

void IncomingCall::LogEnd(const std::string& request_id, const End& end) {
  if (server_.log == nullptr) return;
  const bool named = identified_ && server_.log->name_of != nullptr;
  server_.log->lines.Add({.ended = absl::Now(),
                          .method = path().substr(path().starts_with('/') ? 1 : 0),
                          .code = std::string(CodeName(end.code)),
                          .reason = end.reason,
                          .owner = named ? server_.log->name_of(caller_.owner) : "",
                          .client = context_.peer(),
                          .request_id = request_id,
                          .trace_parent = trace_parent_,
                          .seconds = SecondsSince(begun_),
                          .request_bytes = end.request_bytes,
                          .response_bytes = end.response_bytes});
}

void IncomingCall::Accept() {
  begun_ = MonotonicClock::now();
  EchoTraceParent();
  if (server_.connections.wants_peers()) {
    server_.connections.LearnPeer(ConnectionOf(context_), context_.peer());
  }
  const auto method = server_.methods.find(path());
  const bool known = method != server_.methods.end();
  const absl::StatusOr<Caller> caller = FindCaller(known && method->second.open_to_all);
  std::unique_ptr<IncomingCall> self(this);
  if (!caller.ok()) {
    identified_ = false;
    server_.authentication->refuse(std::move(self), caller.status());
  } else {
    caller_ = *caller;
    (known ? method->second.handler : server_.unknown_method)(std::move(self));
  }
  // Whoever answers the call waits for this, so the call is still there.
  if (done_) on_done_->Proceed(!cancelled_);
}

void IncomingCall::DoneTag::Proceed(bool) {
  call.done_ = true;
  call.cancelled_ = call.context_.IsCancelled();
  // The relief may be faster with this tag than the polling thread is with the one before it.
  if (call.on_done_ != nullptr) call.on_done_->Proceed(!call.cancelled_);
}

}  // namespace warpline

#include "server/rpc/incoming_call.h"

#include <grpc/grpc_security.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/string_view.h"
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

// Connections that send the same name in this header belong to one client; see Claimant.
constexpr char kAffinity[] = "x-warpline-affinity";

// A thread reports answered calls in batches of this size, because taking the lock for each call would cost
// too much. A whole batch counts for the connection of its last call, so each connection gets its share on
// average.
constexpr int kAnsweredBatch = 16;

// Each connection has its own security context, even without credentials.
std::shared_ptr<Connection> ConnectionOf(grpc::GenericServerContext& context, Connections& connections) {
  grpc_auth_context* const auth_context = grpc_call_auth_context(context.c_call());
  bool keeps = false;
  std::shared_ptr<Connection> connection = connections.Find(auth_context, [&]() -> Connections::FirstCall {
    keeps = true;
    return {std::shared_ptr<const void>(auth_context,
                                        [](grpc_auth_context* kept) { grpc_auth_context_release(kept); }),
            context.peer()};
  });
  if (!keeps) grpc_auth_context_release(auth_context);
  return connection;
}

// With fewer busy calls more threads bring no gain (docs/benchmarks/2026-11-22-h200-load.md).
constexpr int kMany = 16;

PollingThread& ThreadOfNextCall(const IncomingCall::Server& server) {
  if (server.threads.size() == 1 || server.counts.busy() < kMany) return *server.threads.front();
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
  connection_->RemoveCall(MonotonicClock::now());
  thread_local int answered = 0;
  if (refused_ || (!answered_ && cancelled_)) {
    server_.connections.CountFutile(*connection_);
  } else if (answered_) {
    connection_->SetAnswered();
    if (++answered < kAnsweredBatch) return;
    answered = 0;
    server_.connections.CountAnswered(*connection_, kAnsweredBatch);
  }
}

void IncomingCall::AcceptedTag::Proceed(bool ok) {
  if (!ok) {  // the server is shutting down; an object that got no call does not get its done tag back
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
  const auto& metadata = context_.client_metadata();
  const auto affinity = metadata.find(kAffinity);
  const ClientId client = connection_->ClientOf(
      affinity == metadata.end()
          ? 0
          : absl::HashOf(absl::string_view(affinity->second.data(), affinity->second.size())));
  if (server_.authentication != nullptr && !open_to_all) {
    const absl::StatusOr<OwnerId> owner = server_.authentication->identify(context_);
    if (!owner.ok()) return owner.status();
    if (*owner != kAnonymous) return CallerWith(*owner, client);
  }
  const Claimant claimant{.share = ShareOf(connection_->peer()), .client = client};
  return Caller{.owner = kAnonymous, .claimant = claimant, .client = claimant};
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
                          .client = connection_->name(),
                          .request_id = request_id,
                          .trace_parent = trace_parent_,
                          .seconds = SecondsSince(begun_),
                          .request_bytes = end.request_bytes,
                          .response_bytes = end.response_bytes});
}

void IncomingCall::Accept() {
  begun_ = MonotonicClock::now();
  connection_ = ConnectionOf(context_, server_.connections);
  connection_->AddCall();
  if (connection_->has_ended()) return Drop();
  EchoTraceParent();
  const auto method = server_.methods.find(path());
  if (method != server_.methods.end()) served_ = &method->second;
  const absl::StatusOr<Caller> caller = FindCaller(served_ != nullptr && served_->open_to_all);
  if (!caller.ok()) {
    identified_ = false;
    refused_ = true;
    return HandOver([&](std::unique_ptr<IncomingCall> self) {
      server_.authentication->refuse(std::move(self), caller.status());
    });
  }
  caller_ = *caller;
  if (served_ == nullptr) return HandOver(server_.unknown_method);
  if (served_->reads_message == nullptr) return HandOver(served_->handler);
  Read();
}

void IncomingCall::HandOver(const CallHandler& handler) {
  handler(std::unique_ptr<IncomingCall>(this));
  // The code that answers the call waits for this, so the call still exists.
  if (done_) on_done_->Proceed(!cancelled_);
}

void IncomingCall::Read() {
  in_flight_.emplace(server_.metrics.requests_in_flight);
  served_->reads_message->started.Add();
  if (server_.counts.AddInProgress()) in_progress_.emplace(server_.counts);
  if (!in_time() && !served_->while_draining) return HandOver(served_->handler);
  server_.counts.AddBusy();
  thread_.uploads().Add(*this, *connection_, begun_);
  stream_.Read(&request_, &read_tag_);
}

absl::Status IncomingCall::TakeSlowPlace() {
  absl::StatusOr<FairBudget::Part> place = server_.slow_calls.Take(caller_.claimant);
  if (place.ok()) slow_place_ = *std::move(place);
  return place.status();
}

void IncomingCall::OnSlow() {
  slow_ = true;
  server_.counts.RemoveBusy();
  if (!TakeSlowPlace().ok()) GiveUp();
}

void IncomingCall::OnRead(bool ok) {
  thread_.uploads().Remove(*this);
  slow_place_.Return();
  if (!slow_) server_.counts.RemoveBusy();
  // The call may have been cancelled before AsyncNotifyWhenDone could report it here.
  if (done_ && cancelled_) {
    CountCancelled();
    delete this;
    return;
  }
  if (ok) message_ = std::move(request_);
  request_.Clear();
  HandOver(served_->handler);
}

void IncomingCall::CountCancelled() {
  served_->reads_message->handled_cancelled.Add();
  served_->reads_message->handling_seconds.Observe(SecondsSince(begun_));
  LogEnd(/*request_id=*/"", {.code = grpc::StatusCode::CANCELLED});
}

void IncomingCall::Drop() {
  dropped_ = true;
  if (done_) delete this;
}

void IncomingCall::DoneTag::Proceed(bool) {
  call.done_ = true;
  call.cancelled_ = call.context_.IsCancelled();
  if (call.dropped_) {
    delete &call;
    return;
  }
  // A Relief thread may handle this tag before the polling thread has finished the tag before it.
  if (call.on_done_ != nullptr) call.on_done_->Proceed(!call.cancelled_);
}

}  // namespace warpline

#include "client/src/raw_channel.h"

#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/src/grpc_error.h"
#include "client/src/interrupt.h"
#include "client/src/tls.h"

namespace warpline::client {
namespace {

using ResponseReader = grpc::ClientAsyncResponseReader<grpc::ByteBuffer>;
using std::chrono::system_clock;

// The key of the server's initial metadata whose value is an Uploads message.
constexpr char kUploadsKey[] = "x-warpline-uploads-bin";

constexpr int kStalledConnectionMs = 30'000;
// gRPC servers close connections of clients that ping more often than every five minutes.
constexpr int kKeepaliveMs = 6 * 60'000;

bool IsLoopback(const std::string& target) {
  for (const char* prefix : {"127.", "localhost:", "[::1]:", "unix:"}) {
    if (absl::StartsWith(target, prefix)) return true;
  }
  return false;
}

std::shared_ptr<grpc::Channel> Connect(const std::string& target, const ChannelOptions& options,
                                       absl::Duration idle,
                                       const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  // gRPC's defaults, one second to two minutes, are longer than a server needs to restart.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  // A TCP connection ends when the peer's host has accepted no data for this long (gRPC sets TCP_USER_TIMEOUT
  // to the keepalive timeout). Until then, a call that has ended must wait while gRPC still sends its arrays.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kStalledConnectionMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  // gRPC obeys $http_proxy for every TCP target; no proxy can reach our own loopback.
  if (IsLoopback(target)) arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  if (idle < absl::InfiniteDuration()) {
    arguments.SetInt(GRPC_ARG_CLIENT_IDLE_TIMEOUT_MS, static_cast<int>(absl::ToInt64Milliseconds(idle)));
  }
  if (options.own_connection) {
    // Channels with equal arguments would share a connection through a process-wide pool.
    static std::atomic<int> serial = 0;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt("warpline.channel_serial", serial.fetch_add(1, std::memory_order_relaxed));
  }
  // Without credentials gRPC makes a channel whose calls all fail.
  return grpc::CreateCustomChannel(target, credentials, arguments);
}

// Returns why no call is possible.
absl::Status CheckToken(const std::string& token) {
  // gRPC aborts the process for a header that it cannot send.
  if (std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c <= '~'; })) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError("token: has characters that are not printable ASCII, or spaces");
}

// Context, response and status of one call, in the order that destruction requires.
struct CallState {
  explicit CallState(std::unique_ptr<grpc::ClientContext> context) : context(std::move(context)) {}

  absl::StatusOr<grpc::ByteBuffer> TakeOutcome() {
    if (status.ok()) return std::move(response);
    return ToAbslStatus(status, *context);
  }

  std::unique_ptr<grpc::ClientContext> context;
  grpc::ByteBuffer response;
  grpc::Status status;
  std::unique_ptr<ResponseReader> reader;
};

// Cancels a call if a stop is requested during the lifetime of the callback.
struct Cancel {
  grpc::ClientContext* context;
  void operator()() const { context->TryCancel(); }
};
using CancelOn = std::stop_callback<Cancel>;

absl::Status Closed() { return absl::CancelledError("the client is closed"); }

bool HoldsBorrowed(const std::shared_ptr<SendTracker>& tracker) {
  return tracker != nullptr && tracker->borrowed() > 0;
}

}  // namespace

std::unique_ptr<grpc::ClientContext> RawChannel::NewContext(absl::Time deadline,
                                                            const std::string& request_id) const {
  auto context = std::make_unique<grpc::ClientContext>();
  context->set_deadline(absl::ToChronoTime(deadline));
  if (!request_id.empty()) context->AddMetadata(kRequestIdKey, request_id);
  if (!authorization_.empty()) context->AddMetadata("authorization", authorization_);
  if (bound_ && !affinity_.empty()) context->AddMetadata("x-warpline-affinity", affinity_);
  return context;
}

struct RawChannel::AsyncCall {
  AsyncCall(std::unique_ptr<grpc::ClientContext> context, std::shared_ptr<SendTracker> tracker, Done done,
            const std::stop_token& closed, const std::stop_token& stop)
      : state(std::move(context)),
        tracker(std::move(tracker)),
        done(std::move(done)),
        on_close(closed, Cancel{state.context.get()}),
        on_stop(stop, Cancel{state.context.get()}) {}

  CallState state;
  std::shared_ptr<SendTracker> tracker;
  Done done;
  // gRPC already orders start and end. This flag is for the thread sanitizer, which does not see into gRPC.
  std::atomic<bool> started = false;
  CancelOn on_close, on_stop;
};

// A finished call whose memory gRPC may still use.
struct RawChannel::FinishedCall {
  absl::StatusOr<grpc::ByteBuffer> outcome;
  std::shared_ptr<SendTracker> tracker;
  Done done;
};

RawChannel::RawChannel(const std::string& target, const ChannelOptions& options, std::stop_token closed,
                       std::string affinity)
    : RawChannel(target, options, CredentialsFor(target, options.tls), std::move(closed),
                 absl::InfiniteDuration(), std::move(affinity)) {}

RawChannel::RawChannel(const std::string& target, const ChannelOptions& options, MaybeCredentials credentials,
                       std::stop_token closed, absl::Duration idle, std::string affinity)
    : authorization_(options.token.empty() ? "" : absl::StrCat("Bearer ", options.token)),
      affinity_(std::move(affinity)),
      closed_(std::move(closed)),
      credentials_(std::move(credentials)),
      broken_(credentials_.ok() ? CheckToken(options.token) : credentials_.status()),
      channel_(Connect(target, options, idle, credentials_.ok() ? *credentials_ : nullptr)),
      stub_(channel_) {}

RawChannel::~RawChannel() {
  queue_.Shutdown();
  if (thread_.joinable()) {
    thread_.join();
    return;
  }
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) {
  }
}

void RawChannel::Pause(absl::Duration delay) const {
  const absl::Time end = absl::Now() + delay;
  // A thread that waits for the connection also drives gRPC's connection attempts. Without such a thread,
  // gRPC handles them only every 5 seconds.
  while (absl::Now() < end && !closed_.stop_requested() && !Interrupted()) {
    const absl::Time step = std::min(end, absl::Now() + absl::FromChrono(kInterruptPeriod));
    if (broken_.ok()) channel_->WaitForConnected(absl::ToChronoTime(step));
    absl::SleepFor(step - absl::Now());
  }
}

// The caller's thread polls its own queue. This saves a small request the hand-over from another thread.
absl::StatusOr<grpc::ByteBuffer> RawChannel::Call(const std::string& method, OutgoingMessage message,
                                                  absl::Time deadline, const std::string& request_id,
                                                  const Transmit& transmit) {
  if (!broken_.ok()) return broken_;
  if (closed_.stop_requested()) return Closed();
  grpc::CompletionQueue queue;
  std::optional<CallState> state(std::in_place, NewContext(deadline, request_id));
  std::optional<CancelOn> on_close(std::in_place, closed_, Cancel{state->context.get()});
  const std::shared_ptr<SendTracker> tracker = message.tracker;
  state->reader = stub_.PrepareUnaryCall(state->context.get(), method, message.buffer, &queue);
  message.buffer.Clear();  // only gRPC's own references remain
  state->reader->StartCall();
  void* tag = nullptr;
  bool ok = false;
  std::optional<std::string> uploads;
  if (transmit != nullptr) {
    state->reader->ReadInitialMetadata(&*state);
    AwaitEvent(queue, *state->context, &tag, &ok);
    const auto& metadata = state->context->GetServerInitialMetadata();
    const auto found = metadata.find(kUploadsKey);
    if (found != metadata.end()) uploads.emplace(found->second.data(), found->second.size());
  }
  state->reader->Finish(&state->response, &state->status, &*state);
  absl::Status cancelled;
  if (uploads.has_value()) {
    cancelled = SendUploads(transmit, *uploads, *state->context, [&] { queue.Next(&tag, &ok); });
  } else {
    AwaitEvent(queue, *state->context, &tag, &ok);  // the queue's only event
  }
  absl::StatusOr<grpc::ByteBuffer> outcome = state->TakeOutcome();
  if (!outcome.ok() && !cancelled.ok()) outcome = cancelled;
  on_close.reset();
  state.reset();  // for a cancelled call, this releases the message
  // Keep polling, because the remaining bytes may be waiting for a socket.
  while (HoldsBorrowed(tracker)) queue.AsyncNext(&tag, &ok, system_clock::now() + kReleasePeriod);
  queue.Shutdown();
  while (queue.Next(&tag, &ok)) {
  }
  return outcome;
}

absl::Status RawChannel::SendUploads(const Transmit& transmit, const std::string& uploads,
                                     grpc::ClientContext& context, const std::function<void()>& awaited) {
  std::stop_source ended;
  std::promise<void> answered;
  std::future<void> answer = answered.get_future();
  std::thread watcher;
  try {
    watcher = std::thread([&] {
      awaited();
      ended.request_stop();
      answered.set_value();
    });
  } catch (const std::system_error&) {
    context.TryCancel();
    awaited();
    return absl::ResourceExhaustedError("there is no thread for this call");
  }
  const absl::Status sent = transmit(uploads, ended.get_token());
  const bool cancels = !sent.ok() && !absl::IsNotFound(sent) && !ended.stop_requested();
  if (cancels) context.TryCancel();
  while (answer.wait_for(kInterruptPeriod) != std::future_status::ready) {
    if (Interrupted()) context.TryCancel();
  }
  watcher.join();
  return cancels ? sent : absl::OkStatus();
}

void RawChannel::CallAsync(const std::string& method, OutgoingMessage message, absl::Time deadline,
                           const std::string& request_id, Done done, const std::stop_token& stop) {
  if (!broken_.ok()) return done(broken_);
  if (closed_.stop_requested()) return done(Closed());
  std::call_once(thread_once_, [this] { thread_ = std::thread(&RawChannel::Poll, this); });
  auto call = std::make_unique<AsyncCall>(NewContext(deadline, request_id), std::move(message.tracker),
                                          std::move(done), closed_, stop);
  call->state.reader = stub_.PrepareUnaryCall(call->state.context.get(), method, message.buffer, &queue_);
  message.buffer.Clear();
  call->state.reader->StartCall();
  // Poll() may own and delete the call before Finish() returns.
  AsyncCall* tag = call.release();
  tag->started.store(true, std::memory_order_release);
  tag->state.reader->Finish(&tag->state.response, &tag->state.status, tag);
}

void RawChannel::Poll() {
  std::vector<FinishedCall> unreleased;  // finished, but gRPC still holds their memory
  while (true) {
    void* tag = nullptr;
    bool ok = false;
    grpc::CompletionQueue::NextStatus next = grpc::CompletionQueue::GOT_EVENT;
    if (unreleased.empty()) {
      if (!queue_.Next(&tag, &ok)) return;
    } else {
      next = queue_.AsyncNext(&tag, &ok, system_clock::now() + kReleasePeriod);
      // A queue that is shut down does not wait.
      if (next == grpc::CompletionQueue::SHUTDOWN) std::this_thread::sleep_for(kReleasePeriod);
    }
    if (next == grpc::CompletionQueue::GOT_EVENT) {
      const std::unique_ptr<AsyncCall> call(static_cast<AsyncCall*>(tag));
      (void)call->started.load(std::memory_order_acquire);
      unreleased.push_back({call->state.TakeOutcome(), std::move(call->tracker), std::move(call->done)});
    }  // for a cancelled call, destroying it releases the message
    for (std::size_t i = 0; i < unreleased.size();) {
      if (HoldsBorrowed(unreleased[i].tracker)) {
        ++i;
        continue;
      }
      FinishedCall call = std::move(unreleased[i]);
      unreleased.erase(unreleased.begin() + static_cast<std::ptrdiff_t>(i));
      call.done(std::move(call.outcome));
    }
  }
}

}  // namespace warpline::client

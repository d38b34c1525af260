#include "client/raw_channel.h"

#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

#include <atomic>
#include <chrono>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "client/error.h"

namespace warpline::client {
namespace {

using ResponseReader = grpc::ClientAsyncResponseReader<grpc::ByteBuffer>;
using std::chrono::milliseconds;
using std::chrono::system_clock;

constexpr char kRequestIdKey[] = "x-request-id";
constexpr milliseconds kProgressPeriod(100);
// How often to look whether gRPC has let go of borrowed memory. Nearly always it has when a call ends; only
// a cancelled call may have bytes on their way into a socket.
constexpr milliseconds kReleasePeriod(1);

bool IsLoopback(const std::string& target) {
  for (const char* prefix : {"127.", "localhost:", "[::1]:", "unix:"}) {
    if (absl::StartsWith(target, prefix)) return true;
  }
  return false;
}

std::shared_ptr<grpc::Channel> Connect(const std::string& target, const ChannelOptions& options) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  // gRPC obeys $http_proxy for every TCP target; no proxy can reach our own loopback.
  if (IsLoopback(target)) arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  if (options.own_connection) {
    // Channels with equal arguments share a connection, through a pool of the process's.
    static std::atomic<int> serial = 0;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt("warpline.channel_serial", serial.fetch_add(1, std::memory_order_relaxed));
  }
  return grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments);
}

// Context, response and status of one call, in the order that destruction needs.
struct CallState {
  CallState(absl::Time deadline, const std::string& request_id) {
    context.set_deadline(absl::ToChronoTime(deadline));
    if (!request_id.empty()) context.AddMetadata(kRequestIdKey, request_id);
  }

  absl::StatusOr<grpc::ByteBuffer> TakeOutcome() {
    if (status.ok()) return std::move(response);
    return ToAbslStatus(status, RequestId());
  }

  grpc::ClientContext context;
  grpc::ByteBuffer response;
  grpc::Status status;
  std::unique_ptr<ResponseReader> reader;

 private:
  // In the trailers of an error; a "trailers only" response has them as initial metadata in some servers.
  std::string RequestId() const {
    const auto& trailers = context.GetServerTrailingMetadata();
    const auto entry = trailers.find(kRequestIdKey);
    return entry == trailers.end() ? "" : std::string(entry->second.data(), entry->second.size());
  }
};

bool HoldsBorrowed(const std::shared_ptr<SendTracker>& tracker) {
  return tracker != nullptr && tracker->borrowed() > 0;
}

void Report(const ProgressHook& hook, const SendTracker* tracker, bool headers, absl::Time start) {
  Progress progress{.elapsed = absl::Now() - start};
  const std::size_t total = tracker == nullptr ? 0 : tracker->total();
  const std::size_t sent = tracker == nullptr ? 0 : tracker->released();
  if (headers) {
    progress.phase = Phase::kReceiving;
  } else if (sent < total) {
    progress.bytes = sent;
    progress.total = total;
  } else {
    progress.phase = Phase::kWaiting;
  }
  hook(progress);
}

}  // namespace

struct RawChannel::AsyncCall {
  CallState state;
  std::shared_ptr<SendTracker> tracker;
  Done done;
};

RawChannel::RawChannel(const std::string& target, const ChannelOptions& options)
    : channel_(Connect(target, options)), stub_(channel_) {}

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

// The caller's thread polls a queue of its own: a hand-over from another thread would cost a small request
// 10 to 20 us.
absl::StatusOr<grpc::ByteBuffer> RawChannel::Call(const std::string& method, OutgoingMessage message,
                                                  absl::Time deadline, const std::string& request_id,
                                                  const ProgressHook& progress) {
  const absl::Time start = absl::Now();
  grpc::CompletionQueue queue;
  CallState state(deadline, request_id);
  const std::shared_ptr<SendTracker> tracker = message.tracker;
  state.reader = stub_.PrepareUnaryCall(&state.context, method, message.buffer, &queue);
  message.buffer.Clear();  // so that pieces are released as they go out
  state.reader->StartCall();
  char headers_tag = 0, finish_tag = 0;  // only their addresses matter
  // Asking for the headers apart from the rest costs a batch, and is only good for telling the phase.
  if (progress) state.reader->ReadInitialMetadata(&headers_tag);
  state.reader->Finish(&state.response, &state.status, &finish_tag);

  bool headers = false, finished = false;
  while (!finished || HoldsBorrowed(tracker)) {
    system_clock::time_point wake = system_clock::time_point::max();
    if (progress) wake = system_clock::now() + kProgressPeriod;
    if (finished) wake = system_clock::now() + kReleasePeriod;
    void* tag = nullptr;
    bool ok = false;
    if (queue.AsyncNext(&tag, &ok, wake) == grpc::CompletionQueue::GOT_EVENT) {
      finished = finished || tag == &finish_tag;
      headers = headers || (tag == &headers_tag && ok);
    } else if (!finished) {
      Report(progress, tracker.get(), headers, start);
    }
  }
  queue.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue.Next(&tag, &ok)) {
  }
  if (progress && state.status.ok()) {
    const std::size_t bytes = state.response.Length();
    progress({Phase::kCopying, bytes, bytes, absl::Now() - start});
  }
  return state.TakeOutcome();
}

void RawChannel::CallAsync(const std::string& method, OutgoingMessage message, absl::Time deadline,
                           const std::string& request_id, Done done) {
  std::call_once(thread_once_, [this] { thread_ = std::thread(&RawChannel::Poll, this); });
  std::unique_ptr<AsyncCall> call(
      new AsyncCall{{deadline, request_id}, std::move(message.tracker), std::move(done)});
  CallState& state = call->state;
  state.reader = stub_.PrepareUnaryCall(&state.context, method, message.buffer, &queue_);
  message.buffer.Clear();
  state.reader->StartCall();
  // Poll() may own and delete the call before Finish() returns.
  AsyncCall* tag = call.release();
  tag->state.reader->Finish(&tag->state.response, &tag->state.status, tag);
}

void RawChannel::Poll() {
  std::vector<std::unique_ptr<AsyncCall>> unreleased;  // over, but gRPC still holds their memory
  while (true) {
    void* tag = nullptr;
    bool ok = false;
    grpc::CompletionQueue::NextStatus next = grpc::CompletionQueue::GOT_EVENT;
    if (unreleased.empty()) {
      if (!queue_.Next(&tag, &ok)) next = grpc::CompletionQueue::SHUTDOWN;
    } else {
      next = queue_.AsyncNext(&tag, &ok, system_clock::now() + kReleasePeriod);
    }
    if (next == grpc::CompletionQueue::SHUTDOWN) {
      if (unreleased.empty()) return;
      std::this_thread::sleep_for(kReleasePeriod);  // a queue that is shut down does not wait
    }
    if (tag != nullptr) unreleased.emplace_back(static_cast<AsyncCall*>(tag));
    for (std::size_t i = 0; i < unreleased.size();) {
      if (HoldsBorrowed(unreleased[i]->tracker)) {
        ++i;
        continue;
      }
      std::unique_ptr<AsyncCall> call = std::move(unreleased[i]);
      unreleased.erase(unreleased.begin() + static_cast<std::ptrdiff_t>(i));
      absl::StatusOr<grpc::ByteBuffer> outcome = call->state.TakeOutcome();
      Done done = std::move(call->done);
      call.reset();
      done(std::move(outcome));
    }
  }
}

}  // namespace warpline::client

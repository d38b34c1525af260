#include "server/rpc/inflater.h"

#include <grpcpp/alarm.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>

#include "server/rpc/completion_tag.h"
#include "server/rpc/inflate.h"

namespace warpline {
namespace {

// Deflate expands one byte to at most 1032 bytes (a match of 258 bytes takes two bits).
constexpr std::size_t kMaxPerByte = 1032;

// One message from Start to `done`. Deletes itself.
class Inflation final : public CompletionTag {
 public:
  Inflation(MessageSlices compressed, std::size_t limit, Ticket ticket, Inflater::Done done)
      : compressed_(std::move(compressed)),
        limit_(limit),
        ticket_(std::move(ticket)),
        done_(std::move(done)) {}

  void RunOnWorker(grpc::CompletionQueue& queue) {
    absl::StatusOr<std::vector<grpc::Slice>> slices = Inflate(compressed_.slices(), limit_);
    compressed_.Clear();
    if (slices.ok()) {
      result_ = Inflater::Inflated{.slices = MessageSlices(*std::move(slices)), .ticket = std::move(ticket_)};
    } else {
      ticket_.Return();
      result_ = slices.status();
    }
    handed_over_.store(true, std::memory_order_release);  // the last access here, except for the alarm
    // The time has already passed, so the queue returns the tag at once.
    alarm_.Set(&queue, std::chrono::system_clock::now(), static_cast<CompletionTag*>(this));
  }

  void Proceed(bool) override {
    static_cast<void>(handed_over_.load(std::memory_order_acquire));
    const std::unique_ptr<Inflation> owned(this);
    done_(std::move(result_));
  }

 private:
  MessageSlices compressed_;
  const std::size_t limit_;
  Ticket ticket_;
  Inflater::Done done_;
  absl::StatusOr<Inflater::Inflated> result_;
  grpc::Alarm alarm_;
  // gRPC orders the worker before the queue in a way that sanitizers cannot see. They can see this.
  std::atomic<bool> handed_over_ = false;
};

}  // namespace

absl::Status Inflater::Start(MessageSlices compressed, std::size_t limit, const Caller& caller,
                             grpc::CompletionQueue& queue, Done done) {
  limit = std::min(limit, static_cast<std::size_t>(admission_.MostBytesOf(caller.owner)));
  std::size_t bytes = 0;
  for (const grpc::Slice& slice : compressed) bytes += slice.size();
  const std::size_t most = bytes < limit / kMaxPerByte ? bytes * kMaxPerByte : limit;
  absl::StatusOr<Ticket> ticket = admission_.Admit(static_cast<std::int64_t>(most), caller);
  if (!ticket.ok()) return ticket.status();
  auto* inflation = new Inflation(std::move(compressed), limit, *std::move(ticket), std::move(done));
  workers_.Post(caller.claimant, [inflation, &queue] { inflation->RunOnWorker(queue); });
  return absl::OkStatus();
}

}  // namespace warpline

#include "client/src/interrupt.h"

#include <utility>

namespace warpline::client {
namespace {

thread_local std::function<bool()> interrupt;
thread_local bool interrupted = false;

}  // namespace

void SetInterrupt(std::function<bool()> given) { interrupt = std::move(given); }

void BeginInterruptible() { interrupted = false; }

bool WasInterrupted() { return interrupted; }

bool Interrupted() {
  if (!interrupted && interrupt != nullptr) interrupted = interrupt();
  return interrupted;
}

bool AwaitEvent(grpc::CompletionQueue& queue, grpc::ClientContext& call, void** tag, bool* ok) {
  if (interrupt == nullptr) return queue.Next(tag, ok);
  while (true) {
    const auto until = std::chrono::system_clock::now() + kInterruptPeriod;
    const grpc::CompletionQueue::NextStatus next = queue.AsyncNext(tag, ok, until);
    if (next != grpc::CompletionQueue::TIMEOUT) return next == grpc::CompletionQueue::GOT_EVENT;
    if (Interrupted()) call.TryCancel();
  }
}

}  // namespace warpline::client

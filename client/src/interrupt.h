// Ends the waiting of one thread early, as Ctrl-C does where another language has the signals.
#ifndef WARPLINE_CLIENT_SRC_INTERRUPT_H_
#define WARPLINE_CLIENT_SRC_INTERRUPT_H_

#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>

#include <chrono>
#include <functional>

namespace warpline::client {

// The time between two questions of a thread that waits.
inline constexpr std::chrono::milliseconds kInterruptPeriod(50);

// Sets what calls of this thread ask while they wait. If it returns true, the call is cancelled and is not
// made again. Null: nothing is asked.
void SetInterrupt(std::function<bool()> interrupt);
// Forgets that a call was interrupted: another one begins on this thread.
void BeginInterruptible();
// True if this call was interrupted. Asks if it was not.
bool Interrupted();
// The same without asking.
bool WasInterrupted();

// Waits for an event of the queue, and cancels the call when it is interrupted. False after the last event.
bool AwaitEvent(grpc::CompletionQueue& queue, grpc::ClientContext& call, void** tag, bool* ok);

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_INTERRUPT_H_

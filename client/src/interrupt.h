// Ends the wait of one thread early. Needed for Ctrl-C when another language (such as Python) handles the
// signals.
#ifndef WARPLINE_CLIENT_SRC_INTERRUPT_H_
#define WARPLINE_CLIENT_SRC_INTERRUPT_H_

#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>

#include <chrono>
#include <functional>

namespace warpline::client {

// How often a waiting thread checks for an interrupt.
inline constexpr std::chrono::milliseconds kInterruptPeriod(50);

// Sets the function that calls on this thread check while they wait. If it returns true, the call is
// cancelled and not retried. Null: nothing is checked.
void SetInterrupt(std::function<bool()> interrupt);
// Forgets that a call was interrupted, because another call begins on this thread.
void BeginInterruptible();
// Returns true if this call was interrupted. Checks again if it was not.
bool Interrupted();
// Same, but without a new check.
bool WasInterrupted();

// Waits for an event of the queue, and cancels the call when it is interrupted. False after the last event.
bool AwaitEvent(grpc::CompletionQueue& queue, grpc::ClientContext& call, void** tag, bool* ok);

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_INTERRUPT_H_

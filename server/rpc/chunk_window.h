// The part of a transfer that is in progress: a number of chunks of staging memory. Each chunk is used again
// when its bytes have been passed on.
#ifndef WARPLINE_SERVER_RPC_CHUNK_WINDOW_H_
#define WARPLINE_SERVER_RPC_CHUNK_WINDOW_H_

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"
#include "server/base/errors.h"
#include "server/memory/staging_pool.h"
#include "server/schedule/admission.h"
#include "server/schedule/fair_budget.h"
#include "server/store/streamed_call.h"

namespace warpline {

// A stream holds its window from its first message to its end. So it never waits for chunks of others, and
// never holds more than these, even if its client is slow.
class ChunkWindow {
 public:
  // The fastest size for messages (docs/benchmarks); the bus reaches its full speed too.
  static constexpr std::size_t kChunkBytes = std::size_t{1} << 20;
  static constexpr std::size_t kChunks = 4;

  ChunkWindow() = default;
  ChunkWindow(ChunkWindow&& other) noexcept { *this = std::move(other); }
  ChunkWindow& operator=(ChunkWindow&& other) noexcept {
    Release();
    slot_ = std::move(other.slot_);
    ticket_ = std::move(other.ticket_);
    part_ = std::move(other.part_);
    call_ = std::move(other.call_);
    size_ = std::exchange(other.size_, 0);
    return *this;
  }
  ~ChunkWindow() { Release(); }

  // Opens a window for a transfer of `bytes`. It has no staging memory if the tensor lies in host memory. A
  // transfer of a streamed call uses one of that call's windows, which are already paid for. `call` is null
  // for other transfers. RESOURCE_EXHAUSTED with a delay if there is no room.
  static absl::StatusOr<ChunkWindow> Open(std::size_t bytes, bool on_host, const Caller& caller,
                                          std::shared_ptr<StreamedCall> call, FairBudget& budget,
                                          Admission& admission, StagingPool& pool) {
    ChunkWindow window;
    const std::size_t most = call != nullptr ? StreamedCall::kChunksOfWindow : kChunks;
    const std::size_t chunks = std::clamp<std::size_t>((bytes + kChunkBytes - 1) / kChunkBytes, 1, most);
    const std::size_t held = chunks == 1 ? bytes : chunks * kChunkBytes;
    if (call != nullptr) {
      RETURN_IF_ERROR(call->TakeWindow());
      window.call_ = std::move(call);
    } else {
      ASSIGN_OR_RETURN(window.part_, budget.Take(caller.claimant, static_cast<std::int64_t>(held)));
      ASSIGN_OR_RETURN(window.ticket_, admission.Admit(static_cast<std::int64_t>(held), caller));
      // The client decides how long they are held.
      window.ticket_.MarkUnread();
    }
    window.size_ = chunks;
    if (on_host) return window;
    auto slots = pool.TryAcquire(held, 0);
    if (!slots.has_value()) {
      return WithRetryAfter(absl::ResourceExhaustedError(absl::StrCat("the server is full: there are no ",
                                                                      held, " bytes of staging memory")),
                            absl::Milliseconds(50));
    }
    window.slot_ = std::move(slots->input);
    window.slot_.MarkHeld();
    return window;
  }

  std::size_t size() const { return size_; }
  // Returns the first `bytes` of chunk `index`. Only for windows with staging memory.
  std::span<std::byte> chunk(std::size_t index, std::size_t bytes) const {
    return slot_.bytes().subspan(index * kChunkBytes, bytes);
  }

 private:
  // The slot is released first: code that waits for all tickets may then destroy the pool.
  void Release() {
    slot_.Release();
    ticket_.Return();
    part_.Return();
    if (call_ != nullptr) call_->ReturnWindow();
    call_.reset();
    size_ = 0;
  }

  Ticket ticket_;
  StagingSlot slot_;
  FairBudget::Part part_;
  std::shared_ptr<StreamedCall> call_;
  std::size_t size_ = 0;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_CHUNK_WINDOW_H_

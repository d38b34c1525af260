#include "server/observe/crash_report.h"

#include <execinfo.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstddef>

#include "absl/debugging/failure_signal_handler.h"
#include "absl/debugging/stacktrace.h"
#include "absl/debugging/symbolize.h"

namespace warpline {
namespace {

constexpr std::size_t kMaxId = 64;

struct Place {
  std::atomic<bool> taken = false;
  std::atomic<std::size_t> size = 0;  // 0 until the id is complete
  std::array<char, kMaxId> id{};
};
std::array<Place, RunningRequest::kRunningRequests> places;
std::atomic<unsigned> next_place = 0;
std::atomic<int> unnamed = 0;  // requests that found no place

// A line that is built without allocating, and written by one call.
class Line {
 public:
  Line& Add(std::string_view text) {
    const std::size_t size = std::min(text.size(), text_.size() - size_);
    std::copy_n(text.begin(), size, text_.begin() + size_);
    size_ += size;
    return *this;
  }
  Line& Add(int number) {
    std::array<char, 12> digits{};
    std::size_t first = digits.size();
    do {
      digits[--first] = static_cast<char>('0' + number % 10);
      number /= 10;
    } while (number > 0);
    return Add({digits.data() + first, digits.size() - first});
  }
  void Write(int descriptor) {
    // An error here cannot be handled.
    [[maybe_unused]] const ssize_t written = write(descriptor, text_.data(), size_);
  }

 private:
  std::array<char, 256> text_{};
  std::size_t size_ = 0;
};

// Abseil calls this with each piece of its report, and with null after the last one.
void WriteRequestsBehindTheStack(const char* text) {
  if (text == nullptr) RunningRequest::WriteAll(STDERR_FILENO);
}

// Returns the address at which the signal interrupted the program.
void* ProgramCounter(const void* context) {
  const mcontext_t& machine = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  return reinterpret_cast<void*>(machine.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return reinterpret_cast<void*>(machine.pc);
#endif
}

// Abseil's own unwinder follows frame pointers, which neither our code nor the C library has: for a failed
// assertion it shows nothing. This one reads the tables for exceptions. The parameters are those of
// absl::SetStackUnwinder.
int UnwindByTables(void** pcs, int* sizes, int max_depth, int skip_count, const void* context,
                   int* min_dropped_frames) {
  std::array<void*, 128> frames{};
  const auto end = frames.begin() + backtrace(frames.data(), static_cast<int>(frames.size()));
  auto first = std::min(end, frames.begin() + 1 + skip_count);
  // The frames before it belong to the signal handler.
  if (context != nullptr) {
    if (const auto found = std::find(first, end, ProgramCounter(context)); found != end) first = found;
  }
  const auto depth = std::min<std::ptrdiff_t>(max_depth, end - first);
  std::copy_n(first, depth, pcs);
  if (sizes != nullptr) std::fill_n(sizes, depth, 0);
  if (min_dropped_frames != nullptr) *min_dropped_frames = static_cast<int>(end - first - depth);
  return static_cast<int>(depth);
}

}  // namespace

void ReportCrashes([[maybe_unused]] const char* program) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  absl::InitializeSymbolizer(program);
  std::array<void*, 1> frame{};
  backtrace(frame.data(), static_cast<int>(frame.size()));  // loads its library: a handler must not
  absl::SetStackUnwinder(UnwindByTables);
  absl::FailureSignalHandlerOptions options;
  options.writerfn = WriteRequestsBehindTheStack;
  options.alarm_on_failure_secs = 30;  // finding symbols in a large binary takes long on a busy machine
  absl::InstallFailureSignalHandler(options);
  std::signal(SIGTERM, SIG_DFL);  // Abseil would handle it as a failure
#endif
}

RunningRequest::RunningRequest(std::string_view id) {
  constexpr unsigned kTries = 16;  // a few tries are enough while most places are free
  for (unsigned i = 0; i < kTries; ++i) {
    const unsigned number = next_place.fetch_add(1, std::memory_order_relaxed) % places.size();
    Place& place = places[number];
    if (place.taken.exchange(true, std::memory_order_acquire)) continue;
    const std::size_t size = std::min(id.size(), kMaxId);
    std::copy_n(id.begin(), size, place.id.begin());
    place.size.store(size, std::memory_order_release);
    place_ = static_cast<int>(number);
    return;
  }
  unnamed.fetch_add(1, std::memory_order_relaxed);
  place_ = kUnnamed;
}

void RunningRequest::End() {
  const int place = std::exchange(place_, kNone);
  if (place == kUnnamed) unnamed.fetch_sub(1, std::memory_order_relaxed);
  if (place < 0) return;
  places[static_cast<std::size_t>(place)].size.store(0, std::memory_order_relaxed);
  places[static_cast<std::size_t>(place)].taken.store(false, std::memory_order_release);
}

void RunningRequest::WriteAll(int descriptor) {
  for (const Place& place : places) {
    const std::size_t size = place.size.load(std::memory_order_acquire);
    if (size == 0) continue;
    Line()
        .Add("level=error msg=\"running when the process died\" request_id=")
        .Add({place.id.data(), size})
        .Add("\n")
        .Write(descriptor);
  }
  const int more = unnamed.load(std::memory_order_relaxed);
  if (more == 0) return;
  Line()
      .Add("level=error msg=\"more requests were running when the process died\" count=")
      .Add(more)
      .Add("\n")
      .Write(descriptor);
}

}  // namespace warpline

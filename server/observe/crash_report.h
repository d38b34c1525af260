// Logs what the process was doing when it dies of SIGSEGV, SIGABRT or a similar signal.
#ifndef WARPLINE_SERVER_OBSERVE_CRASH_REPORT_H_
#define WARPLINE_SERVER_OBSERVE_CRASH_REPORT_H_

#include <atomic>
#include <string_view>
#include <utility>

namespace warpline {

// After this, a crash writes to stderr: the signal, the stack of the thread that received it, and a line for
// each RunningRequest. Call once, in main, before other threads start. Has no effect in builds with a
// sanitizer, which has its own report.
void ReportCrashes(const char* program);

// A request that the process is working on, from construction to End. The signal handler cannot reach objects
// of the program, so the ids are in static memory: at most kRunningRequests ids, and a count of further
// requests. Lock-free.
class RunningRequest {
 public:
  static constexpr int kRunningRequests = 1024;

  RunningRequest() = default;
  // Keeps up to 64 characters of the id.
  explicit RunningRequest(std::string_view id);
  RunningRequest(RunningRequest&& other) noexcept : place_(std::exchange(other.place_, kNone)) {}
  RunningRequest& operator=(RunningRequest&& other) noexcept {
    if (this != &other) {
      End();
      place_ = std::exchange(other.place_, kNone);
    }
    return *this;
  }
  ~RunningRequest() { End(); }
  void End();

  // Writes a line for each running request to the descriptor. Async-signal-safe.
  static void WriteAll(int descriptor);

 private:
  static constexpr int kNone = -1, kUnnamed = -2;
  int place_ = kNone;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_OBSERVE_CRASH_REPORT_H_

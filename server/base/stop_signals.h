// SIGTERM and SIGINT, which ask the process to stop.
#ifndef WARPLINE_SERVER_BASE_STOP_SIGNALS_H_
#define WARPLINE_SERVER_BASE_STOP_SIGNALS_H_

#include <atomic>
#include <functional>
#include <thread>

#include "absl/time/time.h"

namespace warpline {

// Handles the two from its construction on, and has SIGPIPE ignored. A process has one. A handler, not
// sigwait: libraries start threads before main can block signals for them, and a signal that such a thread
// takes would end the process.
class StopSignals {
 public:
  StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // Waits for the next one, for so long at most. Returns its number, or 0 if none came. One thread at a time.
  int Await(absl::Duration longest);

 private:
  friend class FurtherSignal;
  // Acts as if a signal of number 0 had come.
  static void Wake();
};

// While it is there, calls `act`, once and on a thread of its own, when a stop signal comes. One that comes
// within half a second of the construction is taken for a part of the request before, unless `is_urgent` says
// otherwise: those who stop a process group, or a terminal and a supervisor together, send two.
class FurtherSignal {
 public:
  FurtherSignal(StopSignals& signals, std::function<bool()> is_urgent, std::function<void()> act);
  ~FurtherSignal();
  FurtherSignal(const FurtherSignal&) = delete;
  FurtherSignal& operator=(const FurtherSignal&) = delete;

 private:
  std::atomic<bool> ended_ = false;
  std::thread thread_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_BASE_STOP_SIGNALS_H_

// SIGTERM and SIGINT, which ask the process to stop, and SIGHUP, which asks it to read its settings again.
#ifndef WARPLINE_SERVER_BASE_SIGNALS_H_
#define WARPLINE_SERVER_BASE_SIGNALS_H_

#include <atomic>
#include <functional>
#include <thread>

#include "absl/time/time.h"

namespace warpline {

// Handles these signals from its construction on, and makes the process ignore SIGPIPE. There is one per
// process. It uses a handler, not sigwait: libraries start threads before main can block signals for them,
// and a signal that arrives at such a thread would end the process.
class Signals {
 public:
  Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  // Waits for the next signal, at most `longest`. Returns its number, or 0 if there was none. Called by one
  // thread at a time.
  int Await(absl::Duration longest);

 private:
  friend class FurtherSignal;
  // Acts as if a signal with number 0 had arrived.
  static void Wake();
};

// During its lifetime, calls `act`, once and on its own thread, when a stop signal arrives. A signal within
// half a second of the construction counts as part of the earlier request, unless `is_urgent` returns true:
// stopping a process group, or from a terminal and a supervisor together, sends two signals.
class FurtherSignal {
 public:
  FurtherSignal(Signals& signals, std::function<bool()> is_urgent, std::function<void()> act);
  ~FurtherSignal();
  FurtherSignal(const FurtherSignal&) = delete;
  FurtherSignal& operator=(const FurtherSignal&) = delete;

 private:
  std::atomic<bool> ended_ = false;
  std::thread thread_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_BASE_SIGNALS_H_

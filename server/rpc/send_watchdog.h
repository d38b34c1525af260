// Cancels calls that their clients delay.
#ifndef WARPLINE_SERVER_RPC_SEND_WATCHDOG_H_
#define WARPLINE_SERVER_RPC_SEND_WATCHDOG_H_

#include <list>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "server/base/clock.h"
#include "server/base/mutex.h"
#include "server/observe/limited_log.h"

namespace warpline {

// If gRPC does not take a message within the timeout, the message and its call are given up: its bytes wait
// for the client's flow control and occupy their staging slot. The same holds for an upload that sends
// nothing for that long. Thread-safe.
class SendWatchdog {
 public:
  // A call that can be watched, by only one watchdog and only once at a time.
  class Call {
   public:
    virtual void Ref() = 0;
    virtual void Unref() = 0;
    // Called once, on the watchdog's thread, which holds a reference.
    virtual void GiveUp() = 0;
    virtual const std::string& request_id() const = 0;

   protected:
    ~Call() = default;

   private:
    friend class SendWatchdog;
    std::list<Call*>::iterator watched_;
    MonotonicTime since_;
    bool is_watched_ = false;
    bool given_up_ = false;
  };

  explicit SendWatchdog(absl::Duration timeout);
  ~SendWatchdog();

  void Add(Call& call);
  // The call has made progress, so its time starts again. Does nothing if the call is not watched any more.
  void Touch(Call& call);
  void Remove(Call& call);

 private:
  void Loop();
  void CancelOverdue();

  const absl::Duration timeout_;
  Mutex mutex_;
  std::list<Call*> sending_ ABSL_GUARDED_BY(mutex_);  // oldest first
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  LimitedLog log_;
  std::thread thread_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_SEND_WATCHDOG_H_

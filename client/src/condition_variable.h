// A condition variable that older versions of libstdc++ have too.
#ifndef WARPLINE_CLIENT_SRC_CONDITION_VARIABLE_H_
#define WARPLINE_CLIENT_SRC_CONDITION_VARIABLE_H_

#include <pthread.h>

#include <condition_variable>
#include <mutex>

namespace warpline::client {

// The class of the standard library, but wait calls POSIX itself. That of GCC 12 is a function of libstdc++
// that older ones lack (GLIBCXX_3.4.30), so the Python package could not be installed beside them. The other
// members are inline or old.
class ConditionVariable : public std::condition_variable {
 public:
  void wait(std::unique_lock<std::mutex>& lock) {
    pthread_cond_wait(native_handle(), lock.mutex()->native_handle());
  }
  template <typename Condition>
  void wait(std::unique_lock<std::mutex>& lock, Condition holds) {
    while (!holds()) wait(lock);
  }
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_CONDITION_VARIABLE_H_

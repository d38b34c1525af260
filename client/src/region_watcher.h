// The thread that hears what servers say on the connections of regions.
#ifndef WARPLINE_CLIENT_SRC_REGION_WATCHER_H_
#define WARPLINE_CLIENT_SRC_REGION_WATCHER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace warpline::client {

// The interface of objects that are watched.
class Watched {
 public:
  virtual ~Watched() = default;
  // Called on the watcher's thread when its socket may have something to read, or when the time has come.
  // Returns the delay until its next call at the latest, counted from this call; it may be infinite.
  virtual absl::Duration OnEvent() = 0;
};

// One thread for all sockets of a client, from the first Add to Close. It keeps nothing alive that it
// watches. Thread-safe.
class RegionWatcher {
 public:
  RegionWatcher() = default;
  ~RegionWatcher();
  RegionWatcher(const RegionWatcher&) = delete;
  RegionWatcher& operator=(const RegionWatcher&) = delete;

  // The socket must stay open until Remove, which takes the key that is returned. Unavailable if the system
  // refuses, or after Close.
  absl::StatusOr<std::uint64_t> Add(int socket, std::weak_ptr<Watched> watched);
  // May be called from OnEvent, and more than once.
  void Remove(std::uint64_t key);
  // Has OnEvent of all that is watched called soon.
  void Wake();
  // Ends the thread. Not to be called on it, so its last owner, if that may go there, must have called it.
  void Close();

 private:
  struct Entry {
    int socket;
    std::weak_ptr<Watched> watched;
  };

  absl::Status Start();  // holding mutex_
  void Run();
  std::shared_ptr<Watched> Find(std::uint64_t key);
  absl::Duration CallAll();

  std::mutex mutex_;
  std::map<std::uint64_t, Entry> entries_;
  std::uint64_t last_key_ = 0;  // 0 itself is that of wake_
  bool closed_ = false;
  int epoll_ = -1, wake_ = -1;
  std::thread thread_;
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_REGION_WATCHER_H_

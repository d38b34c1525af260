// The thread that receives what servers send on the connections of regions.
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

// The interface of watched objects.
class Watched {
 public:
  virtual ~Watched() = default;
  // Called on the watcher's thread when the socket may be readable, or when the delay has passed. Returns the
  // maximum delay until the next call, counted from this one; it may be infinite.
  virtual absl::Duration OnEvent() = 0;
};

// One thread for all sockets of a client, from the first Add until Close. It does not keep watched objects
// alive. Thread-safe.
class RegionWatcher {
 public:
  RegionWatcher() = default;
  ~RegionWatcher();
  RegionWatcher(const RegionWatcher&) = delete;
  RegionWatcher& operator=(const RegionWatcher&) = delete;

  // The socket must stay open until Remove is called with the returned key. Unavailable if the system
  // refuses, or after Close.
  absl::StatusOr<std::uint64_t> Add(int socket, std::weak_ptr<Watched> watched);
  // May be called from OnEvent, and repeatedly.
  void Remove(std::uint64_t key);
  // Makes the thread call OnEvent of all watched objects soon.
  void Wake();
  // Ends the thread. Must not be called on that thread. So call it first if the watcher's last owner may be
  // destroyed on that thread.
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
  std::uint64_t last_key_ = 0;  // key 0 belongs to wake_
  bool closed_ = false;
  int epoll_ = -1, wake_ = -1;
  std::thread thread_;
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_REGION_WATCHER_H_

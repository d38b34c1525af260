// The unary calls whose messages have not arrived yet.
#ifndef WARPLINE_SERVER_RPC_UPLOADS_H_
#define WARPLINE_SERVER_RPC_UPLOADS_H_

#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"
#include "server/base/clock.h"
#include "server/rpc/connection.h"

namespace warpline {

// One such call. It is a member of one Uploads at most.
class Upload {
 public:
  // The call cannot go on. Called once.
  virtual void GiveUp() = 0;
  // The message takes its time: until it has come, the call keeps no thread busy. Called once at most.
  virtual void OnSlow() = 0;

 protected:
  ~Upload() = default;

 private:
  friend class Uploads;
  Upload* previous_ = nullptr;
  Upload* next_ = nullptr;
  Connection* connection_ = nullptr;
  MonotonicTime begun_, since_;
  std::uint64_t bytes_since_ = 0;  // of the connection, at `since_`
  bool slow_ = false;
  bool given_up_ = false;
};

// gRPC hands a message over only when it is whole, so nothing tells how far one upload is. What can be seen
// is how many bytes came over its connection: that must be `bytes` for each upload of the connection within
// `window`, or the upload is given up. So an upload that stands still ends, and a connection that sends a
// byte now and then does not keep a hundred others alive.
//
// The list of one polling thread, oldest first. Not thread-safe: it is used while a tag of the thread's queue
// proceeds, or through PollingThread::BetweenTags.
class Uploads {
 public:
  struct Progress {
    absl::Duration window;
    std::uint64_t bytes = 0;
  };

  // `connection` must outlive the membership.
  void Add(Upload& upload, Connection& connection, MonotonicTime now);
  void Remove(Upload& upload);
  // Calls OnSlow of those that began at least `after` ago, and GiveUp of those that have not made the
  // progress. Returns how many it gave up.
  int Look(const Progress& progress, absl::Duration slow_after, MonotonicTime now);

 private:
  void Append(Upload& upload);
  void Unlink(Upload& upload);

  Upload* first_ = nullptr;
  Upload* last_ = nullptr;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_UPLOADS_H_

// The unary calls whose messages have not arrived yet.
#ifndef WARPLINE_SERVER_RPC_UPLOADS_H_
#define WARPLINE_SERVER_RPC_UPLOADS_H_

#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"
#include "server/base/clock.h"
#include "server/rpc/connection.h"

namespace warpline {

// One such call. It is a member of at most one Uploads.
class Upload {
 public:
  // Ends the call, which makes no progress. Called once.
  virtual void GiveUp() = 0;
  // The message takes long, so the call keeps no thread busy until it has arrived. Called at most once.
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

// gRPC passes on a message only when it is complete, so the progress of one upload is unknown. Only the bytes
// received on its connection are known: they must be at least `bytes` for each upload of the connection
// within `window`, or the upload is given up. So a stalled upload ends, and a connection that sends a byte
// now and then cannot keep a hundred uploads alive.
//
// The list of one polling thread, oldest first. Not thread-safe: use it while a tag of the thread's queue
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
  // Calls OnSlow for uploads that began at least `slow_after` ago, and GiveUp for those without enough
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

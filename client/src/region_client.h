// The regions of one client.
#ifndef WARPLINE_CLIENT_SRC_REGION_CLIENT_H_
#define WARPLINE_CLIENT_SRC_REGION_CLIENT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/src/callback_thread.h"
#include "client/src/connection.h"
#include "client/src/region_table.h"
#include "client/src/region_watcher.h"
#include "warpline/options.h"
#include "warpline/region.h"

namespace warpline::client {

// The server's permission to hand over a region of `bytes` bytes.
struct RegionTicket {
  std::string text;
  std::size_t bytes = 0;
  absl::Time expires;
};

// Opens regions, and holds what calls that use them share. Thread-safe. It must outlive all calls. Regions
// may outlive it, but they are lost then.
class RegionClient {
 public:
  RegionClient(std::string target, const ClientOptions& options);
  // Waits for the expected callbacks.
  ~RegionClient();
  RegionClient(const RegionClient&) = delete;
  RegionClient& operator=(const RegionClient&) = delete;

  // Implements Client::OpenRegion.
  absl::StatusOr<Region> Open(Connection& connection, std::size_t bytes, absl::Duration timeout);

  // The steps of Open. SocketPath returns the path of the region socket; FailedPrecondition if the target has
  // none.
  absl::StatusOr<std::string> SocketPath() const;
  // Asks the server for a region of `bytes` bytes, a multiple of 4096. If `retries` is not set, asks once.
  static absl::StatusOr<RegionTicket> Reserve(Connection& connection, std::size_t bytes, absl::Time deadline,
                                              bool retries);
  // Allocates the memory, and hands it over to the server.
  absl::StatusOr<std::shared_ptr<SharedRegion>> HandOver(Connection& connection, RegionTicket ticket,
                                                         const std::string& path, absl::Time deadline);

  const RegionTable& table() const { return *table_; }
  // Returns the next call number. All regions share one counter, since one call uses the same number for all
  // its slices.
  std::int64_t NextCall() { return last_call_.fetch_add(1, std::memory_order_relaxed) + 1; }
  // The thread for callbacks that wait for a region. A callback may itself wait for another region.
  CallbackThread& callbacks() { return callbacks_; }

 private:
  const std::string target_, socket_;
  const std::shared_ptr<RegionTable> table_;
  const std::shared_ptr<RegionWatcher> watcher_;
  std::atomic<std::int64_t> last_call_ = 0;
  CallbackThread callbacks_;
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_REGION_CLIENT_H_

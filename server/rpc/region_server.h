// The region socket, over which clients pass their shared memory to the server, because gRPC cannot carry
// descriptors. RegionService in the API documents the protocol.
#ifndef WARPLINE_SERVER_RPC_REGION_SERVER_H_
#define WARPLINE_SERVER_RPC_REGION_SERVER_H_

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/base/clock.h"
#include "server/base/listener.h"
#include "server/base/mutex.h"
#include "server/base/unique_fd.h"
#include "server/base/worker_pool.h"
#include "server/device/backend.h"
#include "server/rpc/descriptor_closer.h"
#include "server/store/region_store.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline {

// One thread reads from all connections. A connection that has presented a ticket belongs to one region,
// which ends with the connection. Mapping memory and registering it with the devices take long, so a worker
// does that.
class RegionServer {
 public:
  struct Options {
    std::vector<Listener> listen;  // see Listener::BindForPackets
    // Further connections are refused. Connections that have not presented a ticket yet may use only an
    // eighth of this.
    std::size_t max_connections = 1024;
    // A connection that has not presented its ticket after this time is closed.
    absl::Duration handover_timeout = absl::Seconds(10);
  };

  // UNAVAILABLE if it cannot listen. The arguments outlive the server and the memory of the regions.
  static absl::StatusOr<std::unique_ptr<RegionServer>> Start(Options options, RegionStore& regions,
                                                             Backend& backend, WorkerPool& workers);
  // Closes all connections, and the regions with them. Must be called before the end of the workers.
  ~RegionServer();
  RegionServer(const RegionServer&) = delete;
  RegionServer& operator=(const RegionServer&) = delete;

 private:
  class Connection;
  using ConnectionPtr = std::shared_ptr<Connection>;

  RegionServer(Options options, RegionStore& regions, Backend& backend, WorkerPool& workers)
      : options_(std::move(options)), regions_(regions), backend_(backend), workers_(workers) {}
  absl::Status Prepare();
  void Loop();
  void AcceptFrom(int listening);
  void Refuse(UniqueFd socket, const absl::Status& why);
  void Listening(bool on);
  void OnEvent(const ConnectionPtr& connection);
  void OnPacket(const ConnectionPtr& connection, const v1::RegionRequest& request,
                std::vector<UniqueFd> descriptors);
  // Runs on a worker, perhaps after the end of the server.
  static void HandOver(const ConnectionPtr& connection, RegionStore::Reservation reservation, UniqueFd memory,
                       RegionStore& regions, Backend& backend, WorkerPool& workers);
  // Takes the pointer by value, because it may be the entry of connections_ that is erased.
  void Close(ConnectionPtr connection);
  void CloseLate();

  Options options_;
  RegionStore& regions_;
  Backend& backend_;
  WorkerPool& workers_;
  UniqueFd epoll_, wake_;
  std::map<int, ConnectionPtr> connections_;  // by descriptor; used by the thread only
  DescriptorCloser closer_;
  MonotonicTime resume_ = kNever;  // when accepting resumes after a lack of descriptors
  std::thread thread_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_REGION_SERVER_H_

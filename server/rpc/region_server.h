// The region socket, over which clients hand their shared memory to the server: gRPC cannot carry
// descriptors. RegionService in the API says what is spoken there.
#ifndef WARPLINE_SERVER_RPC_REGION_SERVER_H_
#define WARPLINE_SERVER_RPC_REGION_SERVER_H_

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <thread>
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

// One thread reads from all connections; those that have shown a ticket belong to one region each, which ends
// with them. What takes time, mapping memory and registering it with the devices, is done by a worker.
class RegionServer {
 public:
  struct Options {
    std::vector<std::string> paths;  // of the sockets
    // Connections beyond it are refused, and so are those beyond an eighth of it that have not shown a ticket
    // yet.
    std::size_t max_connections = 1024;
    // A connection that has not shown its ticket after so long is closed.
    absl::Duration handover_timeout = absl::Seconds(10);
  };

  // UNAVAILABLE or INVALID_ARGUMENT as of Listener::OpenForPackets. What it is given outlives it, and
  // outlives the memory of the regions.
  static absl::StatusOr<std::unique_ptr<RegionServer>> Start(const Options& options, RegionStore& regions,
                                                             Backend& backend, WorkerPool& workers);
  // Closes all connections, and with them the regions. Must come before the end of the workers.
  ~RegionServer();
  RegionServer(const RegionServer&) = delete;
  RegionServer& operator=(const RegionServer&) = delete;

 private:
  class Connection;
  using ConnectionPtr = std::shared_ptr<Connection>;

  RegionServer(const Options& options, RegionStore& regions, Backend& backend, WorkerPool& workers)
      : options_(options), regions_(regions), backend_(backend), workers_(workers) {}
  absl::Status Prepare();
  void Loop();
  void AcceptFrom(int listening);
  void Refuse(UniqueFd socket, const absl::Status& why);
  void Listening(bool on);
  void OnEvent(const ConnectionPtr& connection);
  void OnPacket(const ConnectionPtr& connection, const v1::RegionRequest& request,
                std::vector<UniqueFd> descriptors);
  // On a worker, perhaps after the end of the server.
  static void HandOver(const ConnectionPtr& connection, RegionStore::Reservation reservation, UniqueFd memory,
                       RegionStore& regions, Backend& backend, WorkerPool& workers);
  // Takes the pointer by value, since it may be the entry of connections_ that is erased.
  void Close(ConnectionPtr connection);
  void CloseLate();

  const Options options_;
  RegionStore& regions_;
  Backend& backend_;
  WorkerPool& workers_;
  std::vector<Listener> listeners_;
  UniqueFd epoll_, wake_;
  std::map<int, ConnectionPtr> connections_;  // by descriptor; of the thread alone
  DescriptorCloser closer_;
  MonotonicTime resume_ = kNever;  // accepting, which is paused for want of descriptors
  std::thread thread_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_REGION_SERVER_H_

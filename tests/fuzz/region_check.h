// Conversations on a region socket, and uses of the regions, against a plain model.
#ifndef WARPLINE_TESTS_FUZZ_REGION_CHECK_H_
#define WARPLINE_TESTS_FUZZ_REGION_CHECK_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "server/base/unique_fd.h"
#include "server/base/worker_pool.h"
#include "server/device/backend.h"
#include "server/observe/metrics.h"
#include "server/rpc/region_server.h"
#include "server/store/region_store.h"
#include "tests/fuzz/call_sequence.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline::testing {

// The meaning of a call's method number, modulo the number of methods. The lower two bits of the argument
// choose the connection. The other bits choose the descriptors that come with a packet, or the length of a
// slice.
//
// kOpen has an OpenRequest, kPacket a RegionRequest, and kUse a RegionSlice, of which only offset and call
// matter. kClose closes a connection, and kRelease ends the oldest use.
enum class RegionCall : std::uint8_t { kOpen, kPacket, kUse, kRelease, kClose };
inline constexpr int kRegionCalls = 5;

FuzzedCall AnyRegionCall(MessageMutator& random);
std::unique_ptr<google::protobuf::Message> NewRegionMessage(std::uint8_t method);

// A RegionServer with its thread, workers and socket in this process. In packets, the tickets "0" to "9"
// stand for those that the sequence has got, in their order. Every reply is compared with the model, and so
// is each use of a slice. Not thread-safe.
class RegionCheck {
 public:
  RegionCheck();
  ~RegionCheck();

  // Runs the calls, closes everything, and sees that nothing is left. Empty if all is as the model has it,
  // else what is not.
  std::string Check(const CallSequence& calls);

  struct Counts {
    int calls = 0, regions = 0, uses = 0, ended = 0;
  };
  const Counts& counts() const { return counts_; }

 private:
  struct Ticket {
    std::string text;
    std::size_t bytes = 0;
    bool used = false;
  };
  struct Connection {
    UniqueFd socket;
    std::string region;  // its id; empty before the handover
    std::size_t bytes = 0;
    std::set<std::int64_t> withdrawn;
    std::set<std::int64_t> awaited;  // calls whose end is to be told
  };
  struct HeldSlice {
    std::string region;
    std::int64_t call = 0;
    Buffer memory;
  };
  // Descriptors that may come with a packet, and how many bytes there are if a region can be made of them.
  struct Files {
    std::vector<int> descriptors;
    bool can_arrive = true;  // the server takes as many
    bool can_be_sealed = true;
    std::size_t bytes = 0;
  };

  std::string Run(const FuzzedCall& call);
  std::string Open(const std::string& message);
  std::string SendPacket(const std::string& message, Connection& connection, const Files& files);
  std::string Use(const std::string& message, const Connection& connection, std::size_t bytes);
  std::string Release();
  std::string CloseAll();

  // The error code that a packet must get, or OK.
  int ExpectedOf(const std::string& packet, const Connection& connection, const Files& files);
  Ticket* Find(const std::string& text);
  std::string Connect(Connection& connection);
  // The next reply; nothing at the end of the connection. A reply that does not come aborts.
  static std::optional<v1::RegionReply> Receive(const Connection& connection);
  void AddFiles();

  const std::string folder_;
  Metrics metrics_;
  std::unique_ptr<Backend> backend_;
  RegionStore store_;
  WorkerPool workers_{2};
  std::unique_ptr<RegionServer> server_;
  std::vector<UniqueFd> own_;
  std::vector<Files> files_;
  std::vector<Ticket> tickets_;
  std::array<Connection, 4> connections_;
  std::vector<HeldSlice> held_;
  Counts counts_;
};

}  // namespace warpline::testing

#endif  // WARPLINE_TESTS_FUZZ_REGION_CHECK_H_

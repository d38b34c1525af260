// Eight fake devices with memory for tensors, in the tests of replicas and placement. Thread-safe.
#ifndef WARPLINE_TESTS_SERVER_STORE_EIGHT_DEVICES_H_
#define WARPLINE_TESTS_SERVER_STORE_EIGHT_DEVICES_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "tests/server/schedule/stub_backend.h"

namespace warpline {

class EightDevices : public StubBackend {
 public:
  static constexpr int kDevices = 8;
  // Memory of each device, and the part of it that replicas may take.
  static constexpr std::size_t kBytes = 4000, kReplicaBytes = 1000;
  static constexpr double kBytesPerSecond = 1e6;

  // Scratch memory: one device has more than the others.
  static constexpr std::size_t kPoolBytes = 100;
  static constexpr int kLargerPool = 4;

  EightDevices() : StubBackend(Infos()) {}

  absl::StatusOr<std::unique_ptr<Lane>> CreateLane(int) override {
    return absl::UnimplementedError("not needed");
  }
  absl::StatusOr<Buffer> AllocateResident(int device, std::size_t bytes) override {
    std::atomic<std::size_t>& used = used_[static_cast<std::size_t>(device)];
    if (used.fetch_add(bytes) + bytes > kBytes) {
      used -= bytes;
      return absl::ResourceExhaustedError("the device is full");
    }
    auto* block = new std::vector<std::byte>(bytes);
    return Buffer(*block, {.kind = Place::Kind::kDevice, .device = device},
                  std::shared_ptr<void>(block, [&used, bytes](void* gone) {
                    used -= bytes;
                    delete static_cast<std::vector<std::byte>*>(gone);
                  }));
  }
  bool HasResidentAtHand(int, std::size_t) const override { return at_hand; }

  std::size_t used(int device) const { return used_[static_cast<std::size_t>(device)]; }

  bool at_hand = true;

 private:
  static std::vector<DeviceInfo> Infos() {
    std::vector<DeviceInfo> infos(
        kDevices,
        {.pool_bytes = kPoolBytes, .replica_bytes = kReplicaBytes, .peer_bytes_per_second = kBytesPerSecond});
    infos[kLargerPool].pool_bytes = 2 * kPoolBytes;
    return infos;
  }

  std::array<std::atomic<std::size_t>, kDevices> used_{};
};

}  // namespace warpline

#endif  // WARPLINE_TESTS_SERVER_STORE_EIGHT_DEVICES_H_

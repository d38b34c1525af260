// The shared parts of the backends in the scheduler's tests: everything but their lanes.
#ifndef WARPLINE_TESTS_SERVER_SCHEDULE_STUB_BACKEND_H_
#define WARPLINE_TESTS_SERVER_SCHEDULE_STUB_BACKEND_H_

#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "server/device/backend.h"

namespace warpline {

// Takes every program; the tests have staging memory of their own.
class StubBackend : public Backend {
 public:
  explicit StubBackend(std::vector<DeviceInfo> devices) : infos_(std::move(devices)) {}

  std::string_view name() const override { return "stub"; }
  std::span<const DeviceInfo> devices() const override { return infos_; }
  std::vector<VariantInfo> Variants() const override { return {}; }
  absl::Status CheckVariant(const Problem&, std::string_view) const override { return absl::OkStatus(); }
  absl::StatusOr<CompiledProgram> Compile(const Program&, const MemoryPlan&) const override {
    return CompiledProgram();
  }
  bool launches_asynchronously() const override { return true; }
  absl::StatusOr<Buffer> AllocateHost(std::size_t) override { return absl::UnimplementedError("not needed"); }
  absl::StatusOr<Buffer> AllocateResident(int, std::size_t) override {
    return absl::UnimplementedError("not needed");
  }

 private:
  std::vector<DeviceInfo> infos_;
};

}  // namespace warpline

#endif  // WARPLINE_TESTS_SERVER_SCHEDULE_STUB_BACKEND_H_

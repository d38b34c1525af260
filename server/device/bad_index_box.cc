#include "server/device/bad_index_box.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <variant>

#include "kernels/gpu/status.h"
#include "kernels/status_macros.h"
#include "server/plan/bad_index_error.h"

namespace warpline {
namespace {

using gpu::ToStatus;

// The source of Prepare's copy to the device. cudaMemcpyAsync has read these pageable bytes before it
// returns.
constexpr BadIndex kNone;

}  // namespace

absl::StatusOr<BadIndexBox> BadIndexBox::Create(bool maps_host) {
  ASSIGN_OR_RETURN(gpu::DeviceBytes found, gpu::AllocateDevice(sizeof(BadIndex)));
  if (!maps_host) return BadIndexBox(std::move(found), std::nullopt);
  ASSIGN_OR_RETURN(gpu::PinnedMemory seen, gpu::PinnedMemory::Allocate(sizeof(BadIndex)));
  std::memcpy(seen.bytes().data(), &kNone, sizeof(kNone));
  return BadIndexBox(std::move(found), std::move(seen));
}

BadIndexReport BadIndexBox::report() const {
  auto* seen = seen_.has_value() ? const_cast<gpu::PinnedMemory&>(*seen_).bytes().data() : nullptr;
  return {static_cast<BadIndex*>(found_.get()), reinterpret_cast<BadIndex*>(seen)};
}

absl::Status BadIndexBox::Prepare(cudaStream_t stream) {
  if (is_clean_) return absl::OkStatus();
  is_clean_ = true;
  return ToStatus(cudaMemcpyAsync(found_.get(), &kNone, sizeof(kNone), cudaMemcpyHostToDevice, stream),
                  "clearing the report of indices");
}

absl::Status BadIndexBox::ErrorOf(const Program& program) {
  if (!HasIndices(program)) return absl::OkStatus();
  BadIndex seen;
  if (seen_.has_value()) {
    std::memcpy(&seen, seen_->bytes().data(), sizeof(seen));
  } else {
    RETURN_IF_ERROR(ToStatus(cudaMemcpy(&seen, found_.get(), sizeof(seen), cudaMemcpyDeviceToHost),
                             "reading the report of indices"));
  }
  if (seen.step == BadIndex::kNone) return absl::OkStatus();
  Discard();
  return BadIndexError(program, seen);
}

void BadIndexBox::Discard() {
  is_clean_ = false;
  if (seen_.has_value()) std::memcpy(seen_->bytes().data(), &kNone, sizeof(kNone));
}

}  // namespace warpline

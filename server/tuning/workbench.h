// The interface through which tuning runs and times candidates on a device.
#ifndef WARPLINE_SERVER_TUNING_WORKBENCH_H_
#define WARPLINE_SERVER_TUNING_WORKBENCH_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "absl/status/statusor.h"
#include "kernels/problem.h"
#include "server/base/clock.h"

namespace warpline {

// A problem with operands, set up to be run by each of its candidates.
class Trial {
 public:
  virtual ~Trial() = default;
  // Names of variants and of their configurations. The first is what the rules say, and stands for what runs
  // without tuning, which is another variant if that one refuses the problem.
  virtual std::span<const std::string_view> candidates() const = 0;
  // Returns the seconds that one launch takes; nothing if others used the device meanwhile. UNIMPLEMENTED if
  // this candidate cannot run the problem after all, or takes too long. DATA_LOSS if its result is not that
  // of the first candidate. Any other error ends the trial.
  virtual absl::StatusOr<std::optional<double>> Time(std::size_t candidate) = 0;
};

class Workbench {
 public:
  virtual ~Workbench() = default;
  // Waits until nobody else uses the device; false if `stopping` became true before, or at the deadline.
  virtual bool AwaitQuiet(const std::function<bool()>& stopping, MonotonicTime deadline) = 0;
  // OUT_OF_RANGE for a problem that is too large or takes too long to try.
  virtual absl::StatusOr<std::unique_ptr<Trial>> Prepare(const Problem& problem) = 0;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_TUNING_WORKBENCH_H_

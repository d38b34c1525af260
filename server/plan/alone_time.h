// The measured time that a program needs on a device.
#ifndef WARPLINE_SERVER_PLAN_ALONE_TIME_H_
#define WARPLINE_SERVER_PLAN_ALONE_TIME_H_

#include <algorithm>
#include <atomic>
#include <memory>

namespace warpline {

// The mean of runs that had the device to themselves. The last ten or so runs count most, because a device
// gets slower when it gets hot. A run that takes less than half of the mean replaces it: then the earlier
// runs must have waited for something else, such as the capture of a graph. Thread-safe; copies share their
// state.
class AloneTime {
 public:
  // Unit: seconds; 0 before the first run.
  double seconds() const { return *seconds_; }

  void Measured(double seconds) const {
    double known = *seconds_;
    while (!seconds_->compare_exchange_weak(
        known, seconds < known / 2 || known == 0 ? seconds : known + (seconds - known) / 8)) {
    }
  }

 private:
  std::shared_ptr<std::atomic<double>> seconds_ = std::make_shared<std::atomic<double>>(0);
};

// Returns what an owner is charged for a run that took `seconds` from its launch to its end. If other jobs
// shared the device meanwhile, this job's part of the time is not known. Then the charge is the time that the
// job takes alone, or `estimate` until that has been measured. The charge is never more than `seconds`.
inline double ChargedSeconds(double seconds, bool shared, const AloneTime& alone, double estimate) {
  if (!shared) return seconds;
  return std::min(seconds, alone.seconds() > 0 ? alone.seconds() : estimate);
}

}  // namespace warpline

#endif  // WARPLINE_SERVER_PLAN_ALONE_TIME_H_

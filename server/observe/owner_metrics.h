// The metrics of each owner, for what it does and has, in a bounded number of series.
#ifndef WARPLINE_SERVER_OBSERVE_OWNER_METRICS_H_
#define WARPLINE_SERVER_OBSERVE_OWNER_METRICS_H_

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "server/base/mutex.h"
#include "server/base/owner.h"
#include "server/observe/metrics.h"

namespace warpline {

// The owners that are met first have series of their own, and all others share those of "other": whoever can
// make up new owners cannot make up series. Thread-safe.
class OwnerMetrics {
 public:
  // The label of those who share series. Their quotas differ, so that no ratio is shown of them.
  static constexpr std::string_view kOthers = "other";

  // `name_of` and the metrics outlive it.
  OwnerMetrics(int limit, std::function<std::string(OwnerId)> name_of, Metrics& metrics);

  // Stays where it is. For a lookup of one owner after the other, keep what it returns.
  const OwnerSeries& Of(OwnerId owner);
  void CountRequest(OwnerId owner, std::string_view code) {
    const OwnerSeries& series = Of(owner);
    code == "OK" ? series.requests_ok.Add() : metrics_.CountOwnerRequest(series.label, code);
  }

 private:
  const std::size_t limit_;
  const std::function<std::string(OwnerId)> name_of_;
  Metrics& metrics_;
  Mutex mutex_;
  absl::flat_hash_map<OwnerId, std::unique_ptr<const OwnerSeries>> series_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<const OwnerSeries> others_ ABSL_GUARDED_BY(mutex_);  // from the first of them on
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_OBSERVE_OWNER_METRICS_H_

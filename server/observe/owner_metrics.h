// The metrics of each owner, with a limited number of series.
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

// The first owners have their own series, and all later ones share those of "other". So someone who can
// create new owners cannot create new series. Thread-safe.
class OwnerMetrics {
 public:
  // The label of owners that share series. Their quotas differ, so they have no ratio.
  static constexpr std::string_view kOthers = "other";

  // `name_of` and the metrics outlive this.
  OwnerMetrics(int limit, std::function<std::string(OwnerId)> name_of, Metrics& metrics);

  // The result stays valid. To use one owner several times, keep it: this avoids lookups.
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
  std::unique_ptr<const OwnerSeries> others_ ABSL_GUARDED_BY(mutex_);  // set from the first such owner on
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_OBSERVE_OWNER_METRICS_H_

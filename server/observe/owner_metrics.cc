#include "server/observe/owner_metrics.h"

#include <utility>

namespace warpline {

OwnerMetrics::OwnerMetrics(int limit, std::function<std::string(OwnerId)> name_of, Metrics& metrics)
    : limit_(static_cast<std::size_t>(limit)), name_of_(std::move(name_of)), metrics_(metrics) {}

const OwnerSeries& OwnerMetrics::Of(OwnerId owner) {
  MutexLock lock(&mutex_);
  if (const auto found = series_.find(owner); found != series_.end()) return *found->second;
  const bool full = series_.size() >= limit_;
  std::unique_ptr<const OwnerSeries>& series = full ? others_ : series_[owner];
  if (series == nullptr) {
    series =
        std::make_unique<const OwnerSeries>(metrics_.Owner(full ? std::string(kOthers) : name_of_(owner)));
  }
  return *series;
}

}  // namespace warpline

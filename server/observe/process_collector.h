// The process_* metrics that Prometheus clients of other languages have built in. They are read from
// /proc/self.
#ifndef WARPLINE_SERVER_OBSERVE_PROCESS_COLLECTOR_H_
#define WARPLINE_SERVER_OBSERVE_PROCESS_COLLECTOR_H_

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <vector>

namespace warpline {

// Stateless; values that /proc does not have are left out.
class ProcessCollector : public prometheus::Collectable {
 public:
  std::vector<prometheus::MetricFamily> Collect() const override;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_OBSERVE_PROCESS_COLLECTOR_H_

// The metrics of the kernels of one device.
#ifndef WARPLINE_SERVER_DEVICE_KERNEL_SERIES_H_
#define WARPLINE_SERVER_DEVICE_KERNEL_SERIES_H_

#include <string_view>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "kernels/dtype.h"
#include "kernels/problem.h"
#include "server/observe/metrics.h"

namespace warpline {

// Looks up each series only once, because a lookup costs more than a small step. All configurations of a
// variant share one series. Belongs to one lane; not thread-safe.
class KernelSeriesTable {
 public:
  KernelSeriesTable(Metrics& metrics, int device) : metrics_(metrics), device_(device) {}

  // `variant` is the name of the variant that ran. It must stay valid as long as the process lives.
  const KernelSeries& Of(const Problem& problem, std::string_view variant, KernelMemory memory) {
    variant = RowName(variant);
    const auto [entry, is_new] = series_.try_emplace({KeyOf(problem, variant), memory});
    if (is_new) {
      entry->second = metrics_.Kernel(OpOf(problem), variant, DTypeOf(problem), memory, device_);
    }
    return entry->second;
  }
  const Histogram& RoofRatioOf(const Problem& problem, std::string_view variant) {
    variant = RowName(variant);
    const auto [entry, is_new] = roof_ratios_.try_emplace(KeyOf(problem, variant));
    if (is_new) entry->second = metrics_.RoofRatio(OpOf(problem), variant, DTypeOf(problem), device_);
    return entry->second;
  }

 private:
  using Key = std::tuple<Op, absl::string_view, DType>;
  static std::string_view RowName(std::string_view variant) { return variant.substr(0, variant.find(':')); }
  static Key KeyOf(const Problem& problem, std::string_view variant) {
    return {OpOf(problem), absl::string_view(variant.data(), variant.size()), DTypeOf(problem)};
  }

  Metrics& metrics_;
  const int device_;
  absl::flat_hash_map<std::pair<Key, KernelMemory>, KernelSeries> series_;
  absl::flat_hash_map<Key, Histogram> roof_ratios_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_DEVICE_KERNEL_SERIES_H_

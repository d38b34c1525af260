// The choices that tuning has found for the devices of one kind.
#ifndef WARPLINE_SERVER_TUNING_CHOICES_H_
#define WARPLINE_SERVER_TUNING_CHOICES_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "server/base/mutex.h"

namespace warpline {

// From problems, as ProblemText has them, to names of variants or of their configurations. Thread-safe.
class TunedChoices {
 public:
  // Empty if there is none. Whether the variant exists, and can run the problem, is for the caller to see.
  std::string Find(std::string_view problem) const {
    MutexLock lock(&mutex_);
    const auto found = variants_.find(absl::string_view(problem.data(), problem.size()));
    return found == variants_.end() ? "" : found->second;
  }
  void Set(std::string_view problem, std::string variant) {
    MutexLock lock(&mutex_);
    variants_[absl::string_view(problem.data(), problem.size())] = std::move(variant);
    version_.fetch_add(1);
  }

  // Another number whenever a choice has been set: what was built by an older one may have to be built anew.
  std::uint64_t version() const { return version_.load(); }

 private:
  mutable Mutex mutex_;
  absl::flat_hash_map<std::string, std::string> variants_ ABSL_GUARDED_BY(mutex_);
  std::atomic<std::uint64_t> version_ = 0;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_TUNING_CHOICES_H_

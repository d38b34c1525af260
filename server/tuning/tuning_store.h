// The tuning file of a process: read once, written whenever a problem has been settled.
#ifndef WARPLINE_SERVER_TUNING_TUNING_STORE_H_
#define WARPLINE_SERVER_TUNING_TUNING_STORE_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "server/base/mutex.h"
#include "server/tuning/tuning_file.h"

namespace warpline {

// Checks that the file at `path` could be made or replaced. Changes nothing. The error names --tuning-file.
absl::Status CheckTuningFileWritable(const std::string& path);

// Thread-safe.
class TuningStore {
 public:
  // With kWrite, problems that the file does not know are tuned and written to it. The file then need not be
  // there yet.
  enum class Mode { kRead, kWrite };
  static absl::StatusOr<std::unique_ptr<TuningStore>> Open(const std::string& path, Mode mode);

  bool writes() const { return mode_ == Mode::kWrite; }
  // Checks that the file could be replaced now. Leaves the file as it is. The error names --tuning-file.
  absl::Status CheckWritable() const { return CheckTuningFileWritable(path_); }
  TuningFile::Choices Of(const DeviceKind& kind) const;
  FailedVariants FailedOf(const DeviceKind& kind) const;
  // A file that cannot be written is logged, and what was found goes there with the next.
  void Set(const DeviceKind& kind, const std::string& problem, const TunedChoice& choice);
  // Likewise. The file has it when this returns, since the process ends thereafter.
  void AddFailed(const DeviceKind& kind, const std::string& problem, const std::string& variant);

 private:
  // Adds what is unsaved to the file as it is now: another daemon may have added to it.
  absl::Status Save() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SaveOrLog() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  TuningStore(std::string path, Mode mode, TuningFile file)
      : path_(std::move(path)), mode_(mode), file_(std::move(file)) {}

  const std::string path_;
  const Mode mode_;
  mutable Mutex mutex_;
  TuningFile file_ ABSL_GUARDED_BY(mutex_);
  TuningFile unsaved_ ABSL_GUARDED_BY(mutex_);  // what has been found since the file was written last
};

// The file as it is; empty if it is not there and `mode` is kWrite. Errors name --tuning-file.
absl::StatusOr<TuningFile> ReadTuningFile(const std::string& path, TuningStore::Mode mode);

}  // namespace warpline

#endif  // WARPLINE_SERVER_TUNING_TUNING_STORE_H_

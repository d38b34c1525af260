// The results of tuning, kept in a file from one process to the next.
#ifndef WARPLINE_SERVER_TUNING_TUNING_FILE_H_
#define WARPLINE_SERVER_TUNING_TUNING_FILE_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/tuning/failed_variants.h"

namespace warpline {

// All that makes one kernel faster than another on a device, but our own kernels: what was measured on one
// device holds on those of its kind, and on no other.
struct DeviceKind {
  std::string name;                // "NVIDIA H200"
  std::string compute_capability;  // "9.0"
  int multiprocessors = 0;         // that kernels may use
  std::int64_t cublaslt = 0;       // version of the library; 0: it is not there
  std::int64_t driver = 0;         // of CUDA that the driver supports, as 13000

  friend bool operator==(const DeviceKind&, const DeviceKind&) = default;
};

struct TunedChoice {
  std::string variant;            // or a configuration of one
  std::string untuned;            // what runs without tuning: if that has changed, the choice is void
  double us = 0, untuned_us = 0;  // what they took
};

// TOML: a table [[device]] of each kind, with the fields of DeviceKind, and in it choices by problem, and
// what has failed if anything has. Not thread-safe.
class TuningFile {
 public:
  // The choices, by ProblemText.
  using Choices = std::map<std::string, TunedChoice>;
  // The results that are known of one kind of device.
  struct Device {
    DeviceKind kind;
    Choices choices;
    FailedVariants failed;
  };

  // `path` is for messages. INVALID_ARGUMENT with it and the line for what is not of this form.
  static absl::StatusOr<TuningFile> Parse(const std::string& text, const std::string& path);

  const std::vector<Device>& devices() const { return devices_; }
  // Return what is known of one kind of device; empty if nothing is.
  const Choices& Of(const DeviceKind& kind) const { return Find(kind).choices; }
  const FailedVariants& FailedOf(const DeviceKind& kind) const { return Find(kind).failed; }
  void Set(const DeviceKind& kind, const std::string& problem, TunedChoice choice);
  void AddFailed(const DeviceKind& kind, const std::string& problem, const std::string& variant);
  // Everything that the other one has; its choices replace those for the same problems.
  void Add(const TuningFile& other);

  std::string Text() const;
  // Replaces the file as a whole: a reader finds the old one or the new one. Follows a symbolic link.
  absl::Status Write(const std::string& path) const;
  // Checks that Write could succeed. Makes the file that Write would make beside the old one, and removes it.
  static absl::Status CheckWritable(const std::string& path);

 private:
  // Without anything if there is none.
  const Device& Find(const DeviceKind& kind) const;
  Device& FindOrAdd(const DeviceKind& kind);

  std::vector<Device> devices_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_TUNING_TUNING_FILE_H_

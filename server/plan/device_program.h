// A program compiled for the devices of a backend.
#ifndef WARPLINE_SERVER_PLAN_DEVICE_PROGRAM_H_
#define WARPLINE_SERVER_PLAN_DEVICE_PROGRAM_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/container/inlined_vector.h"

namespace warpline {

// A backend makes one of a program, once for all its launches: it has the kernel of each step, with its
// arguments. Only lanes of that backend know more of it.
class DeviceProgram {
 public:
  DeviceProgram() = default;
  virtual ~DeviceProgram() = default;
  DeviceProgram(const DeviceProgram&) = delete;
  DeviceProgram& operator=(const DeviceProgram&) = delete;

  // About the memory that it takes.
  virtual std::size_t bytes() const = 0;
  // No other one of this process has it, also none that is made when this one is gone.
  std::uint64_t id() const { return id_; }

 private:
  static inline std::atomic<std::uint64_t> last_id_ = 0;
  const std::uint64_t id_ = ++last_id_;
};

// The names of what runs for the steps of a program.
using VariantNames = absl::InlinedVector<std::string_view, 8>;

}  // namespace warpline

#endif  // WARPLINE_SERVER_PLAN_DEVICE_PROGRAM_H_

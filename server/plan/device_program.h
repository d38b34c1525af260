// A program compiled for the devices of a backend.
#ifndef WARPLINE_SERVER_PLAN_DEVICE_PROGRAM_H_
#define WARPLINE_SERVER_PLAN_DEVICE_PROGRAM_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/container/inlined_vector.h"

namespace warpline {

// A backend makes one for each program, once for all its launches. It has the kernel of each step, with its
// arguments. Only lanes of that backend know its contents.
class DeviceProgram {
 public:
  DeviceProgram() = default;
  virtual ~DeviceProgram() = default;
  DeviceProgram(const DeviceProgram&) = delete;
  DeviceProgram& operator=(const DeviceProgram&) = delete;

  // An estimate of the memory that it uses.
  virtual std::size_t bytes() const = 0;
  // Unique in this process, even after this object is gone.
  std::uint64_t id() const { return id_; }

 private:
  static inline std::atomic<std::uint64_t> last_id_ = 0;
  const std::uint64_t id_ = ++last_id_;
};

// The names of the variants that run the steps of a program.
using VariantNames = absl::InlinedVector<std::string_view, 8>;

}  // namespace warpline

#endif  // WARPLINE_SERVER_PLAN_DEVICE_PROGRAM_H_

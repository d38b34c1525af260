// The two sides of the engine's only seam: what a backend (cuda, cpu) gives, and what the scheduler asks
// of it. Nothing here or below knows of gRPC, protobuf or Prometheus.
#ifndef WARPLINE_SERVER_DEVICE_BACKEND_H_
#define WARPLINE_SERVER_DEVICE_BACKEND_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/problem.h"
#include "kernels/program.h"
#include "server/base/clock.h"
#include "server/base/owner.h"
#include "server/memory/buffer.h"
#include "server/plan/binding.h"
#include "server/plan/device_program.h"

namespace warpline {

struct DeviceInfo {
  int ordinal = 0;
  std::string name;
  std::string compute_capability;  // "9.0"; empty on the CPU
  std::int64_t memory_bytes = 0;   // 0 on the CPU
  // The size of the pool that serves programs which do not fit into a lane's own memory.
  std::size_t pool_bytes = 0;
  // The memory for resident tensors, in addition to the pool.
  std::size_t resident_bytes = 0;
  // The memory for uploads and streamed results of requests, in addition to both.
  std::size_t upload_bytes = 0;
};

// A copy between memory that AllocateHost gave and memory that AllocateResident gave, which does not lie on
// the host. Whoever starts it keeps both alive until it has ended.
struct Transfer {
  enum class Direction { kToDevice, kToHost };
  Direction direction = Direction::kToDevice;
  int device = 0;
  std::span<std::byte> on_host;
  std::span<std::byte> on_device;  // as long
};

// A row of a variant table as the outside sees it.
struct VariantInfo {
  Op op;
  std::string_view name;
  std::string_view summary;
  bool reproducible;
  std::span<const std::string_view> configurations;  // further names
  std::vector<DType> dtypes;
};

// The result of a finished launch.
struct LaunchReport {
  absl::Status status;
  VariantNames variants;  // that ran, one a step
  // The time from its launch to its end is not its own: other programs used the device meanwhile, or it was
  // prepared, as when a graph is captured. On a cpu a lane is taken to have a core of its own.
  bool shared = false;
  // The program did not run: the device's pool has as many bytes as were set aside for it, but no block of
  // them. It will have one when nothing else is taken.
  bool pool_in_pieces = false;
};

using LaunchDone = absl::AnyInvocable<void(LaunchReport)>;

// A program as a backend runs it.
struct CompiledProgram {
  std::shared_ptr<const DeviceProgram> program;
  // How long a device will be busy with it (server/plan/cost.h). Of devices that differ, the slowest. An
  // estimate: within a factor of about three. Unit: seconds.
  double seconds = 0;
  // The bytes of a device's pool that it takes while it runs; 0 if it fits into the memory of a lane. Whoever
  // launches programs makes sure that those on one device together take no more than its pool has.
  std::size_t device_bytes = 0;
};

// A program bound to memory: regions of the program's MemoryPlan inside staging slots, and the memory of
// bindings that have their own. Everything outlives the call of `done`, and whoever launches the program has
// set CompiledProgram::device_bytes aside.
struct StagedProgram {
  const Program* program = nullptr;
  const MemoryPlan* plan = nullptr;
  const DeviceProgram* compiled = nullptr;  // by the lane's backend, of the same program
  std::span<const Binding> bindings;
  std::span<std::byte> input;   // payload and scalars, as planned
  std::span<std::byte> output;  // to be written
  // A backend that works step by step looks at these between steps; what is on its way on a GPU runs to its
  // end.
  MonotonicTime deadline = kNever;
  const std::atomic<bool>* cancelled = nullptr;  // may be null
  // Nothing else waits: Launch may look for the end of the program itself, for some ten microseconds, and
  // call `done` before it returns, which saves the ways to other threads and back.
  bool wait_briefly = false;
  // Its kernels go before those that other lanes have begun, wherever a device has to choose.
  bool urgent = false;
  OwnerId owner = 0;  // to whom a graph belongs that is made for it
};

// A stream with its buffers and graphs (or, on the CPU, a thread's share of the machine): runs one program
// at a time. Not thread-safe; the scheduler gives it to one thread at a time.
class Lane {
 public:
  virtual ~Lane() = default;
  // Starts the program and calls `done` exactly once: from the backend's completion thread, or before it
  // returns. The lane is free for the next program when `done` is called.
  virtual void Launch(const StagedProgram& staged, LaunchDone done) = 0;
  // Returns whether Launch would return within microseconds, so that any thread may call it. Then nothing has
  // to be built first, and the caller has next to nothing to compute.
  virtual bool LaunchesAtOnce(const Program& program, const MemoryPlan& plan,
                              const DeviceProgram* compiled) const = 0;
};

// Owns the devices and what they share. Outlives its lanes and buffers.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;  // "cuda" or "cpu"
  virtual std::span<const DeviceInfo> devices() const = 0;
  // All rows of all tables, in the order in which they are tried.
  virtual std::vector<VariantInfo> Variants() const = 0;
  // OK if `variant` can run the problem; empty means that any may. INVALID_ARGUMENT otherwise, naming the
  // variants that can.
  virtual absl::Status CheckVariant(const Problem& problem, std::string_view variant) const = 0;
  // Compiles a program of which CheckVariant accepts every step, for all devices. INVALID_ARGUMENT, with both
  // figures, if none has the memory that the program needs, in a lane or in its pool.
  virtual absl::StatusOr<CompiledProgram> Compile(const Program& program, const MemoryPlan& plan) const = 0;
  // Returns whether Lane::Launch leaves the work to a device, so that its caller has nothing to do meanwhile.
  virtual bool launches_asynchronously() const = 0;
  virtual absl::StatusOr<std::unique_ptr<Lane>> CreateLane(int device) = 0;
  // Memory for staging slots: page-locked, or ordinary on the CPU.
  virtual absl::StatusOr<Buffer> AllocateHost(std::size_t bytes) = 0;
  // Makes memory of this process that others may share usable like that of AllocateHost, by all devices,
  // until the result goes; the memory itself must not go before. Takes time in proportion to its size.
  // Thread-safe.
  virtual absl::StatusOr<std::shared_ptr<void>> RegisterHost(std::span<std::byte>) { return nullptr; }
  // Memory for a resident tensor, not initialised: on the device, or ordinary on the CPU. Drop the buffer
  // only when the host has seen the end of all work that uses it. RESOURCE_EXHAUSTED if there is none; the
  // caller keeps to DeviceInfo::resident_bytes and upload_bytes together. Thread-safe.
  virtual absl::StatusOr<Buffer> AllocateResident(int device, std::size_t bytes) = 0;
  // Returns whether AllocateResident will take only microseconds for this many bytes, as far as can be told.
  // Getting memory from a device takes milliseconds. Thread-safe.
  virtual bool HasResidentAtHand(int, std::size_t) const { return true; }
  // Starts the copy and calls `done` exactly once, from the backend's completion thread, or before it returns
  // if the copy cannot be started. Thread-safe. Only for backends whose resident tensors do not lie on the
  // host.
  virtual void Start(const Transfer&, absl::AnyInvocable<void(absl::Status)> done) {
    done(absl::InternalError("this backend's tensors lie on the host"));
  }
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_DEVICE_BACKEND_H_

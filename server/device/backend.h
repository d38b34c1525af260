// The interface between the scheduler and a backend (cuda, cpu). Neither this header nor the code below it
// knows of gRPC, protobuf or Prometheus.
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
  // The memory for uploads and streamed results of requests, in addition to pool_bytes and resident_bytes.
  std::size_t upload_bytes = 0;
  // The memory for copies of tensors of other devices, in addition to all of these; 0 if the node has one
  // device.
  std::size_t replica_bytes = 0;
  // How fast bytes come from other devices; 0 if there are none.
  double peer_bytes_per_second = 0;
};

// A copy between host memory (from AllocateHost) and device memory (from AllocateResident). Whoever starts
// the copy keeps both alive until it has ended.
struct Transfer {
  enum class Direction { kToDevice, kToHost };
  Direction direction = Direction::kToDevice;
  int device = 0;
  std::span<std::byte> on_host;
  std::span<std::byte> on_device;  // of the same size
};

// A row of a variant table, as code outside the backends sees it.
struct VariantInfo {
  Op op;
  std::string_view name;
  std::string_view summary;
  bool reproducible;
  std::span<const std::string_view> configurations;  // names of its configurations
  std::vector<DType> dtypes;
};

// The result of a finished launch.
struct LaunchReport {
  absl::Status status;
  VariantNames variants;  // the variants that ran, one per step
  // True if the time from launch to end is not the program's own time: other programs used the device
  // meanwhile, or something had to be prepared first, for example a graph was captured. On the CPU each lane
  // is assumed to have a core of its own.
  bool shared = false;
  // The program did not run: the device's pool has enough free bytes (the scheduler has reserved them), but
  // not as one block. A block will be available once nothing else uses the pool.
  bool pool_in_pieces = false;
};

using LaunchDone = absl::AnyInvocable<void(LaunchReport)>;

// A program, compiled for a backend.
struct CompiledProgram {
  std::shared_ptr<const DeviceProgram> program;
  // How long a device will be busy with the program (server/plan/cost.h), in seconds. An estimate, accurate
  // within a factor of about three. If devices differ, this is the time of the slowest one.
  double seconds = 0;
  // The bytes of a device's pool that the program uses while it runs; 0 if the memory of a lane is enough.
  // Whoever launches programs makes sure that all programs on one device together use no more than its pool
  // has.
  std::size_t device_bytes = 0;
  // How many idle devices can share the program (StagedProgram::part).
  int max_parts = 1;
};

// A program bound to memory: regions of the program's MemoryPlan inside staging slots, and the memory of
// bindings that have their own. All of this must stay valid until `done` has been called. Whoever launches
// the program has already reserved CompiledProgram::device_bytes.
struct StagedProgram {
  const Program* program = nullptr;
  const MemoryPlan* plan = nullptr;
  const DeviceProgram* compiled = nullptr;  // compiled from `program` by the lane's backend
  std::span<const Binding> bindings;
  std::span<std::byte> input;   // payloads and scalars, placed as planned
  std::span<std::byte> output;  // to be written
  // A backend that works step by step checks these two between steps. Work that a GPU has already received
  // runs to its end.
  MonotonicTime deadline = kNever;
  const std::atomic<bool>* cancelled = nullptr;  // may be null
  // True if no other job waits. Launch may then wait for the end of the program itself, for some ten
  // microseconds, and call `done` before it returns. This saves a switch to another thread and back.
  bool wait_briefly = false;
  // Wherever a device has to choose, its kernels run before kernels that other lanes have already started.
  bool urgent = false;
  // Several devices share the program: each launches one part of its pieces, with the same bindings. At most
  // CompiledProgram::max_parts.
  int part = 0, parts = 1;
  OwnerId owner = 0;  // the owner of a graph that is made for this program
};

// A stream with its buffers and graphs (or, on the CPU, a thread's share of the machine): runs one program
// at a time. Not thread-safe; the scheduler gives it to one thread at a time.
class Lane {
 public:
  virtual ~Lane() = default;
  // Starts the program and calls `done` exactly once: from the backend's completion thread, or before Launch
  // returns. The lane is free for the next program when `done` is called.
  virtual void Launch(const StagedProgram& staged, LaunchDone done) = 0;
  // Returns true if Launch would return within microseconds: nothing has to be built first, and the calling
  // thread has almost nothing to compute. Then any thread may call Launch.
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
  // OK if `variant` can run the problem; an empty `variant` means any. INVALID_ARGUMENT otherwise, naming the
  // variants that can.
  virtual absl::Status CheckVariant(const Problem& problem, std::string_view variant) const = 0;
  // Compiles a program for all devices. CheckVariant must have accepted every step. INVALID_ARGUMENT, with
  // both figures, if no device has the memory that the program needs, in a lane or in its pool.
  virtual absl::StatusOr<CompiledProgram> Compile(const Program& program, const MemoryPlan& plan) const = 0;
  // Returns true if Lane::Launch hands the work to a device, so that the calling thread is free meanwhile.
  virtual bool launches_asynchronously() const = 0;
  virtual absl::StatusOr<std::unique_ptr<Lane>> CreateLane(int device) = 0;
  // Memory for staging slots: page-locked, or ordinary on the CPU.
  virtual absl::StatusOr<Buffer> AllocateHost(std::size_t bytes) = 0;
  // Registers memory of this process, which may be shared with other processes, so that all devices can use
  // it like memory from AllocateHost. The registration lasts until the result is destroyed; the memory itself
  // must live longer. Takes time in proportion to the size. Thread-safe.
  virtual absl::StatusOr<std::shared_ptr<void>> RegisterHost(std::span<std::byte>) { return nullptr; }
  // Returns uninitialised memory for a resident tensor: on the device, or ordinary memory on the CPU. Destroy
  // the buffer only after the host has seen the end of all work that uses it. RESOURCE_EXHAUSTED if there is
  // no such memory. The caller never allocates more than DeviceInfo::resident_bytes + upload_bytes +
  // replica_bytes.
  // Thread-safe.
  virtual absl::StatusOr<Buffer> AllocateResident(int device, std::size_t bytes) = 0;
  // Returns true if AllocateResident is expected to need only microseconds for this many bytes. Allocating
  // memory from the device itself takes milliseconds. Thread-safe.
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

// Chooses the path of a program: how its data reaches the device and returns.
#ifndef WARPLINE_SERVER_DEVICE_CHOOSE_PATH_H_
#define WARPLINE_SERVER_DEVICE_CHOOSE_PATH_H_

#include <cstddef>

#include "kernels/program.h"

namespace warpline {

enum class Path {
  // The kernel reads and writes the staging slots itself, over PCIe.
  kMapped,
  // One copy in, the kernels, one copy out. Programs that do not fit into the lane's memory use a block of
  // the device's pool. Tensors in shared regions are copied in and out one by one.
  kCopied,
  // The program is cut into pieces, so that the copies in both directions and the kernels run at the same
  // time.
  kBlocks,
};

// The sizes at which one path becomes faster than another, in bytes: the inputs and outputs of a program that
// are transferred, together. Measured on one H200 (PCIe 5 x16) with n x n transposes of f32, from slot to
// slot. Left: microseconds for one transpose alone. Right: GB/s of both directions together, with four
// transposes at once (docs/benchmarks/history.md#2026-11-22-engine):
//
//      n  copied  blocks  mapped | copied  blocks  mapped
//    256      28       -      22 |     48       -      45
//    362      42       -      35 |     69       -      45
//    512      59      54      50 |     86      87      55
//    724      95      84      99 |     89      90      45
//   1024     174     135     166 |     92      93      59
//
// So a small program always runs on its slots, and a slightly larger one only if nothing else runs. Beside
// other jobs copies are faster, because the copies of several jobs keep both directions busy. For the same
// reason a job is cut only if it has the device to itself, or shares its pieces with idle devices.
struct PathLimits {
  // Maximum bytes of a program that runs on its slots: beside other jobs, and when it is alone.
  std::size_t mapped_bytes = std::size_t{512} << 10;
  std::size_t mapped_bytes_alone = std::size_t{2} << 20;
  // The same limit for kernels that access less than a sector at a time, or read some bytes more than once.
  std::size_t mapped_scattered_bytes = std::size_t{128} << 10;
  // Minimum bytes of a program that is cut.
  std::size_t cut_bytes = std::size_t{4} << 20;
};

struct PathQuestion {
  bool alone = false;     // no other job is on the device
  bool can_map = false;   // staging memory and shared regions have the same addresses on the device
  bool can_cut = false;   // CutProgram can cut it
  bool fits_lane = true;  // the lane's memory is enough for the program
};

// A variant that a client requests by name always runs uncut and on device memory, so that it can be compared
// with other variants. If no tensor of a program is transferred, kMapped works on device memory too: only
// scalars are read from the slots.
Path ChoosePath(const Program& program, const MemoryPlan& plan, const PathQuestion& question,
                const PathLimits& limits);

}  // namespace warpline

#endif  // WARPLINE_SERVER_DEVICE_CHOOSE_PATH_H_

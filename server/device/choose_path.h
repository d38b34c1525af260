// How a program comes to the device and back: the choice between the ways to run it.
#ifndef WARPLINE_SERVER_DEVICE_CHOOSE_PATH_H_
#define WARPLINE_SERVER_DEVICE_CHOOSE_PATH_H_

#include <cstddef>

#include "kernels/program.h"

namespace warpline {

enum class Path {
  // The kernel reads and writes the staging slots itself, over PCIe.
  kMapped,
  // One copy in, the kernels, one copy out: in the lane's memory, or in a block of the device's pool, for
  // programs that do not fit there. Tensors in shared regions are copied in and out one by one.
  kCopied,
  // Cut into pieces, so that the copies of both directions and the kernels run at once.
  kBlocks,
};

// The sizes at which the paths cross, in bytes of a program's inputs and outputs together that travel. They
// were measured on one H200 (PCIe 5 x16) with n x n transposes of f32, from slot to slot, in microseconds
// alone, and in GB/s of both directions together with four at once
// (docs/benchmarks/history.md#2026-11-22-engine):
//
//      n  copied  blocks  mapped | copied  blocks  mapped
//    256      28       -      22 |     48       -      45
//    362      42       -      35 |     69       -      45
//    512      59      54      50 |     86      87      55
//    724      95      84      99 |     89      90      45
//   1024     174     135     166 |     92      93      59
//
// So a small program always runs on its slots, and one that is a little larger does if nothing else runs.
// Beside other jobs copies are faster, because the copies of several jobs fill both directions without help.
// For the same reason only a job that has the device to itself is cut.
struct PathLimits {
  // The most bytes of a program that runs on its slots: beside other jobs, and when it is alone.
  std::size_t mapped_bytes = std::size_t{512} << 10;
  std::size_t mapped_bytes_alone = std::size_t{2} << 20;
  // The same for kernels that access the bus in less than a sector at a time, or read some bytes again.
  std::size_t mapped_scattered_bytes = std::size_t{128} << 10;
  // The fewest bytes of a program that is cut.
  std::size_t cut_bytes = std::size_t{4} << 20;
};

struct PathQuestion {
  bool alone = false;     // no other job is on the device
  bool can_map = false;   // staging memory and shared regions have the same addresses on the device
  bool can_cut = false;   // CutProgram found a way
  bool fits_lane = true;  // the lane's memory is enough for the program
};

// A variant that a client asks for by name runs whole and on device memory always: that is where it can be
// compared with others. A program none of whose tensors travel is on device memory too when its kernel runs
// as if on slots: only scalars are read from there.
Path ChoosePath(const Program& program, const MemoryPlan& plan, const PathQuestion& question,
                const PathLimits& limits);

}  // namespace warpline

#endif  // WARPLINE_SERVER_DEVICE_CHOOSE_PATH_H_

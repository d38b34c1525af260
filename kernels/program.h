// A Program: what one request asks for, as a list of steps over numbered tensors. It is the only thing the
// engine executes; a single transpose is a program of one step.
#ifndef WARPLINE_KERNELS_PROGRAM_H_
#define WARPLINE_KERNELS_PROGRAM_H_

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "kernels/problem.h"

namespace warpline {

struct TensorSpec {
  DType dtype = DType::kF32;
  Shape shape;
  std::size_t bytes = 0;  // of its storage, up to the last element
};

struct Step {
  Problem problem;
  // Row of the variant table; empty: the backend's choice.
  std::string variant;
  // Indices into Program::tensors, in the order of Operands::in.
  std::vector<int> inputs;
  int output = -1;
  // Tensors of the further results of a map, each a whole one.
  std::vector<int> further;
  // Values of the scalars, if they are known: ScalarCount(problem) of them. A request's own come apart from
  // its program.
  std::vector<StepScalars> scalars;
  // Begins of the operands in their tensors, in bytes. Empty: each at the start.
  std::vector<std::size_t> input_offsets;
  // Begin of the result in its tensor, in bytes. Several steps may write parts of one tensor.
  std::size_t output_offset = 0;
  // The step of the request that this one is a part of. A step of a request may have several, or none.
  int part_of = 0;
};

// Tensors [0, num_inputs) come with the request; every other one is the output of a step, or of several that
// write a part each. A step reads only inputs and outputs of earlier steps. `outputs` are returned, in this
// order.
struct Program {
  std::vector<TensorSpec> tensors;
  int num_inputs = 0;
  std::vector<Step> steps;
  int num_parts = 1;  // steps of the request: see Step::part_of
  std::vector<int> outputs;
};

// The inputs and outputs of a program that have memory of their own, by tensor index.
struct OwnMemory {
  std::vector<int> resident;  // on the device
  std::vector<int> shared;    // on the host, addressable by the device: slices of shared regions
};

// The place of each tensor. Inputs are packed into one area, so that one copy brings all of them to the
// device. Outputs are packed into another area, in the order of Program::outputs. Intermediates lie in
// scratch memory, which is used again once their last reader has run. Every tensor starts at a multiple of
// kTensorAlignment. The scalars of steps follow the inputs, so they travel in the same copy.
inline constexpr std::size_t kTensorAlignment = 256;

enum class Area {
  kInput,
  kOutput,
  kScratch,
  kResident,  // memory of its own on the device, which the request names
  // Memory of its own on the host, which the request names; a device computes there, or on an image of it,
  // which has this place among the images.
  kShared,
};

struct Placement {
  Area area = Area::kScratch;
  std::size_t offset = 0;
};

struct MemoryPlan {
  std::vector<Placement> tensors;    // by tensor index
  std::vector<std::size_t> scalars;  // by step index: offset in the input area; of those that read any
  std::size_t input_bytes = 0;       // of each area
  std::size_t output_bytes = 0;
  std::size_t scratch_bytes = 0;
  std::size_t shared_bytes = 0;  // of the images

  // Bytes that come from the host or go back there for each run.
  std::size_t TravellingBytes() const { return input_bytes + output_bytes + shared_bytes; }
  bool Has(Area area) const;
  // True if any tensor comes from the host or goes back there; scalars do not count.
  bool Travels() const { return Has(Area::kInput) || Has(Area::kOutput) || Has(Area::kShared); }
};

MemoryPlan PlanMemory(const Program& program, const OwnMemory& own = {});

}  // namespace warpline

#endif  // WARPLINE_KERNELS_PROGRAM_H_

// A Program: a list of steps on numbered tensors that computes one request. It is the only thing that the
// engine executes. A single transpose is a program of one step.
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
  // Name of a row of the variant table; empty: the backend chooses.
  std::string variant;
  // Indices into Program::tensors, in the order of Operands::in.
  std::vector<int> inputs;
  int output = -1;
  // The tensors of the further results of a map. Each result is a complete tensor.
  std::vector<int> further;
  // The values of the scalars, if known: ScalarCount(problem) of them. The values of a request are stored
  // apart from its program.
  std::vector<StepScalars> scalars;
  // Byte offsets of the operands in their tensors. Empty: all are 0.
  std::vector<std::size_t> input_offsets;
  // Byte offset of the result in its tensor. Several steps may write parts of one tensor.
  std::size_t output_offset = 0;
  // The index of the request's step that this step is a part of. One step of a request may become several
  // steps, or none.
  int part_of = 0;
};

// Tensors [0, num_inputs) come with the request. Every other tensor is the output of one step, or of several
// steps that write one part each. A step reads only inputs and outputs of earlier steps. `outputs` are
// returned, in this order.
struct Program {
  std::vector<TensorSpec> tensors;
  int num_inputs = 0;
  std::vector<Step> steps;
  int num_parts = 1;  // number of steps of the request: see Step::part_of
  std::vector<int> outputs;
};

// The inputs and outputs of a program that have separate memory, by tensor index.
struct OwnMemory {
  std::vector<int> resident;  // on the device
  std::vector<int> shared;    // on the host, addressable by the device: slices of shared regions
};

// The location of each tensor. Inputs are packed into one area, so that one copy brings all of them to the
// device. Outputs are packed into another area, in the order of Program::outputs. Intermediates lie in
// scratch memory, which is reused once their last reader has run. Every tensor starts at a multiple of
// kTensorAlignment. The scalars of steps follow the inputs, so they are part of the same copy.
inline constexpr std::size_t kTensorAlignment = 256;

enum class Area {
  kInput,
  kOutput,
  kScratch,
  kResident,  // separate memory on the device, which the request names
  // Separate memory on the host, which the request names. A device computes on it directly or on a copy, its
  // image. The offset is that in the area of the images.
  kShared,
};

struct Placement {
  Area area = Area::kScratch;
  std::size_t offset = 0;
};

struct MemoryPlan {
  std::vector<Placement> tensors;    // by tensor index
  std::vector<std::size_t> scalars;  // by step index: offset in the input area, if the step reads any
  std::size_t input_bytes = 0;       // of each area
  std::size_t output_bytes = 0;
  std::size_t scratch_bytes = 0;
  std::size_t shared_bytes = 0;  // of the images

  // Returns the bytes that are copied from or to the host in each run.
  std::size_t TravellingBytes() const { return input_bytes + output_bytes + shared_bytes; }
  bool Has(Area area) const;
  // Returns true if any tensor is copied from or to the host; scalars do not count.
  bool Travels() const { return Has(Area::kInput) || Has(Area::kOutput) || Has(Area::kShared); }
};

MemoryPlan PlanMemory(const Program& program, const OwnMemory& own = {});

}  // namespace warpline

#endif  // WARPLINE_KERNELS_PROGRAM_H_

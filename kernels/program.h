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
  std::size_t bytes = 0;  // of its storage, row padding included
};

struct Step {
  Problem problem;
  // Row of the variant table; empty: the backend's choice.
  std::string variant;
  // Indices into Program::tensors, in the order of Operands::in.
  std::vector<int> inputs;
  int output = -1;
  // Of a gemm or scale. Not part of the signature.
  StepScalars scalars;
};

// Tensors [0, num_inputs) come with the request; every other one is the output of exactly one step, and a
// step reads only inputs and outputs of earlier steps. `outputs` are returned, in this order.
struct Program {
  std::vector<TensorSpec> tensors;
  int num_inputs = 0;
  std::vector<Step> steps;
  std::vector<int> outputs;
};

// Equal for two programs exactly when one captured graph can serve both: same steps, dtypes, shapes,
// strides, variants and bound tensors (see PlanMemory). Values of scalars do not count.
std::string Signature(const Program& program, std::span<const int> bound = {});

// Where each tensor lies. Inputs are packed into one region (then one copy brings all of them to the
// device), outputs into another, in the order of Program::outputs. Intermediates lie in scratch memory, which
// is used again once their last reader has run. Every tensor starts at a multiple of kTensorAlignment. The
// scalars of steps follow the inputs, so they travel in the same copy.
inline constexpr std::size_t kTensorAlignment = 256;

enum class Region {
  kInput,
  kOutput,
  kScratch,
  kBound,  // memory of its own, which the request names
};

struct Placement {
  Region region = Region::kScratch;
  std::size_t offset = 0;
};

struct MemoryPlan {
  std::vector<Placement> tensors;    // by tensor index
  std::vector<std::size_t> scalars;  // by step index: offset in the input region; of those that read any
  std::size_t input_bytes = 0;       // of each region
  std::size_t output_bytes = 0;
  std::size_t scratch_bytes = 0;
};

// `bound` are the inputs and outputs that have memory of their own and so take none here.
MemoryPlan PlanMemory(const Program& program, std::span<const int> bound = {});

}  // namespace warpline

#endif  // WARPLINE_KERNELS_PROGRAM_H_

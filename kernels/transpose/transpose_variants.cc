#include "kernels/cuda_variants.h"
#include "kernels/transpose/transpose_kernels.h"

namespace warpline {
namespace {

// The walk over all elements, in the order of the output if `by_output`.
StridedCopy WalkOf(const CanonicalTranspose& transpose, bool by_output) {
  const auto out_strides = transpose.OutputStrides();
  StridedCopy copy;
  for (int i = 0; i < transpose.rank; ++i) {
    const int axis = by_output ? transpose.perm[i] : i;
    copy.Append(transpose.dims[axis], transpose.in_strides[axis], out_strides[axis]);
  }
  return copy;
}

constexpr CudaVariant<TransposeProblem> kVariants[] = {
    {.name = "swizzled_packed",
     .summary = "16-byte vectors through XOR-swizzled shared memory; row copy where rows stay rows",
     .reproducible = true,
     .supports_dtype = [](DType) { return true; },
     .supports = [](const TransposeProblem&, const DeviceTraits&) { return true; },
     .workspace_bytes = [](const TransposeProblem&, const DeviceTraits&) -> std::size_t { return 0; },
     .launch = LaunchTransposeSwizzledPacked},
    {.name = "naive_read",
     .summary = "one thread an element, coalesced reads",
     .reproducible = true,
     .supports_dtype = [](DType) { return true; },
     .supports = [](const TransposeProblem&, const DeviceTraits&) { return true; },
     .workspace_bytes = [](const TransposeProblem&, const DeviceTraits&) -> std::size_t { return 0; },
     .launch = LaunchTransposeNaive},
};

}  // namespace

cudaError_t LaunchTransposeSwizzledPacked(const TransposeProblem& problem, const Operands& operands,
                                          const CudaContext& /*context*/, cudaStream_t stream) {
  const std::int64_t count = problem.shape.Count();
  if (count == 0) return cudaSuccess;
  const std::size_t bytes = SizeOf(problem.dtype);
  const void* in = operands.in[0];
  const CanonicalTranspose transpose = Canonicalize(problem);
  if (transpose.IsIdentity()) {
    return cudaMemcpyAsync(operands.out, in, static_cast<std::size_t>(count) * bytes, cudaMemcpyDefault,
                           stream);  // either side may be pinned host memory
  }
  const int inner_in = transpose.rank - 1;
  // Rows of one element, padded: nothing is contiguous.
  if (transpose.in_strides[inner_in] != 1) {
    return LaunchElementCopy(WalkOf(transpose, /*by_output=*/true), bytes, in, operands.out, stream);
  }
  const int inner_out = transpose.perm[transpose.rank - 1];
  if (inner_in == inner_out) return LaunchRowCopy(transpose, bytes, in, operands.out, stream);
  // A side of less than a sector (interleaved channels, say) would leave most of a tile empty. Then all that
  // one warp touches of the other order lies close together, and caches do what the tile was for.
  constexpr std::int64_t kSectorBytes = 32;
  const std::int64_t min_side = kSectorBytes / static_cast<std::int64_t>(bytes);
  const bool narrow_in = transpose.dims[inner_in] < min_side;
  const bool narrow_out = transpose.dims[inner_out] < min_side;
  if (narrow_in || narrow_out) {
    return LaunchElementCopy(WalkOf(transpose, /*by_output=*/!narrow_in), bytes, in, operands.out, stream);
  }
  return LaunchTileTranspose(transpose, bytes, in, operands.out, stream);
}

std::span<const CudaVariant<TransposeProblem>> CudaTransposeVariants() { return kVariants; }

}  // namespace warpline

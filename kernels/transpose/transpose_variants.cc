#include "kernels/cuda_variants.h"
#include "kernels/transpose/swizzle.h"
#include "kernels/transpose/tile_walk.h"
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

using TransposeVariant = CudaVariant<TransposeProblem>;

bool AnyProblem(const TransposeProblem&, const DeviceTraits&) { return true; }

// Elements of 4 or 8 bytes, the sizes that the rungs of the ladder are written for.
bool IsWord(DType dtype) { return SizeOf(dtype) == 4 || SizeOf(dtype) == 8; }

bool TakesVectors(const TransposeProblem& problem, const DeviceTraits&) {
  const auto vector = static_cast<std::int64_t>(kChunkBytes / SizeOf(problem.dtype));
  return problem.shape.Count() == 0 || MakeTileWalk(Canonicalize(problem)).TakesVectors(vector);
}

constexpr TransposeVariant Row(std::string_view name, std::string_view summary, bool (*supports_dtype)(DType),
                               decltype(TransposeVariant::supports) supports,
                               CudaLaunch<TransposeProblem>* launch,
                               decltype(TransposeVariant::cost) cost = nullptr) {
  return {.name = name,
          .summary = summary,
          .reproducible = true,
          .supports_dtype = supports_dtype,
          .supports = supports,
          .workspace_bytes = [](const TransposeProblem&, const DeviceTraits&) -> std::size_t { return 0; },
          .launch = launch,
          .cost = cost};
}

// Of a rung that takes so many times as long as a copy.
template <int kSlowdown>
VariantCost Slower(const TransposeProblem&, const DeviceTraits&) {
  return {.transfer = kSlowdown};
}

constexpr bool (*kAnyDType)(DType) = [](DType) { return true; };

// The choice, the ladder from its lowest rung, the oracle.
constexpr TransposeVariant kVariants[] = {
    Row("swizzled_packed",
        "16-byte vectors through XOR-swizzled shared memory; row copy where rows stay rows", kAnyDType,
        AnyProblem, LaunchTransposeSwizzledPacked),
    Row("naive_write", "one thread an element, coalesced writes", IsWord, AnyProblem,
        LaunchTransposeNaiveWrite, Slower<4>),
    Row("shared", "32 x 32 tile in shared memory, coalesced both ways, bank conflicts", IsWord, AnyProblem,
        LaunchTransposeShared, Slower<4>),
    Row("padded", "33 columns in the tile, no bank conflicts", IsWord, AnyProblem, LaunchTransposePadded,
        Slower<3>),
    Row("multi_element", "padded tile, 32 x 8 threads of 4 elements each", IsWord, AnyProblem,
        LaunchTransposeMultiElement),
    Row("vectorized", "16-byte vectors of global memory, which rows must be multiples of; bank conflicts",
        IsWord, TakesVectors, LaunchTransposeVectorized),
    Row("padded_vectorized", "16-byte vectors of global memory, padded tile", IsWord, TakesVectors,
        LaunchTransposePaddedVectorized),
    Row("shifted", "4 elements a thread, row y of the tile rotated by y", IsWord, AnyProblem,
        LaunchTransposeShifted),
    Row("swizzled", "4 elements a thread, XOR-swizzled tile", IsWord, AnyProblem, LaunchTransposeSwizzled),
    Row("swizzled_vectorized", "16-byte vectors of global memory, tile XOR-swizzled by vectors", IsWord,
        TakesVectors, LaunchTransposeSwizzledVectorized),
    Row("shuffle", "32 x 32 tile in the registers of a warp, no shared memory", IsWord, AnyProblem,
        LaunchTransposeShuffle),
    Row("naive_read", "one thread an element, coalesced reads", kAnyDType, AnyProblem, LaunchTransposeNaive,
        Slower<8>),
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

// Variant `naive_read`: one thread per element, in the order of the input, so that reads are coalesced and
// writes are scattered. It works on the problem as given, not on its canonical form: the oracle.
//
// Limit: each element that a warp writes lies in a different 32-byte sector. The indices of all axes are
// computed for each element.
// Next, `naive_write`: scattered reads instead, and batch axes decoded once per CTA.
#include "kernels/launch_grids.h"
#include "kernels/transpose/kernels.h"

namespace warpline {
namespace {

constexpr int kThreads = 256;

template <typename T>
__global__ void __launch_bounds__(kThreads)
    CopyElements(const T* in, T* out, const __grid_constant__ StridedCopy copy, std::int64_t count,
                 std::int64_t first_block) {
  std::int64_t index = (first_block + blockIdx.x) * kThreads + threadIdx.x;
  if (index >= count) return;
  std::int64_t from = 0;
  std::int64_t to = 0;
  for (int axis = copy.rank - 1; axis >= 0; --axis) {
    const std::int64_t rest = index / copy.dims[axis];
    const std::int64_t coordinate = index - rest * copy.dims[axis];
    from += coordinate * copy.in_strides[axis];
    to += coordinate * copy.out_strides[axis];
    index = rest;
  }
  out[to] = in[from];
}

template <typename T>
cudaError_t Launch(const StridedCopy& copy, const void* in, void* out, cudaStream_t stream) {
  const std::int64_t count = copy.Count();
  return LaunchGrids(CeilDiv(count, kThreads), [&](std::int64_t first, unsigned grid) {
    CopyElements<T>
        <<<grid, kThreads, 0, stream>>>(static_cast<const T*>(in), static_cast<T*>(out), copy, count, first);
  });
}

}  // namespace

cudaError_t LaunchElementCopy(const StridedCopy& copy, std::size_t element_bytes, const void* in, void* out,
                              cudaStream_t stream) {
  switch (element_bytes) {
    case 1:
      return Launch<std::uint8_t>(copy, in, out, stream);
    case 2:
      return Launch<std::uint16_t>(copy, in, out, stream);
    case 4:
      return Launch<std::uint32_t>(copy, in, out, stream);
    case 8:
      return Launch<std::uint64_t>(copy, in, out, stream);
    case 16:
      return Launch<uint4>(copy, in, out, stream);
    default:
      return cudaErrorNotSupported;
  }
}

cudaError_t LaunchTransposeNaive(const TransposeProblem& problem, const Operands& operands,
                                 const CudaContext& /*context*/, cudaStream_t stream) {
  const int rank = problem.shape.rank;
  std::int64_t out_strides[kMaxRank] = {};
  std::int64_t stride = 1;
  for (int i = rank - 1; i >= 0; --i) {
    out_strides[problem.perm[i]] = stride;
    stride *= problem.shape[problem.perm[i]];
  }
  StridedCopy copy;
  copy.rank = rank;
  const Strides in_strides = RowMajorStrides(problem.shape, problem.row_stride);
  for (int axis = rank - 1; axis >= 0; --axis) {
    copy.dims[axis] = problem.shape[axis];
    copy.in_strides[axis] = in_strides[axis];
    copy.out_strides[axis] = out_strides[axis];
  }
  return LaunchElementCopy(copy, SizeOf(problem.dtype), operands.in[0], operands.out, stream);
}

}  // namespace warpline

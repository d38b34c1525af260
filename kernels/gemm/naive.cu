// Variant `naive`: one thread per element of D, operands directly from global memory. Neighbouring threads
// read neighbouring elements of B and the same element of A, so reads are coalesced (except if B is
// transposed). But each element of A is read n times and each element of B m times. This is our only product
// of complex numbers: it computes what the library does not, for example with k = 0.
//
// Limit: the load units and the L1 cache.
// Next, `shared`: tiles of both operands in shared memory, where reading is cheaper.
#include "kernels/gemm/device.cuh"
#include "kernels/gemm/kernels.h"

namespace warpline {
namespace {

constexpr int kColumns = 32, kRows = 8;

template <typename Types>
__global__ void __launch_bounds__(kColumns* kRows)
    GemmNaive(const __grid_constant__ GemmArgs<Types> args, std::int64_t first_tile) {
  using Wide = typename Types::Wide;
  const GemmProblem& p = args.problem;
  const GemmTile tile = TileAt(args, first_tile + blockIdx.x, kRows, kColumns);
  const std::int64_t row = tile.row0 + threadIdx.y, column = tile.column0 + threadIdx.x;
  if (row >= p.m || column >= p.n) return;
  const GemmBatch::Matrices matrices = p.batch.At(tile.matrix);
  const auto a = OperandA(args, matrices.a);
  const auto b = OperandB(args, matrices.b);
  Wide sum = 0;
  for (std::int64_t k = 0; k < p.k; ++k) sum += Widen<Wide>(a.At(row, k)) * Widen<Wide>(b.At(k, column));
  GemmEpilogue<Types>(args, tile.matrix, matrices.c).Store(row, column, sum);
}

}  // namespace

cudaError_t LaunchGemmNaive(const GemmProblem& problem, const Operands& operands,
                            const CudaContext& /*context*/, cudaStream_t stream) {
  const auto launch = [&]<typename Types>(Types) {
    const auto args = MakeGemmArgs<Types>(problem, operands, kRows, kColumns);
    return LaunchGrids(args.Tiles(), [&](std::int64_t first, unsigned grid) {
      GemmNaive<Types><<<grid, dim3(kColumns, kRows), 0, stream>>>(args, first);
    });
  };
  switch (problem.dtype) {
    case DType::kC64:
      return launch(GemmTypes<Complex<float>, Complex<float>, Complex<float>>());
    case DType::kC128:
      return launch(GemmTypes<Complex<double>, Complex<double>, Complex<double>>());
    default:
      return WithGemmTypes(problem, launch);
  }
}

}  // namespace warpline

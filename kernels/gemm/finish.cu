// Computes results from a library's sums: alpha, beta and C, the bias, the activation, rounded once. A thread
// handles kItems 16-byte vectors of sums; neighbouring threads handle neighbouring vectors. If rows do not
// consist of whole vectors, a thread handles 16 bytes of D, which may continue in the next row. Limit:
// memory, or the L2 cache if the sums are still in it.
#include <cstdint>

#include "kernels/fast_divisor.h"
#include "kernels/gemm/device.cuh"
#include "kernels/gemm/stages.h"
#include "kernels/gpu/raw_vector.cuh"

namespace warpline {
namespace {

constexpr int kThreads = 256, kItems = 4;

template <typename T, int kSize>
struct alignas(sizeof(T) * kSize) Pack {
  T elements[kSize];
};

// 64-bit division is slow, and rarely needed.
__device__ std::int64_t Divide(std::int64_t a, std::int64_t b) {
  if ((a | b) >> 32 == 0) return static_cast<std::uint32_t>(a) / static_cast<std::uint32_t>(b);
  return a / b;
}

// The position of a vector of D.
struct Place {
  std::int64_t matrix, row, vector;
};

// Returns the position `offset` vectors after `from`.
__device__ Place Advance(const Place& from, std::int64_t offset, std::int64_t rows,
                         std::int64_t vectors_per_row) {
  Place place = from;
  place.vector += offset;
  if (place.vector < vectors_per_row) return place;
  const std::int64_t more_rows = Divide(place.vector, vectors_per_row);
  place.vector -= more_rows * vectors_per_row;
  place.row += more_rows;
  if (place.row < rows) return place;
  const std::int64_t more_matrices = Divide(place.row, rows);
  place.row -= more_matrices * rows;
  place.matrix += more_matrices;
  return place;
}

template <typename Types, int kVector>
__global__ void __launch_bounds__(kThreads)
    GemmFinish(const __grid_constant__ GemmArgs<Types> args, const __grid_constant__ GemmSums sums,
               std::int64_t vectors_per_row, std::int64_t vectors, std::int64_t first_block) {
  using Wide = typename Types::Wide;
  using Out = typename Types::Out;
  const GemmProblem& p = args.problem;
  const std::int64_t first = (first_block + blockIdx.x) * (kThreads * kItems);
  const Place start = Advance({0, 0, 0}, first, p.m, vectors_per_row);
  const auto* from = static_cast<const Wide*>(sums.data);
  Pack<Wide, kVector> loaded[kItems];
  Place places[kItems];
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    const int offset = i * kThreads + static_cast<int>(threadIdx.x);
    if (first + offset >= vectors) break;
    places[i] = Advance(start, offset, p.m, vectors_per_row);
    loaded[i] = *reinterpret_cast<const Pack<Wide, kVector>*>(
        from + places[i].matrix * sums.matrix + places[i].row * sums.ld + places[i].vector * kVector);
  }
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    const int offset = i * kThreads + static_cast<int>(threadIdx.x);
    if (first + offset >= vectors) break;
    const Place& place = places[i];
    const GemmEpilogue<Types> epilogue(args, place.matrix, p.has_c ? p.batch.At(place.matrix).c : 0);
    const std::int64_t column = place.vector * kVector;
    Pack<Out, kVector> result;
#pragma unroll
    for (int e = 0; e < kVector; ++e) {
      result.elements[e] = epilogue.Value(place.row, column + e, loaded[i].elements[e]);
    }
    *reinterpret_cast<Pack<Out, kVector>*>(epilogue.At(place.row, column)) = result;
  }
}

template <typename Types, int kVector>
cudaError_t Launch(const GemmProblem& problem, const Operands& operands, const GemmSums& sums,
                   cudaStream_t stream) {
  const auto args = MakeGemmArgs<Types>(problem, operands, 1, kVector);
  const std::int64_t vectors_per_row = problem.n / kVector;
  const std::int64_t vectors = vectors_per_row * problem.m * problem.batch.Count();
  return LaunchGrids(CeilDiv(vectors, kThreads * kItems), [&](std::int64_t first, unsigned grid) {
    GemmFinish<Types, kVector><<<grid, kThreads, 0, stream>>>(args, sums, vectors_per_row, vectors, first);
  });
}

// Computes elements of D in groups of 16 bytes, of `count` in total. `columns`, `rows`: of a matrix.
template <typename Types>
__global__ void __launch_bounds__(kThreads)
    GemmFinishElements(const __grid_constant__ GemmArgs<Types> args, const __grid_constant__ GemmSums sums,
                       FastDivisor columns, FastDivisor rows, std::uint32_t count) {
  using Out = typename Types::Out;
  constexpr int kSize = 16 / static_cast<int>(sizeof(Out));
  const GemmProblem& p = args.problem;
  const std::uint32_t index = (blockIdx.x * kThreads + threadIdx.x) * kSize;
  if (index >= count) return;
  std::uint32_t matrix = index;
  std::uint32_t column = TakeRemainder(matrix, columns), row = TakeRemainder(matrix, rows);
  const auto c_of = [&](std::uint32_t d) { return p.has_c ? p.batch.At(d).c : 0; };
  std::int64_t c = c_of(matrix);
  RawVector<16> results = {};
#pragma unroll
  for (int e = 0; e < kSize; ++e) {
    if (index + e >= count) break;
    const auto* from = static_cast<const typename Types::Wide*>(sums.data) + matrix * sums.matrix;
    SetElement(results, e,
               GemmEpilogue<Types>(args, matrix, c).Value(row, column, from[row * sums.ld + column]));
    if (++column < columns.divisor) continue;
    column = 0;
    if (++row < rows.divisor) continue;
    row = 0;
    if (++matrix * std::int64_t{rows.divisor} * columns.divisor < count) c = c_of(matrix);
  }
  if (count - index >= kSize) {
    *reinterpret_cast<RawVector<16>*>(args.d + index) = results;
    return;
  }
#pragma unroll
  for (int e = 0; e < kSize; ++e) {
    if (index + e < count) args.d[index + e] = Element<Out>(results, e);
  }
}

template <typename Types>
cudaError_t LaunchElements(const GemmProblem& problem, const Operands& operands, const GemmSums& sums,
                           cudaStream_t stream) {
  constexpr int kSize = 16 / static_cast<int>(sizeof(typename Types::Out));
  const std::int64_t count = problem.m * problem.n * problem.batch.Count();
  const auto blocks = static_cast<unsigned>(CeilDiv(count, kThreads * kSize));
  if (blocks == 0) return cudaSuccess;
  GemmFinishElements<<<blocks, kThreads, 0, stream>>>(MakeGemmArgs<Types>(problem, operands, 1, 1), sums,
                                                      FastDivisor(problem.n), FastDivisor(problem.m),
                                                      static_cast<std::uint32_t>(count));
  return cudaGetLastError();
}

template <typename Types>
cudaError_t LaunchFor(const GemmProblem& problem, const Operands& operands, const GemmSums& sums,
                      cudaStream_t stream) {
  constexpr int kVector = 16 / sizeof(typename Types::Wide);
  const auto is_aligned = [](const void* base) { return reinterpret_cast<std::uintptr_t>(base) % 16 == 0; };
  const bool whole = problem.n % kVector == 0 && sums.ld % kVector == 0 && sums.matrix % kVector == 0 &&
                     is_aligned(sums.data) && is_aligned(operands.out);
  if (whole) return Launch<Types, kVector>(problem, operands, sums, stream);
  const bool is_small = problem.m * problem.n * problem.batch.Count() < FastDivisor::kMax;
  return is_small && is_aligned(operands.out) ? LaunchElements<Types>(problem, operands, sums, stream)
                                              : Launch<Types, 1>(problem, operands, sums, stream);
}

}  // namespace

cudaError_t FinishGemm(const GemmProblem& problem, const Operands& operands, const GemmSums& sums,
                       cudaStream_t stream) {
  switch (problem.OutDType()) {  // the type of the operands does not matter here
    case DType::kI32:
      return LaunchFor<GemmTypes<std::int8_t, std::int32_t, std::uint32_t>>(problem, operands, sums, stream);
    case DType::kF16:
      return LaunchFor<GemmTypes<__half, __half, float>>(problem, operands, sums, stream);
    case DType::kBF16:
      return LaunchFor<GemmTypes<__nv_bfloat16, __nv_bfloat16, float>>(problem, operands, sums, stream);
    case DType::kF32:
      return LaunchFor<GemmTypes<float, float, float>>(problem, operands, sums, stream);
    case DType::kF64:
      return LaunchFor<GemmTypes<double, double, double>>(problem, operands, sums, stream);
    case DType::kC64:
      return LaunchFor<GemmTypes<Complex<float>, Complex<float>, Complex<float>>>(problem, operands, sums,
                                                                                  stream);
    case DType::kC128:
      return LaunchFor<GemmTypes<Complex<double>, Complex<double>, Complex<double>>>(problem, operands, sums,
                                                                                     stream);
    default:
      return cudaErrorNotSupported;
  }
}

}  // namespace warpline

// Stores sums that lie as the tensor cores leave them: of each row of D four neighbouring lanes have two of
// every 8 columns.
#ifndef WARPLINE_KERNELS_GEMM_ROWS_CUH_
#define WARPLINE_KERNELS_GEMM_ROWS_CUH_

#include <cstdint>
#include <cstring>

#include "kernels/gemm/device.cuh"

namespace warpline {

// Whether rows of D are multiples of 16 bytes (of 8 for f32, whose pairs fill sectors as they are).
template <typename Types>
bool SuitGemmRowVectors(const GemmArgs<Types>& args) {
  const std::int64_t per_store = std::is_same_v<typename Types::Out, float> ? 2 : 8;
  return args.problem.n % per_store == 0 && reinterpret_cast<std::uintptr_t>(args.d) % 16 == 0;
}

namespace gemm_rows {

// Of four neighbouring lanes, lane q gets words[q] of each, in their order.
inline __device__ void TransposeQuad(std::uint32_t (&words)[4], int q) {
#pragma unroll
  for (int mask = 2; mask > 0; mask /= 2) {
    const bool is_upper = (q & mask) != 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if ((i & mask) != 0) continue;
      const std::uint32_t received =
          __shfl_xor_sync(0xffffffffu, is_upper ? words[i] : words[i + mask], mask);
      (is_upper ? words[i] : words[i + mask]) = received;
    }
  }
}

// Two neighbouring elements of D.
template <typename Out>
struct alignas(2 * sizeof(Out)) Pair {
  Out first, second;
};

// Stores what a thread has of one row: of every 8 columns from `d` on two, as it is lane q of the four that
// have the row. Only the first `columns` are inside of D, and none of them if it is 0. `as_vectors`: as
// SuitGemmRowVectors says.
template <typename Out, int kBlocks>
__device__ void StoreRow(Out* d, int columns, int q, const float2 (&sums)[kBlocks], bool as_vectors) {
  const auto pair_at = [&](int j) { return Pair<Out>{Narrow<Out>(sums[j].x), Narrow<Out>(sums[j].y)}; };
  if (!as_vectors) {
#pragma unroll
    for (int j = 0; j < kBlocks; ++j) {
      const int column = j * 8 + q * 2;
      if (column < columns) d[column] = pair_at(j).first;
      if (column + 1 < columns) d[column + 1] = pair_at(j).second;
    }
  } else if constexpr (sizeof(Out) == 2) {
#pragma unroll
    for (int j0 = 0; j0 < kBlocks; j0 += 4) {
      std::uint32_t words[4];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const Pair<Out> pair = pair_at(j0 + j);
        memcpy(&words[j], &pair, sizeof(pair));
      }
      TransposeQuad(words, q);
      const int column = (j0 + q) * 8;
      if (column < columns) {
        *reinterpret_cast<uint4*>(d + column) = make_uint4(words[0], words[1], words[2], words[3]);
      }
    }
  } else {
#pragma unroll
    for (int j = 0; j < kBlocks; ++j) {
      const int column = j * 8 + q * 2;
      if (column < columns) *reinterpret_cast<Pair<Out>*>(d + column) = pair_at(j);
    }
  }
}

}  // namespace gemm_rows

// Makes elements of D of the sums that lane q of the four has of a row, from `column0` on, and stores those
// that are inside of D.
template <typename Types, int kBlocks>
__device__ void StoreGemmRow(const GemmEpilogue<Types>& epilogue, std::int64_t row, std::int64_t column0,
                             int q, const float2 (&sums)[kBlocks], bool as_vectors) {
  const int columns = epilogue.ColumnsInside(row, column0, kBlocks * 8);
  float2 results[kBlocks];
#pragma unroll
  for (int j = 0; j < kBlocks; ++j) {
    results[j] = {sums[j].x * epilogue.alpha(), sums[j].y * epilogue.alpha()};
  }
  // Most products only scale: the rest, repeated for each sum, would not fit into the instruction cache.
  if (!epilogue.OnlyScales()) {
#pragma unroll
    for (int j = 0; j < kBlocks; ++j) {
      const int column = j * 8 + q * 2;
      if (column < columns) results[j].x = epilogue.Finish(row, column0 + column, sums[j].x);
      if (column + 1 < columns) results[j].y = epilogue.Finish(row, column0 + column + 1, sums[j].y);
    }
  }
  gemm_rows::StoreRow(epilogue.At(row, column0), columns, q, results, as_vectors);
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_GEMM_ROWS_CUH_

// Stores sums in the layout that the tensor cores produce: in each row of D, four neighbouring lanes each
// have two of every 8 columns.
#ifndef WARPLINE_KERNELS_GEMM_ROWS_CUH_
#define WARPLINE_KERNELS_GEMM_ROWS_CUH_

#include <cstdint>
#include <cstring>

#include "kernels/gemm/device.cuh"

namespace warpline {

// True if rows of D are multiples of 16 bytes (8 bytes for f32, whose pairs fill sectors anyway).
template <typename Types>
bool SuitGemmRowVectors(const GemmArgs<Types>& args) {
  const std::int64_t per_store = std::is_same_v<typename Types::Out, float> ? 2 : 8;
  return args.problem.n % per_store == 0 && reinterpret_cast<std::uintptr_t>(args.d) % 16 == 0;
}

namespace gemm_rows {

// Transposes words among four neighbouring lanes: lane q gets words[q] of each lane, in lane order.
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

// Rounds two neighbouring elements of D to a word with one instruction.
template <typename Out>
__device__ std::uint32_t RoundToWord(float2 sums) {
  std::uint32_t word;
  if constexpr (std::is_same_v<Out, __half>) {
    const __half2 pair = __floats2half2_rn(sums.x, sums.y);
    memcpy(&word, &pair, sizeof(word));
  } else {
    static_assert(std::is_same_v<Out, __nv_bfloat16>);
    const __nv_bfloat162 pair = __floats2bfloat162_rn(sums.x, sums.y);
    memcpy(&word, &pair, sizeof(word));
  }
  return word;
}

// A thread's part of 16 rows: in every 8 columns, two elements of a row, and two of the row eight below.
template <int kBlocks>
using Sums = float[kBlocks][4];

template <int kHalf, int kBlocks>
__device__ float2 PairAt(const Sums<kBlocks>& sums, int block, float factor) {
  return {sums[block][kHalf * 2] * factor, sums[block][kHalf * 2 + 1] * factor};
}

// Stores a thread's sums of one row (kHalf: of the lower one), times `factor`. Lane q of the four that share
// the row has two of every 8 columns from `d` on. Only the first `columns` are inside of D; 0 means none.
// `as_vectors`: see SuitGemmRowVectors.
template <int kHalf, typename Out, int kBlocks>
__device__ void StoreRow(Out* d, int columns, int q, const Sums<kBlocks>& sums, float factor,
                         bool as_vectors) {
  if (!as_vectors) {
#pragma unroll
    for (int j = 0; j < kBlocks; ++j) {
      const int column = j * 8 + q * 2;
      const float2 pair = PairAt<kHalf>(sums, j, factor);
      if (column < columns) d[column] = Narrow<Out>(pair.x);
      if (column + 1 < columns) d[column + 1] = Narrow<Out>(pair.y);
    }
  } else if constexpr (sizeof(Out) == 2) {
#pragma unroll
    for (int j0 = 0; j0 < kBlocks; j0 += 4) {
      std::uint32_t words[4];
#pragma unroll
      for (int j = 0; j < 4; ++j) words[j] = RoundToWord<Out>(PairAt<kHalf>(sums, j0 + j, factor));
      TransposeQuad(words, q);
      const int column = (j0 + q) * 8;
      if (column < columns) {
        *reinterpret_cast<uint4*>(d + column) = make_uint4(words[0], words[1], words[2], words[3]);
      }
    }
  } else {
    static_assert(std::is_same_v<Out, float>);
#pragma unroll
    for (int j = 0; j < kBlocks; ++j) {
      const int column = j * 8 + q * 2;
      if (column < columns) *reinterpret_cast<float2*>(d + column) = PairAt<kHalf>(sums, j, factor);
    }
  }
}

// Stores unaligned rows of D with 2-byte elements, eight rows of a warp at a time, through shared memory: a
// warp stores contiguous words of one row at a time. Directly from registers, a row could only be stored as
// single elements, since its words begin in the middle of a lane's pairs. Then the four lanes that share the
// row would fill less than half of a sector.
template <typename Out, int kBlocks>
struct StagedRows {
  static_assert(sizeof(Out) == 2 && kBlocks % 8 == 0);
  static constexpr int kRows = 8, kLanes = 32;
  static constexpr int kRowWords = kBlocks * 4;
  // The first words of all eight rows lie in different banks.
  static constexpr int kPitch = kRowWords + 4;
  static constexpr int kBytes = kRows * kPitch * 4;

  // `d`: the start of the first row. `rows` and `columns`: how many are inside of D. Lane i has the part of
  // row i / 4 that lane i % 4 of a row has; it is stored times `factor`. `stage`: kBytes of shared memory
  // that only this warp uses.
  template <int kHalf>
  __device__ static void Store(Out* d, std::int64_t ld, int rows, int columns, const Sums<kBlocks>& sums,
                               float factor, std::uint32_t* stage) {
    const int lane = static_cast<int>(threadIdx.x) % kLanes;
    std::uint32_t* const row_of_lane = stage + lane / 4 * kPitch + lane % 4;
#pragma unroll
    for (int j = 0; j < kBlocks; ++j) row_of_lane[j * 4] = RoundToWord<Out>(PairAt<kHalf>(sums, j, factor));
    __syncwarp();
    if (rows == kRows && columns == kRowWords * 2) {
#pragma unroll
      for (int row = 0; row < kRows; ++row) StoreWhole(d + row * ld, stage + row * kPitch, lane);
    } else {
#pragma unroll 2
      for (int row = 0; row < rows; ++row) StorePart(d + row * ld, columns, stage + row * kPitch, lane);
    }
    __syncwarp();
  }

 private:
  // Returns how many elements before the row its first word of D begins.
  __device__ static int Skipped(const Out* to) {
    return reinterpret_cast<std::uintptr_t>(to) % 4 != 0 ? 1 : 0;
  }
  // Returns word `word` of D, counted from that first word. Must not be called for a word that begins before
  // the row.
  __device__ static std::uint32_t WordAt(const std::uint32_t* from, int word, int skipped) {
    return __funnelshift_r(from[word - skipped], from[word], 16 * skipped);
  }

  __device__ static void StoreWhole(Out* to, const std::uint32_t* from, int lane) {
    const int skipped = Skipped(to);
    auto* const words = reinterpret_cast<std::uint32_t*>(to - skipped);
    // If the row begins and ends within words, the first lane stores both ends.
    if (lane >= skipped) {
      words[lane] = WordAt(from, lane, skipped);
    } else {
      StoreHalf(to, from[0]);
      StoreHalf(to + kRowWords * 2 - 1, from[kRowWords - 1] >> 16);
    }
#pragma unroll
    for (int piece = 1; piece < kRowWords / kLanes; ++piece) {
      words[piece * kLanes + lane] = WordAt(from, piece * kLanes + lane, skipped);
    }
  }

  __device__ static void StorePart(Out* to, int columns, const std::uint32_t* from, int lane) {
    const int skipped = Skipped(to);
    auto* const words = reinterpret_cast<std::uint32_t*>(to - skipped);
#pragma unroll
    for (int piece = 0; piece < kRowWords / kLanes; ++piece) {
      if (piece * kLanes * 2 >= columns + skipped) break;
      const int word = piece * kLanes + lane, column = word * 2 - skipped;
      if (column >= 0 && column + 1 < columns) {
        words[word] = WordAt(from, word, skipped);
      } else if (column >= 0 && column < columns) {
        StoreHalf(to + column, from[column / 2] >> 16 * skipped);
      } else if (column < 0) {
        StoreHalf(to, from[0]);
      }
    }
    // Stores the last element of a whole row that begins within a word.
    if (lane < skipped && columns == kRowWords * 2) StoreHalf(to + columns - 1, from[kRowWords - 1] >> 16);
  }

  // Stores the lower half of the word.
  __device__ static void StoreHalf(Out* to, std::uint32_t word) {
    *reinterpret_cast<std::uint16_t*>(to) = static_cast<std::uint16_t>(word);
  }
};

}  // namespace gemm_rows

// Turns a lane's sums into elements of D, up to a factor, which it returns. The sums are those that lane q of
// four has of `row` and of the row eight below, from `column0` on. Values outside of D are undefined. Each
// step of the epilogue processes all sums before the next step begins. All steps in turn, repeated for each
// sum, would not fit into the instruction cache.
template <typename Types, int kBlocks>
__device__ float FinishGemmRows(const GemmEpilogue<Types>& epilogue, std::int64_t row, std::int64_t column0,
                                int q, gemm_rows::Sums<kBlocks>& sums) {
  if (epilogue.OnlyScales()) return epilogue.alpha();
  // Calls step(four sums, their first column).
  const auto each = [&](auto step) {
    constexpr int kAtATime = 4;
#pragma unroll
    for (int j = 0; j < kBlocks; ++j) {
      step(sums[j], j * 8 + q * 2);
      // Without this, the compiler would move all loads to the front, which needs too many registers.
      if (j % kAtATime == kAtATime - 1) asm volatile("" ::: "memory");
    }
  };
#pragma unroll
  for (int j = 0; j < kBlocks; ++j) {
#pragma unroll
    for (float& sum : sums[j]) sum *= epilogue.alpha();
  }
  if (epilogue.AddsC()) {
    each([&](float(&of_block)[4], int column) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const std::int64_t row_of = row + i / 2 * 8, column_of = column0 + column + i % 2;
        if (epilogue.IsInside(row_of, column_of)) of_block[i] = epilogue.AddC(row_of, column_of, of_block[i]);
      }
    });
  }
  if (epilogue.AddsBias()) {
    const int columns = epilogue.ColumnsInside(column0, kBlocks * 8);
    each([&](float(&of_block)[4], int column) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const float bias = column + i < columns ? epilogue.Bias(column0 + column + i) : 0.0f;
        of_block[i] += bias;
        of_block[i + 2] += bias;
      }
    });
  }
  switch (epilogue.activation()) {
    case Activation::kNone:
      break;
    case Activation::kRelu:
      each([](float(&of_block)[4], int) {
#pragma unroll
        for (float& value : of_block) value = Activate(Activation::kRelu, value);
      });
      break;
    case Activation::kGelu:
      each([](float(&of_block)[4], int) {
#pragma unroll
        for (float& value : of_block) value = Activate(Activation::kGelu, value);
      });
      break;
  }
  return 1;
}

// Same, and stores the elements.
template <typename Types, int kBlocks>
__device__ void StoreGemmRows(const GemmEpilogue<Types>& epilogue, std::int64_t row, std::int64_t column0,
                              int q, gemm_rows::Sums<kBlocks>& sums, bool as_vectors) {
  const float factor = FinishGemmRows(epilogue, row, column0, q, sums);
  const auto columns_of = [&](std::int64_t of_row) {
    return epilogue.HasRow(of_row) ? epilogue.ColumnsInside(column0, kBlocks * 8) : 0;
  };
  gemm_rows::StoreRow<0>(epilogue.At(row, column0), columns_of(row), q, sums, factor, as_vectors);
  gemm_rows::StoreRow<1>(epilogue.At(row + 8, column0), columns_of(row + 8), q, sums, factor, as_vectors);
}

// Same for all 16 rows of a warp from `row0` on, through shared memory: for 2-byte elements and unaligned
// rows of D. `stage`: StagedRows::kBytes of shared memory that only this warp uses.
template <typename Types, int kBlocks>
__device__ void StoreGemmRowsStaged(const GemmEpilogue<Types>& epilogue, std::int64_t row0,
                                    std::int64_t column0, gemm_rows::Sums<kBlocks>& sums,
                                    std::uint32_t* stage) {
  using Staged = gemm_rows::StagedRows<typename Types::Out, kBlocks>;
  const int lane = static_cast<int>(threadIdx.x) % Staged::kLanes;
  const float factor = FinishGemmRows(epilogue, row0 + lane / 4, column0, lane % 4, sums);
  const int columns = epilogue.ColumnsInside(column0, kBlocks * 8);
  const std::int64_t second = row0 + Staged::kRows;
  Staged::template Store<0>(epilogue.At(row0, column0), epilogue.columns(),
                            epilogue.RowsInside(row0, Staged::kRows), columns, sums, factor, stage);
  Staged::template Store<1>(epilogue.At(second, column0), epilogue.columns(),
                            epilogue.RowsInside(second, Staged::kRows), columns, sums, factor, stage);
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_GEMM_ROWS_CUH_

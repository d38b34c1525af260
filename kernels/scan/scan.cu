// Scans. Every addition has its place in a tree that depends on the shape only, so that results have the same
// bits from run to run, and at every alignment. Five kernels share the work:
//   ScanShortRows: a few lanes for each row.
//   ScanRows:      one to eight warps for each row, which they scan tile by tile.
//   ScanTiles:     a CTA for each tile of a few long rows. Tiles look back at the tiles before them.
//   ScanColumns:   a thread for each column, or for neighbouring columns.
//   ScanStrips:    a CTA for each tile of a few long columns. Tiles look back as well.
//
// Limit: device memory, which each kernel reads once and writes once.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <numeric>

#include "kernels/launch_grids.h"
#include "kernels/scan/columns.cuh"
#include "kernels/scan/kernels.h"
#include "kernels/scan/rows.cuh"
#include "kernels/scan/strips.cuh"
#include "kernels/scan/tiles.cuh"

namespace warpline {
namespace {

using namespace scan;  // NOLINT(google-build-using-namespace)

// Strips with more tiles than this use supergroups of groups. Otherwise the chain of prefixes would be too
// slow.
constexpr std::int64_t kMaxStripChain = 64;
// ScanColumns needs this many columns to fill the device. Columns shorter than kMinStripCount have no work to
// split.
constexpr std::int64_t kMinColumns = std::int64_t{1} << 18;
constexpr std::int64_t kMinStripCount = 17;

enum class ScanKernel { kShortRows, kRows, kTiles, kColumns, kStrips };

// All properties of a launch that follow from the shape.
struct ScanPlan {
  ScanKernel kernel = ScanKernel::kRows;
  RowLayout rows;
  int lanes = 1, warps = 1;  // per row
  StripLayout strips;
  LookBackLayout tiling;
  std::size_t value_bytes = 4;

  std::size_t WorkspaceBytes() const {
    if (!tiling.IsNeeded()) return 0;
    // Each 4 bytes of a value need 8 bytes: see Published.
    return kTicketBytes + static_cast<std::size_t>(tiling.Entries() * tiling.values) * value_bytes * 2;
  }
};

// With few rows, one CTA per row would leave SMs idle. Tiles of long rows use all SMs.
bool HasFewLongRows(const ScanProblem& problem, std::int64_t row_bytes) {
  constexpr std::int64_t kKiB = 1024;
  return (problem.outer < 512 && row_bytes > 16 * kKiB) || (problem.outer < 2048 && row_bytes >= 64 * kKiB);
}

void PlanRows(const ScanProblem& problem, std::int64_t vector_size, ScanPlan& plan) {
  plan.rows = {.rows = problem.outer, .count = problem.count};
  const std::int64_t max_shift = problem.outer == 1 ? 0 : vector_size - std::gcd(problem.count, vector_size);
  plan.rows.max_vectors = CeilDiv(max_shift + problem.count, vector_size);
  if (plan.rows.max_vectors <= 32) {
    plan.kernel = ScanKernel::kShortRows;
    plan.lanes = static_cast<int>(std::bit_ceil(static_cast<unsigned>(plan.rows.max_vectors)));
    return;
  }
  if (!HasFewLongRows(problem, problem.count * static_cast<std::int64_t>(plan.value_bytes))) {
    plan.kernel = ScanKernel::kRows;
    while (plan.warps < kScanWarps && plan.warps * kRowVectors * 32 < plan.rows.max_vectors) plan.warps *= 2;
    return;
  }
  plan.kernel = ScanKernel::kTiles;
  plan.tiling.lanes = problem.outer;
  plan.tiling.tiles = CeilDiv(plan.rows.max_vectors, kScanThreads * kTileVectors);
  plan.tiling.groups = CeilDiv(plan.tiling.tiles, kTileGroup);
  plan.tiling.chain = CeilDiv(plan.tiling.groups, kTileGroup);
}

void PlanStrips(const ScanProblem& problem, std::int64_t vector_size, ScanPlan& plan) {
  StripLayout& strips = plan.strips;
  plan.kernel = ScanKernel::kStrips;
  strips.count = problem.count;
  strips.inner = problem.inner;
  const std::int64_t vectors = CeilDiv(problem.inner, vector_size);
  strips.lanes =
      static_cast<int>(std::bit_ceil(static_cast<std::uint64_t>(std::min<std::int64_t>(vectors, 32))));
  strips.strips = CeilDiv(vectors, strips.lanes);
  strips.rows = kScanThreads / strips.lanes * kStripVectors;
  plan.tiling.lanes = problem.outer * strips.strips;
  plan.tiling.tiles = CeilDiv(problem.count, strips.rows);
  plan.tiling.values = static_cast<int>(strips.lanes * vector_size);
  const std::int64_t groups = CeilDiv(plan.tiling.tiles, kStripGroup);
  strips.has_supergroups = groups > kMaxStripChain;
  plan.tiling.groups = strips.has_supergroups ? groups : 0;
  plan.tiling.chain = strips.has_supergroups ? CeilDiv(groups, kStripGroup) : groups;
}

ScanPlan PlanScan(const ScanProblem& problem) {
  ScanPlan plan;
  plan.value_bytes = SizeOf(problem.dtype);
  const std::int64_t vector_size = kVectorBytes / static_cast<std::int64_t>(plan.value_bytes);
  if (problem.outer == 0 || problem.count == 0 || problem.inner == 0) return plan;
  if (problem.inner == 1) {
    PlanRows(problem, vector_size, plan);
  } else if (problem.outer * problem.inner >= kMinColumns || problem.count < kMinStripCount) {
    plan.kernel = ScanKernel::kColumns;
  } else {
    PlanStrips(problem, vector_size, plan);
  }
  return plan;
}

template <typename T>
LookBack<T> LookBackIn(void* workspace, const LookBackLayout& tiling) {
  if (!tiling.IsNeeded()) return {};
  LookBack<T> look_back;
  look_back.ticket = static_cast<unsigned long long*>(workspace);
  look_back.tiles = reinterpret_cast<Published<T>*>(static_cast<char*>(workspace) + kTicketBytes);
  look_back.groups = look_back.tiles + tiling.lanes * tiling.tiles * tiling.values;
  look_back.chain = look_back.groups + tiling.lanes * tiling.groups * tiling.values;
  return look_back;
}

template <typename T, typename Op>
cudaError_t LaunchTyped(const ScanProblem& problem, const Operands& operands, cudaStream_t stream) {
  ScanPlan plan = PlanScan(problem);
  const T* const x = static_cast<const T*>(operands.in[0]);
  T* const y = static_cast<T*>(operands.out);
  const auto is_aligned = [](const void* address) {
    return reinterpret_cast<std::uintptr_t>(address) % kVectorBytes == 0;
  };
  const ScanAccess access{.exclusive = problem.exclusive,
                          .reverse = problem.reverse,
                          .vector_loads = is_aligned(x),
                          .vector_stores = is_aligned(y)};
  const bool has_vectors = is_aligned(x) && is_aligned(y) && problem.inner % kVectorSize<T> == 0;
  if (plan.tiling.IsNeeded()) {
    const cudaError_t error = cudaMemsetAsync(operands.workspace, 0, plan.WorkspaceBytes(), stream);
    if (error != cudaSuccess) return error;
  }
  const LookBack<T> look_back = LookBackIn<T>(operands.workspace, plan.tiling);
  const std::int64_t tiles = plan.tiling.lanes * plan.tiling.tiles;
  switch (plan.kernel) {
    case ScanKernel::kShortRows:
      return LaunchGrids(CeilDiv(problem.outer, kScanThreads / plan.lanes * kShortRowVectors),
                         [&](std::int64_t first, unsigned grid) {
                           ScanShortRows<T, Op><<<grid, kScanThreads, 0, stream>>>(x, y, plan.rows, access,
                                                                                   plan.lanes, first);
                         });
    case ScanKernel::kRows: {
      const auto launch = [&](auto* kernel) {
        return LaunchGrids(
            CeilDiv(problem.outer, kScanWarps / plan.warps), [&](std::int64_t first, unsigned grid) {
              kernel<<<grid, kScanThreads, 0, stream>>>(x, y, plan.rows, access, plan.warps, first);
            });
      };
      return plan.rows.max_vectors <= plan.warps * kRowVectors * 32 ? launch(&ScanRows<T, Op, true>)
                                                                    : launch(&ScanRows<T, Op, false>);
    }
    case ScanKernel::kTiles:
      return LaunchGrids(tiles, [&](std::int64_t first, unsigned grid) {
        ScanTiles<T, Op>
            <<<grid, kScanThreads, 0, stream>>>(x, y, plan.rows, access, plan.tiling, look_back, first);
      });
    case ScanKernel::kColumns: {
      const auto launch = [&](auto* kernel, std::int64_t size) {
        const std::int64_t packs = problem.outer * (problem.inner / size);
        return LaunchGrids(CeilDiv(packs, kScanThreads), [&](std::int64_t first, unsigned grid) {
          kernel<<<grid, kScanThreads, 0, stream>>>(x, y, problem.outer, problem.count, problem.inner, access,
                                                    first);
        });
      };
      return has_vectors ? launch(&ScanColumns<T, Op, kVectorSize<T>>, kVectorSize<T>)
                         : launch(&ScanColumns<T, Op, 1>, 1);
    }
    case ScanKernel::kStrips:
      plan.strips.has_vectors = has_vectors;
      return LaunchGrids(tiles, [&](std::int64_t first, unsigned grid) {
        ScanStrips<T, Op>
            <<<grid, kScanThreads, 0, stream>>>(x, y, plan.strips, access, plan.tiling, look_back, first);
      });
  }
  return cudaErrorNotSupported;
}

template <typename T>
cudaError_t LaunchExtreme(const ScanProblem& problem, const Operands& operands, cudaStream_t stream) {
  return problem.op == ScanOp::kMin ? LaunchTyped<T, MinOp<T>>(problem, operands, stream)
                                    : LaunchTyped<T, MaxOp<T>>(problem, operands, stream);
}

template <typename T>
cudaError_t LaunchAny(const ScanProblem& problem, const Operands& operands, cudaStream_t stream) {
  switch (problem.op) {
    case ScanOp::kSum:
      return LaunchTyped<T, SumOp<T>>(problem, operands, stream);
    case ScanOp::kProd:
      return LaunchTyped<T, ProdOp<T>>(problem, operands, stream);
    case ScanOp::kMin:
    case ScanOp::kMax:
      return LaunchExtreme<T>(problem, operands, stream);
  }
  return cudaErrorNotSupported;
}

}  // namespace

std::size_t ScanWorkspaceBytes(const ScanProblem& problem, const DeviceTraits&) {
  return PlanScan(problem).WorkspaceBytes();
}

cudaError_t LaunchScan(const ScanProblem& problem, const Operands& operands, const CudaContext&,
                       cudaStream_t stream) {
  if (problem.outer == 0 || problem.count == 0 || problem.inner == 0) return cudaSuccess;
  switch (problem.dtype) {
    case DType::kF32:
      return LaunchAny<float>(problem, operands, stream);
    case DType::kF64:
      return LaunchAny<double>(problem, operands, stream);
    case DType::kU64:
      return LaunchAny<std::uint64_t>(problem, operands, stream);
    case DType::kI64:
      // Sums and products modulo 2^64 are the same as those of unsigned numbers.
      if (problem.op == ScanOp::kMin || problem.op == ScanOp::kMax) {
        return LaunchExtreme<std::int64_t>(problem, operands, stream);
      }
      return LaunchAny<std::uint64_t>(problem, operands, stream);
    default:
      return cudaErrorNotSupported;
  }
}

}  // namespace warpline

// Maps that only copy: each thread moves a unit of up to 16 bytes from runs of one array to runs of another.
// (Two, four or eight units per thread take as long or longer: docs/benchmarks/2026-11-28-h200-order.md.)
//
// Limit: device memory.
#include <cstdint>

#include "kernels/fast_divisor.h"
#include "kernels/launch_grids.h"
#include "kernels/map/kernels.h"
#include "kernels/map/walk.h"
#include "kernels/take_remainder.h"

namespace warpline {
namespace {

constexpr int kCopyThreads = 256;
constexpr std::uint64_t kMaxUnitBytes = 16;

// The innermost axis comes first. It is the axis of the runs, so both of its strides are 1. Strides are in
// units.
struct CopyWalk {
  int rank = 0;
  std::uint32_t units = 0;
  FastDivisor sizes[kMaxRank] = {};
  std::int64_t x[kMaxRank] = {}, out[kMaxRank] = {};
};

// The interpreter handles shorter runs.
constexpr std::int64_t kMinRunBytes = 64;

// Returns the widest unit that divides the runs, the strides and the addresses. Their lowest set bits
// determine it.
int UnitBytes(const MapWalk& walk, std::int64_t element_bytes, const void* x, const void* out) {
  std::uint64_t bits = kMaxUnitBytes | reinterpret_cast<std::uintptr_t>(x) |
                       reinterpret_cast<std::uintptr_t>(out) |
                       static_cast<std::uint64_t>(walk.dims[walk.rank - 1] * element_bytes);
  for (int axis = 0; axis + 1 < walk.rank; ++axis) {
    bits |= static_cast<std::uint64_t>(walk.strides[0][axis] * element_bytes);
    bits |= static_cast<std::uint64_t>(walk.of_result()[axis] * element_bytes);
  }
  return static_cast<int>(bits & (~bits + 1));
}

CopyWalk InUnits(const MapWalk& walk, std::int64_t element_bytes, int unit_bytes) {
  const auto units = [&](std::int64_t elements) { return elements * element_bytes / unit_bytes; };
  CopyWalk copy;
  copy.units = static_cast<std::uint32_t>(units(walk.count));
  for (int axis = walk.rank - 1; axis >= 0; --axis) {
    const bool is_run = copy.rank == 0;
    copy.sizes[copy.rank] = FastDivisor(is_run ? units(walk.dims[axis]) : walk.dims[axis]);
    copy.x[copy.rank] = is_run ? 1 : units(walk.strides[0][axis]);
    copy.out[copy.rank++] = is_run ? 1 : units(walk.of_result()[axis]);
  }
  return copy;
}

struct CopyPlace {
  std::int64_t x = 0, out = 0;
};

__device__ __forceinline__ CopyPlace PlaceOf(const CopyWalk& walk, std::uint32_t unit) {
  CopyPlace place;
#pragma unroll
  for (int i = 0; i < kMaxRank; ++i) {
    if (i >= walk.rank) break;
    const std::int64_t along = i + 1 == walk.rank ? unit : TakeRemainder(unit, walk.sizes[i]);
    place.x += along * walk.x[i];
    place.out += along * walk.out[i];
  }
  return place;
}

template <typename Unit>
__global__ void __launch_bounds__(kCopyThreads)
    CopyRuns(const Unit* __restrict__ x, Unit* __restrict__ out, const __grid_constant__ CopyWalk walk) {
  const std::uint32_t unit = blockIdx.x * kCopyThreads + threadIdx.x;
  if (unit >= walk.units) return;
  const CopyPlace place = PlaceOf(walk, unit);
  out[place.out] = x[place.x];
}

}  // namespace

bool MapCopySupports(const MapProblem& problem, const DeviceTraits&) {
  const bool copies = problem.nodes.size() == 1 && problem.inputs.size() == 1 &&
                      problem.nodes[0].op == MapOp::kCast && problem.inputs[0].dtype == problem.OutDType() &&
                      problem.OutDType() != DType::kBool;  // a bool's byte may have any nonzero value
  if (!copies) return false;
  const MapWalk walk = MapWalk::Of(problem);
  const auto bytes = static_cast<std::int64_t>(SizeOf(problem.OutDType()));
  const int run = walk.rank - 1;
  if (run < 0 || walk.strides[0][run] != 1 || walk.of_result()[run] != 1) return false;
  return walk.dims[run] * bytes >= kMinRunBytes && walk.count * bytes < FastDivisor::kMax;
}

cudaError_t LaunchMapCopy(const MapProblem& problem, const Operands& operands, const CudaContext&,
                          cudaStream_t stream) {
  const MapWalk walk = MapWalk::Of(problem);
  if (walk.count == 0) return cudaSuccess;
  const auto element_bytes = static_cast<std::int64_t>(SizeOf(problem.OutDType()));
  const int unit_bytes = UnitBytes(walk, element_bytes, operands.in[0], operands.out);
  const CopyWalk copy = InUnits(walk, element_bytes, unit_bytes);
  const auto launch = [&]<typename Unit>(Unit) {
    const auto blocks = static_cast<unsigned>(CeilDiv(std::int64_t{copy.units}, kCopyThreads));
    CopyRuns<Unit><<<blocks, kCopyThreads, 0, stream>>>(static_cast<const Unit*>(operands.in[0]),
                                                        static_cast<Unit*>(operands.out), copy);
    return cudaGetLastError();
  };
  switch (unit_bytes) {
    case 16:
      return launch(uint4{});
    case 8:
      return launch(std::uint64_t{});
    case 4:
      return launch(std::uint32_t{});
    case 2:
      return launch(std::uint16_t{});
    default:
      return launch(std::uint8_t{});
  }
}

}  // namespace warpline

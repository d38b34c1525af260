#include "server/device/cpu_rates.h"

#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/cpu/cpu_variants.h"
#include "server/device/select_variant.h"

namespace warpline {
namespace {

constexpr std::size_t kCopyBytes = std::size_t{16} << 20;
constexpr std::int64_t kSize = 192;
constexpr std::size_t kMatrixBytes = kSize * kSize * 16;  // for c128, the widest type
// The overhead of each step, and of each product of a batch. It covers looking up the row of the table,
// checking arguments and packing operands.
constexpr double kLaunchSeconds = 1e-7;

// Used instead of a measurement if there is no memory to measure with.
constexpr double kFallbackBytesPerSecond = 2e9;

double ThreadSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// Returns the time of the shortest round. Runs at least kRounds rounds, and more until kEnough seconds have
// passed.
template <typename Work>
double ShortestSeconds(const Work& work) {
  constexpr int kRounds = 3;
  constexpr double kEnough = 3e-3;
  double shortest = std::numeric_limits<double>::infinity();
  double total = 0;
  for (int round = 0; round < kRounds || total < kEnough; ++round) {
    const double start = ThreadSeconds();
    work();
    const double seconds = std::max(ThreadSeconds() - start, 1e-9);
    shortest = std::min(shortest, seconds);
    total += seconds;
  }
  return shortest;
}

// Copies into memory that is touched for the first time, because that is where the intermediate results of
// large programs go.
double CopyBytesPerSecond() {
  const std::vector<std::byte> from(kCopyBytes);
  void* const to = mmap(nullptr, kCopyBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (to == MAP_FAILED) return kFallbackBytesPerSecond;
  const double seconds = ShortestSeconds([&] {
    madvise(to, kCopyBytes, MADV_DONTNEED);
    std::memcpy(to, from.data(), kCopyBytes);
  });
  munmap(to, kCopyBytes);
  return 2.0 * kCopyBytes / seconds;
}

double FlopsPerSecond(DType dtype, std::byte* memory) {
  const GemmProblem problem{
      .dtype = dtype, .m = kSize, .n = kSize, .k = kSize, .lda = kSize, .ldb = kSize, .ldc = kSize};
  const StepScalars scalars;
  const auto* row = FindVariant(CpuGemmVariants(), problem, "", {});
  Operands operands;
  operands.in[0] = memory;
  operands.in[1] = memory + kMatrixBytes;
  operands.out = memory + 2 * kMatrixBytes;
  operands.scalars = &scalars;
  operands.workspace = memory + 3 * kMatrixBytes;
  operands.workspace_bytes = row->workspace_bytes(problem, {});
  return FlopsOf(problem) / ShortestSeconds([&] { row->launch(problem, operands); });
}

// Returns the time per element of a sum in the plainest loop (the variant "reference").
double SerialSeconds(std::byte* memory) {
  constexpr std::int64_t kCount = 64 << 10;
  const ReduceProblem problem{.dtype = DType::kF32, .shape = {kCount}, .axes_mask = 1};
  const auto* row = FindVariant(CpuReduceVariants(), problem, "reference", {});
  Operands operands;
  operands.in[0] = memory;
  operands.out = memory + kCount * sizeof(float);
  return ShortestSeconds([&] { row->launch(problem, operands); }) / kCount;
}

}  // namespace

DeviceRates MeasureCpuRates() {
  DeviceRates rates;
  rates.launch_seconds = kLaunchSeconds;
  rates.bytes_per_second = CopyBytesPerSecond();
  // Room for three matrices and the workspace. Bytes of 0x3c are a small number in every float format.
  std::vector<std::byte> memory(kCopyBytes / 2, std::byte{0x3c});
  for (DType dtype : kAllDTypes) {
    if (!IsGemmInput(dtype)) continue;
    rates.flops_per_second[static_cast<std::size_t>(dtype)] = FlopsPerSecond(dtype, memory.data());
  }
  rates.serial_seconds = SerialSeconds(memory.data());
  rates.tf32_flops_per_second = rates.flops_per_second[static_cast<std::size_t>(DType::kF32)];
  return rates;
}

}  // namespace warpline

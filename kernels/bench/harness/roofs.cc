#include "kernels/bench/harness/roofs.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "kernels/bench/harness/baselines.h"
#include "kernels/bench/harness/check.h"
#include "kernels/bench/harness/operand_slots.h"
#include "kernels/bench/harness/timing.h"
#include "kernels/bench/report/labels.h"
#include "kernels/bench/suites/cases.h"
#include "kernels/gpu/random_data.h"

namespace warpline::bench {
namespace {

constexpr int kRounds = 7;

const CudaVariant<GemmProblem>* FindCublas() {
  for (const auto& row : CudaGemmVariants()) {
    if (row.name == "cublas") return &row;
  }
  return nullptr;
}

}  // namespace

Roofs::Roofs(const Device& device) : device_(device) {
  constexpr std::size_t kGiB = std::size_t{1} << 30;
  const std::size_t bytes = std::min(kGiB, FreeBytes() / 4 / 1024 * 1024);
  const gpu::DeviceBytes from = Value(gpu::AllocateDevice(bytes));
  const gpu::DeviceBytes to = Value(gpu::AllocateDevice(bytes));
  Check(gpu::FillBits(from.get(), bytes, 1, device.stream.get()), "filling a buffer");
  std::vector<std::string> names;
  std::vector<double> sizes;
  std::vector<Launcher> launchers;
  for (const std::size_t size : {bytes / 4, bytes}) {
    launchers.push_back([&, size](int, cudaStream_t stream) {
      return cudaMemcpyAsync(to.get(), from.get(), size, cudaMemcpyDeviceToDevice, stream);
    });
    launchers.push_back(
        [&, size](int, cudaStream_t stream) { return LaunchCopy(from.get(), to.get(), size, stream); });
    for (const char* by : {"cudaMemcpyAsync", "our kernel"}) {
      names.push_back(absl::StrCat(size >> 20, " MiB by ", by));
      sizes.push_back(static_cast<double>(size));
    }
  }
  launchers.push_back(
      [&](int, cudaStream_t stream) { return LaunchRead(from.get(), bytes, to.get(), stream); });
  const std::vector<Timing> timings = TimeInTurns(launchers, 1, kRounds, device_.stream.get());
  for (std::size_t i = 0; i < names.size(); ++i) {
    const double rate = 2 * sizes[i] / timings[i].median;
    if (rate <= copy_) continue;
    copy_ = rate;
    copy_name_ = names[i];
  }
  read_ = static_cast<double>(bytes) / timings.back().median;
}

double Roofs::Gemm(DType dtype, Precision precision) {
  const std::int64_t size = dtype == DType::kF64 ? 4096 : 8192;
  GemmProblem problem = MakeGemm(dtype, size, size, size);
  problem.precision = precision;
  const std::string key(TypeName(problem));
  if (const auto found = gemm_.find(key); found != gemm_.end()) return found->second;
  double& roof = gemm_[key];
  const CudaVariant<GemmProblem>* cublas = FindCublas();
  if (cublas == nullptr || !cublas->supports_dtype(dtype) ||
      !cublas->supports(problem, device_.context.traits) ||
      FreeBytes() < SetBytes(problem) + cublas->workspace_bytes(problem, device_.context.traits)) {
    return roof;
  }
  const OperandSlots slots(problem, 1, cublas->workspace_bytes(problem, device_.context.traits),
                           device_.stream.get());
  const Launcher launchers[] = {[&](int slot, cudaStream_t stream) {
    return cublas->launch(problem, slots.At(slot), device_.context, stream);
  }};
  roof = FlopsOf(problem) / TimeInTurns(launchers, 1, kRounds, device_.stream.get())[0].median;
  return roof;
}

}  // namespace warpline::bench

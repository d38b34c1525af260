#include "server/device/roofline.h"

#include <algorithm>
#include <vector>

#include "kernels/gpu/handle.h"
#include "kernels/gpu/status.h"
#include "kernels/status_macros.h"

namespace warpline {
namespace {

using gpu::ToStatus;

// Returns the median time, over a few rounds, that the device takes for the work that `enqueue` puts into the
// stream.
template <typename Enqueue>
absl::StatusOr<double> MedianSeconds(cudaStream_t stream, const Enqueue& enqueue) {
  constexpr int kRounds = 5;
  ASSIGN_OR_RETURN(gpu::Event begin, gpu::CreateTimedEvent());
  ASSIGN_OR_RETURN(gpu::Event end, gpu::CreateTimedEvent());
  std::vector<float> milliseconds;
  RETURN_IF_ERROR(ToStatus(enqueue(), "measuring the roofline"));  // warm-up
  for (int round = 0; round < kRounds; ++round) {
    RETURN_IF_ERROR(ToStatus(cudaEventRecord(begin.get(), stream), "measuring the roofline"));
    RETURN_IF_ERROR(ToStatus(enqueue(), "measuring the roofline"));
    RETURN_IF_ERROR(ToStatus(cudaEventRecord(end.get(), stream), "measuring the roofline"));
    RETURN_IF_ERROR(ToStatus(cudaEventSynchronize(end.get()), "measuring the roofline"));
    float elapsed = 0;
    RETURN_IF_ERROR(
        ToStatus(cudaEventElapsedTime(&elapsed, begin.get(), end.get()), "measuring the roofline"));
    milliseconds.push_back(elapsed);
  }
  std::nth_element(milliseconds.begin(), milliseconds.begin() + kRounds / 2, milliseconds.end());
  return milliseconds[kRounds / 2] * 1e-3;
}

}  // namespace

double Roofline::ShortestSeconds(const Problem& problem) const {
  if (copy_bytes_per_second == 0) return 0;
  const double transfer = BytesOf(problem) / copy_bytes_per_second;
  const auto* gemm = std::get_if<GemmProblem>(&problem);
  if (gemm == nullptr) return transfer;  // the other operations are memory-bound on every GPU we support
  const double peak = gemm->dtype == DType::kF32 && gemm->precision == Precision::kTf32
                          ? tf32_flops_per_second
                          : flops_per_second[static_cast<std::size_t>(gemm->dtype)];
  return peak == 0 ? 0 : std::max(transfer, FlopsOf(problem) / peak);
}

absl::StatusOr<Roofline> MeasureRoofline(const CudaContext& context) {
  constexpr std::int64_t kSize = 4096;                                // large enough to fill any GPU of today
  constexpr std::size_t kBytes = std::size_t{3} * kSize * kSize * 8;  // A, B and D of f64
  constexpr std::size_t kCopyBytes = std::size_t{128} << 20;          // several times the L2
  constexpr std::size_t kWorkspace = std::size_t{32} << 20;
  ASSIGN_OR_RETURN(gpu::Stream stream, gpu::CreateStream());
  ASSIGN_OR_RETURN(gpu::DeviceBytes memory, gpu::AllocateDevice(kBytes + kWorkspace + 256));
  auto* base = static_cast<std::byte*>(memory.get());
  // 0x3c in every byte is a small positive number in every float format. With zeros the GPU would draw less
  // power, and so run at higher clocks than with real data.
  RETURN_IF_ERROR(ToStatus(cudaMemsetAsync(base, 0x3c, kBytes, stream.get()), "measuring the roofline"));
  Roofline roofline;
  ASSIGN_OR_RETURN(const double copy, MedianSeconds(stream.get(), [&] {
                     return cudaMemcpyAsync(base + kCopyBytes, base, kCopyBytes, cudaMemcpyDeviceToDevice,
                                            stream.get());
                   }));
  roofline.copy_bytes_per_second = 2.0 * kCopyBytes / copy;
  const StepScalars scalars;
  auto* device_scalars = reinterpret_cast<StepScalars*>(base + kBytes + kWorkspace);
  RETURN_IF_ERROR(ToStatus(cudaMemcpy(device_scalars, &scalars, sizeof(scalars), cudaMemcpyHostToDevice),
                           "measuring the roofline"));
  const auto variants = CudaGemmVariants();
  const auto cublas =
      std::find_if(variants.begin(), variants.end(), [](const auto& row) { return row.name == "cublas"; });
  for (DType dtype : {DType::kF16, DType::kBF16, DType::kF32, DType::kF64}) {
    for (Precision precision : {Precision::kIeee, Precision::kTf32}) {
      if (precision == Precision::kTf32 && dtype != DType::kF32) continue;
      GemmProblem problem{
          .dtype = dtype, .m = kSize, .n = kSize, .k = kSize, .lda = kSize, .ldb = kSize, .ldc = kSize};
      problem.precision = precision;
      if (cublas == variants.end() || !cublas->supports(problem, context.traits)) continue;
      const std::size_t matrix = kSize * kSize * SizeOf(dtype);
      Operands operands;
      operands.in[0] = base;
      operands.in[1] = base + matrix;
      operands.out = base + 2 * matrix;
      operands.scalars = device_scalars;
      operands.workspace = base + kBytes;
      operands.workspace_bytes = kWorkspace;
      ASSIGN_OR_RETURN(const double seconds, MedianSeconds(stream.get(), [&] {
                         return cublas->launch(problem, operands, context, stream.get());
                       }));
      (precision == Precision::kTf32 ? roofline.tf32_flops_per_second
                                     : roofline.flops_per_second[static_cast<std::size_t>(dtype)]) =
          FlopsOf(problem) / seconds;
    }
  }
  return roofline;
}

}  // namespace warpline

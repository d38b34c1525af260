#include "server/device/cuda_rates.h"

#include <algorithm>
#include <cstddef>

namespace warpline {
namespace {

// Guesses of the rates of one multiprocessor, for rates that were not measured: low ones, near those of a T4.
// It reaches 8 GB/s, and 200 GFLOP/s in f32. Graphics GPUs have few f64 units.
constexpr double kBytesPerSecond = 8e9;
constexpr double kF32FlopsPerSecond = 2e11;
constexpr double kHalfFlopsPerSecond = 1e12;
constexpr double kF64FlopsPerSecond = 5e9;
// The time per element when a single thread loads and handles one element after the other. On an H200 it is
// 0.1 us, and up to 0.4 us beside many other threads.
constexpr double kSerialSeconds = 2e-7;
// The minimum time of a kernel of a graph, including the gap before it.
constexpr double kLaunchSeconds = 3e-6;

}  // namespace

DeviceRates CudaRates(const Roofline& roofline, const DeviceTraits& traits) {
  const double multiprocessors = std::max(traits.multiprocessors, 1);
  const auto rate = [&](double measured, double guess) {
    return measured > 0 ? measured : guess * multiprocessors;
  };
  DeviceRates rates;
  rates.bytes_per_second = rate(roofline.copy_bytes_per_second, kBytesPerSecond);
  const auto set = [&](DType dtype, double guess) {
    const auto index = static_cast<std::size_t>(dtype);
    rates.flops_per_second[index] = rate(roofline.flops_per_second[index], guess);
  };
  set(DType::kF16, kHalfFlopsPerSecond);
  set(DType::kBF16, kHalfFlopsPerSecond);
  set(DType::kF32, kF32FlopsPerSecond);
  set(DType::kF64, kF64FlopsPerSecond);
  // The roofline does not measure products of integers and complex numbers. cuBLASLt computes i8 products
  // faster than f32 products, and our own kernels about as fast. Other integers are multiplied at half the
  // rate of f32, and a 64-bit multiplication takes four 32-bit ones.
  for (DType dtype : kAllDTypes) {
    const auto of = [&](DType other) { return rates.flops_per_second[static_cast<std::size_t>(other)]; };
    double& rate_of_dtype = rates.flops_per_second[static_cast<std::size_t>(dtype)];
    if (IsComplex(dtype)) rate_of_dtype = of(PartOf(dtype));
    if (IsInteger(dtype)) rate_of_dtype = of(DType::kF32) / (SizeOf(dtype) == 8 ? 8 : 2);
    if (dtype == DType::kI8) rate_of_dtype = of(DType::kF32);
  }
  rates.tf32_flops_per_second = rate(roofline.tf32_flops_per_second, kF32FlopsPerSecond);
  rates.serial_seconds = kSerialSeconds;
  rates.launch_seconds = kLaunchSeconds;
  return rates;
}

}  // namespace warpline

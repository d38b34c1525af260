#include "server/plan/cost.h"

#include <algorithm>
#include <variant>

namespace warpline {

double StepSeconds(const Problem& problem, const VariantCost& cost, const DeviceRates& rates) {
  const double transfer = BytesOf(problem) / rates.bytes_per_second;
  double arithmetic = 0;  // other operations are limited by memory, or count it in `cost.transfer`
  if (const auto* gemm = std::get_if<GemmProblem>(&problem)) {
    const bool tf32 = gemm->dtype == DType::kF32 && gemm->precision == Precision::kTf32;
    arithmetic = FlopsOf(problem) / (tf32 ? rates.tf32_flops_per_second
                                          : rates.flops_per_second[static_cast<std::size_t>(gemm->dtype)]);
  }
  return std::max(
             {transfer * cost.transfer, arithmetic * cost.arithmetic, cost.serial * rates.serial_seconds}) +
         cost.launches * rates.launch_seconds;
}

}  // namespace warpline

#include "server/device/cuda_rates.h"

#include <gtest/gtest.h>

#include <cstddef>

namespace warpline {
namespace {

// A type without a rate makes every product of it endless, and the server refuse them all.
TEST(CudaRatesTest, ProductsOfEveryTypeHaveARate) {
  const DeviceTraits traits{.multiprocessors = 132};
  for (DType dtype : kAllDTypes) {
    if (!IsGemmInput(dtype)) continue;
    EXPECT_GT(CudaRates({}, traits).flops_per_second[static_cast<std::size_t>(dtype)], 0) << Name(dtype);
  }
}

}  // namespace
}  // namespace warpline

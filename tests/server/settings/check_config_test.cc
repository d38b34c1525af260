#include "server/settings/check_config.h"

#include "gtest/gtest.h"

namespace warpline {
namespace {

TEST(TuningTextTest, CountsTheChoicesOfEachKindOfDevice) {
  TuningFile file;
  EXPECT_EQ(TuningText("tuned.toml", file), "");
  const DeviceKind h200 = {
      .name = "NVIDIA H200", .compute_capability = "9.0", .multiprocessors = 132, .driver = 13000};
  DeviceKind l4 = h200;
  l4.name = "NVIDIA L4";
  l4.driver = 12080;
  file.Set(h200, "sum f32 4096 all", {.variant = "cub", .untuned = "vectorized", .us = 1, .untuned_us = 2});
  file.Set(h200, "max f32 4096 all", {.variant = "cub", .untuned = "vectorized", .us = 1, .untuned_us = 2});
  file.Set(l4, "sum f32 4096 all", {.variant = "cub", .untuned = "vectorized", .us = 1, .untuned_us = 2});
  EXPECT_EQ(TuningText("tuned.toml", file),
            "warplined: tuned.toml: 2 choices for NVIDIA H200, CUDA 13.0\n"
            "warplined: tuned.toml: 1 choice for NVIDIA L4, CUDA 12.8\n");
}

TEST(TuningTextTest, NamesWhatIsNotTriedAnyMore) {
  TuningFile file;
  const DeviceKind kind = {
      .name = "NVIDIA H200", .compute_capability = "9.0", .multiprocessors = 132, .driver = 13000};
  file.AddFailed(kind, "gemm bf16 128x4096x4096 nt", "mma");
  file.AddFailed(kind, "gemm bf16 128x4096x4096 nt", "cublas:7");
  EXPECT_EQ(
      TuningText("tuned.toml", file),
      "warplined: tuned.toml: 0 choices for NVIDIA H200, CUDA 13.0\n"
      "warplined: tuned.toml: not tried for \"gemm bf16 128x4096x4096 nt\" on NVIDIA H200, CUDA 13.0, where "
      "the device failed with it: cublas:7, mma\n");
}

}  // namespace
}  // namespace warpline

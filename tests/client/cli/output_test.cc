#include "client/cli/output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "warpline/array.h"

namespace warpline::client {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

v1::Operation& AddOperation(v1::GetInfoResponse& info, const std::string& name) {
  v1::Operation& operation = *info.add_operations();
  operation.set_name(name);
  return operation;
}

TEST(FormatInfoTest, NamesRunsOfTypesAsOne) {
  v1::GetInfoResponse info;
  v1::Operation& all = AddOperation(info, "transpose");
  for (DType dtype : kAllDTypes) all.add_data_types(ToProto(dtype));
  v1::Operation& some = AddOperation(info, "reduce");
  for (DType dtype : kAllDTypes) {
    if (dtype != DType::kU16 && IsReal(dtype)) some.add_data_types(ToProto(dtype));
  }
  AddOperation(info, "cast").add_data_types(static_cast<v1::DataType>(99));
  const std::string text = FormatInfo(info);
  EXPECT_THAT(text, AllOf(HasSubstr("transpose (all types)\n"),
                          HasSubstr("reduce (bool u8 u32 u64 i8-i64 f16 bf16 f32 f64)\n"),
                          HasSubstr("cast (#99)\n")));
}

TEST(FormatInfoTest, RepeatsNoTypesForVariantsThatHaveThemAll) {
  v1::GetInfoResponse info;
  v1::Operation& gemm = AddOperation(info, "gemm");
  gemm.add_data_types(v1::DATA_TYPE_F32);
  gemm.add_data_types(v1::DATA_TYPE_F64);
  v1::Variant plain;
  plain.set_name("plain");
  plain.set_summary("loops");
  plain.set_reproducible(true);
  *plain.mutable_data_types() = gemm.data_types();
  *gemm.add_variants() = plain;
  plain.set_name("fast");
  plain.mutable_data_types()->RemoveLast();
  *gemm.add_variants() = plain;
  EXPECT_THAT(FormatInfo(info), HasSubstr("gemm (f32 f64)\n  plain  loops\n  fast   loops (f32)\n"));
}

TEST(FormatInfoTest, NamesTheFirstAndTheLastConfigurationOfAVariant) {
  v1::GetInfoResponse info;
  v1::Variant& variant = *AddOperation(info, "gemm").add_variants();
  variant.set_name("cublas");
  variant.set_summary("library");
  variant.set_reproducible(true);
  variant.add_configurations("cublas:2");
  EXPECT_THAT(FormatInfo(info), HasSubstr("  cublas  library [also cublas:2]\n"));
  variant.add_configurations("cublas:3");
  variant.add_configurations("cublas:4");
  EXPECT_THAT(FormatInfo(info), HasSubstr("  cublas  library [also cublas:2 to cublas:4]\n"));
}

TEST(FormatInfoTest, TellsWhatResidentTensorsMayHave) {
  v1::GetInfoResponse info;
  v1::Device& device = *info.add_devices();
  device.set_name("H200");
  device.set_lanes(4);
  device.set_memory_bytes(std::int64_t{9} << 20);
  device.set_resident_bytes(std::int64_t{3} << 20);
  EXPECT_THAT(FormatInfo(info), HasSubstr("H200, 4 lanes, 9 MiB, 3 MiB for resident tensors\n"));
  device.set_replica_bytes(std::int64_t{2} << 20);
  EXPECT_THAT(FormatInfo(info), HasSubstr(", 3 MiB for resident tensors, 2 MiB for replicas\n"));
}

TEST(FormatTensorsTest, HasALineForEachTensor) {
  const std::vector<TensorInfo> tensors = {
      {.id = "1", .dtype = DType::kF32, .shape = {2, 3}, .bytes = 24, .ttl = absl::Seconds(600)},
      {.id = "22",
       .dtype = DType::kBool,
       .device = 1,
       .bytes = 1,
       .missing_bytes = 1,
       .replicas = {3, 5},
       .ttl = absl::Seconds(0.25)}};
  EXPECT_EQ(FormatTensors(tensors, false),
            "1   f32[2,3]  device 0  24 bytes  600 s left\n"
            "22  bool[]    device 1, replicas on 3,5  1 bytes, 1 still to come  0 s left\n");
  EXPECT_EQ(
      FormatTensors(tensors, true),
      R"([{"id":"1","dtype":"f32","shape":[2,3],"device":0,"replicas":[],"size_bytes":24,"missing_bytes":0,)"
      R"("ttl_seconds":600.0},)"
      R"({"id":"22","dtype":"bool","shape":[],"device":1,"replicas":[3,5],"size_bytes":1,"missing_bytes":1,)"
      R"("ttl_seconds":0.25}])"
      "\n");
  EXPECT_EQ(FormatTensors({}, false), "");
  EXPECT_EQ(FormatTensors({}, true), "[]\n");
}

TEST(FormatProgressTest, TellsHowFarItIs) {
  EXPECT_EQ(FormatProgress("put x.npy", 3 << 20, 12 << 20, absl::Seconds(2)),
            "put x.npy: 3.0 of 12.0 MiB, 1.5 MiB/s");
  EXPECT_EQ(FormatProgress("put x.npy", 0, 0, absl::ZeroDuration()), "put x.npy: 0.0 of 0.0 MiB, 0.0 MiB/s");
}

TEST(FormatTimingTest, NamesTheOutputsOfAProgram) {
  Timing timing{.op = "run", .arrays = {{"y", DType::kF32, {2, 3}}, {"n", DType::kI64, {}}}};
  timing.execution.add_variants("a");
  timing.execution.add_variants("b");
  EXPECT_THAT(FormatTiming(timing, false), testing::StartsWith("run y=f32[2,3] n=i64[] :0 a+b "));
  EXPECT_THAT(
      FormatTiming(timing, true),
      HasSubstr(
          R"("outputs":[{"name":"y","dtype":"f32","shape":[2,3]},{"name":"n","dtype":"i64","shape":[]}])"));
  timing = {.op = "gemm", .arrays = {{"", DType::kF32, {2}}}};
  EXPECT_THAT(FormatTiming(timing, false), testing::StartsWith("gemm f32[2] "));
  EXPECT_THAT(FormatTiming(timing, true),
              AllOf(HasSubstr(R"({"op":"gemm","dtype":"f32","shape":[2],)"), Not(HasSubstr("outputs"))));
}

TEST(FormatTimingTest, NamesEachWayOnce) {
  Timing timing{.op = "gemm", .arrays = {{"", DType::kF32, {2}}}, .ways = {"inline", "resident", "inline"}};
  timing.execution.add_variants("naive");
  EXPECT_THAT(FormatTiming(timing, false),
              testing::StartsWith("gemm f32[2] :0 naive inline+resident 0.000 ms"));
  EXPECT_THAT(FormatTiming(timing, true),
              HasSubstr(R"("variants":["naive"],"transports":["inline","resident"],)"));
}

}  // namespace
}  // namespace warpline::client

// Shared regions as operands and as results, in every request.
#include "tests/e2e/regions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "tests/e2e/daemon.h"

namespace warpline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<float> Iota(std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), 0.0F);
  return values;
}

std::vector<float> Transposed(const std::vector<float>& values, std::int64_t rows, std::int64_t cols) {
  std::vector<float> result(values.size());
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < cols; ++j) {
      result[static_cast<std::size_t>(j * rows + i)] = values[static_cast<std::size_t>(i * cols + j)];
    }
  }
  return result;
}

class RegionsTest : public ::testing::Test {
 protected:
  template <typename Response, typename Method, typename Request>
  Answer<Response> Call(Method method, const Request& request) {
    return CallStub<Response>(*stub_, method, request);
  }
  Answer<v1::TransposeResponse> Transpose(const v1::TransposeRequest& request) {
    return Call<v1::TransposeResponse>(&v1::KernelService::Stub::Transpose, request);
  }
  v1::TransposeRequest FromTo(const std::vector<std::int64_t>& shape, std::int64_t from, std::int64_t to,
                              v1::DataType data_type = v1::DATA_TYPE_F32) {
    v1::TransposeRequest request;
    region_.Fill(request.mutable_x(), data_type, shape, from);
    region_.Name(request.mutable_options()->add_sinks()->mutable_region(), to);
    return request;
  }

  const std::string path_ = ::testing::TempDir() + "/warpline_regions_" + std::to_string(getpid());
  Daemon daemon_{{"--listen=unix:" + path_ + ",127.0.0.1:0", "--max-inline-bytes=4M"}};
  const std::shared_ptr<grpc::Channel> channel_ =
      grpc::CreateChannel("unix:" + path_, grpc::InsecureChannelCredentials());
  std::unique_ptr<v1::KernelService::Stub> stub_ = v1::KernelService::NewStub(channel_);
  SharedRegion region_{channel_, path_ + ".regions", 64 * kMiB};
};

TEST_F(RegionsTest, NothingIsCopiedOnTheHost) {
  region_.Write(0, Iota(6));
  const auto answer = Transpose(FromTo({2, 3}, 0, 4096));
  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  EXPECT_THAT(region_.Read<float>(4096, 6), ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_THAT(answer.response.y().shape(), ElementsAre(3, 2));
  EXPECT_EQ(answer.response.y().region().id(), region_.id());
  EXPECT_EQ(answer.response.y().region().offset(), 4096);
  EXPECT_FALSE(answer.response.y().has_inline_());
  EXPECT_EQ(daemon_.Metric("warpline_host_copy_bytes_total"), 0);
  EXPECT_EQ(daemon_.Metric("warpline_request_duration_seconds_count", "source=\"region\""), 1);
  EXPECT_EQ(daemon_.Metric("warpline_request_duration_seconds_count"), 1);
}

// On a GPU these run on the slices themselves, in pieces, or by copies, with others beside them or alone.
TEST_F(RegionsTest, AllSizesAndPlacesGiveTheSame) {
  for (const auto& [rows, cols] : {std::pair<std::int64_t, std::int64_t>{1, 1},
                                   {32, 32},
                                   {37, 53},
                                   {300, 700},
                                   {1024, 1024},
                                   {2048, 2048},
                                   {1999, 2011}}) {
    const std::vector<float> values = Iota(rows * cols);
    const std::vector<float> want = Transposed(values, rows, cols);
    for (const std::int64_t skew : {0, 4, 8, 16, 252}) {
      const std::int64_t from = skew, to = static_cast<std::int64_t>(32 * kMiB) + 256 - skew;
      region_.Write(from, values);
      const auto answer = Transpose(FromTo({rows, cols}, from, to));
      ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
      ASSERT_TRUE(region_.Read<float>(to, want.size()) == want) << rows << " x " << cols << " at " << skew;
    }
  }
  EXPECT_EQ(daemon_.Metric("warpline_host_copy_bytes_total"), 0);
}

TEST_F(RegionsTest, ElementsOfEverySizeMayBeginAtAnyMultipleOfTheirs) {
  for (const auto& [data_type, bytes] : {std::pair<v1::DataType, std::int64_t>{v1::DATA_TYPE_U8, 1},
                                         {v1::DATA_TYPE_BF16, 2},
                                         {v1::DATA_TYPE_F64, 8},
                                         {v1::DATA_TYPE_C128, 16}}) {
    const std::int64_t n = 96, at = bytes, to = 4 * 1024 * 1024 + bytes;
    std::vector<std::uint8_t> elements(static_cast<std::size_t>(n * n * bytes));
    for (std::size_t i = 0; i < elements.size(); ++i)
      elements[i] = static_cast<std::uint8_t>(i * 37 + i / 256);
    region_.Write(at, elements);
    const auto answer = Transpose(FromTo({n, n}, at, to, data_type));
    ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
    const auto result = region_.Read<std::uint8_t>(to, elements.size());
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        ASSERT_EQ(std::memcmp(&result[static_cast<std::size_t>((j * n + i) * bytes)],
                              &elements[static_cast<std::size_t>((i * n + j) * bytes)],
                              static_cast<std::size_t>(bytes)),
                  0);
      }
    }
  }
}

TEST_F(RegionsTest, ARequestMayBeLargerThanAllInlineOnes) {
  const std::int64_t n = 2048;  // 16 MiB
  region_.Write(0, Iota(n * n));
  const auto answer = Transpose(FromTo({n, n}, 0, n * n * 4));
  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  EXPECT_TRUE(region_.Read<float>(n * n * 4, static_cast<std::size_t>(n * n)) ==
              Transposed(Iota(n * n), n, n));
}

TEST_F(RegionsTest, InlineResidentAndSharedOperandsMix) {
  Tensors tensors(channel_);
  const std::vector<float> b = {1, 0, 0, 1};
  const std::string resident =
      tensors.Made(v1::DATA_TYPE_F32, {2, 2},
                   std::string(reinterpret_cast<const char*>(b.data()), b.size() * sizeof(float)));
  region_.Write(1024, std::vector<float>{1, 2, 3, 4});
  v1::GemmRequest request;
  region_.Fill(request.mutable_a(), v1::DATA_TYPE_F32, {2, 2}, 1024);
  request.mutable_b()->mutable_resident()->set_id(resident);
  *request.mutable_c() = F32Tensor({2, 2}, {10, 20, 30, 40});
  request.set_beta(1);
  const auto by_value = Call<v1::GemmResponse>(&v1::KernelService::Stub::Gemm, request);
  ASSERT_TRUE(by_value.status.ok()) << by_value.status.error_message();
  EXPECT_THAT(F32Values(by_value.response.d()), ElementsAre(11, 22, 33, 44));
  region_.Name(request.mutable_options()->add_sinks()->mutable_region(), 8192);
  ASSERT_TRUE(Call<v1::GemmResponse>(&v1::KernelService::Stub::Gemm, request).status.ok());
  EXPECT_THAT(region_.Read<float>(8192, 4), ElementsAre(11, 22, 33, 44));
  request.mutable_options()->mutable_sinks(0)->mutable_resident();
  const auto kept = Call<v1::GemmResponse>(&v1::KernelService::Stub::Gemm, request);
  ASSERT_TRUE(kept.status.ok()) << kept.status.error_message();
  EXPECT_FALSE(kept.response.d().resident().id().empty());
}

TEST_F(RegionsTest, OfAProgramEachResultGoesWhereItIsAskedFor) {
  region_.Write(256, Iota(6));
  v1::RunRequest request;
  auto& sum = *request.mutable_program()->add_steps();
  sum.set_name("sum");
  sum.add_inputs("x");
  sum.mutable_reduce()->set_op(v1::REDUCE_OP_SUM);
  auto& turned = *request.mutable_program()->add_steps();
  turned.set_name("turned");
  turned.add_inputs("x");
  turned.mutable_transpose();
  request.mutable_program()->add_outputs("turned");
  request.mutable_program()->add_outputs("sum");
  auto& x = *request.add_inputs();
  x.set_name("x");
  region_.Fill(x.mutable_tensor(), v1::DATA_TYPE_F32, {2, 3}, 256);
  auto& sink = *request.mutable_options()->add_sinks();
  sink.set_output("turned");
  region_.Name(sink.mutable_region(), 512);
  const auto answer = Call<v1::RunResponse>(&v1::KernelService::Stub::Run, request);
  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  EXPECT_THAT(region_.Read<float>(512, 6), ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_EQ(answer.response.outputs(0).tensor().region().offset(), 512);
  EXPECT_THAT(F32Values(answer.response.outputs(1).tensor()), ElementsAre(15));
}

TEST_F(RegionsTest, OneSliceMayBeAllOperandsAndRowsMayBePadded) {
  region_.Write(0, std::vector<float>{1, 2, -1, 3, 4, -1});
  v1::GemmRequest request;
  for (v1::Tensor* tensor : {request.mutable_a(), request.mutable_b()}) {
    region_.Fill(tensor, v1::DATA_TYPE_F32, {2, 2}, 0);
    tensor->set_row_stride(3);
  }
  const auto answer = Call<v1::GemmResponse>(&v1::KernelService::Stub::Gemm, request);
  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  EXPECT_THAT(F32Values(answer.response.d()), ElementsAre(7, 10, 15, 22));
}

TEST_F(RegionsTest, PaddedRowsMayEndWithTheRegion) {
  // Five elements: the last row needs no padding.
  constexpr auto kBegin = static_cast<std::int64_t>(64 * kMiB - 5 * sizeof(float));
  region_.Write(kBegin, std::vector<float>{1, 2, -1, 3, 4});
  v1::TransposeRequest request;
  region_.Fill(request.mutable_x(), v1::DATA_TYPE_F32, {2, 2}, kBegin);
  request.mutable_x()->set_row_stride(3);
  const auto answer = Transpose(request);
  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  EXPECT_THAT(F32Values(answer.response.y()), ElementsAre(1, 3, 2, 4));
  request.mutable_x()->set_row_stride(4);
  EXPECT_THAT(Transpose(request).status.error_message(), HasSubstr("a slice of 24 bytes"));
}

TEST_F(RegionsTest, EmptyTensorsMayLieAnywhere) {
  const auto answer = Transpose(FromTo({3, 0}, 0, 0));
  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  EXPECT_THAT(answer.response.y().shape(), ElementsAre(0, 3));
}

TEST_F(RegionsTest, OtherSlicesOfTheSameKindMeetAKnownPlan) {
  region_.Write(0, Iota(64));
  ASSERT_TRUE(Transpose(FromTo({8, 8}, 0, 4096)).status.ok());
  SharedRegion another(channel_, path_ + ".regions", kMiB);
  another.Write(512, Iota(64));
  v1::TransposeRequest request;
  another.Fill(request.mutable_x(), v1::DATA_TYPE_F32, {8, 8}, 512, 17);
  region_.Name(request.mutable_options()->add_sinks()->mutable_region(), 8, 99);
  // Absent fields and numbers are different kinds of requests, so these two differ from the first.
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(Transpose(request).status.ok());
  another.Name(request.mutable_x()->mutable_region(), 1024, 18);
  ASSERT_TRUE(Transpose(request).status.ok());
  EXPECT_EQ(daemon_.Metric("warpline_plan_cache_hits_total"), 2);
}

TEST_F(RegionsTest, EveryVariantReadsAndWritesSlicesWhereTheyLie) {
  const std::int64_t n = 37, m = 53;
  const std::vector<float> values = Iota(n * m), want = Transposed(values, n, m);
  const auto info = v1::InfoService::NewStub(channel_);
  grpc::ClientContext context;
  v1::GetInfoResponse response;
  ASSERT_TRUE(info->GetInfo(&context, v1::GetInfoRequest(), &response).ok());
  EXPECT_GT(response.limits().max_region_bytes(), 0);
  int ran = 0;
  for (const v1::Variant& variant : response.operations(0).variants()) {
    for (const std::int64_t skew : {0, 4}) {
      region_.Write(skew, values);
      v1::TransposeRequest request = FromTo({n, m}, skew, 65536 + skew);
      request.set_variant(variant.name());
      const auto answer = Transpose(request);
      if (answer.status.error_code() == grpc::StatusCode::INVALID_ARGUMENT) continue;  // not for this problem
      ASSERT_TRUE(answer.status.ok()) << variant.name() << ": " << answer.status.error_message();
      ASSERT_TRUE(region_.Read<float>(65536 + skew, want.size()) == want) << variant.name();
      ++ran;
    }
  }
  EXPECT_GE(ran, 4);
}

TEST_F(RegionsTest, WhoConnectsByTcpMayNameThemToo) {
  const std::string addresses = daemon_.address();
  const auto tcp =
      grpc::CreateChannel(addresses.substr(addresses.find(',') + 1), grpc::InsecureChannelCredentials());
  region_.Write(0, Iota(6));
  grpc::ClientContext context;
  SetTimeout(context, absl::Seconds(60));
  v1::TransposeResponse response;
  const grpc::Status status =
      v1::KernelService::NewStub(tcp)->Transpose(&context, FromTo({2, 3}, 0, 4096), &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_THAT(region_.Read<float>(4096, 6), ElementsAre(0, 3, 1, 4, 2, 5));
}

TEST_F(RegionsTest, WhatIsWrongWithASliceNamesItsField) {
  const auto expect = [&](const v1::TransposeRequest& request, grpc::StatusCode code,
                          const std::string& field, const std::string& text) {
    const auto answer = Transpose(request);
    EXPECT_EQ(answer.status.error_code(), code) << answer.status.error_message();
    EXPECT_THAT(answer.status.error_message(), HasSubstr(text));
    EXPECT_THAT(DetailsOf(answer.status).fields, ElementsAre(field));
  };
  constexpr auto kInvalid = grpc::StatusCode::INVALID_ARGUMENT;
  expect(FromTo({2, 3}, 2, 4096), kInvalid, "x.region.offset", "2 is no multiple of the element size, 4");
  expect(FromTo({2, 3}, -4, 4096), kInvalid, "x.region.offset", "-4");
  expect(FromTo({2, 3}, 64 << 20, 4096), kInvalid, "x.region.offset", "67108864");
  expect(FromTo({2, 3}, (64 << 20) - 20, 4096), kInvalid, "x.region.offset",
         "a slice of 24 bytes at 67108844");
  expect(FromTo({2, 3}, INT64_MAX - 3, 4096), kInvalid, "x.region.offset", "9223372036854775804");
  expect(FromTo({2, 3}, 0, INT64_MAX - 3), kInvalid, "options.sinks[0].region.offset", "9223372036854775804");
  expect(FromTo({16 << 20, 2}, 8, 4096), kInvalid, "x.region.offset", "134217728 bytes at 8");
  // A result over its operand, or over another result.
  expect(FromTo({2, 3}, 0, 0), kInvalid, "options.sinks[0].region", "overlaps x.region");
  expect(FromTo({2, 3}, 0, 20), kInvalid, "options.sinks[0].region", "overlaps x.region");
  expect(FromTo({2, 3}, 4096, 4080), kInvalid, "options.sinks[0].region", "overlaps x.region");
  v1::TransposeRequest request = FromTo({2, 3}, 0, 24);
  EXPECT_TRUE(Transpose(request).status.ok()) << "side by side";
  EXPECT_TRUE(Transpose(FromTo({0, 3}, 0, 0)).status.ok()) << "nothing, where nothing is";
  request.mutable_x()->mutable_region()->set_id("nonsense");
  expect(request, grpc::StatusCode::NOT_FOUND, "x.region.id", "no region");
  request = FromTo({2, 3}, 0, 4096);
  request.mutable_x()->mutable_region()->set_call(-1);
  expect(request, kInvalid, "x.region.call", "-1");
  request.mutable_x()->mutable_region()->set_call(1);
  std::string& id = *request.mutable_options()->mutable_sinks(0)->mutable_region()->mutable_id();
  id[0] = id[0] == '0' ? '1' : '0';
  expect(request, grpc::StatusCode::FAILED_PRECONDITION, "options.sinks[0].region.id", "made by server");
}

}  // namespace
}  // namespace warpline

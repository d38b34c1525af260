#include "client/src/tensor_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <string>
#include <vector>

namespace warpline::client {
namespace {

using ::testing::ElementsAre;

std::string Dumped(const grpc::ByteBuffer& buffer) {
  grpc::Slice slice;
  EXPECT_TRUE(buffer.DumpToSingleSlice(&slice).ok());
  return {reinterpret_cast<const char*>(slice.begin()), slice.size()};
}

template <typename Request>
Request ParsedMessage(const OutgoingMessage& message) {
  Request request;
  EXPECT_TRUE(request.ParseFromString(Dumped(message.buffer)));
  return request;
}

grpc::ByteBuffer Buffer(const google::protobuf::Message& message) {
  const grpc::Slice slice(message.SerializeAsString());
  return grpc::ByteBuffer(&slice, 1);
}

v1::TensorInfo Info() {
  v1::TensorInfo info;
  info.mutable_resident()->set_id("some id");
  info.mutable_resident()->set_ttl_seconds(0.5);
  info.set_data_type(v1::DATA_TYPE_F32);
  info.add_shape(2);
  info.add_shape(3);
  info.set_device(1);
  info.set_size_bytes(24);
  info.set_missing_bytes(8);
  return info;
}

TEST(EncodePutTest, MakesPutRequests) {
  std::vector<std::int32_t> elements(10'000);
  std::iota(elements.begin(), elements.end(), 0);
  const ConstArray array{DType::kI32, {10'000}, 0, elements.data()};
  const OutgoingMessage message = EncodePut("some id", array, 4001, 39'999);
  const auto request = ParsedMessage<v1::PutRequest>(message);
  EXPECT_EQ(request.id(), "some id");
  EXPECT_EQ(request.offset(), 4001);
  EXPECT_EQ(request.data(), std::string(reinterpret_cast<const char*>(elements.data()) + 4001, 35'998));
  // The elements are borrowed.
  ASSERT_NE(message.tracker, nullptr);
  EXPECT_EQ(message.tracker->borrowed(), 1u);
  EXPECT_EQ(ParsedMessage<v1::PutRequest>(EncodePut("", array, 0, 8)).id(), "");
}

TEST(EncodePutTest, CountsElementsWithoutThePaddingOfRows) {
  const std::array<std::uint16_t, 10> elements = {1, 2, 3, 99, 99, 4, 5, 6, 99, 99};
  const ConstArray array{DType::kU16, {2, 3}, 5, elements.data()};
  const std::array<std::uint16_t, 6> dense = {1, 2, 3, 4, 5, 6};
  for (std::size_t begin = 0; begin < sizeof(dense); ++begin) {
    for (std::size_t end = begin + 1; end <= sizeof(dense); ++end) {
      EXPECT_EQ(ParsedMessage<v1::PutRequest>(EncodePut("", array, begin, end)).data(),
                std::string(reinterpret_cast<const char*>(dense.data()) + begin, end - begin));
    }
  }
}

TEST(EncodeCreateTest, SaysWhatIsToBeMade) {
  const ConstArray array{DType::kBF16, {2, 3}, 5, nullptr};
  auto request = ParsedMessage<v1::CreateRequest>(EncodeCreate(array, {}));
  EXPECT_EQ(request.data_type(), v1::DATA_TYPE_BF16);
  EXPECT_EQ(request.shape_size(), 2);
  EXPECT_EQ(request.ttl_seconds(), 0);
  EXPECT_FALSE(request.has_device());
  request =
      ParsedMessage<v1::CreateRequest>(EncodeCreate(array, {.ttl = absl::Milliseconds(250), .device = 0}));
  EXPECT_EQ(request.ttl_seconds(), 0.25);
  EXPECT_TRUE(request.has_device());
}

TEST(EncodeManyTest, NamesAllIds) {
  const std::vector<std::string> ids = {"a", "b"};
  EXPECT_THAT(ParsedMessage<v1::DropRequest>(EncodeDropEach(ids)).ids(), ElementsAre("a", "b"));
  EXPECT_THAT(ParsedMessage<v1::RenewRequest>(EncodeRenewEach(ids)).ids(), ElementsAre("a", "b"));
}

TEST(DecodeRenewedLengthsTest, ReadsThoseOfOneOrMany) {
  v1::RenewResponse response;
  response.add_ttl_seconds(3);
  response.add_ttl_seconds(0);
  EXPECT_THAT(*DecodeRenewedLengths(Buffer(response), 2),
              ElementsAre(absl::Seconds(3), absl::ZeroDuration()));
  EXPECT_EQ(DecodeRenewedLengths(Buffer(response), 3).status().code(), absl::StatusCode::kInternal);
  response.clear_ttl_seconds();
  *response.mutable_tensor() = Info();
  EXPECT_THAT(*DecodeRenewedLengths(Buffer(response), 1), ElementsAre(absl::Milliseconds(500)));
}

TEST(DecodeTensorTest, ReadsTheDescription) {
  v1::CreateResponse response;
  *response.mutable_tensor() = Info();
  const absl::StatusOr<TensorInfo> info = DecodeTensor(Buffer(response));
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->id, "some id");
  EXPECT_EQ(info->dtype, DType::kF32);
  EXPECT_EQ(info->shape, (Shape{2, 3}));
  EXPECT_EQ(info->device, 1);
  EXPECT_EQ(info->bytes, 24u);
  EXPECT_EQ(info->missing_bytes, 8u);
  EXPECT_EQ(info->ttl, absl::Milliseconds(500));
}

TEST(DecodeTensorTest, RefusesWhatMakesNoSense) {
  const auto code = [](const v1::TensorInfo& info) { return DecodeInfo(info).status().code(); };
  EXPECT_EQ(code(Info()), absl::StatusCode::kOk);
  v1::TensorInfo info = Info();
  info.mutable_resident()->clear_id();
  EXPECT_EQ(code(info), absl::StatusCode::kInternal);
  info = Info();
  info.set_data_type(static_cast<v1::DataType>(99));
  EXPECT_EQ(code(info), absl::StatusCode::kInternal);
  info = Info();
  info.set_size_bytes(25);
  EXPECT_EQ(code(info), absl::StatusCode::kInternal);
  info = Info();
  info.set_missing_bytes(25);
  EXPECT_EQ(code(info), absl::StatusCode::kInternal);
  info = Info();
  info.set_shape(0, -2);
  EXPECT_EQ(code(info), absl::StatusCode::kInternal);
  info = Info();
  for (int i = 0; i < 7; ++i) info.add_shape(1);
  EXPECT_EQ(code(info), absl::StatusCode::kInternal);
}

TEST(DecodeListTest, ReadsPages) {
  v1::ListResponse response;
  *response.add_tensors() = Info();
  response.set_next_page_token("next");
  const absl::StatusOr<TensorPage> page = DecodeList(Buffer(response));
  ASSERT_TRUE(page.ok()) << page.status();
  ASSERT_EQ(page->tensors.size(), 1u);
  EXPECT_EQ(page->next_page_token, "next");
}

TEST(DecodeChunkTest, CopiesElementsToTheirPlace) {
  v1::GetResponse response;
  *response.mutable_tensor() = Info();
  response.set_offset(5);
  response.set_data("abc");
  std::array<std::byte, 4> to{};
  absl::StatusOr<std::size_t> bytes = DecodeChunk(Buffer(response), 5, to);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(*bytes, 3u);
  EXPECT_EQ(to[2], std::byte{'c'});
  EXPECT_EQ(to[3], std::byte{0});
  // Elsewhere, or more than is to come.
  EXPECT_TRUE(absl::IsInternal(DecodeChunk(Buffer(response), 4, to).status()));
  EXPECT_TRUE(absl::IsInternal(DecodeChunk(Buffer(response), 5, std::span(to).first(2)).status()));
  response.clear_data();
  bytes = DecodeChunk(Buffer(response), 5, {});
  EXPECT_EQ(bytes.value_or(1), 0u);
}

}  // namespace
}  // namespace warpline::client

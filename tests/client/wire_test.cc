#include "client/wire.h"

#include <google/protobuf/stubs/logging.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <random>

#include "client/codec.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline::client {
namespace {

std::vector<grpc::Slice> SlicesOf(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(buffer.Dump(&slices).ok());
  return slices;
}

std::string Flat(const grpc::ByteBuffer& buffer) {
  const std::vector<grpc::Slice> slices = SlicesOf(buffer);
  std::string bytes;
  SliceReader(slices).AppendTo(bytes);
  return bytes;
}

// Cut at random places, empty slices included.
grpc::ByteBuffer Cut(const std::string& bytes, std::mt19937& random) {
  std::vector<grpc::Slice> slices;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t size = std::min<std::size_t>(random() % 9, bytes.size() - at);
    slices.emplace_back(bytes.data() + at, size);
    at += size;
  }
  slices.emplace_back();
  return grpc::ByteBuffer(slices.data(), slices.size());
}

TEST(MessageWriterTest, WritesWhatTheGeneratedParserReads) {
  std::vector<float> a(6), b(12), c(8);
  std::iota(a.begin(), a.end(), 1.0f);
  std::iota(b.begin(), b.end(), 10.0f);
  GemmArgs args;
  args.a = {DType::kF32, {2, 3}, 0, a.data()};
  args.b = {DType::kF32, {3, 3}, 4, b.data()};
  args.c = ConstArray{DType::kF32, {2, 4}, 0, c.data()};
  args.trans_b = true;
  args.alpha = 0;
  args.beta = -2.5;
  args.precision = v1::PRECISION_TF32;
  args.variant = "naive";
  const auto message = Encode(args);
  ASSERT_TRUE(message.ok()) << message.status();
  v1::GemmRequest request;
  ASSERT_TRUE(request.ParseFromString(Flat(message->buffer)));
  EXPECT_EQ(request.a().data_type(), v1::DATA_TYPE_F32);
  EXPECT_EQ(request.a().shape_size(), 2);
  EXPECT_EQ(request.a().shape(1), 3);
  EXPECT_EQ(request.a().row_stride(), 0);
  EXPECT_EQ(std::memcmp(request.a().inline_().data(), a.data(), sizeof(float) * a.size()), 0);
  EXPECT_EQ(request.b().row_stride(), 4);
  EXPECT_EQ(request.b().inline_().size(), sizeof(float) * b.size());
  EXPECT_TRUE(request.has_c());
  EXPECT_FALSE(request.trans_a());
  EXPECT_TRUE(request.trans_b());
  EXPECT_TRUE(request.has_alpha());
  EXPECT_EQ(request.alpha(), 0);
  EXPECT_EQ(request.beta(), -2.5);
  EXPECT_EQ(request.precision(), v1::PRECISION_TF32);
  EXPECT_EQ(request.variant(), "naive");
}

TEST(MessageWriterTest, WritesNegativeNumbersAndEmptyArrays) {
  ReduceArgs args;
  args.x = {DType::kBF16, {3, 0}, 0, nullptr};
  args.axes = {-1, 0};
  args.op = v1::REDUCE_OP_MEAN;
  args.keepdims = true;
  const auto message = Encode(args);
  ASSERT_TRUE(message.ok());
  v1::ReduceRequest request;
  ASSERT_TRUE(request.ParseFromString(Flat(message->buffer)));
  EXPECT_TRUE(request.x().has_inline_());
  EXPECT_EQ(request.x().shape(1), 0);
  EXPECT_EQ(request.axes(0), -1);
  EXPECT_EQ(request.axes(1), 0);
  EXPECT_EQ(request.op(), v1::REDUCE_OP_MEAN);
  EXPECT_TRUE(request.keepdims());
}

TEST(MessageWriterTest, LeavesLargePayloadsInPlace) {
  std::vector<char> memory(3'000'000, 'x');
  MessageWriter writer;
  writer.AppendVarint(1, 7);
  writer.AppendPayload(8, {memory.data(), memory.size(), nullptr});
  auto message = std::move(writer).Finish();
  ASSERT_TRUE(message.ok());
  bool found = false;
  for (const grpc::Slice& slice : SlicesOf(message->buffer)) {
    found = found || slice.begin() == reinterpret_cast<const std::uint8_t*>(memory.data());
  }
  EXPECT_TRUE(found);
}

TEST(MessageWriterTest, TellsWhenBorrowedMemoryIsReleased) {
  std::vector<char> memory(3'000'000, 'x');
  MessageWriter writer;
  writer.AppendPayload(8, {memory.data(), memory.size(), nullptr});
  auto message = std::move(writer).Finish();
  ASSERT_TRUE(message.ok());
  const std::shared_ptr<SendTracker> tracker = message->tracker;
  EXPECT_EQ(tracker->borrowed(), 1u);
  message->buffer.Clear();
  EXPECT_EQ(tracker->borrowed(), 0u);
}

TEST(MessageWriterTest, KeepsOwnedMemoryAlive) {
  auto memory = std::make_shared<std::vector<char>>(100'000, 'x');
  const std::weak_ptr<std::vector<char>> watch = memory;
  MessageWriter writer;
  writer.AppendPayload(8, {memory->data(), memory->size(), memory});
  auto message = std::move(writer).Finish();
  ASSERT_TRUE(message.ok());
  EXPECT_EQ(message->tracker, nullptr);
  memory.reset();
  EXPECT_FALSE(watch.expired());
  message->buffer.Clear();
  EXPECT_TRUE(watch.expired());
}

TEST(MessageWriterTest, RefusesMessagesThatGrpcWouldTruncate) {
  const char nothing = 0;
  ConstArray x{DType::kF32, {1 << 15, 1 << 14}, 0, &nothing};  // 2 GiB, never read
  const auto message = Encode(TransposeArgs{.x = x});
  EXPECT_EQ(message.status().code(), absl::StatusCode::kInvalidArgument);
  x.shape = {1 << 30, 1 << 30, 1 << 30};
  EXPECT_EQ(Encode(TransposeArgs{.x = x}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(SliceReaderTest, ReadsFieldsAcrossSliceBorders) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    v1::TransposeResponse response;
    response.mutable_y()->set_data_type(v1::DATA_TYPE_I64);
    const int rows = static_cast<int>(random() % 4), columns = static_cast<int>(random() % 5);
    response.mutable_y()->add_shape(rows);
    response.mutable_y()->add_shape(columns);
    std::string elements(static_cast<std::size_t>(rows * columns) * 8, '\0');
    for (char& byte : elements) byte = static_cast<char>(random());
    response.mutable_y()->set_inline_(elements);
    response.mutable_execution()->set_request_id("some request");
    response.mutable_execution()->add_variants("a");
    response.mutable_execution()->mutable_stage_times()->set_device(0.25);
    const auto result = DecodeResult(Cut(response.SerializeAsString(), random), {});
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->array.dtype(), DType::kI64);
    EXPECT_EQ(result->array.shape(), (Shape{rows, columns}));
    ASSERT_EQ(result->array.bytes(), elements.size());
    EXPECT_EQ(std::memcmp(result->array.data(), elements.data(), elements.size()), 0);
    EXPECT_EQ(result->execution.request_id(), "some request");
    EXPECT_EQ(result->execution.stage_times().device(), 0.25);
  }
}

TEST(SliceReaderTest, MergesPartsInAnyOrderAndSkipsUnknownFields) {
  // Elements first, then the rest of the tensor in a second part; groups and unknown fields between.
  MessageWriter first, second, message;
  first.AppendBytes(8, "gone");
  first.AppendBytes(8, "\1\2\3\4");
  second.AppendDouble(100, 1);
  second.AppendVarint(1, v1::DATA_TYPE_I32);
  second.AppendVarint(2, 1);  // shape, not packed
  message.AppendBytes(1, first.head());
  std::string bytes = message.head();
  bytes += "\x9b\x06\x08\x01\x9c\x06";  // group 99 { 1: 1 }
  MessageWriter rest;
  rest.AppendVarint(77, 5);
  rest.AppendBytes(1, second.head());
  bytes += rest.head();
  v1::TransposeResponse check;
  ASSERT_TRUE(check.ParseFromString(bytes));
  std::mt19937 random(2);
  const auto result = DecodeResult(Cut(bytes, random), {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->array.shape(), (Shape{1}));
  EXPECT_EQ(std::memcmp(result->array.data(), "\1\2\3\4", 4), 0);
}

TEST(SliceReaderTest, AgreesWithProtobufOnDamagedMessages) {
  const google::protobuf::LogSilencer silence;  // it reports each string that is not UTF-8
  std::mt19937 random(3);
  v1::ReduceResponse response;
  response.mutable_y()->set_data_type(v1::DATA_TYPE_F32);
  response.mutable_y()->add_shape(3);
  response.mutable_y()->set_inline_(std::string(12, 'a'));
  response.mutable_execution()->set_backend("cpu");
  const std::string good = response.SerializeAsString();
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = good;
    for (int i = 0; i < 2; ++i) bytes[random() % bytes.size()] = static_cast<char>(random());
    if (round % 3 == 0) bytes.resize(random() % bytes.size());
    const auto result = DecodeResult(Cut(bytes, random), {});
    v1::ReduceResponse parsed;
    if (!parsed.ParseFromString(bytes)) {
      EXPECT_FALSE(result.ok());
    } else if (result.ok()) {
      EXPECT_EQ(std::memcmp(result->array.data(), parsed.y().inline_().data(), result->array.bytes()), 0);
      EXPECT_EQ(result->array.bytes(), parsed.y().inline_().size());
    }
  }
}

// Whether NextField reads all of the message.
bool Accepted(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  SliceReader message(std::span(&slice, 1));
  Field field;
  absl::StatusOr<bool> more = true;
  while (more.ok() && *more) more = NextField(message, field);
  return more.ok();
}

// The value as a varint of exactly this many bytes.
std::string Varint(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i, value >>= 7) {
    text += static_cast<char>((value & 0x7f) | (i + 1 < bytes ? 0x80 : 0));
  }
  return text;
}

TEST(SliceReaderTest, JudgesLongTagsAndLengthsAsProtobufDoes) {
  const google::protobuf::LogSilencer silence;
  constexpr std::uint64_t kTag = 100 << 3 | 2, kStart = 100 << 3 | 3, kEnd = 100 << 3 | 4;
  const std::string cases[] = {
      Varint(kTag, 5) + Varint(1, 1) + "x",
      Varint(kTag, 6) + Varint(1, 1) + "x",
      Varint(kTag | std::uint64_t{7} << 32, 5) + Varint(1, 1) + "x",  // the bits above 32 are dropped
      Varint(kTag | std::uint64_t{1} << 35, 6) + Varint(1, 1) + "x",
      Varint(std::uint64_t{1} << 32, 5) + Varint(1, 1) + "x",  // field number 0
      Varint(kTag, 2) + Varint(1, 5) + "x",
      Varint(kTag, 2) + Varint(1, 6) + "x",
      Varint(kTag, 2) + Varint(0x7fffffff, 5) + "x",
      Varint(kTag, 2) + Varint(1 | std::uint64_t{1} << 32, 5) + "x",
      Varint(kStart, 5) + Varint(kEnd | std::uint64_t{5} << 32, 5),
      Varint(kStart, 2) + Varint(kEnd, 6),
      Varint(100 << 3, 2) + Varint(1, 10),
      Varint(100 << 3, 2) + Varint(1, 11),
  };
  int accepted = 0;
  for (const std::string& bytes : cases) {
    v1::TransposeResponse parsed;
    EXPECT_EQ(Accepted(bytes), parsed.ParseFromString(bytes)) << &bytes - cases;
    accepted += Accepted(bytes) ? 1 : 0;
  }
  EXPECT_EQ(accepted, 5);
}

TEST(DecodeTest, WritesIntoTheDestinationOrRefuses) {
  v1::GemmResponse response;
  response.mutable_d()->set_data_type(v1::DATA_TYPE_F64);
  response.mutable_d()->add_shape(2);
  response.mutable_d()->set_inline_(std::string(16, 'b'));
  std::mt19937 random(4);
  const grpc::ByteBuffer message = Cut(response.SerializeAsString(), random);
  std::vector<char> memory(16);
  auto result = DecodeResult(message, {memory.data(), memory.size()});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->array.data(), memory.data());
  EXPECT_EQ(memory, std::vector<char>(16, 'b'));
  result = DecodeResult(message, {memory.data(), 15});
  EXPECT_EQ(result.status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(DecodeTest, RefusesElementsThatDoNotFitTheShape) {
  v1::GemmResponse response;
  response.mutable_d()->set_data_type(v1::DATA_TYPE_F64);
  response.mutable_d()->add_shape(3);
  response.mutable_d()->set_inline_(std::string(16, 'b'));
  std::mt19937 random(5);
  EXPECT_EQ(DecodeResult(Cut(response.SerializeAsString(), random), {}).status().code(),
            absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace warpline::client

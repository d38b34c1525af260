#include "client/src/message_writer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "client/src/codec.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline::client {
namespace {

std::vector<grpc::Slice> SlicesOf(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(buffer.Dump(&slices).ok());
  return slices;
}

std::string Joined(const grpc::ByteBuffer& buffer) {
  std::string bytes;
  for (const grpc::Slice& slice : SlicesOf(buffer)) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

TEST(MessageWriterTest, WritesWhatTheGeneratedParserReads) {
  // The last row of b has no padding.
  std::vector<float> a(6), b(11), c(8);
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
  const auto message = Encode(OneStep(args));
  ASSERT_TRUE(message.ok()) << message.status();
  v1::RunRequest request;
  ASSERT_TRUE(request.ParseFromString(Joined(message->buffer)));
  ASSERT_EQ(request.inputs_size(), 3);
  const v1::Tensor &sent_a = request.inputs(0).tensor(), &sent_b = request.inputs(1).tensor();
  const v1::GemmStep& gemm = request.program().steps(0).gemm();
  EXPECT_EQ(sent_a.data_type(), v1::DATA_TYPE_F32);
  EXPECT_EQ(sent_a.shape_size(), 2);
  EXPECT_EQ(sent_a.shape(1), 3);
  EXPECT_EQ(sent_a.row_stride(), 0);
  EXPECT_EQ(std::memcmp(sent_a.inline_().data(), a.data(), sizeof(float) * a.size()), 0);
  EXPECT_EQ(sent_b.row_stride(), 4);
  EXPECT_EQ(sent_b.inline_().size(), sizeof(float) * b.size());
  EXPECT_EQ(request.inputs(2).name(), "c");
  EXPECT_FALSE(gemm.trans_a());
  EXPECT_TRUE(gemm.trans_b());
  EXPECT_TRUE(gemm.has_alpha());
  EXPECT_EQ(gemm.alpha(), 0);
  EXPECT_EQ(gemm.beta(), -2.5);
  EXPECT_EQ(gemm.precision(), v1::PRECISION_TF32);
  EXPECT_EQ(request.program().steps(0).variant(), "naive");
}

TEST(MessageWriterTest, WritesNegativeNumbersAndEmptyArrays) {
  ReduceArgs args;
  args.x = {DType::kBF16, {3, 0}, 0, nullptr};
  args.axes = {-1, 0};
  args.op = v1::REDUCE_OP_MEAN;
  args.keepdims = true;
  const auto message = Encode(OneStep(args));
  ASSERT_TRUE(message.ok());
  v1::RunRequest request;
  ASSERT_TRUE(request.ParseFromString(Joined(message->buffer)));
  const v1::Tensor& x = request.inputs(0).tensor();
  const v1::ReduceStep& reduce = request.program().steps(0).reduce();
  EXPECT_TRUE(x.has_inline_());
  EXPECT_EQ(x.shape(1), 0);
  EXPECT_EQ(reduce.axes(0), -1);
  EXPECT_EQ(reduce.axes(1), 0);
  EXPECT_EQ(reduce.op(), v1::REDUCE_OP_MEAN);
  EXPECT_TRUE(reduce.keepdims());
}

TEST(MessageWriterTest, LeavesLargePayloadsInPlace) {
  std::vector<char> memory(3'000'000, 'x');
  MessageWriter writer;
  writer.Append("head");
  writer.AppendPayload({memory.data(), memory.size(), nullptr});
  EXPECT_EQ(writer.size(), 3'000'004u);
  auto message = std::move(writer).Finish();
  ASSERT_TRUE(message.ok());
  const std::vector<grpc::Slice> slices = SlicesOf(message->buffer);
  ASSERT_EQ(slices.size(), 2u);
  EXPECT_EQ(slices[0].size(), 4u);
  EXPECT_EQ(slices[1].begin(), reinterpret_cast<const std::uint8_t*>(memory.data()));
}

TEST(MessageWriterTest, TellsWhenBorrowedMemoryIsReleased) {
  std::vector<char> memory(3'000'000, 'x');
  MessageWriter writer;
  writer.AppendPayload({memory.data(), memory.size(), nullptr});
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
  writer.AppendPayload({memory->data(), memory->size(), memory});
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
  const auto message = Encode(OneStep(TransposeArgs{.x = x}));
  EXPECT_EQ(message.status().code(), absl::StatusCode::kResourceExhausted);
  x.shape = {1 << 30, 1 << 30, 1 << 30};
  EXPECT_EQ(Encode(OneStep(TransposeArgs{.x = x})).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace warpline::client

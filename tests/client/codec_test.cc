#include "client/codec.h"

#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <string>
#include <vector>

namespace warpline::client {
namespace {

std::string Flat(const grpc::ByteBuffer& buffer) {
  grpc::Slice slice;
  EXPECT_TRUE(buffer.DumpToSingleSlice(&slice).ok());
  return {reinterpret_cast<const char*>(slice.begin()), slice.size()};
}

// In slices of a few bytes.
grpc::ByteBuffer Cut(const std::string& bytes) {
  constexpr std::size_t kPiece = 3;
  std::vector<grpc::Slice> slices(1);
  for (std::size_t at = 0; at < bytes.size(); at += kPiece) slices.emplace_back(bytes.substr(at, kPiece));
  return grpc::ByteBuffer(slices.data(), slices.size());
}

template <typename Request, typename Args>
Request Parsed(const Args& args) {
  const auto message = Encode(args);
  EXPECT_TRUE(message.ok()) << message.status();
  Request request;
  EXPECT_TRUE(message.ok() && request.ParseFromString(Flat(message->buffer)));
  return request;
}

v1::NamedTensor Output(const std::string& name, v1::DataType data_type, const std::string& elements) {
  v1::NamedTensor output;
  output.set_name(name);
  output.mutable_tensor()->set_data_type(data_type);
  output.mutable_tensor()->add_shape(static_cast<std::int64_t>(elements.size()));
  output.mutable_tensor()->set_inline_(elements);
  return output;
}

const std::vector<std::string> kNames = {"first", "second"};

v1::RunResponse Response() {
  v1::RunResponse response;
  *response.add_outputs() = Output("first", v1::DATA_TYPE_I8, "abc");
  *response.add_outputs() = Output("second", v1::DATA_TYPE_BOOL, std::string(2, '\1'));
  response.mutable_execution()->add_variants("plain");
  return response;
}

TEST(EncodeTest, SendsEveryTypeUnderItsNumber) {
  for (DType dtype : kAllDTypes) {
    const std::string elements(SizeOf(dtype) * 3, 'e');
    const auto request = Parsed<v1::TransposeRequest>(TransposeArgs{.x = {dtype, {3}, 0, elements.data()}});
    EXPECT_EQ(FromProto(request.x().data_type()), dtype);
    EXPECT_EQ(request.x().inline_(), elements);
  }
}

TEST(EncodeTest, WritesTheEpilogueOfAProduct) {
  const std::vector<float> elements(6, 2);
  GemmArgs args;
  args.a = {DType::kF16, {1, 2}, 0, elements.data()};
  args.b = {DType::kF16, {2, 3}, 0, elements.data()};
  EXPECT_FALSE(Parsed<v1::GemmRequest>(args).has_bias());
  args.bias = ConstArray{DType::kF32, {3}, 0, elements.data()};
  args.activation = v1::ACTIVATION_GELU;
  args.out_data_type = DType::kF32;
  const auto request = Parsed<v1::GemmRequest>(args);
  EXPECT_EQ(request.bias().shape(0), 3);
  EXPECT_EQ(request.bias().inline_().size(), 12u);
  EXPECT_EQ(request.activation(), v1::ACTIVATION_GELU);
  EXPECT_EQ(request.out_data_type(), v1::DATA_TYPE_F32);
}

TEST(EncodeTest, WritesTheTypeAndTheDegreesOfFreedomOfAReduction) {
  const double x = 1;
  ReduceArgs args{.x = {DType::kF64, {}, 0, &x}, .op = v1::REDUCE_OP_STD};
  args.out_data_type = DType::kF32;
  for (const int ddof : {0, 1, -1}) {
    args.ddof = ddof;
    const auto request = Parsed<v1::ReduceRequest>(args);
    EXPECT_EQ(request.out_data_type(), v1::DATA_TYPE_F32);
    EXPECT_EQ(request.ddof(), ddof);
  }
}

TEST(EncodeTest, WritesAProgramAndItsInputs) {
  // One that is copied into the message, one that is left in place, one with padded rows.
  std::vector<std::int32_t> small(6), large(100'000), padded(8);
  std::iota(small.begin(), small.end(), 0);
  std::iota(large.begin(), large.end(), 7);
  RunArgs args;
  v1::Step& step = *args.program.add_steps();
  step.set_name("sum");
  step.add_inputs("large");
  step.mutable_reduce()->set_op(v1::REDUCE_OP_SUM);
  args.program.add_outputs("sum");
  args.inputs = {{"small", {DType::kI32, {2, 3}, 0, small.data()}},
                 {"large", {DType::kI32, {100'000}, 0, large.data()}},
                 {"padded", {DType::kI32, {2, 3}, 4, padded.data()}},
                 {"empty", {DType::kF8E5M2, {0, 3}, 0, nullptr}}};
  const auto request = Parsed<v1::RunRequest>(args);
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(request.program(), args.program));
  ASSERT_EQ(request.inputs_size(), 4);
  for (int i = 0; i < 4; ++i) {
    const auto& [name, array] = args.inputs[static_cast<std::size_t>(i)];
    const v1::NamedTensor& input = request.inputs(i);
    EXPECT_EQ(input.name(), name);
    EXPECT_EQ(FromProto(input.tensor().data_type()), array.dtype);
    EXPECT_EQ(input.tensor().row_stride(), array.row_stride);
    ASSERT_EQ(input.tensor().inline_().size(), *ByteSize(array));
    if (array.data != nullptr) {
      EXPECT_EQ(std::memcmp(input.tensor().inline_().data(), array.data, *ByteSize(array)), 0);
    }
  }
  const auto message = Encode(args);
  std::vector<grpc::Slice> slices;
  ASSERT_TRUE(message->buffer.Dump(&slices).ok());
  int in_place = 0;
  for (const grpc::Slice& slice : slices) {
    in_place += slice.begin() == reinterpret_cast<const std::uint8_t*>(large.data()) ? 1 : 0;
  }
  EXPECT_EQ(in_place, 1);
}

TEST(EncodeTest, NamesTheInputThatCannotBeSent) {
  RunArgs args;
  args.inputs = {{"x", {DType::kF32, {-1}, 0, nullptr}}};
  EXPECT_EQ(Encode(args).status().message(), "x: axis 0 has the size -1");
}

TEST(DecodeRunResultTest, BringsEachOutputToItsPlace) {
  const grpc::ByteBuffer message = Cut(Response().SerializeAsString());
  char memory[4] = {};
  const Destination destinations[] = {{memory, sizeof(memory)}};
  const auto result = DecodeRunResult(message, kNames, destinations);
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(result->outputs.size(), 2u);
  EXPECT_EQ(result->outputs[0].first, "first");
  EXPECT_EQ(result->outputs[0].second.data(), memory);
  EXPECT_STREQ(memory, "abc");
  EXPECT_EQ(result->outputs[1].second.dtype(), DType::kBool);
  EXPECT_EQ(std::memcmp(result->outputs[1].second.data(), "\1\1", 2), 0);
  EXPECT_EQ(result->execution.variants(0), "plain");
  const Destination small[] = {{}, {memory, 1}};
  EXPECT_TRUE(absl::IsResourceExhausted(DecodeRunResult(message, kNames, small).status()));
}

TEST(DecodeRunResultTest, MergesTheTensorOfOneOutputOnly) {
  // The first output comes in two parts; the second is one of its own.
  MessageWriter head, elements, first, second, message;
  head.AppendVarint(v1::Tensor::kDataTypeFieldNumber, v1::DATA_TYPE_U8);
  const std::int64_t shape[] = {2};
  elements.AppendPacked(v1::Tensor::kShapeFieldNumber, shape);
  elements.AppendBytes(v1::Tensor::kInlineFieldNumber, "xy");
  first.AppendBytes(v1::NamedTensor::kTensorFieldNumber, head.head());
  first.AppendBytes(v1::NamedTensor::kNameFieldNumber, "first");
  first.AppendBytes(v1::NamedTensor::kTensorFieldNumber, elements.head());
  message.AppendBytes(v1::RunResponse::kOutputsFieldNumber, first.head());
  message.AppendBytes(v1::RunResponse::kOutputsFieldNumber,
                      Output("second", v1::DATA_TYPE_I8, "z").SerializeAsString());
  const auto result = DecodeRunResult(Cut(message.head()), kNames, {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(std::memcmp(result->outputs[0].second.data(), "xy", 2), 0);
  EXPECT_EQ(result->outputs[1].second.bytes(), 1u);
}

TEST(DecodeRunResultTest, RefusesOtherOutputsThanTheProgramHas) {
  const auto code = [](const v1::RunResponse& response) {
    return DecodeRunResult(Cut(response.SerializeAsString()), kNames, {}).status().code();
  };
  EXPECT_EQ(code(Response()), absl::StatusCode::kOk);
  v1::RunResponse response = Response();
  response.mutable_outputs()->RemoveLast();
  EXPECT_EQ(code(response), absl::StatusCode::kInternal);
  response = Response();
  response.mutable_outputs(0)->set_name("other");
  EXPECT_EQ(code(response), absl::StatusCode::kInternal);
  response = Response();
  response.mutable_outputs(1)->mutable_tensor()->set_inline_("too many");
  EXPECT_EQ(code(response), absl::StatusCode::kInternal);
  EXPECT_FALSE(DecodeRunResult(Cut("\x0a\x05x"), kNames, {}).ok());
}

}  // namespace
}  // namespace warpline::client

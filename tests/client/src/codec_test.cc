#include "client/src/codec.h"

#include <google/protobuf/unknown_field_set.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "proto/wire/tensor_field.h"
#include "tests/testing/quiet_protobuf.h"

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

// In slices of random sizes, of which some are empty.
grpc::ByteBuffer CutAnywhere(const std::string& bytes, std::mt19937& random) {
  std::vector<grpc::Slice> slices;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t size = std::min<std::size_t>(random() % 9, bytes.size() - at);
    slices.emplace_back(bytes.data() + at, size);
    at += size;
  }
  slices.emplace_back();
  return grpc::ByteBuffer(slices.data(), slices.size());
}

v1::RunRequest Parsed(const RunArgs& args, const SentOptions& options = {}) {
  const auto message = Encode(args, {}, options);
  EXPECT_TRUE(message.ok()) << message.status();
  v1::RunRequest request;
  EXPECT_TRUE(message.ok() && request.ParseFromString(Flat(message->buffer)));
  return request;
}

// The tensor of the only output of a response, which is made if there is none.
v1::Tensor& Only(v1::RunResponse& response) {
  if (response.outputs_size() == 0) response.add_outputs()->set_name("first");
  return *response.mutable_outputs(0)->mutable_tensor();
}

absl::StatusOr<RunResult> DecodeOne(const grpc::ByteBuffer& message, const Destination& destination) {
  static const std::vector<std::string> kFirst = {"first"};
  return DecodeRunResult(message, kFirst, {&destination, 1});
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
    const auto request = Parsed({.inputs = {{"x", {dtype, {3}, 0, elements.data()}}}});
    EXPECT_EQ(FromProto(request.inputs(0).tensor().data_type()), dtype);
    EXPECT_EQ(request.inputs(0).tensor().inline_(), elements);
  }
}

TEST(EncodeTest, WritesAProgramAndItsInputs) {
  // One that is copied into the message, one that is left in place, one with padded rows but for the last.
  std::vector<std::int32_t> small(6), large(100'000), padded(7);
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
  const auto request = Parsed(args);
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(request.program(), args.program));
  ASSERT_EQ(request.inputs_size(), 4);
  for (int i = 0; i < 4; ++i) {
    const auto& [name, array] = args.inputs[static_cast<std::size_t>(i)];
    const v1::NamedTensor& input = request.inputs(i);
    EXPECT_EQ(input.name(), name);
    EXPECT_EQ(FromProto(input.tensor().data_type()), array.dtype);
    EXPECT_EQ(input.tensor().row_stride(), array.row_stride);
    ASSERT_EQ(input.tensor().inline_().size(), *ByteSize(array.AsArray()));
    if (array.data != nullptr) {
      EXPECT_EQ(std::memcmp(input.tensor().inline_().data(), array.data, *ByteSize(array.AsArray())), 0);
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

TEST(EncodeTest, SaysWhetherTheResultsAreToBeReproducible) {
  for (const bool wanted : {false, true}) {
    EXPECT_EQ(Parsed({.reproducible = wanted}).options().reproducible(), wanted);
  }
}

TEST(EncodeTest, SaysWhetherTheResponseIsToNameWhatRan) {
  for (const bool wanted : {false, true})
    EXPECT_EQ(Parsed({}, {.report = wanted}).options().report(), wanted);
}

TEST(EncodeTest, NamesTheInputThatCannotBeSent) {
  RunArgs args;
  args.inputs = {{"x", {DType::kF32, {-1}, 0, nullptr}}};
  EXPECT_EQ(Encode(args).status().message(), "x: axis 0 has the size -1");
}

TEST(EncodeTest, SendsNothingButTheIdOfAResidentTensor) {
  const Operand resident{.dtype = DType::kF64, .shape = {7}, .row_stride = 9, .resident = "some id"};
  v1::Tensor expected;
  expected.mutable_resident()->set_id("some id");
  const auto run = Parsed({.inputs = {{"x", resident}}});
  EXPECT_FALSE(run.has_options());
  EXPECT_EQ(run.inputs(0).name(), "x");
  EXPECT_EQ(run.inputs(0).tensor().SerializeAsString(), expected.SerializeAsString());
}

TEST(EncodeTest, SaysWhichResultsAreToStay) {
  RunArgs args;
  args.program.add_outputs("first");
  args.program.add_outputs("second");
  args.destinations = {{}, {.keep = absl::ZeroDuration()}, {.keep = absl::Seconds(1)}};
  const auto run = Parsed(args);
  ASSERT_EQ(run.options().sinks_size(), 1);
  EXPECT_EQ(run.options().sinks(0).output(), "second");
  EXPECT_TRUE(run.options().sinks(0).has_resident());
  EXPECT_EQ(run.options().sinks(0).resident().ttl_seconds(), 0);
  args.destinations = {{.keep = absl::Milliseconds(1500)}};
  EXPECT_EQ(Parsed(args).options().sinks(0).resident().ttl_seconds(), 1.5);
  float memory = 0;
  args.destinations = {{.data = &memory, .bytes = 4, .keep = absl::ZeroDuration()}};
  EXPECT_TRUE(absl::IsInvalidArgument(Encode(args).status()));
}

TEST(DecodeResultTest, MakesAHandleOfWhatStaysOnTheServer) {
  v1::RunResponse response;
  Only(response).set_data_type(v1::DATA_TYPE_I64);
  Only(response).add_shape(3);
  Only(response).mutable_resident()->set_id("some id");
  Only(response).mutable_resident()->set_ttl_seconds(2.5);
  response.mutable_execution()->set_device(3);
  const Destination keep{.keep = absl::ZeroDuration()};
  const auto result = DecodeOne(Cut(response.SerializeAsString()), keep);
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_TRUE(result->tensors[0]);
  EXPECT_EQ(result->outputs[0].second.data(), nullptr);
  EXPECT_EQ(result->tensors[0]->id(), "some id");
  EXPECT_EQ(result->tensors[0]->dtype(), DType::kI64);
  EXPECT_EQ(result->tensors[0]->shape(), Shape{3});
  EXPECT_EQ(result->tensors[0]->bytes(), 24u);
  EXPECT_EQ(result->tensors[0]->device(), 3);
  EXPECT_EQ(result->tensors[0]->info().ttl, absl::Milliseconds(2500));
  EXPECT_EQ(result->execution.device(), 3);
  // It is where it was asked to be, or the response is wrong.
  EXPECT_TRUE(absl::IsInternal(DecodeOne(Cut(response.SerializeAsString()), {}).status()));
  Only(response).set_inline_(std::string(24, '\0'));
  EXPECT_TRUE(absl::IsInternal(DecodeOne(Cut(response.SerializeAsString()), keep).status()));
  Only(response).mutable_resident();
  EXPECT_TRUE(absl::IsInternal(DecodeOne(Cut(response.SerializeAsString()), keep).status()));
}

TEST(DecodeRunResultTest, TellsTensorsFromArrays) {
  v1::RunResponse response = Response();
  response.mutable_outputs(1)->mutable_tensor()->mutable_resident()->set_id("some id");
  const std::vector<Destination> destinations = {{}, {.keep = absl::ZeroDuration()}};
  const auto result = DecodeRunResult(Cut(response.SerializeAsString()), kNames, destinations);
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(result->tensors.size(), 2u);
  EXPECT_FALSE(result->tensors[0]);
  EXPECT_EQ(result->outputs[0].second.bytes(), 3u);
  EXPECT_EQ(result->tensors[1]->id(), "some id");
  EXPECT_EQ(result->outputs[1].first, "second");
}

TEST(DecodeResultTest, ReadsFieldsAcrossSliceBorders) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    v1::RunResponse response;
    Only(response).set_data_type(v1::DATA_TYPE_I64);
    const int rows = static_cast<int>(random() % 4), columns = static_cast<int>(random() % 5);
    Only(response).add_shape(rows);
    Only(response).add_shape(columns);
    std::string elements(static_cast<std::size_t>(rows * columns) * 8, '\0');
    for (char& byte : elements) byte = static_cast<char>(random());
    Only(response).set_inline_(elements);
    response.mutable_execution()->set_request_id("some request");
    response.mutable_execution()->add_variants("a");
    response.mutable_execution()->mutable_stage_times()->set_device(0.25);
    const auto result = DecodeOne(CutAnywhere(response.SerializeAsString(), random), {});
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->outputs[0].second.dtype(), DType::kI64);
    EXPECT_EQ(result->outputs[0].second.shape(), (Shape{rows, columns}));
    ASSERT_EQ(result->outputs[0].second.bytes(), elements.size());
    EXPECT_EQ(std::memcmp(result->outputs[0].second.data(), elements.data(), elements.size()), 0);
    EXPECT_EQ(result->execution.request_id(), "some request");
    EXPECT_EQ(result->execution.stage_times().device(), 0.25);
  }
}

TEST(DecodeResultTest, MergesPartsInAnyOrderAndSkipsUnknownFields) {
  // The elements come first, twice, and the rest of the tensor in a second part; groups and unknown fields
  // are between them.
  v1::NamedTensor gone, elements, rest;
  gone.set_name("first");
  gone.mutable_tensor()->set_inline_("gone");
  elements.mutable_tensor()->set_inline_("\1\2\3\4");
  rest.mutable_tensor()->set_data_type(v1::DATA_TYPE_I32);
  rest.mutable_tensor()->add_shape(1);
  rest.mutable_tensor()->GetReflection()->MutableUnknownFields(rest.mutable_tensor())->AddFixed64(100, 1);
  google::protobuf::UnknownFieldSet unknown;
  unknown.AddGroup(99)->AddVarint(1, 1);
  unknown.AddVarint(77, 5);
  std::string between;
  ASSERT_TRUE(unknown.SerializeToString(&between));
  const std::string output =
      gone.SerializeAsString() + elements.SerializeAsString() + between + rest.SerializeAsString();
  std::string bytes = between;
  AppendFieldHead(bytes, v1::RunResponse::kOutputsFieldNumber, output.size());
  const auto result = DecodeOne(Cut(bytes + output + between), {});
  ASSERT_TRUE(result.ok()) << result.status();
  const Array& array = result->outputs[0].second;
  EXPECT_EQ(array.shape(), (Shape{1}));
  EXPECT_EQ(std::memcmp(array.data(), "\1\2\3\4", 4), 0);
}

TEST(DecodeResultTest, AgreesWithProtobufOnDamagedMessages) {
  const testing::QuietProtobuf silence;  // it reports each string that is not UTF-8
  std::mt19937 random(3);
  v1::RunResponse response;
  Only(response).set_data_type(v1::DATA_TYPE_F32);
  Only(response).add_shape(3);
  Only(response).set_inline_(std::string(12, 'a'));
  response.mutable_execution()->set_backend("cpu");
  const std::string good = response.SerializeAsString();
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = good;
    for (int i = 0; i < 2; ++i) bytes[random() % bytes.size()] = static_cast<char>(random());
    if (round % 3 == 0) bytes.resize(random() % bytes.size());
    const auto result = DecodeOne(CutAnywhere(bytes, random), {});
    v1::RunResponse parsed;
    if (!parsed.ParseFromString(bytes)) {
      EXPECT_FALSE(result.ok());
    } else if (result.ok()) {
      EXPECT_EQ(std::memcmp(result->outputs[0].second.data(), parsed.outputs(0).tensor().inline_().data(),
                            result->outputs[0].second.bytes()),
                0);
      EXPECT_EQ(result->outputs[0].second.bytes(), parsed.outputs(0).tensor().inline_().size());
    }
  }
}

TEST(DecodeResultTest, WritesIntoTheDestinationOrRefuses) {
  v1::RunResponse response;
  Only(response).set_data_type(v1::DATA_TYPE_F64);
  Only(response).add_shape(2);
  Only(response).set_inline_(std::string(16, 'b'));
  const grpc::ByteBuffer message = Cut(response.SerializeAsString());
  std::vector<char> memory(16);
  auto result = DecodeOne(message, {memory.data(), memory.size()});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->outputs[0].second.data(), memory.data());
  EXPECT_EQ(memory, std::vector<char>(16, 'b'));
  result = DecodeOne(message, {memory.data(), 15});
  EXPECT_EQ(result.status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(DecodeResultTest, RefusesElementsThatDoNotFitTheShape) {
  v1::RunResponse response;
  Only(response).set_data_type(v1::DATA_TYPE_F64);
  Only(response).add_shape(3);
  Only(response).set_inline_(std::string(16, 'b'));
  EXPECT_EQ(DecodeOne(Cut(response.SerializeAsString()), {}).status().code(), absl::StatusCode::kInternal);
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
  v1::NamedTensor head, elements;
  head.mutable_tensor()->set_data_type(v1::DATA_TYPE_U8);
  head.set_name("first");
  elements.mutable_tensor()->add_shape(2);
  elements.mutable_tensor()->set_inline_("xy");
  std::string bytes;
  for (const std::string& output : {head.SerializeAsString() + elements.SerializeAsString(),
                                    Output("second", v1::DATA_TYPE_I8, "z").SerializeAsString()}) {
    AppendFieldHead(bytes, v1::RunResponse::kOutputsFieldNumber, output.size());
    bytes += output;
  }
  const auto result = DecodeRunResult(Cut(bytes), kNames, {});
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

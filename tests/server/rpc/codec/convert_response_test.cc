// The part of a response that precedes its elements.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "proto/rules/tensor_rules.h"
#include "server/rpc/codec/convert.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline {
namespace {

using ::testing::EndsWith;

std::string Header(const TensorSpec& spec, const v1::Execution& execution) {
  const PlannedOutput output{.name = "", .spec = spec};
  return ResponseHeader({.outputs = {&output, 1}, .placed = {}, .execution = execution});
}

// A header and its elements are the message that protobuf would have written.
template <typename Response>
void ExpectWholeResponse(const TensorSpec& output, const v1::Execution& execution,
                         v1::Tensor* (Response::*tensor)()) {
  const std::string elements(output.bytes, 'e');
  Response response;
  ASSERT_TRUE(response.ParseFromString(Header(output, execution) + elements));
  Response expected;
  *expected.mutable_execution() = execution;
  v1::Tensor* const result = (expected.*tensor)();
  result->set_data_type(ToProto(output.dtype));
  for (int i = 0; i < output.shape.rank; ++i) result->add_shape(output.shape[i]);
  result->set_inline_(elements);
  EXPECT_EQ(response.SerializeAsString(), expected.SerializeAsString());
}

TEST(ResponseHeaderTest, IsTheMessageWithoutItsElements) {
  v1::Execution execution;
  execution.set_request_id("abc-1");
  execution.add_variants("naive");
  execution.mutable_stage_times()->set_device(0.5);
  const TensorSpec kOutputs[] = {{DType::kF32, {2, 3}, 24},
                                 {DType::kI64, {}, 8},
                                 {DType::kF16, {0, 7}, 0},
                                 {DType::kF64, {40000}, 320000}};
  for (const TensorSpec& output : kOutputs) {
    ExpectWholeResponse(output, execution, &v1::TransposeResponse::mutable_y);
    ExpectWholeResponse(output, execution, &v1::GemmResponse::mutable_d);
    ExpectWholeResponse(output, execution, &v1::ReduceResponse::mutable_y);
    ExpectWholeResponse(output, v1::Execution(), &v1::ReduceResponse::mutable_y);
  }
}

TEST(ResponseHeaderTest, OfARunIsTheMessageWithoutItsElements) {
  v1::Execution execution;
  execution.set_request_id("abc-2");
  const std::vector<PlannedOutput> outputs = {{.name = "first", .spec = {DType::kF32, {2, 3}, 24}},
                                              {.name = "empty", .spec = {DType::kI64, {0}, 0}},
                                              {.name = "last", .spec = {DType::kU8, {40000}, 40000}}};
  const std::vector<std::string> headers =
      RunResponseHeaders({.outputs = outputs, .placed = {}, .execution = execution});
  ASSERT_EQ(headers.size(), outputs.size());
  std::string message;
  v1::RunResponse expected;
  *expected.mutable_execution() = execution;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::string elements(outputs[i].spec.bytes, static_cast<char>('a' + i));
    message += headers[i] + elements;
    v1::NamedTensor& output = *expected.add_outputs();
    output.set_name(outputs[i].name);
    output.mutable_tensor()->set_data_type(ToProto(outputs[i].spec.dtype));
    for (int axis = 0; axis < outputs[i].spec.shape.rank; ++axis) {
      output.mutable_tensor()->add_shape(outputs[i].spec.shape[axis]);
    }
    output.mutable_tensor()->set_inline_(elements);
  }
  v1::RunResponse response;
  ASSERT_TRUE(response.ParseFromString(message));
  EXPECT_EQ(response.SerializeAsString(), expected.SerializeAsString());
}

v1::Tensor Resident(const std::string& id, double ttl_seconds) {
  v1::Tensor tensor;
  tensor.mutable_resident()->set_id(id);
  tensor.mutable_resident()->set_ttl_seconds(ttl_seconds);
  return tensor;
}

TEST(ResponseHeaderTest, AResultInARegionIsNamedByItsSlice) {
  const v1::Execution execution;
  const PlannedOutput output{.name = "", .spec = {DType::kU8, {5}, 5}, .sink = 0, .slice = PlannedSlice()};
  v1::Tensor placed;
  placed.mutable_region()->set_id("r");
  placed.mutable_region()->set_offset(512);
  v1::TransposeResponse response;
  ASSERT_TRUE(response.ParseFromString(
      ResponseHeader({.outputs = {&output, 1}, .placed = {&placed, 1}, .execution = execution})));
  // Newer versions of protobuf begin such texts with a mark.
  EXPECT_THAT(response.y().ShortDebugString(),
              EndsWith("data_type: DATA_TYPE_U8 shape: 5 region { id: \"r\" offset: 512 }"));
}

TEST(ResponseHeaderTest, AResultThatStaysIsNamedByItsId) {
  const v1::Execution execution;
  const PlannedOutput output{.name = "", .spec = {DType::kF32, {2, 3}, 24}, .sink = 0};
  const v1::Tensor placed = Resident("id-1", 60);
  v1::GemmResponse response;
  ASSERT_TRUE(response.ParseFromString(
      ResponseHeader({.outputs = {&output, 1}, .placed = {&placed, 1}, .execution = execution})));
  EXPECT_THAT(
      response.d().ShortDebugString(),
      EndsWith("data_type: DATA_TYPE_F32 shape: 2 shape: 3 resident { id: \"id-1\" ttl_seconds: 60 }"));
}

TEST(ResponseHeaderTest, OfARunSomeResultsStayAndSomeTravel) {
  const v1::Execution execution;
  const std::vector<PlannedOutput> outputs = {{.name = "stays", .spec = {DType::kF32, {1}, 4}, .sink = 0},
                                              {.name = "travels", .spec = {DType::kU8, {3}, 3}},
                                              {.name = "stays_too", .spec = {DType::kF64, {}, 8}, .sink = 1}};
  const std::vector<v1::Tensor> placed = {Resident("a", 1), Resident("b", 2)};
  const std::vector<std::string> headers =
      RunResponseHeaders({.outputs = outputs, .placed = placed, .execution = execution});
  v1::RunResponse response;
  ASSERT_TRUE(response.ParseFromString(headers[0] + headers[1] + "xyz" + headers[2]));
  ASSERT_EQ(response.outputs_size(), 3);
  EXPECT_EQ(response.outputs(0).name(), "stays");
  EXPECT_EQ(response.outputs(0).tensor().resident().id(), "a");
  EXPECT_EQ(response.outputs(1).tensor().inline_(), "xyz");
  EXPECT_EQ(response.outputs(2).tensor().resident().id(), "b");
  EXPECT_EQ(response.outputs(2).tensor().resident().ttl_seconds(), 2);
}

}  // namespace
}  // namespace warpline

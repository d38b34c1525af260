// Requests and responses whose arrays lie in shared memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "client/src/codec.h"
#include "tests/testing/status_matchers.h"

namespace warpline::client {
namespace {

using ::testing::HasSubstr;
using ::warpline::testing::IsOk;
using ::warpline::testing::StatusIs;

class CodecSharedTest : public ::testing::Test {
 protected:
  // Returns places in which all elements in memory_ are shared.
  SharedPlaces Shared() {
    return {.find = [this](const void* data, std::size_t) -> absl::StatusOr<std::optional<v1::RegionSlice>> {
      const std::ptrdiff_t offset = static_cast<const char*>(data) - memory_.data();
      if (offset < 0 || offset >= static_cast<std::ptrdiff_t>(memory_.size())) return std::nullopt;
      return SliceAt(offset);
    }};
  }
  static v1::RegionSlice SliceAt(std::int64_t offset) {
    v1::RegionSlice slice;
    slice.set_id("r");
    slice.set_offset(offset);
    slice.set_call(3);
    return slice;
  }
  SharedResult ResultAt(std::size_t offset) {
    return {.slice = SliceAt(static_cast<std::int64_t>(offset)),
            .array = Array::Over(DType::kI8, {4}, memory_.data() + offset, 4)};
  }

  static v1::RunRequest Parsed(const absl::StatusOr<OutgoingMessage>& message) {
    EXPECT_THAT(message, IsOk());
    grpc::Slice bytes;
    v1::RunRequest request;
    EXPECT_TRUE(message->buffer.DumpToSingleSlice(&bytes).ok());
    EXPECT_TRUE(request.ParseFromArray(bytes.begin(), static_cast<int>(bytes.size())));
    return request;
  }
  static grpc::ByteBuffer Sent(const google::protobuf::Message& message) {
    const grpc::Slice slice(message.SerializeAsString());
    return {&slice, 1};
  }

  std::array<char, 64> memory_{};
};

TEST_F(CodecSharedTest, NamesWhatIsSharedAndSendsTheRest) {
  const RunArgs args{.inputs = {{"a", ConstArray{DType::kI8, {2, 3}, 5, memory_.data() + 7}},
                                {"b", ConstArray{DType::kI8, {3, 1}, 0, "abc"}},
                                {"c", Operand{.resident = "t"}}}};
  const auto request = Parsed(Encode(args, Shared()));
  const v1::Tensor& a = request.inputs(0).tensor();
  EXPECT_EQ(a.region().id(), "r");
  EXPECT_EQ(a.region().offset(), 7);
  EXPECT_EQ(a.region().call(), 3);
  EXPECT_EQ(a.row_stride(), 5);
  EXPECT_EQ(a.data_type(), v1::DATA_TYPE_I8);
  EXPECT_EQ(a.shape_size(), 2);
  EXPECT_EQ(request.inputs(1).tensor().inline_(), "abc");
  EXPECT_EQ(request.inputs(2).tensor().resident().id(), "t");
  EXPECT_EQ(request.options().sinks_size(), 0);
}

TEST_F(CodecSharedTest, AsksForNothingWithoutElements) {
  SharedPlaces places;
  places.find = [](const void*, std::size_t) -> absl::StatusOr<std::optional<v1::RegionSlice>> {
    ADD_FAILURE();
    return std::nullopt;
  };
  const RunArgs args{.inputs = {{"x", ConstArray{DType::kI8, {0}, 0, memory_.data()}}}};
  EXPECT_TRUE(Parsed(Encode(args, places)).inputs(0).tensor().has_inline_());
}

TEST_F(CodecSharedTest, NamesTheOperandOfAnError) {
  SharedPlaces places;
  places.find = [](const void*, std::size_t) { return absl::UnavailableError("lost"); };
  const RunArgs args{.program = {}, .inputs = {{"weights", ConstArray{DType::kI8, {1}, 0, "x"}}}};
  EXPECT_THAT(Encode(args, places).status(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("weights: lost")));
}

TEST_F(CodecSharedTest, TellsTheShapesOfTensorsIfResultsAreShared) {
  RunArgs args{.inputs = {{"x", Operand{.dtype = DType::kI8, .shape = {4}, .resident = "t"}}},
               .destinations = {{}}};
  args.program.add_outputs("y");
  EXPECT_EQ(Parsed(Encode(args, Shared())).inputs(0).tensor().shape_size(), 0);
  SharedPlaces places = Shared();
  places.results.push_back(ResultAt(16));
  const auto request = Parsed(Encode(args, places));
  const v1::Tensor& x = request.inputs(0).tensor();
  EXPECT_EQ(x.resident().id(), "t");
  EXPECT_EQ(x.data_type(), v1::DATA_TYPE_I8);
  EXPECT_EQ(x.shape_size(), 1);
  ASSERT_EQ(request.options().sinks_size(), 1);
  EXPECT_EQ(request.options().sinks(0).region().offset(), 16);
}

TEST_F(CodecSharedTest, GivesOutputsTheirSinks) {
  RunArgs args{.destinations = {{}, {}, {.keep = absl::ZeroDuration()}}};
  for (const char* name : {"x", "y", "z"}) args.program.add_outputs(name);
  SharedPlaces places = Shared();
  places.results = {std::nullopt, ResultAt(32)};
  const auto request = Parsed(Encode(args, places));
  ASSERT_EQ(request.options().sinks_size(), 2);
  EXPECT_EQ(request.options().sinks(0).output(), "y");
  EXPECT_EQ(request.options().sinks(0).region().offset(), 32);
  EXPECT_TRUE(request.options().sinks(1).has_resident());
}

TEST_F(CodecSharedTest, FindsResultsWhereTheyAre) {
  SharedPlaces places;
  places.results.push_back(ResultAt(8));
  v1::RunResponse response;
  response.add_outputs()->set_name("y");
  v1::Tensor& y = *response.mutable_outputs(0)->mutable_tensor();
  const std::vector<std::string> outputs = {"y"};
  y.set_data_type(v1::DATA_TYPE_I8);
  y.add_shape(4);
  *y.mutable_region() = SliceAt(8);
  const auto result = DecodeRunResult(Sent(response), outputs, {}, MakeUnleased, places);
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->outputs[0].second.data(), memory_.data() + 8);
  EXPECT_EQ(result->outputs[0].second.bytes(), 4u);
  // One that was not asked for, one of another size, and one that was sent after all.
  EXPECT_THAT(DecodeRunResult(Sent(response), outputs, {}).status(), StatusIs(absl::StatusCode::kInternal));
  y.set_shape(0, 5);
  EXPECT_THAT(DecodeRunResult(Sent(response), outputs, {}, MakeUnleased, places).status(),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("5 bytes in the place of one of 4")));
  y.set_inline_("12345");
  EXPECT_THAT(DecodeRunResult(Sent(response), outputs, {}, MakeUnleased, places).status(),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("not in shared memory")));
}

}  // namespace
}  // namespace warpline::client

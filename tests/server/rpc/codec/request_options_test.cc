// Options, sources and sinks, in every request.
#include "server/rpc/codec/request_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "server/base/errors.h"
#include "tests/server/rpc/codec/scanned_requests.h"
#include "tests/testing/status_matchers.h"

namespace warpline {
namespace {

using ::testing::Not;
using ::warpline::testing::IsOk;

struct OneStepRun : Scanned {
  OneStepRun() {
    v1::NamedTensor& x = *request.add_inputs();
    x.set_name("x");
    Fill(x.mutable_tensor(), v1::DATA_TYPE_F32, {2, 3}, 24);
    v1::Step& step = *request.mutable_program()->add_steps();
    step.set_name("y");
    step.add_inputs("x");
    step.mutable_transpose();
    request.mutable_program()->add_outputs("y");
  }
  v1::RunRequest request;
};

template <typename Request>
class RequestOptionsTest : public ::testing::Test {};
using Requests = ::testing::Types<Transpose, Gemm, Reduce, OneStepRun>;
TYPED_TEST_SUITE(RequestOptionsTest, Requests);

TYPED_TEST(RequestOptionsTest, ReproducibleIsTaken) {
  TypeParam r;
  EXPECT_FALSE(Convert(r)->reproducible);
  r.request.mutable_options()->set_reproducible(true);
  const absl::StatusOr<Conversion> converted = Convert(r);
  ASSERT_THAT(converted, IsOk());
  EXPECT_TRUE(converted->reproducible);
}

// The name that the only output of a request has for sinks.
template <typename Request>
std::string OutputOf(const Request&) {
  return "";
}
std::string OutputOf(const OneStepRun&) { return "y"; }

TYPED_TEST(RequestOptionsTest, ASinkKeepsItsOutputOnTheDevice) {
  TypeParam r;
  EXPECT_EQ(Convert(r)->sinks.at(0).sink, PlannedOutput::kInline);
  v1::Sink& sink = *r.request.mutable_options()->add_sinks();
  sink.set_output(OutputOf(r));
  ASSERT_THAT(Convert(r), IsOk());
  EXPECT_EQ(Convert(r)->sinks.at(0).sink, PlannedOutput::kInline) << "without a place the result is inline";
  sink.mutable_resident();
  absl::StatusOr<Conversion> converted = Convert(r);
  ASSERT_THAT(converted, IsOk());
  EXPECT_EQ(converted->sinks.at(0).sink, 0);
  EXPECT_FALSE(converted->sinks[0].slice.has_value());
  EXPECT_EQ(converted->sinks[0].ttl.index, PlannedScalar::kAbsent);
  sink.mutable_resident()->set_ttl_seconds(90);
  converted = Convert(r);
  ASSERT_THAT(converted, IsOk());
  EXPECT_NE(converted->sinks[0].ttl.index, PlannedScalar::kAbsent);
}

TYPED_TEST(RequestOptionsTest, AnOutputThatStaysDoesNotCountAgainstTheInlineLimit) {
  TypeParam r;
  const std::int64_t inputs = 24 + 48 + 32;  // of the largest of these requests
  EXPECT_THAT(Convert(r, 8), Not(IsOk()));
  v1::Sink& sink = *r.request.mutable_options()->add_sinks();
  sink.set_output(OutputOf(r));
  sink.mutable_resident();
  EXPECT_THAT(Convert(r, inputs), IsOk());
}

TYPED_TEST(RequestOptionsTest, SinksThatMakeNoSenseAreRefused) {
  const auto expect = [](auto set, absl::StatusCode code, const std::string& field) {
    TypeParam r;
    set(r, *r.request.mutable_options());
    const absl::Status status = Convert(r).status();
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_EQ(FieldOf(status), field);
  };
  expect([](auto&, auto& options) { options.add_sinks()->set_output("other"); },
         absl::StatusCode::kInvalidArgument, "options.sinks[0].output");
  expect(
      [](auto& r, auto& options) {
        for (int i = 0; i < 2; ++i) options.add_sinks()->set_output(OutputOf(r));
      },
      absl::StatusCode::kInvalidArgument, "options.sinks[1].output");
  expect([](auto&, auto& options) { options.add_sinks()->mutable_region(); },
         absl::StatusCode::kInvalidArgument, "options.sinks[0].region.id");
  expect(
      [](auto&, auto& options) {
        for (int i = 0; i < 257; ++i) options.add_sinks();
      },
      absl::StatusCode::kInvalidArgument, "options.sinks");
}

template <typename Request>
void ExpectRefused(const Request& r, absl::StatusCode code, const std::string& field) {
  const absl::Status status = Convert(r).status();
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_EQ(FieldOf(status), field) << status;
}

TEST(RequestSourcesTest, ASliceOfARegionNeedsItsTypeAndShape) {
  Transpose transpose;
  transpose.request.mutable_x()->mutable_region();
  ExpectRefused(transpose, absl::StatusCode::kInvalidArgument, "x.region.id");
  transpose.request.clear_x();
  transpose.Share(transpose.request.mutable_x()->mutable_region(), 512, 3);
  ExpectRefused(transpose, absl::StatusCode::kInvalidArgument, "x.data_type");
  OneStepRun run;
  run.request.mutable_inputs(0)->mutable_tensor()->mutable_region();
  ExpectRefused(run, absl::StatusCode::kInvalidArgument, "inputs[0].tensor.region.id");
}

TEST(RequestSourcesTest, SlicesOfRegionsAreFoundByTheirTokens) {
  Transpose r;
  r.Share(r.request.mutable_x()->mutable_region(), 512, 3);
  r.Share(r.request.mutable_options()->add_sinks()->mutable_region(), 4096, 4);
  const absl::StatusOr<Conversion> converted = Convert(r, /*max_inline_bytes=*/1);  // counts for neither
  ASSERT_THAT(converted, IsOk());
  ASSERT_TRUE(converted->sources.at(0).slice.has_value());
  const PlannedSlice& source = *converted->sources[0].slice;
  EXPECT_EQ(source.reference, 0u);
  EXPECT_EQ(source.offset.Value(r.integers), 512);
  EXPECT_EQ(source.call.Value(r.integers), 3);
  EXPECT_EQ(source.field, "x.region");
  const OutputPlace& sink = converted->sinks.at(0);
  EXPECT_EQ(sink.sink, 0);
  ASSERT_TRUE(sink.slice.has_value());
  EXPECT_EQ(sink.slice->reference, 1u);
  EXPECT_EQ(sink.slice->offset.Value(r.integers), 4096);
  EXPECT_EQ(sink.slice->call.Value(r.integers), 4);
  EXPECT_EQ(sink.slice->field, "options.sinks[0].region");
}

TEST(RequestSourcesTest, AResidentTensorBringsItsTypeAndShape) {
  Gemm r;
  r.request.clear_b();
  r.Refer(r.request.mutable_b(), TensorSpec{DType::kF32, {3, 4}, 48});
  const absl::StatusOr<Conversion> converted = Convert(r);
  ASSERT_THAT(converted, IsOk());
  EXPECT_EQ(converted->program.tensors.at(1).bytes, 48u);
  EXPECT_EQ(converted->program.tensors[1].shape, (Shape{3, 4}));
  EXPECT_FALSE(converted->sources.at(0).reference.has_value());
  EXPECT_EQ(converted->sources.at(1).reference, 0u);
  EXPECT_FALSE(converted->sources.at(1).payload.has_value());
}

TEST(RequestSourcesTest, WhatARequestSaysOfAResidentTensorMustBeTrue) {
  const TensorSpec resident{DType::kF32, {2, 3}, 24};
  const auto expect = [&](auto set, const std::string& field) {
    Transpose r;
    r.request.clear_x();
    r.Refer(r.request.mutable_x(), resident);
    set(*r.request.mutable_x());
    if (field.empty()) {
      EXPECT_THAT(Convert(r), IsOk());
    } else {
      ExpectRefused(r, absl::StatusCode::kInvalidArgument, field);
    }
  };
  expect([](v1::Tensor& x) { x.set_data_type(v1::DATA_TYPE_F32); }, "");
  expect([](v1::Tensor& x) { x.add_shape(2), x.add_shape(3); }, "");
  expect([](v1::Tensor& x) { x.set_data_type(v1::DATA_TYPE_F64); }, "x.data_type");
  expect([](v1::Tensor& x) { x.set_data_type(static_cast<v1::DataType>(-1)); }, "x.data_type");
  expect([](v1::Tensor& x) { x.add_shape(3), x.add_shape(2); }, "x.shape");
  expect([](v1::Tensor& x) { x.add_shape(6); }, "x.shape");
  expect([](v1::Tensor& x) { x.set_row_stride(3); }, "x.row_stride");
  expect([](v1::Tensor& x) { x.mutable_resident()->clear_id(); }, "x.resident.id");
}

TEST(RequestSourcesTest, WhyThereIsNoTensorIsSaidOfItsField) {
  OneStepRun r;
  r.request.mutable_inputs(0)->clear_tensor();
  r.Refer(r.request.mutable_inputs(0)->mutable_tensor(), absl::NotFoundError("there is no tensor"));
  ExpectRefused(r, absl::StatusCode::kNotFound, "inputs[0].tensor.resident.id");
}

TEST(RequestSourcesTest, ResidentTensorsDoNotCountAgainstTheInlineLimit) {
  Reduce r;
  r.request.clear_x();
  r.Refer(r.request.mutable_x(), TensorSpec{DType::kF32, {1 << 20}, 4 << 20});
  EXPECT_THAT(Convert(r, 8), IsOk());
}

TEST(RequestSourcesTest, TheLastSourceOfATensorCounts) {
  Transpose r;
  const std::string token = r.request.x().inline_();
  r.Refer(r.request.mutable_x(), absl::NotFoundError("there is no tensor"));
  r.request.mutable_x()->set_inline_(token);
  EXPECT_THAT(Convert(r), IsOk());
}

}  // namespace
}  // namespace warpline

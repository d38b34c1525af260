// What the API names and this server does not do yet is UNIMPLEMENTED, with the field, in every request.
#include "server/rpc/codec/request_options.h"

#include <gtest/gtest.h>

#include <string>

#include "server/base/errors.h"
#include "tests/server/rpc/codec/scanned_requests.h"
#include "tests/testing/status_matchers.h"

namespace warpline {
namespace {

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

TYPED_TEST(RequestOptionsTest, SinksAreNotBuiltYet) {
  const auto expect = [](auto set, const std::string& field) {
    TypeParam r;
    set(*r.request.mutable_options());
    const absl::Status status = Convert(r).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
    EXPECT_EQ(FieldOf(status), field);
  };
  expect([](auto& options) { options.add_sinks(); }, "options.sinks[0]");
  expect([](auto& options) { options.add_sinks()->mutable_region()->set_offset(256); },
         "options.sinks[0].region");
  expect([](auto& options) { options.add_sinks()->mutable_resident(); }, "options.sinks[0].resident");
}

template <typename Request>
void ExpectUnimplemented(const Request& r, const std::string& field) {
  const absl::Status status = Convert(r).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
  EXPECT_EQ(FieldOf(status), field);
}

TEST(RequestSourcesTest, RegionsAndResidentTensorsAreNotBuiltYet) {
  Transpose transpose;
  transpose.request.mutable_x()->mutable_region()->set_id("r");
  ExpectUnimplemented(transpose, "x.region");
  // A resident tensor brings its type and its shape with it.
  transpose.request.clear_x();
  transpose.request.mutable_x()->mutable_resident()->set_id("t");
  ExpectUnimplemented(transpose, "x.resident");

  Gemm gemm;
  gemm.request.mutable_bias()->mutable_resident();
  ExpectUnimplemented(gemm, "bias.resident");
  gemm.request.mutable_c()->mutable_region();
  ExpectUnimplemented(gemm, "c.region");

  OneStepRun run;
  run.request.mutable_inputs(0)->mutable_tensor()->mutable_region();
  ExpectUnimplemented(run, "inputs[0].tensor.region");
}

TEST(RequestSourcesTest, TheLastSourceOfATensorCounts) {
  Transpose r;
  const std::string token = r.request.x().inline_();
  r.request.mutable_x()->mutable_region();
  r.request.mutable_x()->set_inline_(token);
  EXPECT_THAT(Convert(r), IsOk());
}

}  // namespace
}  // namespace warpline

// Which plan a request gets, and that one from a cache is the one that would have been made.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <utility>

#include "server/rpc/codec/codec.h"
#include "tests/server/rpc/codec/planned_requests.h"
#include "tests/testing/program_bytes.h"
#include "tests/testing/random_wire.h"
#include "tests/testing/status_matchers.h"

namespace warpline {
namespace {

using ::testing::HasSubstr;
using ::warpline::testing::Gemm;
using ::warpline::testing::IsOk;
using ::warpline::testing::kInfinity;
using ::warpline::testing::kNan;
using ::warpline::testing::PlanSource;
using ::warpline::testing::ScaledProduct;
using ::warpline::testing::ShortestTag;
using ::warpline::testing::StatusIs;

TEST(DecodePlanTest, TheLastOfTwoValuesCounts) {
  PlanSource plans;
  const auto twice = [](double first, double last) {
    v1::GemmRequest one, other = Gemm();
    one.set_alpha(first);
    other.set_alpha(last);
    return one.SerializeAsString() + other.SerializeAsString();
  };
  EXPECT_EQ(plans.Get(RequestKind::kGemm, twice(0.25, 0.5)).scalars.at(0).alpha_f64, 0.5);
  EXPECT_EQ(plans.Get(RequestKind::kGemm, twice(0.125, 0.75)).scalars.at(0).alpha_f64, 0.75);
  EXPECT_EQ(plans.misses(), 1);
  // Only the last value decides whether c is read.
  v1::GemmRequest beta;
  beta.set_beta(0);
  const auto planned = plans.Get(RequestKind::kGemm, Gemm().SerializeAsString() + beta.SerializeAsString());
  EXPECT_EQ(planned.plan->program.tensors[2].bytes, 0u);
}

// Two programs, of which the parser makes one, and a step whose operation is named twice.
TEST(DecodePlanTest, PartsOfASplitProgramAreMerged) {
  v1::RunRequest first = ScaledProduct(), second;
  first.mutable_program()->clear_outputs();
  v1::Step& step = *second.mutable_program()->add_steps();
  step.set_name("z");
  step.add_inputs("y");
  v1::Step replaced = step;
  replaced.mutable_scale()->set_factor(0.5);
  v1::Step gemm;
  gemm.mutable_gemm()->set_alpha(0.25);
  v1::Step again;
  again.mutable_scale()->set_factor(1.5);
  const std::string parts =
      replaced.SerializeAsString() + gemm.SerializeAsString() + again.SerializeAsString();
  std::string program =
      ShortestTag(v1::Program::kStepsFieldNumber, 2) + testing::ShortestVarint(parts.size()) + parts;
  v1::Program outputs;
  outputs.add_outputs("z");
  program += outputs.SerializeAsString();
  const std::string bytes = first.SerializeAsString() + ShortestTag(v1::RunRequest::kProgramFieldNumber, 2) +
                            testing::ShortestVarint(program.size()) + program;
  PlanSource plans;
  for (int i = 0; i < 2; ++i) {
    const auto planned = plans.Get(RequestKind::kRun, bytes);
    ASSERT_THAT(planned.status, IsOk());
    ASSERT_EQ(planned.scalars.size(), 3u);
    EXPECT_EQ(planned.scalars[0].alpha_f64, 2);
    EXPECT_EQ(planned.scalars[0].beta_f64, 3);
    EXPECT_EQ(planned.scalars[1].alpha_f64, 4);
    EXPECT_EQ(planned.scalars[2].alpha_f64, 1.5);
  }
  EXPECT_EQ(plans.hits(), 1);
}

TEST(DecodePlanTest, AnInvalidIntegerIsRefusedAfterAValidOneWasCached) {
  PlanSource plans;
  const auto gemm = [](double alpha, double beta) {
    v1::GemmRequest request = Gemm(v1::DATA_TYPE_I8, 1);
    request.set_alpha(alpha);
    request.set_beta(beta);
    return request.SerializeAsString();
  };
  for (int round = 0; round < 2; ++round) {
    for (double valid : {7.0, -2147483648.0, 2147483647.0}) {
      const auto planned = plans.Get(RequestKind::kGemm, gemm(valid, 1));
      ASSERT_THAT(planned.status, IsOk());
      EXPECT_EQ(planned.scalars.at(0).alpha_i64, static_cast<std::int64_t>(valid));
    }
    for (double invalid : {0.5, 2147483648.0, -2147483649.0, 1e-300, 1e20, kInfinity, kNan}) {
      EXPECT_THAT(plans.Get(RequestKind::kGemm, gemm(invalid, 1)).status,
                  StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("alpha")));
      EXPECT_THAT(plans.Get(RequestKind::kGemm, gemm(1, invalid)).status,
                  StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("beta")));
    }
  }
  EXPECT_EQ(plans.hits(), 5);
}

// All of a plan that is made from a request, as text.
std::string Describe(const Plan& plan) {
  std::string text = ProgramBytes(plan.program);
  const auto add = [&text](auto number) { text += " " + std::to_string(number); };
  for (const TensorSpec& tensor : plan.program.tensors) add(tensor.bytes);
  for (const Step& step : plan.program.steps) {
    for (int input : step.inputs) add(input);
    add(step.output);
  }
  for (int output : plan.program.outputs) add(output);
  for (const Placement& place : plan.memory.tensors) add(static_cast<int>(place.area)), add(place.offset);
  for (const PlannedInput& input : plan.inputs) add(input.payload), add(input.reference);
  for (const PlannedScalars& step : plan.scalars) {
    for (const PlannedScalar& scalar : {step.alpha, step.beta}) add(scalar.index), add(scalar.otherwise);
    add(step.integers);
  }
  for (const PlannedOutput& output : plan.outputs) {
    text += " " + output.name;
    add(output.sink), add(output.ttl.index);
  }
  return text;
}

// A request of random types and scalars, of which some are given twice.
std::string RandomRequest(RequestKind kind, std::mt19937& random) {
  constexpr double kValues[] = {0,         -0.0,        1,
                                -3,        0.5,         1e-300,
                                1e300,     kInfinity,   kNan,
                                1 << 30,   2147483648., 9007199254740992.,
                                1.5 * 1e9, 1e16,        -2147483648.,
                                -1e-60};
  const auto value = [&] { return kValues[random() % std::size(kValues)]; };
  constexpr std::pair<v1::DataType, std::size_t> kTypes[] = {
      {v1::DATA_TYPE_F32, 4}, {v1::DATA_TYPE_F64, 8}, {v1::DATA_TYPE_F16, 2}, {v1::DATA_TYPE_I8, 1}};
  const auto [data_type, bytes] = kTypes[random() % std::size(kTypes)];
  const auto set = [&](auto& message) {
    if (random() % 4 != 0) message.set_alpha(value());
    if (random() % 4 != 0) message.set_beta(value());
  };
  if (kind == RequestKind::kGemm) {
    v1::GemmRequest request = Gemm(data_type, bytes), again;
    request.clear_alpha(), request.clear_beta();
    set(request);
    if (random() % 2 == 0) request.clear_c();
    if (random() % 4 == 0) set(again);
    return request.SerializeAsString() + again.SerializeAsString();
  }
  v1::RunRequest request = ScaledProduct(data_type, bytes);
  v1::Step& product = *request.mutable_program()->mutable_steps(0);
  product.clear_gemm();
  set(*product.mutable_gemm());
  if (random() % 2 == 0) {
    product.mutable_inputs()->RemoveLast();
    request.mutable_inputs()->RemoveLast();
  }
  if (random() % 4 != 0) request.mutable_program()->mutable_steps(1)->mutable_scale()->set_factor(value());
  return request.SerializeAsString();
}

TEST(DecodePlanTest, APlanFromTheCacheIsTheOneThatWouldHaveBeenMade) {
  std::mt19937 random(1);
  PlanSource cached;
  int refused = 0;
  for (int i = 0; i < 20000; ++i) {
    const RequestKind kind = random() % 2 == 0 ? RequestKind::kGemm : RequestKind::kRun;
    const std::string bytes = RandomRequest(kind, random);
    const auto from_cache = cached.Get(kind, bytes), fresh = PlanSource().Get(kind, bytes);
    ASSERT_EQ(from_cache.status, fresh.status);
    if (!fresh.status.ok()) {
      ++refused;
      continue;
    }
    ASSERT_EQ(Describe(*from_cache.plan), Describe(*fresh.plan));
    ASSERT_EQ(from_cache.scalars.size(), fresh.scalars.size());
    // Bit for bit: to ==, NaN differs from NaN, and -0 does not from 0.
    ASSERT_EQ(std::memcmp(from_cache.scalars.data(), fresh.scalars.data(),
                          fresh.scalars.size() * sizeof(StepScalars)),
              0);
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(cached.hits(), 5000);
}

}  // namespace
}  // namespace warpline

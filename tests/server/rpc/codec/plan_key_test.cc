// Tests which requests share a plan.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "server/rpc/codec/codec.h"
#include "tests/server/rpc/codec/planned_requests.h"
#include "tests/testing/random_wire.h"
#include "tests/testing/status_matchers.h"

namespace warpline {
namespace {

using ::warpline::testing::CodecOf;
using ::warpline::testing::Fill;
using ::warpline::testing::Gemm;
using ::warpline::testing::IsOk;
using ::warpline::testing::KeyOf;
using ::warpline::testing::kInfinity;
using ::warpline::testing::kNan;
using ::warpline::testing::PlanSource;
using ::warpline::testing::ScaledProduct;
using ::warpline::testing::Scan;
using ::warpline::testing::ShortestTag;

// A scalar field of a request, and where its value ends up.
struct ScalarField {
  std::string name;
  RequestKind kind;
  std::function<std::string(double value)> request;
  std::function<double(const ScalarValues&)> value;
};

std::vector<ScalarField> AllScalarFields() {
  const auto gemm = [](void (v1::GemmRequest::*set)(double)) {
    return [set](double value) {
      v1::GemmRequest request = Gemm();
      (request.*set)(value);
      return request.SerializeAsString();
    };
  };
  const auto step = [](void (v1::GemmStep::*set)(double)) {
    return [set](double value) {
      v1::RunRequest request = ScaledProduct();
      (request.mutable_program()->mutable_steps(0)->mutable_gemm()->*set)(value);
      return request.SerializeAsString();
    };
  };
  const auto alpha = [](const ScalarValues& values) { return values.at(0).alpha_f64; };
  const auto beta = [](const ScalarValues& values) { return values.at(0).beta_f64; };
  return {{"gemm alpha", RequestKind::kGemm, gemm(&v1::GemmRequest::set_alpha), alpha},
          {"gemm beta", RequestKind::kGemm, gemm(&v1::GemmRequest::set_beta), beta},
          {"step alpha", RequestKind::kRun, step(&v1::GemmStep::set_alpha), alpha},
          {"step beta", RequestKind::kRun, step(&v1::GemmStep::set_beta), beta},
          {"factor", RequestKind::kRun,
           [](double value) {
             v1::RunRequest request = ScaledProduct();
             request.mutable_program()->mutable_steps(1)->mutable_scale()->set_factor(value);
             return request.SerializeAsString();
           },
           [](const ScalarValues& values) { return values.at(1).alpha_f64; }}};
}

TEST(PlanKeyTest, RequestsThatDifferInTheValueOfAScalarShareAPlanAndHaveTheirOwnValues) {
  for (const ScalarField& field : AllScalarFields()) {
    SCOPED_TRACE(field.name);
    PlanSource plans;
    for (double value : {0.5, -1e-3, 1e300, kInfinity}) {
      const auto planned = plans.Get(field.kind, field.request(value));
      ASSERT_THAT(planned.status, IsOk());
      EXPECT_EQ(field.value(planned.scalars), value);
    }
    EXPECT_TRUE(std::isnan(field.value(plans.Get(field.kind, field.request(kNan)).scalars)));
    EXPECT_EQ(plans.misses(), 1);
    EXPECT_EQ(plans.hits(), 4);
  }
}

TEST(PlanKeyTest, RequestsWhoseScalarsAreOfOtherClassesDoNotShareAPlan) {
  for (const ScalarField& field : AllScalarFields()) {
    std::set<std::string> keys;
    for (double value : {0.0, 1.0, 1e10, 0.5, 1e-300}) keys.insert(KeyOf(field.kind, field.request(value)));
    EXPECT_EQ(keys.size(), 5u) << field.name;
    EXPECT_EQ(KeyOf(field.kind, field.request(3)), KeyOf(field.kind, field.request(-7))) << field.name;
  }
}

TEST(PlanKeyTest, AnAbsentScalarIsNotOneThatHasTheDefault) {
  v1::GemmRequest absent = Gemm();
  absent.clear_alpha();
  v1::GemmRequest given = Gemm();
  given.set_alpha(1);
  PlanSource plans;
  EXPECT_EQ(plans.Get(RequestKind::kGemm, absent.SerializeAsString()).scalars.at(0).alpha_f32, 1);
  EXPECT_EQ(plans.Get(RequestKind::kGemm, given.SerializeAsString()).scalars.at(0).alpha_f32, 1);
  given.set_alpha(5);
  EXPECT_EQ(plans.Get(RequestKind::kGemm, given.SerializeAsString()).scalars.at(0).alpha_f32, 5);
  EXPECT_EQ(plans.Get(RequestKind::kGemm, absent.SerializeAsString()).scalars.at(0).alpha_f32, 1);
  EXPECT_EQ(plans.misses(), 2);
}

TEST(PlanKeyTest, RequestsThatDifferInTheContentsOfPayloadsOnlyShareAPlan) {
  v1::GemmRequest one = Gemm(), other = Gemm();
  other.mutable_a()->set_inline_(std::string(24, 'x'));
  EXPECT_EQ(KeyOf(RequestKind::kGemm, one.SerializeAsString()),
            KeyOf(RequestKind::kGemm, other.SerializeAsString()));
  other.mutable_a()->set_inline_(std::string(23, 'x'));
  EXPECT_NE(KeyOf(RequestKind::kGemm, one.SerializeAsString()),
            KeyOf(RequestKind::kGemm, other.SerializeAsString()));
}

// Its header is what the length of the other's payload and the other's header are together.
TEST(PlanKeyTest, ARequestWithoutPayloadsIsNotTakenForOneWithAPayload) {
  constexpr auto kKind = RequestKind::kTranspose;
  // 9 is the tag of an unknown fixed64, and so the bytes of a length, 9 0 0 0 0 0 0 0, and the first byte of
  // what follows are a field.
  v1::TransposeRequest request;
  Fill(*request.mutable_x(), v1::DATA_TYPE_U8, {3, 3}, 1);
  // The unknown field 12, whose value is the tag of field 100; so the next tag, 0x6a, is read as a length.
  std::string first = ShortestTag(12, 0) + "\xa2\x06" + ShortestTag(13, 2);
  const std::string tail = "\xa2\x06" + std::string(1, '\x2a');  // field 100 again, over the rest
  const std::string skipped(0x6a - 1, 's');
  first += static_cast<char>(skipped.size() + tail.size()) + skipped + tail;
  first += request.SerializeAsString();
  const ScannedMessage with_payload = Scan(kKind, first);
  ASSERT_EQ(with_payload.payloads.size(), 1u);
  ASSERT_EQ(with_payload.payloads[0].length, 9u);
  std::string second("\x09\0\0\0\0\0\0\0", 8);
  second += with_payload.header;
  // However long the last field has to be.
  for (int length = 0; length < 128; ++length) {
    second[8 + first.find(tail) + 2] = static_cast<char>(length);
    const std::span<const std::byte> slice = std::as_bytes(std::span(second));
    const auto scanned = ScanMessage(CodecOf(kKind).schema, {&slice, 1});
    if (!scanned.ok() || !scanned->payloads.empty()) continue;
    first[first.find(tail) + 2] = static_cast<char>(length);
    EXPECT_EQ(scanned->header, second);
    EXPECT_NE(PlanKey(kKind, *scanned), KeyOf(kKind, first));
    return;
  }
  FAIL() << "no such request was found";
}

}  // namespace
}  // namespace warpline

// What requests share a plan, and that one from a cache is the one that would have been made.
#include "server/rpc/codec/codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "server/plan/plan_cache.h"
#include "tests/testing/random_wire.h"
#include "tests/testing/status_matchers.h"

namespace warpline {
namespace {

using ::testing::HasSubstr;
using ::warpline::testing::IsOk;
using ::warpline::testing::ShortestTag;
using ::warpline::testing::StatusIs;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr Limits kLimits{.max_inline_bytes = 1 << 20};

const Codec& CodecOf(RequestKind kind) {
  static const std::vector<Codec>& codecs = *new std::vector<Codec>(KernelCodecs());
  return codecs.at(static_cast<std::size_t>(kind));
}

ScannedMessage Scan(RequestKind kind, const std::string& bytes) {
  const std::span<const std::byte> slice = std::as_bytes(std::span(bytes));
  absl::StatusOr<ScannedMessage> scanned = ScanMessage(CodecOf(kind).schema, {&slice, 1});
  EXPECT_THAT(scanned, IsOk());
  return scanned.ok() ? *std::move(scanned) : ScannedMessage{};
}

std::string KeyOf(RequestKind kind, const std::string& bytes) { return PlanKey(kind, Scan(kind, bytes)); }

void Fill(v1::Tensor& tensor, v1::DataType data_type, std::initializer_list<std::int64_t> shape,
          std::size_t element_bytes) {
  std::size_t bytes = element_bytes;
  tensor.set_data_type(data_type);
  for (std::int64_t size : shape) {
    tensor.add_shape(size);
    bytes *= static_cast<std::size_t>(size);
  }
  tensor.set_inline_(std::string(bytes, '\1'));
}

// A valid product, c included.
v1::GemmRequest Gemm(v1::DataType data_type = v1::DATA_TYPE_F32, std::size_t element_bytes = 4) {
  v1::GemmRequest request;
  const bool integers = data_type == v1::DATA_TYPE_I8;
  Fill(*request.mutable_a(), data_type, {2, 3}, element_bytes);
  Fill(*request.mutable_b(), data_type, {3, 4}, element_bytes);
  Fill(*request.mutable_c(), integers ? v1::DATA_TYPE_I32 : data_type, {2, 4}, integers ? 4 : element_bytes);
  request.set_alpha(2);
  request.set_beta(3);
  return request;
}

// y = factor * (alpha * a b + beta * c).
v1::RunRequest ScaledProduct(v1::DataType data_type = v1::DATA_TYPE_F32, std::size_t element_bytes = 4) {
  v1::RunRequest request;
  for (const char* name : {"a", "b", "c"}) {
    v1::NamedTensor& input = *request.add_inputs();
    input.set_name(name);
    Fill(*input.mutable_tensor(), data_type, {2, 2}, element_bytes);
  }
  v1::Step& product = *request.mutable_program()->add_steps();
  product.set_name("product");
  for (const char* name : {"a", "b", "c"}) product.add_inputs(name);
  product.mutable_gemm()->set_alpha(2);
  product.mutable_gemm()->set_beta(3);
  v1::Step& scaled = *request.mutable_program()->add_steps();
  scaled.set_name("y");
  scaled.add_inputs("product");
  scaled.mutable_scale()->set_factor(4);
  request.mutable_program()->add_outputs("y");
  return request;
}

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

// A cache as the door uses it.
class PlanSource {
 public:
  struct Planned {
    absl::Status status;
    PlanPtr plan;
    ScalarValues scalars;
  };
  Planned Get(RequestKind kind, const std::string& bytes) {
    const ScannedMessage scanned = Scan(kind, bytes);
    const std::string key = PlanKey(kind, scanned);
    Planned planned;
    planned.plan = cache_.Find(key, MonotonicTime());
    if (planned.plan == nullptr) {
      absl::StatusOr<DecodedPlan> decoded = DecodePlan(CodecOf(kind), scanned, kLimits);
      planned.status = decoded.status();
      if (!decoded.ok()) return planned;
      planned.plan = std::make_shared<const Plan>(std::move(decoded->plan));
      cache_.Insert(key, planned.plan, OwnerId{1}, MonotonicTime());
    }
    planned.scalars = ScalarsOf(planned.plan->scalars, scanned.scalars);
    return planned;
  }
  double hits() const { return metrics_.plan_cache.hits.Value(); }
  double misses() const { return metrics_.plan_cache.misses.Value(); }

 private:
  mutable Metrics metrics_;
  PlanCache cache_{std::size_t{4} << 20, metrics_};
};

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
  EXPECT_EQ(planned.plan->program.num_inputs, 2);
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

TEST(DecodePlanTest, ACachedPlanHoldsNoValues) {
  v1::RunRequest request = ScaledProduct();
  PlanSource plans;
  for (const Step& step : plans.Get(RequestKind::kRun, request.SerializeAsString()).plan->program.steps) {
    EXPECT_EQ(step.scalars.alpha_f64, StepScalars{}.alpha_f64);
    EXPECT_EQ(step.scalars.beta_f64, StepScalars{}.beta_f64);
  }
}

// All of a plan that is made from a request, as text.
std::string Describe(const Plan& plan) {
  std::string text = plan.signature;
  const auto add = [&text](auto number) { text += " " + std::to_string(number); };
  for (const TensorSpec& tensor : plan.program.tensors) add(tensor.bytes);
  for (const Step& step : plan.program.steps) {
    for (int input : step.inputs) add(input);
    add(step.output);
  }
  for (int output : plan.program.outputs) add(output);
  for (std::size_t payload : plan.payloads) add(payload);
  for (const PlannedScalars& step : plan.scalars) {
    for (const PlannedScalar& scalar : {step.alpha, step.beta}) add(scalar.index), add(scalar.otherwise);
    add(step.integers);
  }
  for (const PlannedOutput& output : plan.outputs) text += " " + output.name;
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

// A field of type double that is forgotten in the codec's list would make a plan for each of its values.
TEST(KernelCodecsTest, EveryDoubleOfARequestIsAScalarUnlessItIsNamedHere) {
  const std::set<std::string> others = {"warpline.v1.ResidentTensor.ttl_seconds",
                                        "warpline.v1.ResidentSink.ttl_seconds"};
  int scalars = 0;
  std::function<void(const google::protobuf::Descriptor*, const ScanSchema&, int)> walk;
  walk = [&](const google::protobuf::Descriptor* message, const ScanSchema& schema, int index) {
    for (int i = 0; i < message->field_count(); ++i) {
      const google::protobuf::FieldDescriptor* field = message->field(i);
      const auto content = schema.Find(index, static_cast<std::uint32_t>(field->number()));
      if (field->type() == google::protobuf::FieldDescriptor::TYPE_DOUBLE) {
        const bool is_scalar = content == ScanSchema::kScalar;
        EXPECT_NE(is_scalar, others.contains(field->full_name())) << field->full_name();
        scalars += is_scalar ? 1 : 0;
      } else if (field->type() == google::protobuf::FieldDescriptor::TYPE_MESSAGE) {
        ASSERT_TRUE(content.has_value());
        walk(field->message_type(), schema, *content);
      }
    }
  };
  for (const google::protobuf::Descriptor* request :
       {v1::TransposeRequest::descriptor(), v1::GemmRequest::descriptor(), v1::ReduceRequest::descriptor(),
        v1::RunRequest::descriptor()}) {
    for (const Codec& codec : KernelCodecs()) {
      if (std::string(codec.method) + "Request" == request->name()) {
        walk(request, codec.schema, ScanSchema::kRoot);
      }
    }
  }
  EXPECT_EQ(scalars, 5);
}

}  // namespace
}  // namespace warpline

// The client refuses what the server refuses, with the same words, and foresees the types of all results.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "client/src/codec.h"
#include "client/src/one_step.h"
#include "client/src/result_type.h"
#include "kernels/field_error.h"
#include "server/rpc/codec/codec.h"
#include "tests/server/rpc/codec/planned_requests.h"
#include "warpline/requests.h"

namespace warpline {
namespace {

using client::GemmArgs;
using client::ReduceArgs;
using client::ResultTypes;
using client::RunArgs;
using client::TransposeArgs;

// A request as the client sends it.
std::string Sent(const RunArgs& args) {
  const absl::StatusOr<client::OutgoingMessage> message = client::Encode(args);
  EXPECT_THAT(message, testing::IsOk());
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(message->buffer.Dump(&slices).ok());
  std::string bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

// The server's answer to a request of this kind.
absl::StatusOr<ResultTypes> AnswerOf(RequestKind kind, const std::string& bytes) {
  const absl::StatusOr<DecodedPlan> decoded =
      DecodePlan(testing::CodecOf(kind), testing::Scan(kind, bytes), {}, testing::kLimits);
  if (!decoded.ok()) return decoded.status();
  ResultTypes types;
  for (const int output : decoded->plan.program.outputs) {
    types.emplace_back(decoded->plan.program.tensors[static_cast<std::size_t>(output)]);
  }
  return types;
}

// Returns true if both accept the request.
bool Agree(const RunArgs& args) {
  absl::StatusOr<ResultTypes> theirs = AnswerOf(RequestKind::kRun, Sent(args));
  if (!theirs.ok()) theirs = client::InOneStep(args, theirs.status());
  const absl::StatusOr<ResultTypes> ours = client::ResultTypesOf(args);
  EXPECT_EQ(ours.status(), theirs.status());  // compares the fields, too
  EXPECT_EQ(FieldOf(theirs.status()).has_value(), !theirs.ok()) << theirs.status();
  if (!ours.ok() || !theirs.ok()) return false;
  EXPECT_EQ(ours->size(), theirs->size());
  for (std::size_t i = 0; i < std::min(ours->size(), theirs->size()); ++i) {
    EXPECT_TRUE((*ours)[i].has_value());
    if (!(*ours)[i].has_value()) continue;
    EXPECT_EQ((*ours)[i]->dtype, (*theirs)[i]->dtype);
    EXPECT_EQ((*ours)[i]->shape, (*theirs)[i]->shape);
    EXPECT_EQ((*ours)[i]->bytes, (*theirs)[i]->bytes);
  }
  return true;
}

// Arguments at random, of which about half are valid.
class RandomArgs {
 public:
  explicit RandomArgs(unsigned seed) : random_(seed) {}

  bool Once(int of) { return Below(of) == 0; }

  TransposeArgs Transpose() { return {.x = AnyOperand(), .perm = Perm(), .variant = Variant()}; }

  ReduceArgs Reduce() {
    ReduceArgs args{.x = AnyOperand(),
                    .op = static_cast<v1::ReduceOp>(Below(v1::ReduceOp_MAX + 3)),
                    .axes = Axes(),
                    .keepdims = Once(2),
                    .variant = Variant(),
                    .out_data_type = OutType()};
    if (Once(4)) args.ddof = Below(4) - 1;
    return args;
  }

  GemmArgs Gemm() {
    const DType dtype = Type();
    const std::int64_t m = Below(3), k = Below(3) + 1, n = Below(3);
    GemmArgs args{.trans_a = Once(3), .trans_b = Once(3), .out_data_type = OutType()};
    args.a = Of(dtype, Batched(args.trans_a ? k : m, args.trans_a ? m : k));
    args.b = Of(Once(8) ? Type() : dtype, Batched(args.trans_b ? n : k, args.trans_b ? k : n));
    const DType out = args.out_data_type.value_or(dtype == DType::kI8 ? DType::kI32 : dtype);
    if (Once(3)) args.c = Of(Once(8) ? Type() : out, Batched(m, n));
    if (Once(3)) args.bias = Of(Once(8) ? Type() : out, Shape{Once(8) ? 7 : n});
    if (Once(2)) args.alpha = Number();
    if (Once(2)) args.beta = Number();
    if (Once(4)) args.activation = static_cast<v1::Activation>(Below(5));
    if (Once(4)) args.precision = static_cast<v1::Precision>(Below(4));
    args.variant = Variant();
    return args;
  }

  RunArgs Run() {
    RunArgs args;
    std::vector<std::string> names;
    for (int i = Below(4); i >= 0; --i) {
      names.push_back(Once(30) ? "a name" : "in" + std::to_string(Below(40)));
      args.inputs.emplace_back(names.back(), Once(5) ? AnyOperand() : Of(DType::kF32, {3, 3}));
    }
    const int steps = Below(6) + (Once(8) ? 0 : 1);
    for (int i = 0; i < steps; ++i) {
      v1::Step& step = *args.program.add_steps();
      step.set_name(Once(20) ? names[0] : "step" + std::to_string(i));
      step.set_variant(Variant());
      for (int read = Below(3) + (Once(2) ? 0 : 1); read > 0; --read) {
        step.add_inputs(Once(12) ? "step2"
                                 : names[static_cast<std::size_t>(Below(static_cast<int>(names.size())))]);
      }
      FillOperation(step);
      names.push_back(step.name());
    }
    // The results and inputs that no step reads: else few programs would be valid.
    for (const v1::Step& step : args.program.steps()) {
      if (Once(10) != !IsRead(args.program, step.name())) args.program.add_outputs(step.name());
    }
    if (!Once(4)) {
      std::erase_if(args.inputs, [&](const auto& input) { return !IsRead(args.program, input.first); });
    }
    return args;
  }

 private:
  int Below(int limit) { return std::uniform_int_distribution<int>(0, limit - 1)(random_); }

  DType Type() {
    if (Once(2)) return DType::kF32;
    return kAllDTypes[static_cast<std::size_t>(Below(static_cast<int>(kAllDTypes.size())))];
  }
  std::optional<DType> OutType() { return Once(3) ? std::optional(Type()) : std::nullopt; }
  std::string Variant() { return Once(20) ? std::string(65, 'v') : Once(2) ? "auto" : ""; }
  double Number() {
    constexpr std::array kNumbers = {0.0, -0.0, 1.0, -3.0, 0.5, 1e-300, 1e300, 9e15, 1e19, testing::kNan};
    return kNumbers[static_cast<std::size_t>(Below(kNumbers.size()))];
  }
  Shape AnyShape() {
    Shape shape;
    for (int rank = Below(5); rank > 0; --rank) shape.Append(Once(6) ? 0 : Below(3) + 1);
    return shape;
  }
  Shape Batched(std::int64_t rows, std::int64_t columns) {
    Shape shape;
    for (int rank = Once(2) ? 0 : Below(3); rank > 0; --rank) shape.Append(Once(2) ? 1 : 2);
    if (!Once(10)) shape.Append(rows);
    shape.Append(columns);
    return shape;
  }
  static client::Operand Of(DType dtype, const Shape& shape) {
    static const std::array<char, 1 << 16> kZeros{};
    return {.dtype = dtype, .shape = shape, .data = kZeros.data()};
  }
  client::Operand AnyOperand() { return Of(Type(), AnyShape()); }
  std::vector<int> Perm() {
    std::vector<int> perm;
    for (int rank = Once(2) ? 0 : Below(4); rank > 0; --rank) perm.insert(perm.begin(), rank - 1);
    std::shuffle(perm.begin(), perm.end(), random_);
    if (!perm.empty() && Once(4)) perm[0] = Below(5) - 1;
    return perm;
  }
  std::vector<int> Axes() {
    std::vector<int> axes;
    for (int count = Below(3); count > 0; --count) axes.push_back(Below(8) - 4);
    return axes;
  }
  void FillMap(v1::MapStep& map, int inputs) {
    for (int i = 0, count = Below(4) + (Once(10) ? 0 : 1); i < count; ++i) {
      v1::MapNode& node = *map.add_nodes();
      node.set_op(static_cast<v1::MapOp>(Once(3) ? v1::MAP_OP_ADD : Below(v1::MapOp_MAX + 2)));
      const bool known = node.op() > 0 && node.op() <= v1::MapOp_MAX;
      int reads = known ? kMapOps[static_cast<std::size_t>(node.op() - 1)].operands : 1;
      if (Once(20)) ++reads;
      for (int k = 0; k < reads; ++k)
        node.add_operands(Once(20) ? 99 : k == 0 ? inputs + i - 1 : Below(inputs + i + 1));
      if (Once(node.op() == v1::MAP_OP_CAST || node.op() == v1::MAP_OP_CONSTANT ? 1 : 6)) {
        node.set_data_type(
            static_cast<v1::DataType>(Once(2) ? v1::DATA_TYPE_F32 : Below(v1::DataType_MAX + 2)));
      }
      if (Once(node.op() == v1::MAP_OP_CONSTANT ? 2 : 20)) node.set_real(Number());
      if (Once(20)) node.set_integer(Below(400) - 100);
      if (Once(30)) node.set_imag(Number());
    }
    while (Once(4)) {
      v1::MapOutput& further = *map.add_outputs();
      further.set_name(Once(8) ? "" : "further" + std::to_string(Below(20)));
      further.set_node(Once(8) ? 99 : Below(std::max(map.nodes_size() - 1, 1)));
    }
  }

  void FillOperation(v1::Step& step) {
    switch (Below(15)) {
      case 13:
      case 14:
        return FillMap(*step.mutable_map(), step.inputs_size());
      case 0:
      case 1: {
        const std::vector<int> perm = Perm();
        step.mutable_transpose()->mutable_perm()->Add(perm.begin(), perm.end());
        return;
      }
      case 2:
      case 3: {
        v1::GemmStep& gemm = *step.mutable_gemm();
        gemm.set_trans_a(Once(2));
        if (Once(4)) gemm.set_beta(Number());
        if (Once(4)) gemm.set_alpha(Number());
        gemm.set_has_bias(Once(6));
        return;
      }
      case 4:
      case 5: {
        v1::ReduceStep& reduce = *step.mutable_reduce();
        reduce.set_op(static_cast<v1::ReduceOp>(Below(v1::ReduceOp_MAX + 2)));
        const std::vector<int> axes = Axes();
        reduce.mutable_axes()->Add(axes.begin(), axes.end());
        reduce.set_keepdims(Once(2));
        return;
      }
      case 6:
      case 7:
        step.mutable_cast()->set_data_type(static_cast<v1::DataType>(Below(v1::DataType_MAX + 2)));
        return;
      case 8:
      case 9:
        step.mutable_scale()->set_factor(Number());
        return;
      case 10:
      case 11:
        step.mutable_add();
        return;
      default:
        return;  // a step without an operation
    }
  }
  static bool IsRead(const v1::Program& program, const std::string& name) {
    for (const v1::Step& step : program.steps()) {
      if (std::find(step.inputs().begin(), step.inputs().end(), name) != step.inputs().end()) return true;
    }
    return false;
  }

  std::mt19937 random_;
};

// The request of its own that a program of one step stands for.
template <typename Request>
void TakeInputs(v1::RunRequest& run, Request& request) {
  for (v1::NamedTensor& input : *run.mutable_inputs()) {
    const auto* const field = Request::descriptor()->FindFieldByName(input.name());
    request.GetReflection()->MutableMessage(&request, field)->CopyFrom(input.tensor());
  }
  request.set_variant(run.program().steps(0).variant());
}
std::string OwnRequest(const std::string& bytes, RequestKind kind) {
  v1::RunRequest run;
  EXPECT_TRUE(run.ParseFromString(bytes));
  const v1::Step& step = run.program().steps(0);
  if (kind == RequestKind::kTranspose) {
    v1::TransposeRequest request;
    *request.mutable_perm() = step.transpose().perm();
    TakeInputs(run, request);
    return request.SerializeAsString();
  }
  if (kind == RequestKind::kReduce) {
    v1::ReduceRequest request;
    const v1::ReduceStep& reduce = step.reduce();
    request.set_op(reduce.op());
    *request.mutable_axes() = reduce.axes();
    request.set_keepdims(reduce.keepdims());
    request.set_out_data_type(reduce.out_data_type());
    request.set_ddof(reduce.ddof());
    TakeInputs(run, request);
    return request.SerializeAsString();
  }
  v1::GemmRequest request;
  const v1::GemmStep& gemm = step.gemm();
  request.set_trans_a(gemm.trans_a());
  request.set_trans_b(gemm.trans_b());
  if (gemm.has_alpha()) request.set_alpha(gemm.alpha());
  if (gemm.has_beta()) request.set_beta(gemm.beta());
  request.set_precision(gemm.precision());
  request.set_activation(gemm.activation());
  request.set_out_data_type(gemm.out_data_type());
  TakeInputs(run, request);
  return request.SerializeAsString();
}

// The same for a program of one step, and for its own request.
template <typename Args>
bool AgreeOnBoth(RequestKind kind, const Args& operation) {
  const RunArgs args = client::OneStep(operation);
  const absl::StatusOr<ResultTypes> alone = AnswerOf(kind, OwnRequest(Sent(args), kind));
  const bool valid = Agree(args);
  const absl::StatusOr<ResultTypes> ours = client::ResultTypesOf(args);
  EXPECT_EQ(alone.status(), ours.status());
  if (!alone.ok() || !ours.ok()) return false;
  EXPECT_EQ((*ours)[0]->dtype, (*alone)[0]->dtype);
  EXPECT_EQ((*ours)[0]->shape, (*alone)[0]->shape);
  return valid;
}

TEST(RulesAgreementTest, OfOperations) {
  RandomArgs random(1);
  int transposes = 0, gemms = 0, reductions = 0;
  for (int i = 0; i < 3000 && !HasFailure(); ++i) {
    transposes += AgreeOnBoth(RequestKind::kTranspose, random.Transpose());
    gemms += AgreeOnBoth(RequestKind::kGemm, random.Gemm());
    reductions += AgreeOnBoth(RequestKind::kReduce, random.Reduce());
  }
  for (const int valid : {transposes, gemms, reductions}) {
    EXPECT_GT(valid, 200);
    EXPECT_LT(valid, 2800);
  }
}

TEST(RulesAgreementTest, OfPrograms) {
  RandomArgs random(2);
  int valid = 0;
  for (int i = 0; i < 10'000 && !HasFailure(); ++i) valid += Agree(random.Run());
  EXPECT_GT(valid, 150);
  EXPECT_LT(valid, 9850);
}

TEST(RulesAgreementTest, OfLimitsOfPrograms) {
  RunArgs args;
  const client::Operand x{.dtype = DType::kF32, .shape = {1}, .data = "abcd"};
  for (int i = 0; i < 129; ++i) args.inputs.emplace_back("x" + std::to_string(i), x);
  EXPECT_FALSE(Agree(args));
  args.inputs.resize(1);
  for (const std::size_t length : {0, 64, 65}) {
    args.inputs[0].first = std::string(length, 'x');
    EXPECT_FALSE(Agree(args));
  }
  args.inputs[0].first = "x";
  for (int i = 0; i < 257; ++i) {
    v1::Step& step = *args.program.add_steps();
    step.set_name("s" + std::to_string(i));
    step.add_inputs(i == 0 ? "x" : "s" + std::to_string(i - 1));
    step.mutable_add();
    step.add_inputs("x");
    args.program.clear_outputs();
    args.program.add_outputs(step.name());
    EXPECT_EQ(Agree(args), i < 256) << i;
  }
  args.program.mutable_steps()->DeleteSubrange(1, 256);
  args.program.clear_outputs();
  EXPECT_FALSE(Agree(args));
  for (const char* name : {"x", "none", "s0", "s0"}) {
    args.program.add_outputs(name);
    if (args.program.outputs_size() == 2) args.program.mutable_outputs()->DeleteSubrange(0, 1);
    Agree(args);
  }
  args.program.add_outputs("s0");
  EXPECT_FALSE(Agree(args));
}

}  // namespace
}  // namespace warpline

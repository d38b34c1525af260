// The label "op" of metrics tells what a request computes, whichever client and method brought it.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/e2e/cli.h"
#include "tests/e2e/ndarray.h"
#include "tests/e2e/requests.h"
#include "warpline/client.h"
#include "warpline/program.h"

namespace warpline {
namespace {

class OpLabelTest : public CliTest {
 protected:
  OpLabelTest() {
    Put("a.npy", ToNpy(Ndarray<float>{{2, 2}, a_}));
    matrix_ = {DType::kF32, {2, 2}, 0, a_.data()};
  }
  double Count(const std::string& op) const {
    return daemon_.Metric("warpline_requests_total", "op=\"" + op + "\"");
  }

  const std::vector<float> a_ = {1, 2, 3, 4};
  client::ConstArray matrix_;
  client::Client client_{daemon_.address(), {}};
};

TEST_F(OpLabelTest, OfAProductIsGemmWhoeverAsksForIt) {
  ASSERT_TRUE(client_.Gemm({.a = matrix_, .b = matrix_}, absl::Seconds(60)).ok());
  EXPECT_EQ(Count("gemm"), 1);
  EXPECT_EQ(Run("warpline gemm a.npy a.npy -o d.npy").code, 0);
  EXPECT_EQ(Count("gemm"), 2);
  EXPECT_EQ(Run("warpline run -e 'gemm(a, b)' a=a.npy b=a.npy -o d.npy").code, 0);
  EXPECT_EQ(Count("gemm"), 3);
  v1::GemmRequest request;
  *request.mutable_a() = F32Tensor({2, 2}, a_);
  *request.mutable_b() = request.a();
  grpc::ClientContext context;
  SetTimeout(context, absl::Seconds(60));
  v1::GemmResponse response;
  ASSERT_TRUE(v1::KernelService::NewStub(daemon_.Channel())->Gemm(&context, request, &response).ok());
  EXPECT_EQ(Count("gemm"), 4);
  EXPECT_EQ(Count("run"), 0);
}

TEST_F(OpLabelTest, OfTheOthersIsTheirs) {
  ASSERT_TRUE(client_.Transpose({.x = matrix_}, absl::Seconds(60)).ok());
  ASSERT_TRUE(client_.Reduce({.x = matrix_}, absl::Seconds(60)).ok());
  EXPECT_EQ(Count("transpose"), 1);
  EXPECT_EQ(Count("reduce"), 1);
  EXPECT_EQ(Count("run"), 0);
}

TEST_F(OpLabelTest, OfAnyOtherProgramIsRun) {
  for (const char* program : {"exp(a)", "transpose(gemm(a, a))"}) {
    const client::RunArgs args{.program = *client::ParseExpression(program), .inputs = {{"a", matrix_}}};
    ASSERT_TRUE(client_.Run(args, absl::Seconds(60)).ok());
  }
  EXPECT_EQ(Count("run"), 2);
  EXPECT_EQ(Count("gemm"), 0);
}

// The kind of what cannot be read is that of its method.
TEST_F(OpLabelTest, OfWhatIsRefusedIsThatOfItsMethod) {
  v1::GemmRequest request;
  grpc::ClientContext context;
  SetTimeout(context, absl::Seconds(60));
  v1::GemmResponse response;
  EXPECT_EQ(v1::KernelService::NewStub(daemon_.Channel())->Gemm(&context, request, &response).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Count("gemm"), 1);
}

TEST_F(OpLabelTest, OfAProgramThatIsRefusedIsItsOwn) {
  EXPECT_FALSE(client_.Gemm({.a = matrix_, .b = {.resident = "none"}}, absl::Seconds(60)).ok());
  EXPECT_EQ(Count("gemm"), 1);
  EXPECT_EQ(Count("run"), 0);
}

}  // namespace
}  // namespace warpline

// Options and sources that the API names, through a real daemon: what works, and what is not built yet.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/e2e/daemon.h"
#include "tests/e2e/requests.h"

namespace warpline {
namespace {

class RequestOptionsTest : public ::testing::Test {
 protected:
  grpc::Status Transpose(const v1::TransposeRequest& request, v1::TransposeResponse* response) {
    grpc::ClientContext context;
    SetTimeout(context, absl::Seconds(60));
    return stub_->Transpose(&context, request, response);
  }

  Daemon daemon_;
  std::unique_ptr<v1::KernelService::Stub> stub_ = v1::KernelService::NewStub(daemon_.Channel());
};

TEST_F(RequestOptionsTest, AReproducibleVariantIsRun) {
  v1::TransposeRequest request = IotaTranspose(2, 3);
  request.mutable_options()->set_reproducible(true);
  for (const char* variant : {"", daemon_.backend() == "cpu" ? "reference" : "naive_read"}) {
    request.set_variant(variant);
    v1::TransposeResponse response;
    const grpc::Status status = Transpose(request, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(F32Values(response.y()), std::vector<float>({0, 3, 1, 4, 2, 5}));
  }
}

TEST_F(RequestOptionsTest, AVariantThatIsNotReproducibleIsRefused) {
  if (daemon_.backend() == "cpu") GTEST_SKIP() << "all variants of the CPU are reproducible";
  v1::ReduceRequest request;
  *request.mutable_x() = F32Tensor({2, 3}, {1, 2, 3, 4, 5, 6});
  request.set_op(v1::REDUCE_OP_SUM);
  request.set_variant("atomic");
  request.mutable_options()->set_reproducible(true);
  grpc::ClientContext context;
  SetTimeout(context, absl::Seconds(60));
  v1::ReduceResponse response;
  const grpc::Status status = stub_->Reduce(&context, request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << status.error_message();
  EXPECT_EQ(DetailsOf(status).fields, std::vector<std::string>({"variant"}));
}

}  // namespace
}  // namespace warpline

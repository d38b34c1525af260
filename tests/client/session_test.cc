#include "client/session.h"

#include <gmock/gmock.h>
#include <grpc/grpc.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "warpline/v1/warpline.grpc.pb.h"

namespace warpline::client {
namespace {

using testing::HasSubstr;

class FakeInfo : public v1::InfoService::Service {
 public:
  grpc::Status GetInfo(grpc::ServerContext*, const v1::GetInfoRequest*,
                       v1::GetInfoResponse* response) override {
    response->set_version("0.0.9");
    for (const std::string& name : operations) response->add_operations()->set_name(name);
    return grpc::Status::OK;
  }
  std::vector<std::string> operations = {"transpose", "gemm"};
};

class SessionTest : public testing::Test {
 protected:
  // Kept up between the tests: each full shutdown of gRPC 1.51 with a server in the process takes 10 s.
  static void SetUpTestSuite() { grpc_init(); }

  SessionTest() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(target_, grpc::InsecureServerCredentials());
    builder.RegisterService(&info_);
    server_ = builder.BuildAndStart();
  }

  absl::StatusOr<Session> Open(const std::vector<std::string>& outputs) const {
    const std::vector<std::string_view> words = {"gemm", "--server", target_};
    const auto args = Args::Parse(words, AllFlags());
    return Session::Create(*args, *CommonFlags::From(*args), outputs);
  }

  const std::string target_ = "unix:/tmp/warpline_session_test." + std::to_string(::getpid());
  FakeInfo info_;
  std::unique_ptr<grpc::Server> server_;
};

TEST_F(SessionTest, RefusesWhatAnOlderServerWouldIgnore) {
  auto session = Open({"y.npy"});
  ASSERT_TRUE(session.ok()) << session.status();
  const absl::Status status = session->CheckKnows("bias");
  EXPECT_EQ(ExitCode(status), 1);
  EXPECT_THAT(Complaint(status), HasSubstr("(0.0.9, ) is too old for --bias and would ignore it"));
  info_.operations.emplace_back("cast");
  EXPECT_TRUE(session->CheckKnows("bias").ok());
}

TEST_F(SessionTest, NeedsAnOutput) {
  EXPECT_TRUE(IsUsageError(Open({}).status()));
  EXPECT_THAT(std::string(Open({}).status().message()), HasSubstr("-o OUT.npy is missing"));
}

TEST_F(SessionTest, NeedsAFileForEachOutput) {
  EXPECT_TRUE(Open({"x.npy", "y.npy", "/dev/null", "/dev/null"}).ok());
  for (const auto& outputs : std::vector<std::vector<std::string>>{{"y.npy", "y.npy"}, {"-", "x.npy", "-"}}) {
    EXPECT_TRUE(IsUsageError(Open(outputs).status()));
  }
  EXPECT_EQ(Open({"x.npy", "y.npy", "./x.npy"}).status().message(),
            "-o ./x.npy: another result goes there, as x.npy");
}

}  // namespace
}  // namespace warpline::client

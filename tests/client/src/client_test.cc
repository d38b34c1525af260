#include "warpline/client.h"

#include <gmock/gmock.h>
#include <grpc/grpc.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <latch>
#include <numeric>
#include <thread>
#include <utility>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "tests/testing/call_async.h"
#include "warpline/error.h"
#include "warpline/v1/warpline.grpc.pb.h"

namespace warpline::client {
namespace {

using ::testing::ElementsAre;

template <typename Detail>
grpc::Status Refuse(grpc::ServerContext* context, grpc::StatusCode code, const std::string& text,
                    const Detail& detail) {
  google::rpc::Status status;
  status.set_code(code);
  status.set_message(text);
  static_cast<void>(status.add_details()->PackFrom(detail));
  context->AddTrailingMetadata("x-request-id", "request 42");
  return grpc::Status(code, text, status.SerializeAsString());
}

// Returns the inputs under the names of the outputs; the variant of the first step says what else to do.
class FakeKernels : public v1::KernelService::Service {
 public:
  grpc::Status Run(grpc::ServerContext* context, const v1::RunRequest* request,
                   v1::RunResponse* response) override {
    const std::string& variant = request->program().steps(0).variant();
    if (variant == "wrong") {
      google::rpc::BadRequest bad;
      bad.add_field_violations()->set_field("program.steps[0].perm");
      bad.mutable_field_violations(0)->set_description("axis 7");
      return Refuse(context, grpc::StatusCode::INVALID_ARGUMENT, "no such axis", bad);
    }
    if (variant == "full" && attempts++ < 2) {
      google::rpc::RetryInfo retry;
      retry.mutable_retry_delay()->set_nanos(20'000'000);
      return Refuse(context, grpc::StatusCode::RESOURCE_EXHAUSTED, "full", retry);
    }
    // The client's gRPC reports this for a stream that the server's gRPC has reset.
    if (variant == "reset" && attempts++ < 1) {
      return {grpc::StatusCode::INTERNAL, "Received RST_STREAM with error code 1"};
    }
    // And this for a connection that ended between the headers and the status.
    if (variant == "removed" && attempts++ < 1) {
      return {grpc::StatusCode::UNKNOWN, "Stream removed"};
    }
    if (variant == "unwritten" && attempts++ < 1) {
      return {grpc::StatusCode::INTERNAL,
              "Error in HTTP transport completing operation: on_write_finished_cb"};
    }
    if (variant == "broken" && attempts++ < 1) {
      return {grpc::StatusCode::INTERNAL, "Received RST_STREAM with error code 2"};
    }
    while (variant == "slow" && !context->IsCancelled()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    for (int i = 0; i < request->program().outputs_size(); ++i) {
      v1::NamedTensor& output = *response->add_outputs();
      output.set_name(request->program().outputs(i));
      *output.mutable_tensor() = request->inputs(i).tensor();
    }
    response->mutable_execution()->set_backend("fake");
    for (const auto& [key, value] : context->client_metadata()) {
      if (key == "x-request-id") {
        response->mutable_execution()->set_request_id(std::string(value.data(), value.size()));
      }
    }
    return grpc::Status::OK;
  }

  std::atomic<int> attempts = 0;
};

class ClientTest : public testing::Test {
 protected:
  // Kept up between the tests: each full shutdown of gRPC 1.51 with a server in the process takes 10 s.
  static void SetUpTestSuite() { grpc_init(); }

  ClientTest() : target_("unix:/tmp/warpline_client_test." + std::to_string(::getpid())) {
    grpc::EnableDefaultHealthCheckService(true);
    grpc::ServerBuilder builder;
    builder.SetMaxReceiveMessageSize(-1);
    builder.AddListeningPort(target_, grpc::InsecureServerCredentials());
    builder.RegisterService(&kernels_);
    server_ = builder.BuildAndStart();
    std::iota(elements_.begin(), elements_.end(), 0);
  }

  TransposeArgs Request(const std::string& variant) const {
    TransposeArgs args;
    args.x = {DType::kI32, {static_cast<std::int64_t>(elements_.size())}, 0, elements_.data()};
    args.variant = variant;
    return args;
  }

  std::string target_;
  FakeKernels kernels_;
  std::unique_ptr<grpc::Server> server_;
  std::vector<std::int32_t> elements_ = std::vector<std::int32_t>(3'000'000);
};

TEST_F(ClientTest, BringsElementsThereAndBack) {
  Client client(target_, {});
  std::vector<std::int32_t> back(elements_.size());
  CallOptions options;
  options.request_id = "mine";
  options.destination = {back.data(), back.size() * sizeof(back[0])};
  const auto result = client.Transpose(Request(""), absl::Seconds(30), options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->array.data(), back.data());
  EXPECT_EQ(back, elements_);
  EXPECT_EQ(result->execution.backend(), "fake");
  EXPECT_EQ(result->execution.request_id(), "mine");
}

TEST_F(ClientTest, KeepsTheDetailsOfErrors) {
  Client client(target_, {});
  const auto result = client.Transpose(Request("wrong"), absl::Seconds(30));
  ASSERT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
  const ErrorDetails details = DetailsOf(result.status());
  EXPECT_EQ(details.request_id, "request 42");
  ASSERT_EQ(details.violations.size(), 1u);
  EXPECT_EQ(details.violations[0].field, "perm");
  EXPECT_EQ(Describe(result.status()),
            "INVALID_ARGUMENT: no such axis\n  perm: axis 7\n  request id: request 42");
}

TEST_F(ClientTest, SendsAgainOnlyIfAllowed) {
  Client once(target_, {});
  const auto refused = once.Transpose(Request("full"), absl::Seconds(30));
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(DetailsOf(refused.status()).retry_delay, absl::Milliseconds(20));
  kernels_.attempts = 0;
  Client patient(target_, {.max_retries = 5});
  EXPECT_TRUE(patient.Transpose(Request("full"), absl::Seconds(30)).ok());
  EXPECT_EQ(kernels_.attempts, 3);
}

TEST_F(ClientTest, SendsAgainWhatWasCutOff) {
  Client patient(target_, {.max_retries = 5});
  EXPECT_TRUE(patient.Transpose(Request("reset"), absl::Seconds(30)).ok());
  EXPECT_EQ(kernels_.attempts, 2) << "its window was lowered";
  kernels_.attempts = 0;
  for (const char* lost : {"removed", "unwritten"}) {
    EXPECT_TRUE(patient.Transpose(Request(lost), absl::Seconds(30)).ok());
    EXPECT_EQ(kernels_.attempts, 2) << "its connection is lost";
    kernels_.attempts = 0;
  }
  EXPECT_TRUE(absl::IsInternal(patient.Transpose(Request("broken"), absl::Seconds(30)).status()));
}

TEST_F(ClientTest, ObeysTheDeadline) {
  Client client(target_, {});
  const absl::Time start = absl::Now();
  EXPECT_TRUE(absl::IsDeadlineExceeded(client.Transpose(Request("slow"), absl::Milliseconds(200)).status()));
  EXPECT_LT(absl::Now() - start, absl::Seconds(10));
  for (absl::Duration timeout : {absl::ZeroDuration(), -absl::Seconds(1), absl::InfiniteDuration()}) {
    EXPECT_TRUE(absl::IsInvalidArgument(client.Transpose(Request(""), timeout).status()));
  }
}

TEST_F(ClientTest, RunsManyCallsAtOnce) {
  constexpr int kCalls = 50;
  std::atomic<int> good = 0;
  std::vector<std::vector<std::int32_t>> back(kCalls, std::vector<std::int32_t>(elements_.size() / 100));
  {
    Client client(target_, {.channel = {.own_connection = true}});
    TransposeArgs args = Request("");
    args.x.shape = {static_cast<std::int64_t>(back[0].size())};
    for (std::vector<std::int32_t>& memory : back) {
      CallOptions options;
      options.destination = {memory.data(), memory.size() * sizeof(memory[0])};
      ::warpline::testing::CallAsync(
          client, args, absl::Seconds(30), options,
          [&](const absl::StatusOr<RunResult>& result) { good += result.ok() ? 1 : 0; });
    }
  }  // waits
  EXPECT_EQ(good, kCalls);
  for (const auto& memory : back)
    EXPECT_EQ(std::memcmp(memory.data(), elements_.data(), memory.size() * 4), 0);
}

TEST_F(ClientTest, RunsPrograms) {
  Client client(target_, {});
  const float scalar = 5;
  std::vector<std::int32_t> back(elements_.size());
  RunArgs args;
  for (const auto& [name, input] : {std::pair("y", "x"), std::pair("z", "s")}) {
    v1::Step& step = *args.program.add_steps();
    step.set_name(name);
    step.add_inputs(input);
    step.mutable_transpose();
    args.program.add_outputs(name);
  }
  args.inputs = {{"x", Request("").x}, {"s", {DType::kF32, {}, 0, &scalar}}};
  args.destinations = {{back.data(), back.size() * sizeof(back[0])}};
  const auto expect = [&](const absl::StatusOr<RunResult>& result) {
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(back, elements_);
    EXPECT_EQ(result->outputs[0].second.data(), back.data());
    EXPECT_EQ(result->outputs[1].first, "z");
    EXPECT_EQ(*static_cast<const float*>(result->outputs[1].second.data()), 5);
    EXPECT_EQ(result->execution.backend(), "fake");
  };
  expect(client.Run(args, absl::Seconds(30)));
  std::fill(back.begin(), back.end(), 0);
  std::latch done(1);
  client.RunAsync(args, absl::Seconds(30), {}, [&](const absl::StatusOr<RunResult>& result) {
    expect(result);
    done.count_down();
  });
  done.wait();
  args.inputs[0].second.shape = {-1};
  client.RunAsync(args, absl::Seconds(30), {}, [&](const absl::StatusOr<RunResult>& result) {
    EXPECT_TRUE(absl::IsInvalidArgument(result.status()));
  });
}

TEST_F(ClientTest, GivesBorrowedMemoryBackEvenWhenCallsFail) {
  Client client(target_, {});
  for (const char* variant : {"slow", "wrong"}) {
    auto memory = std::make_unique<std::vector<std::int32_t>>(elements_);
    TransposeArgs args = Request(variant);
    args.x.data = memory->data();
    std::latch done(1);  // a header, which the thread sanitizer sees, unlike absl::Notification
    ::warpline::testing::CallAsync(client, args, absl::Milliseconds(30), {},
                                   [&](const absl::StatusOr<RunResult>& result) {
                                     EXPECT_FALSE(result.ok());
                                     memory.reset();  // a sanitizer sees who still reads it
                                     done.count_down();
                                   });
    done.wait();
  }
}

// The time that TCP waits for the host at the other end, in milliseconds, for each connection to this port.
std::vector<unsigned> UserTimeoutsTo(int port) {
  std::vector<unsigned> timeouts;
  for (int fd = 0; fd < 1024; ++fd) {
    sockaddr_in6 peer{};
    socklen_t size = sizeof(peer);
    if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0 || ntohs(peer.sin6_port) != port)
      continue;
    unsigned timeout = 0;
    size = sizeof(timeout);
    if (::getsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout, &size) == 0) timeouts.push_back(timeout);
  }
  return timeouts;
}

TEST_F(ClientTest, GivesUpConnectionsWhosePeerTakesNoData) {
  grpc::ServerBuilder builder;
  int port = 0;
  builder.SetMaxReceiveMessageSize(-1);
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&kernels_);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  Client client("127.0.0.1:" + std::to_string(port), {});
  ASSERT_TRUE(client.Transpose(Request(""), absl::Seconds(30)).ok());
  EXPECT_THAT(UserTimeoutsTo(port), ElementsAre(30'000u));
}

TEST_F(ClientTest, ReportsServersThatAreNotThere) {
  Client client("unix:/tmp/there is no such socket", {});
  EXPECT_TRUE(absl::IsUnavailable(client.Transpose(Request(""), absl::Seconds(30)).status()));
  EXPECT_TRUE(absl::IsUnavailable(client.GetInfo(absl::Seconds(30)).status()));
}

TEST_F(ClientTest, AsksForHealth) {
  Client client(target_, {});
  EXPECT_TRUE(*client.IsServing("", absl::Seconds(30)));
  server_->GetHealthCheckService()->SetServingStatus(false);
  EXPECT_FALSE(*client.IsServing("", absl::Seconds(30)));
  EXPECT_TRUE(absl::IsUnimplemented(client.GetInfo(absl::Seconds(30)).status()));
}

}  // namespace
}  // namespace warpline::client

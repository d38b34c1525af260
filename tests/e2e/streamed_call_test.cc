// Requests whose large arrays travel in calls of their own, from clients that do as the API says and from
// others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "tests/e2e/announced.h"
#include "tests/e2e/daemon.h"
#include "tests/e2e/requests.h"
#include "tests/e2e/tensors.h"
#include "tests/testing/patience.h"

namespace warpline {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr std::int64_t kRows = 3000, kCols = 1001;  // 3 MB, and no multiple of anything
constexpr std::size_t kBytes = kRows * kCols;

// The metrics that count what streamed calls hold.
void ExpectNothingHeld(const Daemon& daemon) {
  for (const char* name : {"warpline_upload_bytes", "warpline_requests_in_flight",
                           "warpline_resident_tensors", "warpline_queue_depth"}) {
    EXPECT_TRUE(daemon.AwaitMetric(name, "", 0)) << name << " is " << daemon.Metric(name);
  }
  EXPECT_TRUE(daemon.AwaitMetric("warpline_admission_bytes", "state=\"used\"", 0));
  EXPECT_TRUE(daemon.AwaitMetric("warpline_pinned_bytes", "state=\"used\"", 0));
}

class StreamedCallTest : public ::testing::Test {
 protected:
  ~StreamedCallTest() override { ExpectNothingHeld(daemon_); }

  // The result of a call that has ended well, which is fetched and dropped.
  std::string Fetch(const Answer<v1::TransposeResponse>& answer) {
    EXPECT_TRUE(answer.status.ok()) << answer.status.error_message();
    const std::string id = answer.response.y().resident().id();
    const Tensors::Got got = tensors_.Get(id);
    EXPECT_TRUE(got.status.ok()) << got.status.error_message();
    EXPECT_TRUE(tensors_.Drop(id).status.ok());
    return got.data;
  }

  const Daemon daemon_{{"--upload-bytes=64M", "--send-timeout=2s"}};
  Tensors tensors_{daemon_.Channel()};
};

TEST_F(StreamedCallTest, RangesOverSeveralConnectionsAreOneCall) {
  Announced call(daemon_.Channel(), StreamedTranspose(kRows, kCols));
  const auto uploads = call.Accepted();
  ASSERT_TRUE(uploads.has_value());
  ASSERT_THAT(uploads->ids(), SizeIs(1));
  EXPECT_GE(uploads->channels(), 1);
  EXPECT_GE(daemon_.Metric("warpline_upload_bytes"), 2 * kBytes) << "operand and result are charged at once";
  Tensors other(daemon_.Channel());
  constexpr std::size_t kHalf = 1'700'003;
  const std::string x = Pattern(kBytes);
  EXPECT_TRUE(other.Put(uploads->ids(0), kHalf, x.substr(kHalf)).status.ok());
  EXPECT_EQ(daemon_.Metric("warpline_queue_depth"), 0) << "nothing of it runs before the last byte";
  EXPECT_TRUE(tensors_.Put(uploads->ids(0), 0, x.substr(0, kHalf)).status.ok());
  EXPECT_TRUE(Fetch(call.Finish()) == TransposedPattern(kRows, kCols));
  EXPECT_EQ(daemon_.Metric("warpline_request_duration_seconds_count", "source=\"stream\""), 1);
  EXPECT_EQ(daemon_.Metric("warpline_requests_total"), 1);
}

TEST_F(StreamedCallTest, WhatIsWrongIsSaidBeforeAnythingTravels) {
  const auto refusal = [&](const v1::TransposeRequest& request) {
    Announced call(daemon_.Channel(), request);
    EXPECT_FALSE(call.Accepted().has_value());
    return call.Finish().status;
  };
  v1::TransposeRequest request = StreamedTranspose(2, 3);
  request.add_perm(7);
  EXPECT_THAT(DetailsOf(refusal(request)).fields, ElementsAre("perm"));
  request = StreamedTranspose(2, 3);
  request.mutable_x()->set_row_stride(4);
  EXPECT_THAT(DetailsOf(refusal(request)).fields, ElementsAre("x.row_stride"));
  request = StreamedTranspose(2, 3);
  request.mutable_x()->mutable_upload()->set_number(64);
  EXPECT_THAT(DetailsOf(refusal(request)).fields, ElementsAre("x.upload.number"));
  request.mutable_x()->mutable_upload()->set_number(1);
  EXPECT_THAT(DetailsOf(refusal(request)).fields, ElementsAre("upload.number")) << "there is no number 0";
  // Never, however much room there is.
  const grpc::Status huge = refusal(StreamedTranspose(1 << 14, 1 << 14));
  EXPECT_EQ(huge.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(huge.error_message(), AllOf(HasSubstr("67108864"), HasSubstr("--upload-bytes")));
  EXPECT_FALSE(DetailsOf(huge).has_retry_info);
  // Not now.
  Announced first(daemon_.Channel(), StreamedTranspose(14 << 10, 1 << 10));
  ASSERT_TRUE(first.Accepted().has_value());
  const grpc::Status full = refusal(StreamedTranspose(8 << 10, 1 << 10));
  EXPECT_EQ(full.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_TRUE(DetailsOf(full).has_retry_info);
}

TEST_F(StreamedCallTest, OperandsWithOneNumberAreOneUpload) {
  v1::GemmRequest request;
  request.mutable_a()->set_data_type(v1::DATA_TYPE_F32);
  request.mutable_a()->add_shape(2);
  request.mutable_a()->add_shape(2);
  request.mutable_a()->mutable_upload();
  *request.mutable_b() = request.a();
  const auto stub = v1::KernelService::NewStub(daemon_.Channel());
  const auto refused = [&] {
    const auto answer = CallStub<v1::GemmResponse>(*stub, &v1::KernelService::Stub::Gemm, request);
    return DetailsOf(answer.status).fields;
  };
  request.mutable_b()->set_data_type(v1::DATA_TYPE_F16);
  EXPECT_THAT(refused(), ElementsAre("b.upload.number"));
  *request.mutable_b() = request.a();
  AnnouncedCall<v1::GemmRequest, v1::GemmResponse> call(daemon_.Channel(), request);
  const auto uploads = call.Accepted();
  ASSERT_TRUE(uploads.has_value());
  ASSERT_THAT(uploads->ids(), SizeIs(1));
  const std::vector<float> values = {1, 2, 3, 4};
  const std::string bytes(reinterpret_cast<const char*>(values.data()), 16);
  EXPECT_TRUE(tensors_.Put(uploads->ids(0), 0, bytes).status.ok());
  const auto answer = call.Finish();
  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  EXPECT_THAT(F32Values(answer.response.d()), ElementsAre(7, 10, 15, 22));
}

TEST_F(StreamedCallTest, AnUploadWithoutElementsIsCompleteAtOnce) {
  Announced call(daemon_.Channel(), StreamedTranspose(0, 3));
  EXPECT_TRUE(call.Accepted().has_value());
  EXPECT_EQ(Fetch(call.Finish()), "");
}

TEST_F(StreamedCallTest, AnEmptyUploadDoesNotStandForAnother) {
  v1::RunRequest request;
  auto& step = *request.mutable_program()->add_steps();
  step.set_name("y");
  step.add_inputs("empty");
  step.add_inputs("x");
  step.mutable_concat()->set_axis(0);
  request.mutable_program()->add_outputs("y");
  for (const std::int64_t rows : {0, 4}) {
    v1::NamedTensor& input = *request.add_inputs();
    input.set_name(rows == 0 ? "empty" : "x");
    input.mutable_tensor()->set_data_type(v1::DATA_TYPE_U8);
    input.mutable_tensor()->add_shape(rows);
    input.mutable_tensor()->mutable_upload()->set_number(rows == 0 ? 0 : 1);
  }
  AnnouncedCall<v1::RunRequest, v1::RunResponse> call(daemon_.Channel(), request);
  const auto uploads = call.Accepted();
  ASSERT_TRUE(uploads.has_value());
  ASSERT_THAT(uploads->ids(), SizeIs(2));
  EXPECT_TRUE(tensors_.Put(uploads->ids(0), 0, "").status.ok());
  EXPECT_TRUE(tensors_.Put(uploads->ids(1), 0, "abcd").status.ok()) << "the call still waits for it";
  const auto answer = call.Finish();
  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  EXPECT_EQ(answer.response.outputs(0).tensor().inline_(), "abcd");
}

TEST_F(StreamedCallTest, AnnouncedAndNothingSent) {
  Announced call(daemon_.Channel(), StreamedTranspose(kRows, kCols));
  ASSERT_TRUE(call.Accepted().has_value());
  EXPECT_EQ(call.Finish().status.error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(StreamedCallTest, ATrickleIsNoProgress) {
  Announced call(daemon_.Channel(), StreamedTranspose(kRows, kCols));
  const auto uploads = call.Accepted();
  ASSERT_TRUE(uploads.has_value());
  grpc::Status status;
  for (std::size_t at = 0; status.ok() && at < 3000; at += 100) {
    status = tensors_.Put(uploads->ids(0), at, Pattern(100, at)).status;
    absl::SleepFor(absl::Milliseconds(200));
  }
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND) << "the upload went with its call";
  EXPECT_EQ(call.Finish().status.error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(StreamedCallTest, BytesThatAreTakenBackAreNoProgress) {
  Announced call(daemon_.Channel(), StreamedTranspose(kRows, kCols));
  const auto uploads = call.Accepted();
  ASSERT_TRUE(uploads.has_value());
  AwaitThat("the end of the call", [&] {
    grpc::ClientContext context;
    v1::PutResponse response;
    const auto writer = tensors_.stub().Put(&context, &response);
    v1::PutRequest request;
    request.set_id(uploads->ids(0));
    request.set_data(Pattern(2 * kMiB));
    if (writer->Write(request)) {
      absl::SleepFor(absl::Milliseconds(100));
      context.TryCancel();
    }
    writer->Finish();
    return tensors_.Put(uploads->ids(0), kBytes + 1, "").status.error_code() == grpc::StatusCode::NOT_FOUND;
  });
  EXPECT_EQ(call.Finish().status.error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(StreamedCallTest, ACallMayTakeLongerThanTheSendTimeoutWhileBytesCome) {
  constexpr std::size_t kStep = kMiB;
  Announced call(daemon_.Channel(), StreamedTranspose(4, kStep));
  const auto uploads = call.Accepted();
  ASSERT_TRUE(uploads.has_value());
  for (std::size_t at = 0; at < 4 * kStep; at += kStep) {
    EXPECT_TRUE(tensors_.Put(uploads->ids(0), at, Pattern(kStep, at)).status.ok());
    if (at + kStep < 4 * kStep) absl::SleepFor(absl::Milliseconds(900));
  }
  EXPECT_TRUE(Fetch(call.Finish()) == TransposedPattern(4, kStep));
}

TEST_F(StreamedCallTest, WrongRangesAreRefusedAndTheCallGoesOn) {
  Announced call(daemon_.Channel(), StreamedTranspose(kRows, kCols));
  const auto uploads = call.Accepted();
  ASSERT_TRUE(uploads.has_value());
  const std::string& id = uploads->ids(0);
  EXPECT_TRUE(tensors_.Put(id, 0, Pattern(1000)).status.ok());
  const grpc::Status twice = tensors_.Put(id, 500, Pattern(1000, 500)).status;
  EXPECT_EQ(twice.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(twice.error_message(), HasSubstr("there already"));
  EXPECT_EQ(tensors_.Put(id, kBytes - 1, Pattern(2)).status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(tensors_.Put(id, kBytes + 1, Pattern(1)).status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_TRUE(tensors_.Put(id, 1000, Pattern(kBytes - 1000, 1000)).status.ok());
  EXPECT_TRUE(Fetch(call.Finish()) == TransposedPattern(kRows, kCols));
  EXPECT_EQ(tensors_.Put(id, 0, Pattern(1)).status.error_code(), grpc::StatusCode::NOT_FOUND) << "it is over";
}

TEST_F(StreamedCallTest, AnUploadCanOnlyBePut) {
  Announced call(daemon_.Channel(), StreamedTranspose(kRows, kCols));
  const auto uploads = call.Accepted();
  ASSERT_TRUE(uploads.has_value());
  const std::string& id = uploads->ids(0);
  EXPECT_EQ(tensors_.Get(id).status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(tensors_.Drop(id).status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(tensors_.Renew(id, 60).status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(tensors_.List().response.tensors(), SizeIs(0));
}

TEST_F(StreamedCallTest, HasNoMoreTransfersAtOneTimeThanItMay) {
  Announced call(daemon_.Channel(), StreamedTranspose(kRows, kCols));
  const auto uploads = call.Accepted();
  ASSERT_TRUE(uploads.has_value());
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<grpc::ClientWriter<v1::PutRequest>>> writers;
  v1::PutResponse response;
  for (int i = 0; i < uploads->channels(); ++i) {
    contexts.push_back(std::make_unique<grpc::ClientContext>());
    writers.push_back(tensors_.stub().Put(contexts.back().get(), &response));
    v1::PutRequest request;
    request.set_id(uploads->ids(0));
    request.set_offset(1000 * i);
    request.set_data(Pattern(10));
    ASSERT_TRUE(writers.back()->Write(request));
  }
  grpc::Status status;
  AwaitThat("the Puts that came before", [&] {
    status = tensors_.Put(uploads->ids(0), kBytes - 10, Pattern(1)).status;
    return !status.ok();
  });
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
  EXPECT_TRUE(DetailsOf(status).has_retry_info);
  for (const auto& context : contexts) context->TryCancel();
  for (const auto& writer : writers) writer->Finish();
}

TEST_F(StreamedCallTest, ThatIsCancelledOrTooLateKeepsNothing) {
  {
    Announced call(daemon_.Channel(), StreamedTranspose(kRows, kCols));
    const auto uploads = call.Accepted();
    ASSERT_TRUE(uploads.has_value());
    EXPECT_TRUE(tensors_.Put(uploads->ids(0), 0, Pattern(kBytes - 1)).status.ok());
    call.Cancel();
    EXPECT_EQ(call.Finish().status.error_code(), grpc::StatusCode::CANCELLED);
  }
  Announced call(daemon_.Channel(), StreamedTranspose(kRows, kCols), absl::Milliseconds(300));
  ASSERT_TRUE(call.Accepted().has_value());
  EXPECT_EQ(call.Finish().status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
}

TEST_F(StreamedCallTest, AResultThatNobodyFetchesGoes) {
  Announced call(daemon_.Channel(), StreamedTranspose(kRows, kCols));
  const auto uploads = call.Accepted();
  ASSERT_TRUE(uploads.has_value());
  EXPECT_TRUE(tensors_.Put(uploads->ids(0), 0, Pattern(kBytes)).status.ok());
  const auto answer = call.Finish();
  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  const std::string id = answer.response.y().resident().id();
  EXPECT_THAT(tensors_.List().response.tensors(), SizeIs(0));
  AwaitThat(
      "the end of the result, which Renew does not keep",
      [&] { return !tensors_.Renew(id, 3600).status.ok(); }, std::chrono::milliseconds(100));
  ExpectNothingHeld(daemon_);
  EXPECT_EQ(tensors_.Get(id).status.error_code(), grpc::StatusCode::NOT_FOUND);
}

// A request of a few bytes whose result takes this many.
v1::RunRequest Constant(std::int64_t bytes) {
  v1::RunRequest request;
  v1::Step& step = *request.mutable_program()->add_steps();
  step.set_name("zeros");
  v1::MapNode& node = *step.mutable_map()->add_nodes();
  node.set_op(v1::MAP_OP_CONSTANT);
  node.set_data_type(v1::DATA_TYPE_U8);
  step.mutable_map()->add_shape(bytes);
  request.mutable_program()->add_outputs("zeros");
  v1::Sink& sink = *request.mutable_options()->add_sinks();
  sink.set_output("zeros");
  sink.mutable_stream();
  return request;
}

// Returns the id of the result, which waits on the server.
std::string Waiting(const std::shared_ptr<grpc::Channel>& channel, std::int64_t bytes) {
  const auto stub = v1::KernelService::NewStub(channel);
  const auto answer = CallStub<v1::RunResponse>(*stub, &v1::KernelService::Stub::Run, Constant(bytes));
  EXPECT_TRUE(answer.status.ok()) << answer.status.error_message();
  return answer.status.ok() ? answer.response.outputs(0).tensor().resident().id() : "";
}

TEST_F(StreamedCallTest, ReadingAByteNowAndThenKeepsNoResult) {
  const std::string id = Waiting(daemon_.Channel(), 30 * kMiB);
  grpc::Status status;
  AwaitThat(
      "the end of the result",
      [&] {
        status = tensors_.Get(id, 0, 1).status;
        return !status.ok();
      },
      std::chrono::milliseconds(100));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND) << status.error_message();
}

TEST_F(StreamedCallTest, AGetOfBytesThatWereReadBeforeEndsWithTheResult) {
  const std::string id = Waiting(daemon_.Channel(), 30 * kMiB);
  v1::GetRequest request;
  request.set_id(id);
  ASSERT_TRUE(tensors_.Get(id).status.ok());
  // This client takes no more ahead than a message. Otherwise gRPC buffers as much as two seconds of reading,
  // and then the end comes later than the send timeout allows.
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetMaxReceiveMessageSize(-1);
  const auto stub = v1::TensorService::NewStub(
      grpc::CreateCustomChannel(daemon_.address(), grpc::InsecureChannelCredentials(), arguments));
  grpc::ClientContext context;
  SetTimeout(context, absl::Seconds(120));
  const auto reader = stub->Get(&context, request);
  v1::GetResponse response;
  int messages = 0;
  // Each message of a MiB goes out within the send timeout, but none is progress. gRPC answers the server's
  // pings only while it has to wait for a message.
  for (; reader->Read(&response); ++messages) absl::SleepFor(absl::Milliseconds(200));
  const grpc::Status status = reader->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND) << status.error_message();
  EXPECT_THAT(status.error_message(), HasSubstr("the result has expired"));
  EXPECT_LT(messages, 30);
}

TEST_F(StreamedCallTest, OneClientCannotHoldEverything) {
  const auto first = daemon_.Channel(), second = daemon_.Channel();
  const auto stub = v1::KernelService::NewStub(first);
  const auto all = CallStub<v1::RunResponse>(*stub, &v1::KernelService::Stub::Run, Constant(64 * kMiB));
  EXPECT_EQ(all.status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_FALSE(DetailsOf(all.status).has_retry_info) << "it can never fit";
  const std::string most = Waiting(first, 36 * kMiB);
  const std::string other = Waiting(second, 4 * kMiB);
  for (const std::string& id : {most, other}) EXPECT_TRUE(tensors_.Drop(id).status.ok());
}

TEST_F(StreamedCallTest, TenThousandAnnouncementsKeepNobodyElseOut) {
  std::vector<std::unique_ptr<Announced>> calls;
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  for (int i = 0; i < 100; ++i) channels.push_back(daemon_.Channel());
  for (int i = 0; i < 10'000; ++i) {
    calls.push_back(
        std::make_unique<Announced>(channels[static_cast<std::size_t>(i % 100)], StreamedTranspose(10, 10)));
  }
  const auto stub = v1::KernelService::NewStub(daemon_.Channel());
  for (int i = 0; i < 10; ++i) {
    const auto answer =
        CallStub<v1::TransposeResponse>(*stub, &v1::KernelService::Stub::Transpose, IotaTranspose(20, 30));
    EXPECT_TRUE(answer.status.ok()) << answer.status.error_message();
  }
  for (const auto& call : calls) call->Cancel();
  int accepted = 0;
  for (const auto& call : calls) {
    const grpc::StatusCode code = call->Finish().status.error_code();
    EXPECT_TRUE(code == grpc::StatusCode::CANCELLED || code == grpc::StatusCode::RESOURCE_EXHAUSTED) << code;
    accepted += code == grpc::StatusCode::CANCELLED ? 1 : 0;
  }
  EXPECT_GT(accepted, 0);
  calls.clear();
}

TEST(StreamedCallJobsTest, TakesOneJob) {
  const Daemon daemon({"--max-jobs=1"});
  Tensors tensors(daemon.Channel());
  Announced call(daemon.Channel(), StreamedTranspose(2, 3));
  const auto uploads = call.Accepted();
  ASSERT_TRUE(uploads.has_value()) << call.Finish().status.error_message();
  EXPECT_TRUE(tensors.Put(uploads->ids(0), 0, "abcdef").status.ok());
  const auto answer = call.Finish();
  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  EXPECT_EQ(tensors.Get(answer.response.y().resident().id()).data, "adbecf");
  EXPECT_TRUE(tensors.Drop(answer.response.y().resident().id()).status.ok());
}

TEST(StreamedCallLogTest, OneCallHasOneLine) {
  const std::string path = absl::StrCat(::testing::TempDir(), "/warpline_streamed_", ::getpid());
  {
    const Daemon daemon({"--access-log=" + path});
    Tensors tensors(daemon.Channel());
    Announced call(daemon.Channel(), StreamedTranspose(kRows, kCols), absl::Seconds(120), "mine");
    const auto uploads = call.Accepted();
    ASSERT_TRUE(uploads.has_value());
    EXPECT_TRUE(tensors.Put(uploads->ids(0), 0, Pattern(kBytes)).status.ok());
    const auto answer = call.Finish();
    ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
    EXPECT_TRUE(tensors.Get(answer.response.y().resident().id()).status.ok());
    EXPECT_TRUE(tensors.Drop(answer.response.y().resident().id()).status.ok());
  }
  std::ifstream file(path);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  std::vector<std::string> lines;
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(text, '\n'))) {
    if (absl::StrContains(line, "msg=call ")) lines.push_back(line);
  }
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_THAT(lines[0],
              AllOf(HasSubstr("KernelService/Transpose code=OK"), HasSubstr("request_id=mine"),
                    ::testing::ContainsRegex("request_bytes=3003[0-9]{3} response_bytes=3003[0-9]{3}")));
  std::remove(path.c_str());
}

TEST(StreamedCallDrainTest, WhatIsAcceptedIsServedAndNothingNew) {
  Daemon daemon;
  Tensors tensors(daemon.Channel());
  EXPECT_TRUE(tensors.List().status.ok());  // opens the connection
  const auto channel = daemon.Channel();
  Announced call(channel, StreamedTranspose(kRows, kCols));
  const auto uploads = call.Accepted();
  ASSERT_TRUE(uploads.has_value());
  EXPECT_TRUE(tensors.Put(uploads->ids(0), 0, Pattern(1000)).status.ok());
  daemon.Signal(SIGTERM);
  AwaitThat("the drain", [&] {
    int status = 0;
    daemon.Get("/readyz", &status);
    return status == 503;
  });
  AwaitThat("the refusal of new ones", [&] {
    Announced late(channel, StreamedTranspose(2, 3));
    if (late.Accepted().has_value()) return false;
    EXPECT_EQ(late.Finish().status.error_code(), grpc::StatusCode::UNAVAILABLE);
    return true;
  });
  EXPECT_TRUE(tensors.Put(uploads->ids(0), 1000, Pattern(kBytes - 1000, 1000)).status.ok());
  const auto answer = call.Finish();
  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  const Tensors::Got got = tensors.Get(answer.response.y().resident().id());
  EXPECT_TRUE(got.status.ok()) << got.status.error_message();
  EXPECT_TRUE(got.data == TransposedPattern(kRows, kCols));
  EXPECT_TRUE(tensors.Drop(answer.response.y().resident().id()).status.ok());
  EXPECT_EQ(daemon.Wait(), 0);
}

TEST(StreamedCallDrainTest, DoesNotWaitForUploadsOfWhichNothingComes) {
  Daemon daemon;
  Announced call(daemon.Channel(), StreamedTranspose(kRows, kCols));
  ASSERT_TRUE(call.Accepted().has_value());
  daemon.Signal(SIGTERM);
  EXPECT_EQ(call.Finish().status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(daemon.Wait(), 0);
}

}  // namespace
}  // namespace warpline

// Transfers to and from resident tensors that do not go as they should: cut short, stalled, in each other's
// way, larger than 31 bits count, or in progress when the server ends.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "tests/e2e/tensors.h"
#include "tests/testing/patience.h"

namespace warpline {
namespace {

class TransfersTest : public ::testing::Test {
 protected:
  Daemon daemon_;
  Tensors tensors_{daemon_.Channel()};
};

TEST_F(TransfersTest, AnUploadThatIsCutShortCountsForNothing) {
  const auto created = tensors_.Create(v1::DATA_TYPE_U8, {4 * kMiB});
  const std::string id = created.response.tensor().resident().id();
  {
    grpc::ClientContext context;
    v1::PutResponse response;
    const auto writer = tensors_.stub().Put(&context, &response);
    v1::PutRequest request;
    request.set_id(id);
    request.set_data(Pattern(kMiB));
    ASSERT_TRUE(writer->Write(request));
    context.TryCancel();
    EXPECT_EQ(writer->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  EXPECT_TRUE(daemon_.AwaitMetric("warpline_admission_bytes", "state=\"used\"", 0));
  EXPECT_EQ(tensors_.List().response.tensors(0).missing_bytes(), static_cast<std::int64_t>(4 * kMiB));
  EXPECT_TRUE(tensors_.Put(id, 0, Pattern(4 * kMiB)).status.ok());
}

TEST_F(TransfersTest, TwoCallsDoNotWriteTheSameBytes) {
  const auto created = tensors_.Create(v1::DATA_TYPE_U8, {1000});
  const std::string id = created.response.tensor().resident().id();
  grpc::ClientContext context;
  v1::PutResponse response;
  const auto writer = tensors_.stub().Put(&context, &response);
  v1::PutRequest request;
  request.set_id(id);
  request.set_data(Pattern(600));
  ASSERT_TRUE(writer->Write(request));
  // Sooner or later the first call has come as far.
  grpc::Status status;
  do {
    status = tensors_.Put(id, 599, Pattern(1, 599)).status;
    if (status.ok()) {  // it was faster: then the first one is refused
      EXPECT_EQ(writer->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
      return;
    }
  } while (status.error_code() != grpc::StatusCode::ABORTED);
  EXPECT_TRUE(DetailsOf(status).has_retry_info);
  writer->WritesDone();
  EXPECT_TRUE(writer->Finish().ok());
  EXPECT_EQ(response.missing_bytes(), 400);
}

// Beyond what 32 bits count, with default flags: 5 GiB on a GPU, 3 on the CPU.
TEST_F(TransfersTest, SizesBeyondThirtyOneBits) {
  const std::size_t size = (std::size_t{daemon_.backend() == "cpu" ? 3U : 5U} << 30) + 12345;
  grpc::ClientContext info_context;
  v1::GetInfoResponse info;
  ASSERT_TRUE(
      v1::InfoService::NewStub(daemon_.Channel())->GetInfo(&info_context, v1::GetInfoRequest(), &info).ok());
  if (info.devices(0).resident_bytes() < static_cast<std::int64_t>(size)) {
    GTEST_SKIP() << "this machine has memory for " << info.devices(0).resident_bytes() << " bytes";
  }
  const auto created = tensors_.Create(v1::DATA_TYPE_U8, {static_cast<std::int64_t>(size)});
  ASSERT_TRUE(created.status.ok()) << created.status.error_message();
  const std::string id = created.response.tensor().resident().id();
  constexpr std::size_t kChunk = 4 * kMiB;
  std::string chunk = Pattern(kChunk);
  // Each chunk begins with its own number.
  const auto number = [&](std::size_t at) { std::memcpy(chunk.data(), &at, sizeof at); };
  {
    grpc::ClientContext context;
    SetTimeout(context, absl::Seconds(600));
    v1::PutResponse response;
    const auto writer = tensors_.stub().Put(&context, &response);
    v1::PutRequest request;
    request.set_id(id);
    for (std::size_t at = 0; at < size; at += kChunk) {
      number(at);
      request.set_offset(static_cast<std::int64_t>(at));
      request.set_data(chunk.data(), std::min(kChunk, size - at));
      ASSERT_TRUE(writer->Write(request)) << at;
    }
    writer->WritesDone();
    const grpc::Status status = writer->Finish();
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(response.missing_bytes(), 0);
  }
  grpc::ClientContext context;
  SetTimeout(context, absl::Seconds(600));
  v1::GetRequest request;
  request.set_id(id);
  const auto reader = tensors_.stub().Get(&context, request);
  std::size_t at = 0;
  for (v1::GetResponse response; reader->Read(&response);) {
    const std::size_t in_chunk = at % kChunk;
    number(at - in_chunk);
    ASSERT_EQ(response.offset(), static_cast<std::int64_t>(at));
    ASSERT_EQ(std::memcmp(response.data().data(), chunk.data() + in_chunk, response.data().size()), 0) << at;
    at += response.data().size();
  }
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_EQ(at, size);
  EXPECT_TRUE(tensors_.Drop(id).status.ok());
}

TEST(StalledTransferTest, IsGivenUpAndHoldsNothingElse) {
  Daemon daemon({"--send-timeout=1s"});
  Tensors tensors(daemon.Channel());
  constexpr std::size_t kBytes = 16 * kMiB;
  const std::string id = tensors.Made(v1::DATA_TYPE_U8, {kBytes}, Pattern(kBytes));
  // Reads nothing of what it asked for.
  grpc::ClientContext get_context;
  v1::GetRequest get;
  get.set_id(id);
  const auto reader = tensors.stub().Get(&get_context, get);
  // Sends nothing more.
  const auto created = tensors.Create(v1::DATA_TYPE_U8, {kBytes});
  grpc::ClientContext put_context;
  v1::PutResponse response;
  const auto writer = tensors.stub().Put(&put_context, &response);
  v1::PutRequest put;
  put.set_id(created.response.tensor().resident().id());
  put.set_data(Pattern(1000));
  ASSERT_TRUE(writer->Write(put));
  // Others go on.
  Tensors others(daemon.Channel());
  EXPECT_TRUE(others.Get(id).data == Pattern(kBytes));
  EXPECT_EQ(writer->Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(daemon.AwaitMetric("warpline_admission_bytes", "state=\"used\"", 0));
  get_context.TryCancel();
  EXPECT_FALSE(reader->Finish().ok());
}

TEST(TensorDrainTest, UploadsInProgressAreWaitedForAndTensorsAreNot) {
  Daemon daemon;
  Tensors tensors(daemon.Channel());
  const auto created = tensors.Create(v1::DATA_TYPE_U8, {2 * kMiB});
  const std::string id = created.response.tensor().resident().id();
  grpc::ClientContext context;
  v1::PutResponse response;
  const auto writer = tensors.stub().Put(&context, &response);
  v1::PutRequest request;
  request.set_id(id);
  request.set_data(Pattern(kMiB));
  ASSERT_TRUE(writer->Write(request));
  ASSERT_TRUE(daemon.AwaitMetric("grpc_server_started_total", "grpc_method=\"Put\"", 1));
  daemon.Signal(SIGTERM);
  grpc::Status late;
  AwaitThat("the drain", [&] { return !(late = tensors.Create(v1::DATA_TYPE_U8, {1}).status).ok(); });
  EXPECT_EQ(late.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(tensors.Put(id, kMiB, "x").status.error_code(), grpc::StatusCode::UNAVAILABLE);
  request.set_offset(kMiB);
  ASSERT_TRUE(writer->Write(request));
  writer->WritesDone();
  EXPECT_TRUE(writer->Finish().ok());
  EXPECT_EQ(response.missing_bytes(), 0);
  EXPECT_EQ(daemon.Wait(), 0);
}

}  // namespace
}  // namespace warpline

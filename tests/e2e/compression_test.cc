// Compressed requests: answered, but never larger in memory than any other.
#include <gtest/gtest.h>

#include <future>

#include "tests/e2e/daemon.h"
#include "tests/e2e/requests.h"

namespace warpline {
namespace {

grpc::Status CompressedCall(const Daemon& daemon, const std::string& message) {
  return RawCall(daemon.Channel(), Bytes(message), absl::Seconds(60), kTransposeMethod, GRPC_COMPRESS_GZIP);
}

TEST(CompressionTest, ACompressedCallIsAnswered) {
  Daemon daemon;
  auto stub = v1::KernelService::NewStub(daemon.Channel());
  for (grpc_compression_algorithm algorithm : {GRPC_COMPRESS_GZIP, GRPC_COMPRESS_DEFLATE}) {
    grpc::ClientContext context;
    SetTimeout(context, absl::Seconds(60));
    context.set_compression_algorithm(algorithm);
    v1::TransposeResponse response;
    const grpc::Status status = stub->Transpose(&context, IotaTranspose(200, 300), &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(F32Values(response.y())[1], 300);
  }
}

TEST(CompressionTest, AMessageThatIsTooLargeWhenDecompressedIsRefused) {
  Daemon daemon({"--max-inline-bytes=1M"});
  const std::size_t limit = (1 << 20) + (1 << 20);
  EXPECT_EQ(CompressedCall(daemon, std::string(limit, '\0')).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  const double before = daemon.ResidentBytes();
  for (std::size_t size : {limit + 1, std::size_t{512} << 20}) {
    const grpc::Status status = CompressedCall(daemon, std::string(size, '\0'));
    EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
    EXPECT_FALSE(DetailsOf(status).has_retry_info);
  }
  EXPECT_LT(daemon.ResidentBytes() - before, 256 << 20);
}

// A message that stands for too much is refused without a retry delay once it has been inflated. A full
// server does not come that far: it refuses it at once, with a retry delay.
TEST(CompressionTest, AdmissionComesBeforeDecompression) {
  Daemon daemon({"--max-jobs=1", "--lanes=1", "--devices=0", "--max-inline-bytes=64M"});
  const std::string too_much(std::size_t{65} << 20, '\0');
  auto busy = std::async(std::launch::async, [&daemon] {
    return RawCall(
        daemon.Channel(),
        Bytes(daemon.backend() == "cuda" ? SlowReduce().SerializeAsString() : SlowGemm().SerializeAsString()),
        absl::Seconds(120),
        daemon.backend() == "cuda" ? "/warpline.v1.KernelService/Reduce" : "/warpline.v1.KernelService/Gemm");
  });
  ASSERT_TRUE(daemon.AwaitMetric("warpline_lane_busy", "", 1));
  const grpc::Status status = CompressedCall(daemon, too_much);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
  EXPECT_TRUE(DetailsOf(status).has_retry_info) << status.error_message();
  EXPECT_TRUE(busy.get().ok());
  EXPECT_FALSE(DetailsOf(CompressedCall(daemon, too_much)).has_retry_info);
  EXPECT_TRUE(daemon.AwaitMetric("warpline_admission_bytes", "state=\"used\"", 0));
}

}  // namespace
}  // namespace warpline

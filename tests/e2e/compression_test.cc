// Compressed requests: answered, but never larger in memory than any other.
#include <gtest/gtest.h>

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
  const std::size_t limit = (1 << 20) + (64 << 10);
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

}  // namespace
}  // namespace warpline

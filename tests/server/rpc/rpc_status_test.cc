#include "server/rpc/rpc_status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "absl/time/time.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "server/base/errors.h"

namespace warpline {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

google::rpc::Status DetailsOf(const grpc::Status& status) {
  google::rpc::Status details;
  EXPECT_TRUE(details.ParseFromString(status.error_details()));
  return details;
}

template <typename Detail>
std::optional<Detail> Find(const grpc::Status& status) {
  const google::rpc::Status details = DetailsOf(status);
  for (const auto& any : details.details()) {
    Detail detail;
    if (any.UnpackTo(&detail)) return detail;
  }
  return std::nullopt;
}

TEST(ErrorsTest, FieldErrorIsInvalidArgumentThatNamesTheField) {
  const absl::Status status = FieldError("a.shape", "rank 9 is above the limit of 8");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "a.shape: rank 9 is above the limit of 8");
  EXPECT_EQ(FieldOf(status), "a.shape");
}

TEST(ErrorsTest, RetryDelayIsRoundedUpToAMillisecond) {
  const absl::Status full = absl::ResourceExhaustedError("full");
  EXPECT_EQ(RetryAfterOf(WithRetryAfter(full, absl::Microseconds(1))), absl::Milliseconds(1));
  EXPECT_EQ(RetryAfterOf(WithRetryAfter(full, absl::Milliseconds(20))), absl::Milliseconds(20));
}

TEST(ErrorsTest, NegativeRetryDelayIsZero) {
  EXPECT_EQ(RetryAfterOf(WithRetryAfter(absl::ResourceExhaustedError("full"), absl::Seconds(-1))),
            absl::ZeroDuration());
}

TEST(ErrorsTest, PlainStatusCarriesNothing) {
  EXPECT_EQ(FieldOf(absl::InternalError("defect")), std::nullopt);
  EXPECT_EQ(RetryAfterOf(absl::InternalError("defect")), std::nullopt);
  EXPECT_TRUE(WithRetryAfter(absl::OkStatus(), absl::Seconds(1)).ok());
}

TEST(RpcStatusTest, OkIsOk) {
  const grpc::Status status = ToGrpcStatus(absl::OkStatus(), "id");
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(status.error_details(), "");
}

TEST(RpcStatusTest, EveryCodeKeepsItsMeaning) {
  const std::pair<absl::StatusCode, grpc::StatusCode> kCodes[] = {
      {absl::StatusCode::kCancelled, grpc::CANCELLED},
      {absl::StatusCode::kUnknown, grpc::UNKNOWN},
      {absl::StatusCode::kInvalidArgument, grpc::INVALID_ARGUMENT},
      {absl::StatusCode::kDeadlineExceeded, grpc::DEADLINE_EXCEEDED},
      {absl::StatusCode::kNotFound, grpc::NOT_FOUND},
      {absl::StatusCode::kAlreadyExists, grpc::ALREADY_EXISTS},
      {absl::StatusCode::kPermissionDenied, grpc::PERMISSION_DENIED},
      {absl::StatusCode::kResourceExhausted, grpc::RESOURCE_EXHAUSTED},
      {absl::StatusCode::kFailedPrecondition, grpc::FAILED_PRECONDITION},
      {absl::StatusCode::kAborted, grpc::ABORTED},
      {absl::StatusCode::kOutOfRange, grpc::OUT_OF_RANGE},
      {absl::StatusCode::kUnimplemented, grpc::UNIMPLEMENTED},
      {absl::StatusCode::kInternal, grpc::INTERNAL},
      {absl::StatusCode::kUnavailable, grpc::UNAVAILABLE},
      {absl::StatusCode::kDataLoss, grpc::DATA_LOSS},
      {absl::StatusCode::kUnauthenticated, grpc::UNAUTHENTICATED},
  };
  for (const auto& [from, to] : kCodes) {
    const grpc::Status status = ToGrpcStatus(absl::Status(from, "text"), "id");
    EXPECT_EQ(status.error_code(), to) << from;
    EXPECT_EQ(DetailsOf(status).code(), static_cast<int>(to)) << from;
  }
}

TEST(RpcStatusTest, MessageAndDetailsCarryTheRequestId) {
  const grpc::Status status = ToGrpcStatus(absl::InternalError("defect"), "abc-1");
  EXPECT_EQ(status.error_message(), "defect (request abc-1)");
  EXPECT_EQ(DetailsOf(status).message(), status.error_message());
  EXPECT_EQ(Find<google::rpc::RequestInfo>(status).value().request_id(), "abc-1");
}

TEST(RpcStatusTest, FieldBecomesBadRequest) {
  const grpc::Status status = ToGrpcStatus(FieldError("perm", "has 3 entries; x has rank 2"), "id");
  const auto bad_request = Find<google::rpc::BadRequest>(status).value();
  ASSERT_EQ(bad_request.field_violations_size(), 1);
  EXPECT_EQ(bad_request.field_violations(0).field(), "perm");
  EXPECT_EQ(bad_request.field_violations(0).description(), "perm: has 3 entries; x has rank 2");
}

TEST(RpcStatusTest, RetryDelayBecomesRetryInfo) {
  const absl::Status full = WithRetryAfter(absl::ResourceExhaustedError("full"), absl::Milliseconds(2050));
  const auto retry_info = Find<google::rpc::RetryInfo>(ToGrpcStatus(full, "id")).value();
  EXPECT_EQ(retry_info.retry_delay().seconds(), 2);
  EXPECT_EQ(retry_info.retry_delay().nanos(), 50'000'000);
}

TEST(RpcStatusTest, NothingIsInTheDetailsThatWasNotAttached) {
  const grpc::Status status = ToGrpcStatus(absl::ResourceExhaustedError("too large"), "id");
  EXPECT_FALSE(Find<google::rpc::BadRequest>(status).has_value());
  EXPECT_FALSE(Find<google::rpc::RetryInfo>(status).has_value());
}

TEST(RpcStatusTest, LongMessageIsCutAndKeepsTheRequestId) {
  const grpc::Status status = ToGrpcStatus(absl::InternalError(std::string(5000, 'x')), "abc-1");
  EXPECT_EQ(status.error_message().size(), kStatusMessageMax + std::string(" (request abc-1)").size());
  EXPECT_THAT(status.error_message(), EndsWith("xxx... (request abc-1)"));
}

TEST(RpcStatusTest, MessageAtTheLimitIsWhole) {
  const std::string text(kStatusMessageMax, 'x');
  EXPECT_THAT(ToGrpcStatus(absl::InternalError(text), "id").error_message(), HasSubstr(text));
}

TEST(RpcStatusTest, CutDoesNotSplitACharacter) {
  std::string text;
  while (text.size() < 2 * kStatusMessageMax) text += "\xe2\x82\xac";  // the euro sign, 3 bytes
  for (int shift = 0; shift < 3; ++shift) {
    const grpc::Status status = ToGrpcStatus(absl::InternalError(std::string(shift, 'x') + text), "id");
    const std::string& message = status.error_message();
    const std::size_t end = message.find("...");
    EXPECT_EQ((end - shift) % 3, 0u) << shift;
    EXPECT_EQ(DetailsOf(status).message(), message);
  }
}

// gRPC gives up on trailers above 8 KiB; the client then sees an error of the transport.
TEST(RpcStatusTest, LargestStatusFitsIntoTrailers) {
  const absl::Status largest =
      WithRetryAfter(FieldError("a.row_stride", std::string(5000, '\x01')), absl::Seconds(1));
  const grpc::Status status = ToGrpcStatus(largest, std::string(128, 'r'));
  EXPECT_LT(3 * status.error_message().size() + (status.error_details().size() + 2) / 3 * 4, 8000u);
}

}  // namespace
}  // namespace warpline

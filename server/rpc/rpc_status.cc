#include "server/rpc/rpc_status.h"

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "server/base/errors.h"

namespace warpline {
namespace {

constexpr std::string_view kEllipsis = "...";

// Cuts the message to at most kStatusMessageMax bytes, but never within a UTF-8 character, because protobuf
// would not accept that.
std::string Cut(std::string_view message) {
  if (message.size() <= kStatusMessageMax) return std::string(message);
  std::size_t size = kStatusMessageMax - kEllipsis.size();
  const auto continues = [&](std::size_t i) {
    return (static_cast<unsigned char>(message[i]) & 0xc0) == 0x80;
  };
  while (size > 0 && continues(size)) --size;
  return std::string(message.substr(0, size)).append(kEllipsis);
}

// Adds a message to the details. Packing fails only for messages without their required fields, of which
// proto3 has none.
void AddDetail(google::rpc::Status& details, const google::protobuf::Message& message) {
  static_cast<void>(details.add_details()->PackFrom(message));
}

void AddBadRequest(google::rpc::Status& details, const std::string& field, const std::string& description) {
  google::rpc::BadRequest bad_request;
  google::rpc::BadRequest::FieldViolation* violation = bad_request.add_field_violations();
  violation->set_field(field);
  violation->set_description(description);
  AddDetail(details, bad_request);
}

void AddRetryInfo(google::rpc::Status& details, absl::Duration delay) {
  google::rpc::RetryInfo retry_info;
  const std::int64_t seconds = absl::IDivDuration(delay, absl::Seconds(1), &delay);
  retry_info.mutable_retry_delay()->set_seconds(seconds);
  retry_info.mutable_retry_delay()->set_nanos(static_cast<std::int32_t>(absl::ToInt64Nanoseconds(delay)));
  AddDetail(details, retry_info);
}

void AddRequestInfo(google::rpc::Status& details, std::string_view request_id) {
  google::rpc::RequestInfo request_info;
  request_info.set_request_id(request_id.data(), request_id.size());
  AddDetail(details, request_info);
}

}  // namespace

grpc::Status ToGrpcStatus(const absl::Status& status, std::string_view request_id) {
  if (status.ok()) return grpc::Status::OK;
  const std::string cut = Cut({status.message().data(), status.message().size()});
  const std::string message = absl::StrCat(cut, " (request ", std::string(request_id), ")");

  google::rpc::Status details;
  details.set_code(static_cast<int>(status.code()));
  details.set_message(message);
  if (const std::optional<std::string> field = FieldOf(status)) AddBadRequest(details, *field, cut);
  if (const std::optional<absl::Duration> delay = RetryAfterOf(status)) AddRetryInfo(details, *delay);
  AddRequestInfo(details, request_id);
  // Both enums have the canonical codes, with the same numbers.
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), message, details.SerializeAsString());
}

}  // namespace warpline

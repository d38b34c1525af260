#include "warpline/error.h"

#include <algorithm>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/src/grpc_error.h"
#include "client/src/raw_channel.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "kernels/field_error.h"

namespace warpline::client {
namespace {

constexpr char kDetailsUrl[] = "type.googleapis.com/google.rpc.Status";
constexpr char kRequestIdUrl[] = "warpline/x-request-id";
constexpr char kAttemptsUrl[] = "warpline/attempts";

absl::Duration ToDuration(const google::protobuf::Duration& duration) {
  return absl::Seconds(duration.seconds()) + absl::Nanoseconds(duration.nanos());
}

}  // namespace

absl::Status ToAbslStatus(const grpc::Status& status, const std::string& request_id) {
  if (status.ok()) return absl::OkStatus();
  absl::Status result(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  if (!status.error_details().empty()) result.SetPayload(kDetailsUrl, absl::Cord(status.error_details()));
  if (!request_id.empty()) result.SetPayload(kRequestIdUrl, absl::Cord(request_id));
  return result;
}

absl::Status ToAbslStatus(const grpc::Status& status, const grpc::ClientContext& context) {
  if (status.ok()) return absl::OkStatus();
  // The request id is in the trailers of an error. Some servers send a "trailers only" response, where it is
  // initial metadata.
  const auto& trailers = context.GetServerTrailingMetadata();
  const auto entry = trailers.find(kRequestIdKey);
  return ToAbslStatus(status,
                      entry == trailers.end() ? "" : std::string(entry->second.data(), entry->second.size()));
}

absl::Status WithAttempts(absl::Status status, int attempts) {
  if (!status.ok()) status.SetPayload(kAttemptsUrl, absl::Cord(absl::StrCat(attempts)));
  return status;
}

absl::Status WithViolations(absl::Status status,
                            const std::function<std::string(const std::string&)>& change) {
  const auto payload = status.GetPayload(kDetailsUrl);
  google::rpc::Status proto;
  if (!payload || !proto.ParseFromString(std::string(*payload))) return status;
  for (google::protobuf::Any& any : *proto.mutable_details()) {
    google::rpc::BadRequest bad_request;
    if (!any.UnpackTo(&bad_request)) continue;
    for (auto& violation : *bad_request.mutable_field_violations()) {
      violation.set_field(change(violation.field()));
      violation.set_description(change(violation.description()));
    }
    static_cast<void>(any.PackFrom(bad_request));
  }
  status.SetPayload(kDetailsUrl, absl::Cord(proto.SerializeAsString()));
  return status;
}

ErrorDetails DetailsOf(const absl::Status& status) {
  ErrorDetails details;
  if (const auto id = status.GetPayload(kRequestIdUrl)) details.request_id = std::string(*id);
  if (const auto attempts = status.GetPayload(kAttemptsUrl)) {
    (void)absl::SimpleAtoi(std::string(*attempts), &details.attempts);
  }
  // The client itself applies the server's rules and refuses invalid requests (result_type.h).
  if (std::optional<std::string> field = FieldOf(status)) {
    details.violations.push_back({*std::move(field), std::string(status.message())});
  }
  const auto payload = status.GetPayload(kDetailsUrl);
  details.answered = payload.has_value();
  google::rpc::Status proto;
  if (!payload || !proto.ParseFromString(std::string(*payload))) return details;
  for (const google::protobuf::Any& any : proto.details()) {
    google::rpc::BadRequest bad_request;
    google::rpc::RetryInfo retry;
    google::rpc::RequestInfo request;
    if (any.UnpackTo(&bad_request)) {
      for (const auto& violation : bad_request.field_violations()) {
        details.violations.push_back({violation.field(), violation.description()});
      }
    } else if (any.UnpackTo(&retry)) {
      details.retry_delay = std::max(ToDuration(retry.retry_delay()), absl::ZeroDuration());
    } else if (any.UnpackTo(&request) && details.request_id.empty()) {
      details.request_id = request.request_id();
    }
  }
  return details;
}

std::string Describe(const absl::Status& status) {
  const ErrorDetails details = DetailsOf(status);
  std::string text = absl::StrCat(absl::StatusCodeToString(status.code()),
                                  status.message().empty() ? "" : ": ", status.message());
  for (const FieldViolation& violation : details.violations) {
    if (absl::StrContains(status.message(), violation.field) &&
        absl::StrContains(status.message(), violation.description)) {
      continue;
    }
    absl::StrAppend(&text, "\n  ", violation.field, ": ", violation.description);
  }
  if (details.retry_delay) {
    absl::StrAppend(&text, "\n  try again after ", absl::FormatDuration(*details.retry_delay));
  }
  if (!details.request_id.empty() && !absl::StrContains(status.message(), details.request_id)) {
    absl::StrAppend(&text, "\n  request id: ", details.request_id);
  }
  return text;
}

}  // namespace warpline::client

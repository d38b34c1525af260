#include "client/cli/error.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/src/short_ids.h"
#include "client/src/tls_probe.h"
#include "warpline/error.h"

namespace warpline::client {
namespace {

constexpr char kUsageUrl[] = "warpline/usage";
constexpr char kLocalUrl[] = "warpline/local";
constexpr char kAdviceUrl[] = "warpline/advice";

absl::Status Marked(absl::Status status, const char* url) {
  status.SetPayload(url, absl::Cord());
  return status;
}

}  // namespace

absl::Status UsageError(std::string_view message) {
  return AsUsageError(absl::InvalidArgumentError(std::string(message)));
}

absl::Status AsUsageError(const absl::Status& status) { return Marked(status, kUsageUrl); }

bool IsUsageError(const absl::Status& status) { return status.GetPayload(kUsageUrl).has_value(); }

absl::Status LocalError(std::string_view message) {
  return Marked(absl::UnknownError(std::string(message)), kLocalUrl);
}

absl::Status AsFileError(const absl::Status& status) {
  return absl::IsInvalidArgument(status) ? AsUsageError(status) : Marked(status, kLocalUrl);
}

absl::Status WithAdvice(const absl::Status& status, std::string_view advice) {
  if (status.ok() || status.GetPayload(kAdviceUrl).has_value()) return status;
  absl::Status advised = status;
  advised.SetPayload(kAdviceUrl, absl::Cord(absl::string_view(advice.data(), advice.size())));
  return advised;
}

absl::Status WithText(const absl::Status& status, std::string_view text) {
  absl::Status reworded(status.code(), std::string(text));
  status.ForEachPayload(
      [&](absl::string_view url, const absl::Cord& payload) { reworded.SetPayload(url, payload); });
  return reworded;
}

absl::Status WithSubject(const absl::Status& status, std::string_view subject) {
  return WithText(status, absl::StrCat(std::string(subject), ": ", status.message()));
}

absl::Status WithAdviceOnServer(const absl::Status& status, std::string_view server) {
  if (IsUsageError(status) || status.GetPayload(kLocalUrl).has_value()) return status;
  // These are gRPC's own texts. The code alone could also come from a server that is shutting down.
  const bool nobody_there = absl::IsUnavailable(status) && !HasTlsProblem(status) &&
                            (absl::StrContains(status.message(), "failed to connect") ||
                             absl::StrContains(status.message(), "resolution failed"));
  if (nobody_there && server.substr(0, 5) == "unix:" &&
      absl::StrContains(status.message(), "Permission denied")) {
    return WithAdvice(status, absl::StrCat("the socket ", std::string(server),
                                           " is there, but this user may not connect: a server makes its "
                                           "sockets with mode 0600, for its own user only"));
  }
  if (nobody_there) {
    return WithAdvice(status, absl::StrCat("no server answers at ", std::string(server),
                                           ": start warplined there, or name another with --server or "
                                           "$WARPLINE_SERVER"));
  }
  // This is gRPC's own text. This program accepts responses of any size, so the limit is the server's.
  if (absl::IsResourceExhausted(status) &&
      absl::StrContains(status.message(), "Received message larger than max")) {
    return WithAdvice(status, absl::StrCat("the request is larger than the server at ", std::string(server),
                                           " takes: its --max-inline-bytes is the limit, and `warpline info` "
                                           "shows it; `warpline put` sends arrays of any size"));
  }
  // This is gRPC's text if a message does not fit into the memory that the server reserves for all messages.
  if (absl::IsResourceExhausted(status) && status.message() == "Received RST_STREAM with error code 11") {
    return WithAdvice(status,
                      absl::StrCat("the request is far larger than the --max-inline-bytes of the server at ",
                                   std::string(server),
                                   ", which `warpline info` shows, or it has no room "
                                   "for large ones now; `warpline put` sends arrays of any size"));
  }
  // gRPC's texts for answers of nginx to a body that is too large for it, and to a call that takes too long.
  const bool is_refused = absl::StrContains(status.message(), "Received http2 header with status: 413") ||
                          status.message() == "Received RST_STREAM with error code 0";
  if (is_refused ||
      (absl::IsInternal(status) && status.message() == "Received RST_STREAM with error code 2")) {
    return WithAdvice(
        status, absl::StrCat("a proxy before the server at ", std::string(server), " ",
                             is_refused ? "refuses requests of this size (nginx: client_max_body_size 0)"
                                        : "has ended the call (nginx: grpc_read_timeout)"));
  }
  // From here on, the texts are the server's.
  const bool is_over_limit =
      absl::IsInvalidArgument(status) && absl::StrContains(status.message(), "the limit is");
  if (is_over_limit && absl::StrContains(status.message(), ": the result, ")) {
    return WithAdvice(status,
                      absl::StrCat("the result is larger than what the server at ", std::string(server),
                                   " sends in one response: its --max-inline-bytes is the limit, and "
                                   "`warpline info` shows it; -o @ leaves a result of any size there, and "
                                   "--transport stream fetches it in pieces"));
  }
  if (absl::IsResourceExhausted(status) && absl::StrContains(status.message(), "resident tensor") &&
      DetailsOf(status).retry_delay) {
    return WithAdvice(status,
                      "`warpline tensors` lists yours, with what is left of their leases; `warpline "
                      "drop ID` makes room at once");
  }
  // If the server supports the method, its errors contain a request id.
  if (absl::IsUnimplemented(status) && DetailsOf(status).request_id.empty()) {
    return WithAdvice(status,
                      absl::StrCat("the server at ", std::string(server),
                                   " has no such method: it is older than this program, or none of "
                                   "warpline's; `warpline info` and `warpline --version` tell the two "
                                   "versions"));
  }
  return status;
}

absl::Status WithAdviceOnCommand(const absl::Status& status, std::string_view command) {
  if (!IsUsageError(status)) return status;
  return WithAdvice(status, absl::StrCat("`warpline ", std::string(command), " --help` tells more"));
}

int ExitCode(const absl::Status& status) {
  if (status.ok()) return 0;
  return IsUsageError(status) ? 2 : 1;
}

std::string Complaint(const absl::Status& status) {
  if (status.GetPayload(kLocalUrl).has_value()) return WithShortIds(std::string(status.message()));
  const bool is_usage = IsUsageError(status);
  std::string text = is_usage ? std::string(status.message()) : Describe(status);
  if (const auto advice = status.GetPayload(kAdviceUrl)) {
    absl::StrAppend(&text, "\n(", std::string(*advice), ")");
  } else if (is_usage) {
    absl::StrAppend(&text, "\n(`warpline --help` tells more)");
  }
  return WithShortIds(text);
}

std::string ComplaintJson(const absl::Status& status) {
  const bool is_usage = IsUsageError(status), is_local = status.GetPayload(kLocalUrl).has_value();
  nlohmann::ordered_json error = {{"kind", is_usage ? "usage" : is_local ? "local" : "call"}};
  if (!is_usage && !is_local) error["code"] = absl::StatusCodeToString(status.code());
  error["message"] = std::string(status.message());
  if (const auto advice = status.GetPayload(kAdviceUrl)) error["advice"] = std::string(*advice);
  const ErrorDetails details = DetailsOf(status);
  for (const FieldViolation& violation : details.violations) {
    error["violations"].push_back({{"field", violation.field}, {"description", violation.description}});
  }
  if (!details.request_id.empty()) error["request_id"] = details.request_id;
  if (details.retry_delay) error["retry_seconds"] = absl::ToDoubleSeconds(*details.retry_delay);
  return nlohmann::ordered_json{{"error", std::move(error)}}.dump(-1, ' ', false,
                                                                  nlohmann::json::error_handler_t::replace);
}

}  // namespace warpline::client

// The error of a failed call: an absl::Status with gRPC's code and the google.rpc details as payloads.
#ifndef WARPLINE_ERROR_H_
#define WARPLINE_ERROR_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace warpline::client {

struct FieldViolation {
  std::string field;
  std::string description;
};

struct ErrorDetails {
  std::string request_id;  // empty if the server gave none
  std::vector<FieldViolation> violations;
  // Set if the server says that a later retry can succeed.
  std::optional<absl::Duration> retry_delay;
  // True if the server sent the error; false if it is gRPC's or the client's. The client itself refuses
  // types, shapes and options that the server would refuse, with the server's text and violations.
  bool answered = false;
  // How often the call was made.
  int attempts = 0;
};

// Returns the details of a status that a call of this library returned; empty details for any other status.
ErrorDetails DetailsOf(const absl::Status& status);

// Returns "INVALID_ARGUMENT: text" (or the code alone), then a line for each violation and for the request
// id. Lines whose contents are already in the text are left out. There is no newline at the end.
std::string Describe(const absl::Status& status);

}  // namespace warpline::client

#endif  // WARPLINE_ERROR_H_

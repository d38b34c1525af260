// The requirements on every error that a client gets for a message.
#ifndef WARPLINE_TESTS_FUZZ_DOCUMENTED_ERROR_H_
#define WARPLINE_TESTS_FUZZ_DOCUMENTED_ERROR_H_

#include <string>

#include "absl/status/status.h"

namespace warpline::testing {

// True if the API documents this code for a message, however wrong the message may be.
bool IsDocumented(absl::StatusCode code);

// Says what is wrong with an error: a code that is not documented, no text, or details that a client could
// not read. Empty if nothing is.
std::string FlawOfError(const absl::Status& status);

}  // namespace warpline::testing

#endif  // WARPLINE_TESTS_FUZZ_DOCUMENTED_ERROR_H_

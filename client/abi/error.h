// The errors of the C interface.
#ifndef WARPLINE_CLIENT_ABI_ERROR_H_
#define WARPLINE_CLIENT_ABI_ERROR_H_

#include <exception>
#include <new>
#include <string>
#include <type_traits>

#include "absl/status/status.h"
#include "client/src/interrupt.h"
#include "warpline/error.h"
#include "warpline/warpline.h"

struct warpline_error {
  absl::StatusCode code;
  std::string message;
  warpline::client::ErrorDetails details;
};

namespace warpline::abi {

// Returns null for OK.
warpline_error* ToError(const absl::Status& status);

// Runs `body`, which returns a status. Exceptions do not leave the library.
template <typename Body>
warpline_error* Guarded(const Body& body) noexcept {
  static_assert(std::is_same_v<decltype(body()), absl::Status>);
  client::BeginInterruptible();
  try {
    return ToError(body());
  } catch (const std::bad_alloc&) {
    return ToError(absl::ResourceExhaustedError("no memory is left in this process"));
  } catch (const std::exception& error) {
    return ToError(absl::InternalError(error.what()));
  }
}

}  // namespace warpline::abi

#endif  // WARPLINE_CLIENT_ABI_ERROR_H_

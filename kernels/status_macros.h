// Macros with the names of newer Abseil (absl/status/status_macros.h, 2026). Delete them once that is the
// minimum.
#ifndef WARPLINE_KERNELS_STATUS_MACROS_H_
#define WARPLINE_KERNELS_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define WARPLINE_CONCAT_INNER(a, b) a##b
#define WARPLINE_CONCAT(a, b) WARPLINE_CONCAT_INNER(a, b)

#define RETURN_IF_ERROR(expression)                    \
  do {                                                 \
    absl::Status warpline_status = (expression);       \
    if (!warpline_status.ok()) return warpline_status; \
  } while (false)

#define ASSIGN_OR_RETURN(lhs, expression) \
  ASSIGN_OR_RETURN_IMPL(WARPLINE_CONCAT(warpline_or_, __LINE__), lhs, expression)
#define ASSIGN_OR_RETURN_IMPL(holder, lhs, expression) \
  auto holder = (expression);                          \
  if (!holder.ok()) return std::move(holder).status(); \
  lhs = std::move(holder).value()

#endif  // WARPLINE_KERNELS_STATUS_MACROS_H_

// Turns files in Fortran order into requests without a copy on the host. The stored array is the transpose of
// the actual array, so the axes of the request or of the result are renumbered.
#ifndef WARPLINE_CLIENT_CLI_OPERANDS_H_
#define WARPLINE_CLIENT_CLI_OPERANDS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/npy/file.h"

namespace warpline::client {

// Returns the permutation of the stored array that gives, in row-major order, the permutation `perm` of the
// actual array. Empty `perm`: the last two axes are swapped. InvalidArgument if `perm` is not a permutation.
absl::StatusOr<std::vector<int>> StoredPerm(const NpyArray& array, const std::vector<int>& perm);

// Returns the permutation that brings the stored array into the row-major order of the actual array.
std::vector<int> ToRowMajorPerm(const NpyArray& array);

// Converts `axes` (which may be negative) of the actual array to axes of the stored array. An empty list
// means all axes. The remaining axes are reversed too, so the result is again stored in Fortran order.
// InvalidArgument for an axis that the array does not have.
absl::StatusOr<std::vector<int>> StoredAxes(const NpyArray& array, const std::vector<int>& axes);

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_CLI_OPERANDS_H_

// How files in Fortran order become requests without a copy on the host: what is stored is the transpose of
// what is meant, so axes are renumbered, or the result is.
#ifndef WARPLINE_CLIENT_CLI_OPERANDS_H_
#define WARPLINE_CLIENT_CLI_OPERANDS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/npy/file.h"

namespace warpline::client {

// The permutation of the stored array that gives, in row-major order, the permutation `perm` of the array
// meant. Empty `perm`: the last two axes are swapped. InvalidArgument if `perm` is not a permutation.
absl::StatusOr<std::vector<int>> StoredPerm(const NpyArray& array, const std::vector<int>& perm);

// The permutation that brings the stored array into the row-major order of the array meant.
std::vector<int> ToRowMajorPerm(const NpyArray& array);

// The stored array's axes that are `axes` (which may be negative) of the array meant; none are all. What is
// left after the reduction is in reverse order too: the result is again stored in Fortran order.
// InvalidArgument for an axis that the array does not have.
absl::StatusOr<std::vector<int>> StoredAxes(const NpyArray& array, const std::vector<int>& axes);

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_CLI_OPERANDS_H_

#include "client/cli/operands.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace warpline::client {

absl::StatusOr<std::vector<int>> StoredPerm(const NpyArray& array, const std::vector<int>& perm) {
  const int rank = array.stored.shape.rank;
  std::vector<int> full = perm;
  if (perm.empty()) {
    full.resize(static_cast<std::size_t>(rank));
    std::iota(full.begin(), full.end(), 0);
    if (rank >= 2) std::swap(full[rank - 2], full[rank - 1]);
  }
  std::vector<bool> seen(static_cast<std::size_t>(rank), false);
  bool valid = full.size() == seen.size();
  for (int& axis : full) {
    if (axis < 0) axis += rank;  // counted from the end
    valid = valid && axis >= 0 && axis < rank && !seen[axis];
    if (valid) seen[axis] = true;
  }
  if (!valid) {
    return absl::InvalidArgumentError(
        absl::StrCat("--perm=", absl::StrJoin(perm, ","), " is not a permutation of ", rank, " axes"));
  }
  if (array.fortran) {
    for (int& axis : full) axis = rank - 1 - axis;
  }
  return full;
}

std::vector<int> ToRowMajorPerm(const NpyArray& array) {
  std::vector<int> perm(static_cast<std::size_t>(array.stored.shape.rank));
  std::iota(perm.begin(), perm.end(), 0);
  if (array.fortran) std::reverse(perm.begin(), perm.end());
  return perm;
}

absl::StatusOr<std::vector<int>> StoredAxes(const NpyArray& array, const std::vector<int>& axes) {
  const int rank = array.stored.shape.rank;
  std::vector<int> stored = axes;
  for (int& axis : stored) {
    if (axis < -rank || axis >= rank) {
      return absl::InvalidArgumentError(
          absl::StrCat("--axes=", absl::StrJoin(axes, ","), ": the array has ", rank, " axes"));
    }
    if (axis < 0) axis += rank;
    if (array.fortran) axis = rank - 1 - axis;
  }
  return stored;
}

}  // namespace warpline::client

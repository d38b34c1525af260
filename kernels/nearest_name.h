// What was probably meant by a name that there is not.
#ifndef WARPLINE_KERNELS_NEAREST_NAME_H_
#define WARPLINE_KERNELS_NEAREST_NAME_H_

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

namespace warpline {

// Letters to insert, take out or replace to make one of the other (Levenshtein 1966).
inline std::size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);  // of the first i letters of `a`, to each prefix of `b`
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

// The first of the nearest; empty if none has at least half of its letters in common with `name`.
inline std::string NearestName(std::string_view name, const std::vector<std::string>& names) {
  std::string nearest;
  std::size_t least = name.size() / 2 + 1;
  for (const std::string& candidate : names) {
    const std::size_t distance = EditDistance(name, candidate);
    if (distance < least) {
      least = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

}  // namespace warpline

#endif  // WARPLINE_KERNELS_NEAREST_NAME_H_

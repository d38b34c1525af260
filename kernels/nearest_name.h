// Guesses which known name was meant by an unknown one.
#ifndef WARPLINE_KERNELS_NEAREST_NAME_H_
#define WARPLINE_KERNELS_NEAREST_NAME_H_

#include <span>
#include <string>
#include <string_view>

namespace warpline {

// Returns the name in `names` with the fewest added, missing or replaced letters compared with `word`. Empty
// if the difference is always more than a third of the word.
std::string NearestName(std::string_view word, std::span<const std::string> names);

}  // namespace warpline

#endif  // WARPLINE_KERNELS_NEAREST_NAME_H_

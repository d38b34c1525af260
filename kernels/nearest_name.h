// Guesses which known name an unknown name may have been meant to be.
#ifndef WARPLINE_KERNELS_NEAREST_NAME_H_
#define WARPLINE_KERNELS_NEAREST_NAME_H_

#include <span>
#include <string>
#include <string_view>

namespace warpline {

// The one of `names` that is fewest letters away from `word`, each added, left out or replaced; empty if each
// of them is more than a third of the word away.
std::string NearestName(std::string_view word, std::span<const std::string> names);

}  // namespace warpline

#endif  // WARPLINE_KERNELS_NEAREST_NAME_H_

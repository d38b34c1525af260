#include "kernels/shape.h"

#include <cstdio>
#include <cstdlib>

namespace warpline {

void EndForAxis(std::size_t axis) {
  std::fprintf(stderr, "an array has no axis %td: axes are 0 to %d\n", static_cast<std::ptrdiff_t>(axis),
               kMaxRank - 1);
  std::abort();
}

std::string ToString(const Shape& shape) {
  std::string text = "[";
  for (int i = 0; i < shape.rank; ++i) {
    if (i > 0) text += ',';
    text += std::to_string(shape.dims[i]);
  }
  return text + ']';
}

}  // namespace warpline

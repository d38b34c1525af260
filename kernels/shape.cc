#include "kernels/shape.h"

namespace warpline {

std::string ToString(const Shape& shape) {
  std::string text = "[";
  for (int i = 0; i < shape.rank; ++i) {
    if (i > 0) text += ',';
    text += std::to_string(shape.dims[i]);
  }
  return text + ']';
}

}  // namespace warpline

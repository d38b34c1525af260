// Compress: copies one row after another.
#include <cstdint>

#include "kernels/cpu/launchers.h"
#include "kernels/cpu/looks.h"

namespace warpline::cpu {

void Compress(const CompressProblem& problem, const Operands& operands) {
  const auto* x = static_cast<const std::byte*>(operands.in[0]);
  const auto* mask = static_cast<const std::uint8_t*>(operands.in[1]);
  auto* y = static_cast<std::byte*>(operands.out);
  const std::size_t row = static_cast<std::size_t>(problem.width) * SizeOf(problem.dtype);
  std::int64_t count = 0;
  Looks looks(operands.interest);
  for (std::int64_t i = 0; i < problem.rows; ++i, x += row) {
    if (looks.Stop(1)) return;
    if (mask[i] == 0) continue;
    if (!CopyInPieces(looks, y, x, static_cast<std::int64_t>(row))) return;
    y += row;
    ++count;
  }
  *static_cast<std::int64_t*>(operands.further[0]) = count;
}

}  // namespace warpline::cpu

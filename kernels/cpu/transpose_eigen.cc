// Transpose as a batch of 2-D transposes, in blocks that stay in the first-level cache.
#include <Eigen/Core>
#include <algorithm>
#include <complex>
#include <cstdint>

#include "kernels/cpu/launchers.h"
#include "kernels/cpu/looks.h"
#include "kernels/cpu/strided.h"

namespace warpline::cpu {
namespace {

// 32 x 32 elements of 8 bytes are 8 KiB on each side, in total half of a 32 KiB cache. 32 elements of 2 bytes
// are still a whole cache line.
constexpr std::int64_t kBlock = 32;

// Sets y[i][j] = x[j][i] for a `rows` x `cols` result. The strides are between rows of y and between rows of
// x. Returns false if it was stopped.
template <typename T>
bool Transpose2D(Looks& looks, const T* x, std::int64_t x_stride, T* y, std::int64_t y_stride,
                 std::int64_t rows, std::int64_t cols) {
  using Source = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::ColMajor>;
  using Target = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  using Stride = Eigen::OuterStride<>;
  // x read as column-major already has the indices of y, so only a plain assignment remains.
  const Eigen::Map<const Source, Eigen::Unaligned, Stride> source(x, rows, cols, Stride(x_stride));
  Eigen::Map<Target, Eigen::Unaligned, Stride> target(y, rows, cols, Stride(y_stride));
  for (std::int64_t i = 0; i < rows; i += kBlock) {
    const std::int64_t height = std::min(kBlock, rows - i);
    for (std::int64_t j = 0; j < cols; j += kBlock) {
      const std::int64_t width = std::min(kBlock, cols - j);
      target.block(i, j, height, width) = source.block(i, j, height, width);
      if (looks.Stop(height * width)) return false;
    }
  }
  return true;
}

// `axes` must be in the order of y.
template <typename T>
void Transpose(AxisList axes, const Operands& operands) {
  const T* x = static_cast<const T*>(operands.in[0]);
  T* y = static_cast<T*>(operands.out);
  Looks looks(operands.interest);
  const Axis cols = axes.RemoveLast();
  if (cols.size == 1 || cols.x_stride == 1) {  // y's rows are x's rows (or there is only one element)
    axes.ForEach([&](std::int64_t x_offset, std::int64_t y_offset) {
      return CopyInPieces(looks, y + y_offset, x + x_offset,
                          cols.size * static_cast<std::int64_t>(sizeof(T)));
    });
    return;
  }
  const Axis rows = axes.RemoveContiguousInX();
  axes.ForEach([&](std::int64_t x_offset, std::int64_t y_offset) {
    return Transpose2D(looks, x + x_offset, cols.x_stride, y + y_offset, rows.y_stride, rows.size, cols.size);
  });
}

}  // namespace

void TransposeEigen(const TransposeProblem& problem, const Operands& operands) {
  const Shape y_shape = problem.OutputShape();
  if (y_shape.Count() == 0) return;
  const auto x_strides = RowMajorStrides(problem.shape, problem.row_stride);
  const auto y_strides = RowMajorStrides(y_shape);
  AxisList axes;
  for (int i = 0; i < y_shape.rank; ++i) axes.Append({y_shape[i], x_strides[problem.perm[i]], y_strides[i]});

  // Only the size of an element matters. Integers copy every bit pattern unchanged, including NaNs.
  switch (SizeOf(problem.dtype)) {
    case 1:
      return Transpose<std::uint8_t>(axes, operands);
    case 2:
      return Transpose<std::uint16_t>(axes, operands);
    case 4:
      return Transpose<std::uint32_t>(axes, operands);
    case 8:
      return Transpose<std::uint64_t>(axes, operands);
    case 16:
      return Transpose<std::complex<double>>(axes, operands);
  }
}

}  // namespace warpline::cpu

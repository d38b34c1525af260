#include "tests/testing/reference.h"

#include <array>
#include <cmath>
#include <cstring>

namespace warpline::testing {
namespace {

using Index = std::array<std::int64_t, kMaxRank>;

// The multi-index of element `flat` of a dense row-major array.
Index Unflatten(const Shape& shape, std::int64_t flat) {
  Index index{};
  for (int axis = shape.rank - 1; axis >= 0; --axis) {
    index[axis] = flat % shape[axis];
    flat /= shape[axis];
  }
  return index;
}

std::int64_t Flatten(const Shape& shape, const Index& index) {
  std::int64_t flat = 0;
  for (int axis = 0; axis < shape.rank; ++axis) flat = flat * shape[axis] + index[axis];
  return flat;
}

// op(X) of one matrix of the batch, dense.
std::vector<long double> LoadMatrix(DType dtype, std::span<const std::byte> data, std::int64_t first,
                                    std::int64_t rows, std::int64_t cols, std::int64_t ld, bool transposed) {
  std::vector<long double> matrix(rows * cols);
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < cols; ++j) {
      matrix[i * cols + j] = Load(dtype, data, first + (transposed ? j * ld + i : i * ld + j));
    }
  }
  return matrix;
}

// What one result of a reduction is made from.
struct Reduction {
  std::int64_t count = 0;
  long double sum = 0;
  long double magnitude = 0;
  long double best = 0;  // of min, max, argmax
  std::int64_t best_index = 0;

  void Add(ReduceOp op, long double value) {
    const bool better = op == ReduceOp::kMin ? value < best : value > best;
    if (count == 0 || (!std::isnan(best) && (std::isnan(value) || better))) {
      best = value;
      best_index = count;
    }
    sum += value;
    magnitude += std::fabs(value);
    ++count;
  }
};

}  // namespace

std::int64_t ElementsOfA(const GemmProblem& p) { return p.batch * (p.trans_a ? p.k : p.m) * p.lda; }
std::int64_t ElementsOfB(const GemmProblem& p) { return p.batch * (p.trans_b ? p.n : p.k) * p.ldb; }
std::int64_t ElementsOfC(const GemmProblem& p) { return p.has_c ? p.batch * p.m * p.ldc : 0; }

Bytes Transpose(const TransposeProblem& problem, std::span<const std::byte> x) {
  const std::size_t size = SizeOf(problem.dtype);
  Shape y_shape;
  for (int i = 0; i < problem.shape.rank; ++i) y_shape.Append(problem.shape[problem.perm[i]]);
  Bytes y(y_shape.Count() * size);
  for (std::int64_t i = 0; i < y_shape.Count(); ++i) {
    const Index y_index = Unflatten(y_shape, i);
    Index x_index{};
    for (int axis = 0; axis < y_shape.rank; ++axis) x_index[problem.perm[axis]] = y_index[axis];
    std::memcpy(y.data() + i * size, x.data() + Flatten(problem.shape, x_index) * size, size);
  }
  return y;
}

Reference Gemm(const GemmProblem& p, const GemmScalars& scalars, std::span<const std::byte> a_data,
               std::span<const std::byte> b_data, std::span<const std::byte> c_data) {
  const bool f64 = p.dtype == DType::kF64;
  const long double alpha = f64 ? scalars.alpha_f64 : scalars.alpha_f32;
  const long double beta = f64 ? scalars.beta_f64 : scalars.beta_f32;
  const bool reads_c = p.has_c && beta != 0;
  Reference d{p.dtype, {}, {}};
  for (std::int64_t batch = 0; batch < p.batch; ++batch) {
    const std::int64_t first_a = batch * (ElementsOfA(p) / p.batch);
    const std::int64_t first_b = batch * (ElementsOfB(p) / p.batch);
    const std::vector<long double> a = LoadMatrix(p.dtype, a_data, first_a, p.m, p.k, p.lda, p.trans_a);
    // B by columns, so that the innermost loop reads both in order.
    const std::vector<long double> b = LoadMatrix(p.dtype, b_data, first_b, p.n, p.k, p.ldb, !p.trans_b);
    for (std::int64_t i = 0; i < p.m; ++i) {
      for (std::int64_t j = 0; j < p.n; ++j) {
        long double sum = 0;
        long double magnitude = 0;
        for (std::int64_t l = 0; l < p.k; ++l) {
          const long double term = a[i * p.k + l] * b[j * p.k + l];
          sum += term;
          magnitude += std::fabs(term);
        }
        if (p.k > 0) {
          sum *= alpha;
          magnitude *= std::fabs(alpha);
        }
        if (reads_c) {
          const long double term = beta * Load(p.dtype, c_data, (batch * p.m + i) * p.ldc + j);
          sum += term;
          magnitude += std::fabs(term);
        }
        d.values.push_back(sum);
        d.magnitudes.push_back(magnitude);
      }
    }
  }
  return d;
}

Reference Reduce(const ReduceProblem& problem, std::span<const std::byte> x) {
  Shape y_shape;  // with the reduced axes of size 1
  for (int axis = 0; axis < problem.shape.rank; ++axis) {
    y_shape.Append(problem.axes_mask >> axis & 1 ? 1 : problem.shape[axis]);
  }
  std::vector<Reduction> reductions(y_shape.Count());
  for (std::int64_t i = 0; i < problem.shape.Count(); ++i) {
    Index index = Unflatten(problem.shape, i);
    for (int axis = 0; axis < problem.shape.rank; ++axis) {
      if (problem.axes_mask >> axis & 1) index[axis] = 0;
    }
    // Row-major over x meets the elements of every result row-major over the reduced axes.
    reductions[Flatten(y_shape, index)].Add(problem.op, Load(problem.dtype, x, i));
  }

  const bool integer = !IsFloat(problem.dtype);
  Reference y{problem.dtype, {}, {}};
  if (problem.op == ReduceOp::kArgmax || (integer && problem.op == ReduceOp::kSum)) y.dtype = DType::kI64;
  if (integer && problem.op == ReduceOp::kMean) y.dtype = DType::kF64;
  for (const Reduction& r : reductions) {
    const long double count = static_cast<long double>(r.count);
    switch (problem.op) {
      case ReduceOp::kSum:
        y.values.push_back(r.sum);
        y.magnitudes.push_back(r.magnitude);
        break;
      case ReduceOp::kMean:
        y.values.push_back(r.sum / count);
        y.magnitudes.push_back(r.magnitude / count);
        break;
      case ReduceOp::kMin:
      case ReduceOp::kMax:
        y.values.push_back(r.best);
        y.magnitudes.push_back(std::fabs(r.best));
        break;
      case ReduceOp::kArgmax:
        y.values.push_back(static_cast<long double>(r.best_index));
        y.magnitudes.push_back(0);
        break;
    }
  }
  return y;
}

}  // namespace warpline::testing

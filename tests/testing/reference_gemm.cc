// The references of products.
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "tests/testing/reference.h"

namespace warpline::testing {
namespace {

// op(X) of one matrix of the batch, dense, of elements as `load` has them.
template <typename T>
std::vector<T> LoadMatrix(T (*load)(DType, std::span<const std::byte>, std::int64_t), DType dtype,
                          std::span<const std::byte> data, std::int64_t first, std::int64_t rows,
                          std::int64_t cols, std::int64_t ld, bool transposed) {
  std::vector<T> matrix(rows * cols);
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < cols; ++j) {
      matrix[i * cols + j] = load(dtype, data, first + (transposed ? j * ld + i : i * ld + j));
    }
  }
  return matrix;
}

struct Value {
  long double value = 0;
  long double magnitude = 0;
};

// The sum of the products, and that of their magnitudes. Both operands have `count` elements.
//
// This loop took half of the time of the tests of products when the sanitizers checked each of its loads, so
// they do not look at it. std::fabs would be a call here, because a function that is checked is not inlined
// into one that is not.
__attribute__((no_sanitize("address", "thread", "undefined"))) Value Dot(const long double* a,
                                                                         const long double* b,
                                                                         std::int64_t count) {
  Value dot;
  for (std::int64_t i = 0; i < count; ++i) {
    const long double term = a[i] * b[i];
    dot.value += term;
    dot.magnitude += __builtin_fabsl(term);
  }
  return dot;
}

// The matrices that one operand of a batch has: one more than the greatest index that occurs.
std::int64_t MatrixCount(const GemmBatch& batch, const std::int64_t* strides) {
  std::int64_t last = 0;
  for (int axis = 0; axis < batch.rank; ++axis) {
    if (batch.dims[axis] == 0) return 0;
    last += (batch.dims[axis] - 1) * strides[axis];
  }
  return last + 1;
}

// Up to the last element of matrices that are `stride` apart, with rows of `row` elements that are `ld`
// apart.
std::int64_t Extent(std::int64_t matrices, std::int64_t stride, std::int64_t row, std::int64_t ld) {
  if (matrices == 0 || stride == 0 || row == 0) return 0;
  return matrices * stride - (ld - row);
}

long double Activated(Activation activation, long double x) {
  switch (activation) {
    case Activation::kNone:
      return x;
    case Activation::kRelu:
      return x < 0 ? 0 : x;
    case Activation::kGelu: {
      const long double scale = std::sqrt(2 / std::acos(-1.0L));
      return x / 2 * (1 + std::tanh(scale * (x + 0.044715L * x * x * x)));
    }
  }
  return x;
}

// Exact, then modulo 2^bits.
Reference GemmOfIntegers(const GemmProblem& p, const StepScalars& scalars, std::span<const std::byte> a,
                         std::span<const std::byte> b, std::span<const std::byte> c) {
  Reference d{p.OutDType(), {}, {}};
  for (std::int64_t matrix = 0; matrix < p.batch.Count(); ++matrix) {
    const GemmBatch::Matrices at = p.batch.At(matrix);
    const std::vector<std::uint64_t> rows =
        LoadMatrix(BitsOf, p.dtype, a, at.a * p.StrideA(), p.m, p.k, p.lda, p.trans_a);
    const std::vector<std::uint64_t> columns =
        LoadMatrix(BitsOf, p.dtype, b, at.b * p.StrideB(), p.n, p.k, p.ldb, !p.trans_b);
    for (std::int64_t i = 0; i < p.m; ++i) {
      for (std::int64_t j = 0; j < p.n; ++j) {
        std::uint64_t sum = 0;
        for (std::int64_t l = 0; l < p.k; ++l) sum += rows[i * p.k + l] * columns[j * p.k + l];
        sum *= static_cast<std::uint64_t>(scalars.alpha_i64);
        if (p.has_c) {
          sum += static_cast<std::uint64_t>(scalars.beta_i64) *
                 BitsOf(d.dtype, c, at.c * p.StrideC() + i * p.ldc + j);
        }
        d.values.push_back(Wrapped(d.dtype, sum));
        d.magnitudes.push_back(0);
      }
    }
  }
  return d;
}

long double LoadRe(DType dtype, std::span<const std::byte> data, std::int64_t index) {
  return Load(PartOf(dtype), data, 2 * index);
}
long double LoadIm(DType dtype, std::span<const std::byte> data, std::int64_t index) {
  return Load(PartOf(dtype), data, 2 * index + 1);
}

// Each element of the result is two numbers.
Reference GemmOfComplex(const GemmProblem& p, const StepScalars& scalars, std::span<const std::byte> a,
                        std::span<const std::byte> b, std::span<const std::byte> c) {
  const bool c128 = p.dtype == DType::kC128;
  const long double alpha = c128 ? scalars.alpha_f64 : scalars.alpha_f32;
  const long double beta = c128 ? scalars.beta_f64 : scalars.beta_f32;
  Reference d{PartOf(p.dtype), {}, {}};
  for (std::int64_t matrix = 0; matrix < p.batch.Count(); ++matrix) {
    const GemmBatch::Matrices at = p.batch.At(matrix);
    const auto rows = [&](auto part) {
      return LoadMatrix(part, p.dtype, a, at.a * p.StrideA(), p.m, p.k, p.lda, p.trans_a);
    };
    const auto columns = [&](auto part) {
      return LoadMatrix(part, p.dtype, b, at.b * p.StrideB(), p.n, p.k, p.ldb, !p.trans_b);
    };
    const auto a_re = rows(LoadRe), a_im = rows(LoadIm), b_re = columns(LoadRe), b_im = columns(LoadIm);
    for (std::int64_t i = 0; i < p.m; ++i) {
      for (std::int64_t j = 0; j < p.n; ++j) {
        const auto dot = [&](const std::vector<long double>& x, const std::vector<long double>& y) {
          return Dot(x.data() + i * p.k, y.data() + j * p.k, p.k);
        };
        const auto add = [&](Value x, Value y, int sign, auto load_c) {
          Value part = {alpha * (x.value + sign * y.value), std::fabs(alpha) * (x.magnitude + y.magnitude)};
          if (p.has_c && beta != 0) {
            const long double term = beta * load_c(p.dtype, c, at.c * p.StrideC() + i * p.ldc + j);
            part.value += term;
            part.magnitude += std::fabs(term);
          }
          d.values.push_back(part.value);
          d.magnitudes.push_back(part.magnitude);
        };
        add(dot(a_re, b_re), dot(a_im, b_im), -1, LoadRe);
        add(dot(a_re, b_im), dot(a_im, b_re), 1, LoadIm);
      }
    }
  }
  return d;
}

}  // namespace

std::int64_t ElementsOfA(const GemmProblem& p) {
  return Extent(MatrixCount(p.batch, p.batch.a), p.StrideA(), p.trans_a ? p.m : p.k, p.lda);
}
std::int64_t ElementsOfB(const GemmProblem& p) {
  return Extent(MatrixCount(p.batch, p.batch.b), p.StrideB(), p.trans_b ? p.k : p.n, p.ldb);
}
std::int64_t ElementsOfC(const GemmProblem& p) {
  return p.has_c ? Extent(MatrixCount(p.batch, p.batch.c), p.StrideC(), p.n, p.ldc) : 0;
}

Reference Gemm(const GemmProblem& p, const StepScalars& scalars, std::span<const std::byte> a_data,
               std::span<const std::byte> b_data, std::span<const std::byte> c_data,
               std::span<const std::byte> bias) {
  if (IsComplex(p.dtype)) return GemmOfComplex(p, scalars, a_data, b_data, c_data);
  if (!IsFloat(p.dtype)) return GemmOfIntegers(p, scalars, a_data, b_data, c_data);
  const bool f64 = p.dtype == DType::kF64;
  const long double alpha = f64 ? scalars.alpha_f64 : scalars.alpha_f32;
  const long double beta = f64 ? scalars.beta_f64 : scalars.beta_f32;
  const bool reads_c = p.has_c && beta != 0;
  Reference d{p.OutDType(), {}, {}};
  for (std::int64_t matrix = 0; matrix < p.batch.Count(); ++matrix) {
    const GemmBatch::Matrices at = p.batch.At(matrix);
    const std::vector<long double> a =
        LoadMatrix(Load, p.dtype, a_data, at.a * p.StrideA(), p.m, p.k, p.lda, p.trans_a);
    // B by columns, so that the innermost loop reads both in order.
    const std::vector<long double> b =
        LoadMatrix(Load, p.dtype, b_data, at.b * p.StrideB(), p.n, p.k, p.ldb, !p.trans_b);
    for (std::int64_t i = 0; i < p.m; ++i) {
      for (std::int64_t j = 0; j < p.n; ++j) {
        auto [sum, magnitude] = Dot(a.data() + i * p.k, b.data() + j * p.k, p.k);
        if (p.k > 0) {
          sum *= alpha;
          magnitude *= std::fabs(alpha);
        }
        const auto add = [&](long double term) {
          sum += term;
          magnitude += std::fabs(term);
        };
        if (reads_c) add(beta * Load(d.dtype, c_data, at.c * p.StrideC() + i * p.ldc + j));
        if (p.has_bias) add(Load(d.dtype, bias, j));
        d.values.push_back(Activated(p.activation, sum));
        d.magnitudes.push_back(magnitude);
      }
    }
  }
  return d;
}

}  // namespace warpline::testing

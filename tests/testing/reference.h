// The answers, by the plainest code there is and in long double: nothing here is shared with kernels/ but
// the problems themselves. (kernels/ has `reference` variants of its own; this also judges those.)
#ifndef WARPLINE_TESTS_TESTING_REFERENCE_H_
#define WARPLINE_TESTS_TESTING_REFERENCE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/problem.h"
#include "tests/testing/element.h"

namespace warpline::testing {

// A dense result before it is rounded to its type. `magnitudes` has for each element the sum of the absolute
// values of all terms that went into it, which is what rounding errors are proportional to.
struct Reference {
  DType dtype = DType::kF32;
  std::vector<long double> values;
  std::vector<long double> magnitudes;

  // Rounded to the type of the result.
  Bytes ToBytes() const { return Pack(dtype, values); }
};

// Bit for bit: no element is looked at.
Bytes Transpose(const TransposeProblem& problem, std::span<const std::byte> x);

// `c` and `bias` may be empty without has_c, has_bias. Values are activated, magnitudes are of before. Takes
// alpha and beta from the fields that the kernels of this dtype read.
Reference Gemm(const GemmProblem& problem, const StepScalars& scalars, std::span<const std::byte> a,
               std::span<const std::byte> b, std::span<const std::byte> c, std::span<const std::byte> bias);

// For var, errors are proportional to the magnitudes. For std, the magnitudes are those of the variance. For
// exact operations they are 0.
Reference Reduce(const ReduceProblem& problem, std::span<const std::byte> x);

// Returns what a cast makes of a value of type `from`, apart from rounding to a float. `bits` are those of an
// integer.
long double Converted(DType from, long double value, std::uint64_t bits, DType to);

// Elements of storage up to the last one: the padding of every row but the last is included.
std::int64_t StorageElements(const Shape& shape, std::int64_t row_stride);
std::int64_t StorageElements(const Shape& shape, const Strides& strides);
// How many of these come before the first one, where strides are negative.
std::int64_t ElementsBefore(const Shape& shape, const Strides& strides);

// Elements of storage of the operands, counted likewise.
std::int64_t ElementsOfA(const GemmProblem& problem);
std::int64_t ElementsOfB(const GemmProblem& problem);
std::int64_t ElementsOfC(const GemmProblem& problem);

}  // namespace warpline::testing

#endif  // WARPLINE_TESTS_TESTING_REFERENCE_H_

// Tensors of random elements, the same for the same seed on every machine.
#ifndef WARPLINE_TESTS_TESTING_RANDOM_TENSOR_H_
#define WARPLINE_TESTS_TESTING_RANDOM_TENSOR_H_

#include <cstddef>
#include <cstdint>

#include "kernels/dtype.h"
#include "tests/testing/element.h"

namespace warpline::testing {

// Finite elements: floating point uniform in [-1, 1), so that no sum of products overflows even f16;
// integers uniform over the whole type.
Bytes RandomTensor(DType dtype, std::int64_t count, std::uint64_t seed);

// The same, with about one element in eight replaced by NaN, an infinity, or a zero of either sign. For
// integers: by the least, the greatest, or zero.
Bytes RandomTensorWithSpecials(DType dtype, std::int64_t count, std::uint64_t seed);

// The same, with floats of up to 2^80 in absolute value: past the range of every integer type.
Bytes RandomWideTensor(DType dtype, std::int64_t count, std::uint64_t seed);

// Any bit patterns, signalling NaNs included: for what must move elements and not look at them.
Bytes RandomBytes(std::size_t size, std::uint64_t seed);

}  // namespace warpline::testing

#endif  // WARPLINE_TESTS_TESTING_RANDOM_TENSOR_H_

// The answers, operands and awkward problems of operations that read places from an operand.
#ifndef WARPLINE_TESTS_TESTING_INDEX_REFERENCE_H_
#define WARPLINE_TESTS_TESTING_INDEX_REFERENCE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/problem.h"
#include "tests/testing/element.h"

namespace warpline::testing {

// Elements of x before its first one, along axes with negative strides.
std::int64_t ElementsBeforeFirst(const TakeProblem& problem);

Bytes Take(const TakeProblem& problem, std::span<const Bytes> operands);
Bytes Put(const PutProblem& problem, std::span<const Bytes> operands);
// The rows that are taken, and no more.
Bytes Compress(const CompressProblem& problem, std::span<const Bytes> operands);

// Operands with any bits, and with indices in range, of which about half are negative.
std::vector<Bytes> IndexOperands(const TakeProblem& problem, std::uint64_t seed);
std::vector<Bytes> IndexOperands(const PutProblem& problem, std::uint64_t seed);

std::vector<Bytes> IndexOperands(const CompressProblem& problem, std::uint64_t seed);

std::vector<CompressProblem> AwkwardCompressions(DType dtype);
std::vector<TakeProblem> AwkwardTakes(DType dtype);
std::vector<PutProblem> AwkwardPuts(DType dtype);

}  // namespace warpline::testing

#endif  // WARPLINE_TESTS_TESTING_INDEX_REFERENCE_H_

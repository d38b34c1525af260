// How far a result may be from the exact one: computed, never tuned. Each bound is the textbook worst case
// of the arithmetic that the semantics promise (N. Higham, Accuracy and Stability of Numerical Algorithms,
// chapters 3 and 4), whatever the order of the additions.
#ifndef WARPLINE_TESTS_TESTING_TOLERANCE_H_
#define WARPLINE_TESTS_TESTING_TOLERANCE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/problem.h"
#include "tests/testing/reference.h"

namespace warpline::testing {

// gamma_n = n u / (1 - n u): the relative error that n roundings of unit u can add up to. Infinite once n u
// reaches 1.
long double Gamma(std::int64_t n, long double u);

// The largest allowed |got - want| of each element of `reference`; of no meaning where it is not finite.
std::vector<long double> Tolerance(const GemmProblem& problem, const Reference& reference);
std::vector<long double> Tolerance(const ReduceProblem& problem, const Reference& reference);

// Nothing if `got`, a dense tensor of the reference's type, is the reference within `bounds`. Otherwise the
// worst element, in words: index, got, want, bound, and how many elements are wrong. NaN equals NaN, an
// infinity only itself.
std::optional<std::string> FindWorstError(const Reference& reference, std::span<const long double> bounds,
                                          std::span<const std::byte> got);

}  // namespace warpline::testing

#endif  // WARPLINE_TESTS_TESTING_TOLERANCE_H_

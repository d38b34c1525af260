// The answers, operands and awkward problems of scans, sorts and searches.
#ifndef WARPLINE_TESTS_TESTING_ORDER_REFERENCE_H_
#define WARPLINE_TESTS_TESTING_ORDER_REFERENCE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/problem.h"
#include "tests/testing/element.h"
#include "tests/testing/reference.h"

namespace warpline::testing {

// The magnitudes are the sums of the absolute values of what was added.
Reference Scan(const ScanProblem& problem, std::span<const std::byte> x);
std::vector<long double> Tolerance(const ScanProblem& problem, const Reference& reference);

// The results, bit for bit: see SortProblem.
std::vector<Bytes> Sort(const SortProblem& problem, std::span<const std::byte> x);
// Puts results whose order between the places of a selection is open into one order, so that they can be
// compared.
void OrderBetweenKth(const SortProblem& problem, std::vector<Bytes>& results);
Bytes Search(const SearchProblem& problem, std::span<const Bytes> operands);

// The elements are by turns numbers, few different ones, sorted ones, and special ones.
std::vector<Bytes> OrderOperands(const ScanProblem& problem, std::uint64_t seed);
std::vector<Bytes> OrderOperands(const SortProblem& problem, std::uint64_t seed);
// x1 in order, or with a sorter that brings it in order.
std::vector<Bytes> OrderOperands(const SearchProblem& problem, std::uint64_t seed);

std::vector<ScanProblem> AwkwardScans(DType dtype);
std::vector<SortProblem> AwkwardSorts(DType dtype);
std::vector<SearchProblem> AwkwardSearches(DType dtype);

}  // namespace warpline::testing

#endif  // WARPLINE_TESTS_TESTING_ORDER_REFERENCE_H_

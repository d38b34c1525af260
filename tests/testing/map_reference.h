// Results of maps, node by node and element by element, by code that shares nothing with kernels/ but the
// problem and the names of the operations.
#ifndef WARPLINE_TESTS_TESTING_MAP_REFERENCE_H_
#define WARPLINE_TESTS_TESTING_MAP_REFERENCE_H_

#include <span>
#include <vector>

#include "kernels/problem.h"
#include "tests/testing/element.h"
#include "tests/testing/reference.h"

namespace warpline::testing {

// A result, and how far each of its elements may be from it. Complex elements are two numbers each, and the
// type is that of these.
struct MapAnswer {
  Reference want;
  std::vector<long double> bounds;
};

// Bounds are those of the table of operations, for the last node: the nodes before it must be exact.
MapAnswer Map(const MapProblem& problem, std::span<const StepScalars> scalars, std::span<const Bytes> inputs);

// Maps that a kernel may get wrong: every operation that takes the type, operands that are broadcast and
// padded in every way, many inputs, many nodes, many live values, and expressions drawn at random. The first
// input has this type.
std::vector<MapProblem> AwkwardMaps(DType dtype);

// Elements for input `index` of a map, specials among them, so that functions meet most of their range.
Bytes MapOperand(const MapProblem& problem, std::size_t index, std::uint64_t seed);
// Values for its constants.
std::vector<StepScalars> MapScalars(const MapProblem& problem, std::uint64_t seed);

}  // namespace warpline::testing

#endif  // WARPLINE_TESTS_TESTING_MAP_REFERENCE_H_

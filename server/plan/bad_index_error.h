// The error of a program that found an index out of range.
#ifndef WARPLINE_SERVER_PLAN_BAD_INDEX_ERROR_H_
#define WARPLINE_SERVER_PLAN_BAD_INDEX_ERROR_H_

#include "absl/status/status.h"
#include "kernels/program.h"
#include "kernels/variant.h"

namespace warpline {

// Returns true if a step of the program reads indices from an operand. Such indices may be out of range.
bool HasIndices(const Program& program);

// INVALID_ARGUMENT with the step, the position of the index among the step's indices, its value and the
// range; OK if no bad index was found.
absl::Status BadIndexError(const Program& program, const BadIndex& found);

}  // namespace warpline

#endif  // WARPLINE_SERVER_PLAN_BAD_INDEX_ERROR_H_

// A program as bytes, for tests that compare programs.
#ifndef WARPLINE_TESTS_TESTING_PROGRAM_BYTES_H_
#define WARPLINE_TESTS_TESTING_PROGRAM_BYTES_H_

#include <string>

#include "kernels/program.h"

namespace warpline {

// Equal for two programs exactly when they have the same steps, dtypes, shapes, strides and variants. Values
// of scalars do not count.
std::string ProgramBytes(const Program& program);

}  // namespace warpline

#endif  // WARPLINE_TESTS_TESTING_PROGRAM_BYTES_H_

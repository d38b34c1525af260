// .npy files as operands and results.
#ifndef WARPLINE_CLIENT_CLI_NPY_FILE_H_
#define WARPLINE_CLIENT_CLI_NPY_FILE_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/src/message_writer.h"
#include "kernels/dtype.h"
#include "warpline/array.h"

namespace warpline::client {

// An array as its file has it, or a tensor that is on the server already.
struct NpyArray {
  // The elements in the order of the file, row-major: of a Fortran array, its transpose (all axes reversed).
  // Owns its memory: a mapping of the file, a buffer for standard input and big-endian files, or what an
  // AllocateElements gave.
  Operand stored;
  // The array that is meant is the transpose of `stored`. Never set where the two are the same in memory.
  bool fortran = false;
};

// Gives memory into which so many bytes of elements are to be read; null where any other will do. An error
// ends the reading.
using AllocateElements = std::function<absl::StatusOr<std::shared_ptr<void>>(std::size_t bytes)>;

// Path "-" is standard input, which is left standing after the elements. `dtype`: see ParseNpyHeader. A
// mapped file must not be shortened while in use. Errors name the file: InvalidArgument for a wrong path or
// wrong contents (more than `max_bytes` of elements among them, by default what one request can carry), other
// codes if reading failed.
absl::StatusOr<NpyArray> ReadNpy(const std::string& path, std::optional<DType> dtype,
                                 std::size_t max_bytes = kMaxMessageBytes,
                                 const AllocateElements& allocate = nullptr);

// Writes a dense array; with `fortran`, the file says that the array meant is the transpose of what is
// stored. Path "-" is standard output; how anything else is written, and what errors mean, output_file.h
// says. Errors name the file.
absl::Status WriteNpy(const std::string& path, const ConstArray& array, bool fortran);

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_CLI_NPY_FILE_H_

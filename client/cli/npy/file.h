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

// An array in the form that its file has, or a tensor that is already on the server.
struct NpyArray {
  // The elements in the order of the file, as a row-major array. For a Fortran array this is the transpose
  // (all axes reversed). Owns its memory: a mapping of the file, a buffer for standard input and big-endian
  // files, or memory from AllocateElements.
  Operand stored;
  // If true, the actual array is the transpose of `stored`. Never true if both are the same in memory.
  bool fortran = false;
};

// Returns memory for `bytes` bytes of elements, or null if the reader must allocate its own. An error ends
// the reading.
using AllocateElements = std::function<absl::StatusOr<std::shared_ptr<void>>(std::size_t bytes)>;

// Path "-" is standard input, which is left positioned after the elements. `dtype`: see ParseNpyHeader. A
// mapped file must not be shortened while in use. Errors name the file. InvalidArgument for a wrong path or
// wrong contents, including more than `max_bytes` of elements (default: the limit of one request). Other
// codes if reading failed.
absl::StatusOr<NpyArray> ReadNpy(const std::string& path, std::optional<DType> dtype,
                                 std::size_t max_bytes = kMaxMessageBytes,
                                 const AllocateElements& allocate = nullptr);

// Writes a dense array. With `fortran`, the file says that the actual array is the transpose of what is
// stored. Path "-" is standard output. output_file.h describes how other paths are written, and the errors.
// Errors name the file.
absl::Status WriteNpy(const std::string& path, const ConstArray& array, bool fortran);

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_CLI_NPY_FILE_H_

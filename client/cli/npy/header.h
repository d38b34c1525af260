// The header of a .npy file: a Python dictionary as text, read and written without Python.
#ifndef WARPLINE_CLIENT_CLI_NPY_HEADER_H_
#define WARPLINE_CLIENT_CLI_NPY_HEADER_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "kernels/dtype.h"
#include "kernels/shape.h"

namespace warpline::client {

struct NpyHeader {
  DType dtype = DType::kF32;
  bool big_endian = false;
  bool fortran_order = false;
  Shape shape;
};

// The fixed start of a file: magic string, version, length of the header. In a file of version 1, the header
// starts 2 bytes earlier.
inline constexpr std::size_t kNpyPrefixBytes = 12;
// numpy refuses headers above 10,000 bytes unless told otherwise. No supported file needs more than this.
inline constexpr std::size_t kMaxNpyHeaderBytes = 65536;

struct NpyPrefix {
  std::size_t header_offset = 0;
  std::size_t header_bytes = 0;
};

// Parses the first bytes of a file: kNpyPrefixBytes, or all bytes if the file is shorter.
absl::StatusOr<NpyPrefix> ParseNpyPrefix(std::string_view bytes);

// Parses the text of the header. `dtype` gives the type of raw elements: bf16 for 2 bytes ('|V2'), f8e4m3 or
// f8e5m2 for 1 byte ('|V1'). For any other file it must equal the file's type.
absl::StatusOr<NpyHeader> ParseNpyHeader(std::string_view text, std::optional<DType> dtype);

// Formats the complete start of a file, padded so that the elements start at a multiple of 64 bytes.
std::string FormatNpyHeader(const NpyHeader& header);

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_CLI_NPY_HEADER_H_

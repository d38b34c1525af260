// The header of a .npy file: a Python dictionary in text, read and written without Python.
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

// The fixed start of a file: magic string, version, length of the header. A file of version 1 has 2 bytes
// less than this before its header.
inline constexpr std::size_t kNpyPrefixBytes = 12;
// numpy refuses headers above 10,000 bytes unless told otherwise; nothing that we accept needs more.
inline constexpr std::size_t kMaxNpyHeaderBytes = 65536;

struct NpyPrefix {
  std::size_t header_offset = 0;
  std::size_t header_bytes = 0;
};

// From the first bytes of a file: kNpyPrefixBytes, or as many as there are.
absl::StatusOr<NpyPrefix> ParseNpyPrefix(std::string_view bytes);

// From the text of the header. `dtype` says what raw elements are: of 2 bytes ('|V2') bf16, of 1 byte ('|V1')
// f8e4m3 or f8e5m2; of any other file it must be the type.
absl::StatusOr<NpyHeader> ParseNpyHeader(std::string_view text, std::optional<DType> dtype);

// Magic string and all, padded so that the elements start at a multiple of 64 bytes.
std::string FormatNpyHeader(const NpyHeader& header);

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_CLI_NPY_HEADER_H_

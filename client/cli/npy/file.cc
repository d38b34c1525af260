#include "client/cli/npy/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/file_io.h"
#include "client/cli/npy/header.h"
#include "client/cli/output_file.h"
#include "kernels/status_macros.h"

namespace warpline::client {
namespace {

// A stream's header may claim any size. So the buffer starts with this size, and doubles as data arrives.
constexpr std::size_t kFirstStreamBytes = std::size_t{16} << 20;

absl::Status Named(const std::string& path, const char* dash, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(path == "-" ? dash : path, ": ", status.message()));
}

absl::Status Truncated(std::size_t have, std::size_t need) {
  return absl::InvalidArgumentError(
      absl::StrCat("the file is truncated: its header promises ", need, " bytes of elements, it has ", have));
}

// A shorter file is not an error here: the caller compares the sizes.
absl::StatusOr<std::string> ReadString(int fd, std::size_t bytes) {
  std::string text(bytes, '\0');
  ASSIGN_OR_RETURN(const std::size_t got, ReadUpTo(fd, text.data(), bytes));
  text.resize(got);
  return text;
}

absl::StatusOr<std::shared_ptr<const void>> ReadStream(int fd, std::size_t bytes) {
  std::size_t capacity = std::min(bytes, kFirstStreamBytes), have = 0;
  void* data = std::malloc(std::max<std::size_t>(capacity, 1));
  while (data != nullptr) {
    const absl::StatusOr<std::size_t> got = ReadUpTo(fd, static_cast<char*>(data) + have, capacity - have);
    if (got.ok()) have += *got;
    if (!got.ok() || have < capacity) {
      std::free(data);
      return got.ok() ? Truncated(have, bytes) : got.status();
    }
    if (have == bytes)
      return std::shared_ptr<const void>(data, [](const void* p) { std::free(const_cast<void*>(p)); });
    capacity = std::min(bytes, capacity * 2);
    void* larger = std::realloc(data, capacity);
    if (larger == nullptr) std::free(data);
    data = larger;
  }
  return absl::ResourceExhaustedError(absl::StrCat("no memory for ", bytes, " bytes"));
}

// Maps `bytes` bytes of the file from `offset` on.
absl::StatusOr<std::shared_ptr<const void>> MapFile(int fd, std::size_t offset, std::size_t bytes) {
  const std::size_t within = offset % static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t mapped = within + bytes;
  // MAP_POPULATE: one walk over all pages is faster than a fault for each page inside sendmsg.
  void* map =
      ::mmap(nullptr, mapped, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, static_cast<off_t>(offset - within));
  if (map == MAP_FAILED) return SystemError("cannot map");
  std::shared_ptr<const void> whole(map, [mapped](const void* p) { ::munmap(const_cast<void*>(p), mapped); });
  return std::shared_ptr<const void>(whole, static_cast<const char*>(map) + within);
}

// Reads into memory that is already allocated.
absl::StatusOr<std::shared_ptr<const void>> ReadInto(int fd, const std::shared_ptr<void>& memory,
                                                     std::size_t bytes) {
  ASSIGN_OR_RETURN(const std::size_t got, ReadUpTo(fd, memory.get(), bytes));
  if (got < bytes) return Truncated(got, bytes);
  return memory;
}

// Reads the elements at the current file position. Leaves the position after them, because another array may
// follow.
absl::StatusOr<std::shared_ptr<const void>> ReadElements(int fd, std::size_t bytes,
                                                         const AllocateElements& allocate) {
  struct stat info;
  const bool regular = ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
  const off_t here = regular ? ::lseek(fd, 0, SEEK_CUR) : -1;
  const auto have = here < 0 ? 0 : static_cast<std::size_t>(std::max<off_t>(info.st_size - here, 0));
  if (here >= 0 && have < bytes) return Truncated(have, bytes);
  if (allocate != nullptr && bytes > 0) {
    ASSIGN_OR_RETURN(const std::shared_ptr<void> memory, allocate(bytes));
    if (memory != nullptr) return ReadInto(fd, memory, bytes);
  }
  if (here < 0 || bytes == 0) return ReadStream(fd, bytes);
  if (::lseek(fd, here + static_cast<off_t>(bytes), SEEK_SET) < 0) return SystemError("cannot seek");
  return MapFile(fd, static_cast<std::size_t>(here), bytes);
}

template <typename Word, typename Swap>
void SwapEach(const void* from, void* to, std::size_t bytes, Swap swap) {
  for (std::size_t i = 0; i + sizeof(Word) <= bytes; i += sizeof(Word)) {
    Word word;  // copied with memcpy, because elements in a file need not be aligned
    std::memcpy(&word, static_cast<const char*>(from) + i, sizeof(Word));
    word = swap(word);
    std::memcpy(static_cast<char*>(to) + i, &word, sizeof(Word));
  }
}

// Swaps the bytes of each number; a complex element is two numbers. `allocate` is tried first for the memory.
absl::StatusOr<std::shared_ptr<const void>> SwapBytes(const void* from, std::size_t bytes, DType dtype,
                                                      const AllocateElements& allocate) {
  const bool is_complex = dtype == DType::kC64 || dtype == DType::kC128;
  const std::size_t size = is_complex ? SizeOf(dtype) / 2 : SizeOf(dtype);
  std::shared_ptr<void> to;
  if (allocate != nullptr && bytes > 0) {
    ASSIGN_OR_RETURN(to, allocate(bytes));
  }
  if (to == nullptr) to = {std::malloc(std::max<std::size_t>(bytes, 1)), std::free};
  if (to == nullptr) return absl::ResourceExhaustedError(absl::StrCat("no memory for ", bytes, " bytes"));
  if (size == 2) SwapEach<std::uint16_t>(from, to.get(), bytes, [](auto w) { return __builtin_bswap16(w); });
  if (size == 4) SwapEach<std::uint32_t>(from, to.get(), bytes, [](auto w) { return __builtin_bswap32(w); });
  if (size == 8) SwapEach<std::uint64_t>(from, to.get(), bytes, [](auto w) { return __builtin_bswap64(w); });
  return std::shared_ptr<const void>(std::move(to));
}

Shape Reversed(const Shape& shape) {
  Shape reversed;
  for (int axis = shape.rank - 1; axis >= 0; --axis) reversed.Append(shape[axis]);
  return reversed;
}

// Returns true if row-major and Fortran order are the same in memory: at most one axis is longer than 1, or
// there are no elements.
bool OrderIsMoot(const Shape& shape) {
  int longer = 0;
  for (int axis = 0; axis < shape.rank; ++axis) {
    if (shape[axis] == 0) return true;
    if (shape[axis] > 1) ++longer;
  }
  return longer <= 1;
}

absl::StatusOr<NpyArray> ReadFrom(int fd, std::optional<DType> dtype, std::size_t max_bytes,
                                  const AllocateElements& allocate) {
  // Reads exactly the bytes that each step needs: a pipe cannot be rewound.
  ASSIGN_OR_RETURN(std::string prefix_bytes, ReadString(fd, 10));
  if (prefix_bytes.size() == 10 && prefix_bytes[6] != 1) {
    ASSIGN_OR_RETURN(const std::string more, ReadString(fd, kNpyPrefixBytes - 10));
    prefix_bytes += more;
  }
  ASSIGN_OR_RETURN(const NpyPrefix prefix, ParseNpyPrefix(prefix_bytes));
  ASSIGN_OR_RETURN(const std::string text, ReadString(fd, prefix.header_bytes));
  if (text.size() < prefix.header_bytes) return absl::InvalidArgumentError("the file ends within its header");
  ASSIGN_OR_RETURN(const NpyHeader header, ParseNpyHeader(text, dtype));

  NpyArray array;
  array.fortran = header.fortran_order && !OrderIsMoot(header.shape);
  array.stored.dtype = header.dtype;
  array.stored.shape = array.fortran ? Reversed(header.shape) : header.shape;
  ASSIGN_OR_RETURN(const std::size_t bytes, ByteSize(array.stored.AsArray()));
  // Check before elements are read: the header may claim a size that no request can carry.
  if (bytes > max_bytes) {
    return absl::InvalidArgumentError(absl::StrCat("the array has ", bytes,
                                                   " bytes of elements; one request can have at most ",
                                                   max_bytes, ", and `warpline put` sends any size"));
  }
  const bool swaps = header.big_endian && SizeOf(header.dtype) > 1;
  // Swapped elements are copied, so only the copy goes to the allocated memory.
  ASSIGN_OR_RETURN(array.stored.owner, ReadElements(fd, bytes, swaps ? nullptr : allocate));
  if (swaps) {
    ASSIGN_OR_RETURN(array.stored.owner, SwapBytes(array.stored.owner.get(), bytes, header.dtype, allocate));
  }
  array.stored.data = array.stored.owner.get();
  return array;
}

}  // namespace

absl::StatusOr<NpyArray> ReadNpy(const std::string& path, std::optional<DType> dtype, std::size_t max_bytes,
                                 const AllocateElements& allocate) {
  File file(path == "-" ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.fd() < 0) return Named(path, "", SystemError("cannot open"));
  absl::StatusOr<NpyArray> array = ReadFrom(file.fd(), dtype, max_bytes, allocate);
  if (!array.ok()) return Named(path, "standard input", array.status());
  return array;
}

absl::Status WriteNpy(const std::string& path, const ConstArray& array, bool fortran) {
  ASSIGN_OR_RETURN(const std::size_t bytes, ByteSize(array));
  const NpyHeader header{
      .dtype = array.dtype, .fortran_order = fortran, .shape = fortran ? Reversed(array.shape) : array.shape};
  const std::string text = FormatNpyHeader(header);
  const std::string_view pieces[] = {text, {static_cast<const char*>(array.data), bytes}};
  return Named(path, "standard output", WriteFile(path, pieces));
}

}  // namespace warpline::client

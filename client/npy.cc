#include "client/npy.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/npy_header.h"
#include "kernels/status_macros.h"

namespace warpline::client {
namespace {

// Linux moves at most 0x7ffff000 bytes a call.
constexpr std::size_t kMaxIoBytes = std::size_t{1} << 30;
// A stream's header may claim any size: memory grows with what has come, from this, by doubling.
constexpr std::size_t kFirstStreamBytes = std::size_t{16} << 20;

class File {
 public:
  explicit File(int fd) : fd_(fd) {}
  ~File() {
    if (fd_ > STDERR_FILENO) ::close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int fd() const { return fd_; }
  // Some errors of writing are first told here.
  bool Close() { return ::close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

absl::Status SystemError(const char* what) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(errno)));
}

absl::Status Named(const std::string& path, const absl::Status& status) {
  if (status.ok()) return status;
  const std::string name = path == "-" ? "standard input or output" : path;
  return absl::Status(status.code(), absl::StrCat(name, ": ", status.message()));
}

// Reads until `bytes` are here or the file ends; returns how many there were.
absl::StatusOr<std::size_t> ReadUpTo(int fd, void* data, std::size_t bytes) {
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t got = ::read(fd, static_cast<char*>(data) + done, std::min(bytes - done, kMaxIoBytes));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return SystemError("cannot read");
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

absl::Status WriteAll(int fd, const void* data, std::size_t bytes) {
  const char* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t put = ::write(fd, from, std::min(bytes, kMaxIoBytes));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return SystemError("cannot write");
    from += put;
    bytes -= static_cast<std::size_t>(put);
  }
  return absl::OkStatus();
}

absl::Status Truncated(std::size_t have, std::size_t need) {
  return absl::InvalidArgumentError(
      absl::StrCat("the file is truncated: its header promises ", need, " bytes of elements, it has ", have));
}

// A shorter file is not an error here: the caller compares sizes.
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

absl::StatusOr<std::shared_ptr<const void>> MapFile(int fd, std::size_t file_bytes, std::size_t offset) {
  // Populated, as faults of 4 KiB each, taken inside sendmsg, are slower than one walk.
  void* map = ::mmap(nullptr, file_bytes, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
  if (map == MAP_FAILED) return SystemError("cannot map");
  std::shared_ptr<const void> whole(
      map, [file_bytes](const void* p) { ::munmap(const_cast<void*>(p), file_bytes); });
  return std::shared_ptr<const void>(whole, static_cast<const char*>(map) + offset);
}

template <typename Word, typename Swap>
void SwapEach(const void* from, void* to, std::size_t bytes, Swap swap) {
  for (std::size_t i = 0; i + sizeof(Word) <= bytes; i += sizeof(Word)) {
    Word word;  // through memcpy, as elements in a file need not be aligned
    std::memcpy(&word, static_cast<const char*>(from) + i, sizeof(Word));
    word = swap(word);
    std::memcpy(static_cast<char*>(to) + i, &word, sizeof(Word));
  }
}

absl::StatusOr<std::shared_ptr<const void>> SwapBytes(const void* from, std::size_t bytes, std::size_t size) {
  std::shared_ptr<void> to(std::malloc(std::max<std::size_t>(bytes, 1)), std::free);
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

// Whether both orders are the same in memory: at most one axis is longer than 1, or there are no elements.
bool OrderIsMoot(const Shape& shape) {
  int longer = 0;
  for (int axis = 0; axis < shape.rank; ++axis) {
    if (shape[axis] == 0) return true;
    if (shape[axis] > 1) ++longer;
  }
  return longer <= 1;
}

absl::StatusOr<NpyArray> ReadFrom(int fd, std::optional<DType> dtype) {
  // Exactly as much as needed at each step: a pipe cannot be read again.
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
  ASSIGN_OR_RETURN(const std::size_t bytes, ByteSize(array.stored));
  const std::size_t offset = prefix.header_offset + prefix.header_bytes;

  struct stat info;
  const bool regular = ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
  // Standard input may be a regular file that does not stand at its start: then it is read as a stream.
  if (regular && ::lseek(fd, 0, SEEK_CUR) == static_cast<off_t>(offset)) {
    const auto file_bytes = static_cast<std::size_t>(info.st_size);
    if (file_bytes < offset || file_bytes - offset < bytes) return Truncated(file_bytes - offset, bytes);
    if (bytes > 0) {
      ASSIGN_OR_RETURN(array.stored.owner, MapFile(fd, offset + bytes, offset));
    }
  } else {
    ASSIGN_OR_RETURN(array.stored.owner, ReadStream(fd, bytes));
  }
  if (header.big_endian) {
    ASSIGN_OR_RETURN(array.stored.owner, SwapBytes(array.stored.owner.get(), bytes, SizeOf(header.dtype)));
  }
  array.stored.data = array.stored.owner.get();
  return array;
}

absl::Status WriteTo(int fd, const ConstArray& array, bool fortran) {
  ASSIGN_OR_RETURN(const std::size_t bytes, ByteSize(array));
  const NpyHeader header{
      .dtype = array.dtype, .fortran_order = fortran, .shape = fortran ? Reversed(array.shape) : array.shape};
  const std::string text = FormatNpyHeader(header);
  RETURN_IF_ERROR(WriteAll(fd, text.data(), text.size()));
  return WriteAll(fd, array.data, bytes);
}

absl::Status WriteInPlace(const std::string& path, const ConstArray& array, bool fortran) {
  File file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (file.fd() < 0) return SystemError("cannot open");
  return WriteTo(file.fd(), array, fortran);
}

absl::Status WriteRenamed(const std::string& path, const ConstArray& array, bool fortran) {
  std::string temporary = path + ".tmpXXXXXX";
  File file(::mkostemp(temporary.data(), O_CLOEXEC));
  if (file.fd() < 0) return SystemError("cannot create a temporary file beside it");
  // mkostemp gives 0600; a file made by open() would have what the umask leaves.
  const mode_t mask = ::umask(0);
  ::umask(mask);
  ::fchmod(file.fd(), 0666 & ~mask);
  absl::Status status = WriteTo(file.fd(), array, fortran);
  if (!file.Close() && status.ok()) status = SystemError("cannot write");
  if (status.ok() && ::rename(temporary.c_str(), path.c_str()) != 0)
    status = SystemError("cannot rename to it");
  if (!status.ok()) ::unlink(temporary.c_str());
  return status;
}

}  // namespace

absl::StatusOr<NpyArray> ReadNpy(const std::string& path, std::optional<DType> dtype) {
  File file(path == "-" ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.fd() < 0) return Named(path, SystemError("cannot open"));
  absl::StatusOr<NpyArray> array = ReadFrom(file.fd(), dtype);
  if (!array.ok()) return Named(path, array.status());
  return array;
}

absl::Status WriteNpy(const std::string& path, const ConstArray& array, bool fortran) {
  if (path == "-") return Named(path, WriteTo(STDOUT_FILENO, array, fortran));
  struct stat info;
  const bool special = ::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode);
  return Named(path, special ? WriteInPlace(path, array, fortran) : WriteRenamed(path, array, fortran));
}

}  // namespace warpline::client

#include "server/base/read_file.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"

namespace warpline {

absl::StatusOr<std::string> ReadFile(const std::string& path, std::size_t max_bytes) {
  struct stat file {};
  if (stat(path.c_str(), &file) == 0 && !S_ISREG(file.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is no regular file"));
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) return absl::ErrnoToStatus(errno, path);
  // Reading one byte more than allowed shows whether there is more.
  std::string text;
  text.resize(std::min(static_cast<std::size_t>(std::max<off_t>(file.st_size, 0)), max_bytes) + 1);
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (in.bad()) return absl::UnavailableError(absl::StrCat(path, ": cannot be read"));
  if (!in.eof()) {
    return absl::InvalidArgumentError(
        file.st_size > static_cast<off_t>(max_bytes)
            ? absl::StrCat(path, ": has ", file.st_size, " bytes, limit ", max_bytes)
            : absl::StrCat(path, ": grew while it was read"));
  }
  text.resize(static_cast<std::size_t>(in.gcount()));
  return text;
}

}  // namespace warpline

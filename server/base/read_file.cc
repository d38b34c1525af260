#include "server/base/read_file.h"

#include <sys/stat.h>

#include <cerrno>
#include <fstream>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"

namespace warpline {

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  struct stat file {};
  if (stat(path.c_str(), &file) == 0 && !S_ISREG(file.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is no regular file"));
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) return absl::ErrnoToStatus(errno, path);
  std::ostringstream text;
  // Of an empty file there is nothing to copy, which would count as a failure.
  if (in.peek() != std::ifstream::traits_type::eof()) text << in.rdbuf();
  if (in.bad() || !text) return absl::UnavailableError(absl::StrCat(path, ": cannot be read"));
  return std::move(text).str();
}

}  // namespace warpline

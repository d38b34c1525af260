#include "server/base/cgroup.h"

#include <fstream>

#include "absl/strings/str_cat.h"

namespace warpline {
namespace {

// The path of this process below the mount point of cgroup v2; "/" where it cannot be told, which is right in
// a container with a cgroup namespace of its own.
std::string OwnCgroup() {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("0::/", 0) == 0) return line.substr(3);
  }
  return "/";
}

}  // namespace

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::vector<std::string> CgroupLimits(const std::string& file) {
  std::vector<std::string> limits;
  for (std::string path = OwnCgroup(); !path.empty(); path.resize(path.rfind('/'))) {
    limits.push_back(FirstLine(absl::StrCat("/sys/fs/cgroup", path, "/", file)));
  }
  limits.push_back(FirstLine(absl::StrCat("/sys/fs/cgroup/", file)));
  return limits;
}

}  // namespace warpline

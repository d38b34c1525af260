#include "server/base/cgroup.h"

#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace warpline {

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string CgroupPath(const std::string& proc_self_cgroup, std::string_view controller) {
  for (const absl::string_view line : absl::StrSplit(proc_self_cgroup, '\n')) {
    // "4:cpu,cpuacct:/path" for version 1, "0::/path" for version 2.
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3 || parts[2].empty() || parts[2].front() != '/') continue;
    for (const absl::string_view name : absl::StrSplit(parts[1], ',')) {
      if (name == absl::string_view(controller.data(), controller.size())) return parts[2];
    }
  }
  return "/";
}

std::vector<std::string> CgroupFolders(std::string_view controller) {
  std::ifstream file("/proc/self/cgroup");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const std::string root = controller.empty() ? std::string("/sys/fs/cgroup")
                                              : absl::StrCat("/sys/fs/cgroup/", std::string(controller));
  std::vector<std::string> folders;
  for (std::string path = CgroupPath(text, controller); path.size() > 1; path.resize(path.rfind('/'))) {
    folders.push_back(root + path);
  }
  folders.push_back(root);
  return folders;
}

}  // namespace warpline

// Functions that find the limits of this process's control groups.
#ifndef WARPLINE_SERVER_BASE_CGROUP_H_
#define WARPLINE_SERVER_BASE_CGROUP_H_

#include <string>
#include <string_view>
#include <vector>

namespace warpline {

// The first line of this file, empty if it cannot be read.
std::string FirstLine(const std::string& path);

// The folders of the process's cgroup and of each of its ancestors, since every one of them may have a limit
// and the smallest counts. Some files are not there: the root has no limits. `controller` is that of a
// version 1 hierarchy ("memory", "cpu"), or empty for version 2.
std::vector<std::string> CgroupFolders(std::string_view controller);

// The path of the cgroup below the mount point of its hierarchy, from the text of /proc/self/cgroup. "/"
// where it cannot be told, which is right in a container with a cgroup namespace of its own.
std::string CgroupPath(const std::string& proc_self_cgroup, std::string_view controller);

}  // namespace warpline

#endif  // WARPLINE_SERVER_BASE_CGROUP_H_

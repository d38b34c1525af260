// Finds the limits of this process's control groups.
#ifndef WARPLINE_SERVER_BASE_CGROUP_H_
#define WARPLINE_SERVER_BASE_CGROUP_H_

#include <string>
#include <string_view>
#include <vector>

namespace warpline {

// Returns the first line of the file; empty if it cannot be read.
std::string FirstLine(const std::string& path);

// Returns the folders of the process's cgroup and of all its ancestors. Each of them may have a limit, and
// the smallest limit counts. Some files in them do not exist: the root has no limits. `controller` is that of
// a version 1 hierarchy ("memory", "cpu"), or empty for version 2.
std::vector<std::string> CgroupFolders(std::string_view controller);

// Returns the path of the cgroup below the mount point of its hierarchy, from the text of /proc/self/cgroup.
// "/" if it is unknown, which is right in a container with its own cgroup namespace.
std::string CgroupPath(const std::string& proc_self_cgroup, std::string_view controller);

}  // namespace warpline

#endif  // WARPLINE_SERVER_BASE_CGROUP_H_

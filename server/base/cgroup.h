// What cgroup v2 says about this process.
#ifndef WARPLINE_SERVER_BASE_CGROUP_H_
#define WARPLINE_SERVER_BASE_CGROUP_H_

#include <string>
#include <vector>

namespace warpline {

// The first line of this file, empty if it cannot be read.
std::string FirstLine(const std::string& path);

// The first lines of `file` ("cpu.max") in the process's cgroup and in each of its ancestors, since every one
// of them may have a limit and the least counts. Some are empty: the root has no limits.
std::vector<std::string> CgroupLimits(const std::string& file);

}  // namespace warpline

#endif  // WARPLINE_SERVER_BASE_CGROUP_H_

// How many CPUs this process can really use.
#ifndef WARPLINE_SERVER_BASE_USABLE_CPUS_H_
#define WARPLINE_SERVER_BASE_USABLE_CPUS_H_

#include <string>

namespace warpline {

// Returns the number of CPUs in the process's affinity mask, or its cgroup's quota of CPU time, rounded down,
// if that is less; at least 1. The mask of a container has all CPUs of its host; only the quota shows what
// the container may use.
int UsableCpus();

// Returns the number of CPUs that a cgroup's quota allows, from the text of cpu.max ("150000 100000", "max
// 100000"); 0 if there is no quota.
double CpusOfQuota(const std::string& cpu_max);

}  // namespace warpline

#endif  // WARPLINE_SERVER_BASE_USABLE_CPUS_H_

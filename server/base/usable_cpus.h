// How many CPUs this process can really use.
#ifndef WARPLINE_SERVER_BASE_USABLE_CPUS_H_
#define WARPLINE_SERVER_BASE_USABLE_CPUS_H_

#include <string>

namespace warpline {

// The CPUs of the process's affinity mask, or its cgroup's quota of CPU time if that is less, rounded down;
// at least 1. A container has the CPUs of its host in its mask and only the quota tells what it was given.
int UsableCpus();

// The CPUs that a cgroup's quota allows, from the text of cpu.max ("150000 100000", "max 100000"); 0 if there
// is no quota.
double CpusOfQuota(const std::string& cpu_max);

}  // namespace warpline

#endif  // WARPLINE_SERVER_BASE_USABLE_CPUS_H_

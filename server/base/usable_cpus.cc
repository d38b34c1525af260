#include "server/base/usable_cpus.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <thread>

namespace warpline {
namespace {

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// The path of this process below the mount point of cgroup v2; "/" where it cannot be told, which is right in
// a container with a cgroup namespace of its own.
std::string OwnCgroup() {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("0::/", 0) == 0) return line.substr(3);
  }
  return "/";
}

// Every ancestor has a quota, and the least of them counts.
double LeastQuota() {
  double least = 0;
  const auto consider = [&least](double cpus) {
    if (cpus > 0 && (least == 0 || cpus < least)) least = cpus;
  };
  for (std::string path = OwnCgroup(); !path.empty(); path.resize(path.rfind('/'))) {
    consider(CpusOfQuota(FirstLine("/sys/fs/cgroup" + path + "/cpu.max")));
  }
  consider(CpusOfQuota(FirstLine("/sys/fs/cgroup/cpu.max")));
  // cgroup v1: -1 stands for no quota.
  consider(CpusOfQuota(FirstLine("/sys/fs/cgroup/cpu/cpu.cfs_quota_us") + " " +
                       FirstLine("/sys/fs/cgroup/cpu/cpu.cfs_period_us")));
  return least;
}

}  // namespace

double CpusOfQuota(const std::string& cpu_max) {
  std::istringstream text(cpu_max);
  double quota = 0, period = 0;
  if (!(text >> quota >> period) || quota <= 0 || period <= 0) return 0;
  return quota / period;
}

int UsableCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  int cpus = sched_getaffinity(0, sizeof(set), &set) == 0
                 ? CPU_COUNT(&set)
                 : static_cast<int>(std::thread::hardware_concurrency());
  const double quota = LeastQuota();
  if (quota > 0) cpus = std::min(cpus, static_cast<int>(std::floor(quota)));
  return std::max(cpus, 1);
}

}  // namespace warpline

#include "server/base/usable_cpus.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <thread>

#include "server/base/cgroup.h"

namespace warpline {
namespace {

double LeastQuota() {
  double least = 0;
  const auto consider = [&least](double cpus) {
    if (cpus > 0 && (least == 0 || cpus < least)) least = cpus;
  };
  for (const std::string& folder : CgroupFolders("")) consider(CpusOfQuota(FirstLine(folder + "/cpu.max")));
  // Version 1: a quota of -1 means no quota.
  for (const std::string& folder : CgroupFolders("cpu")) {
    consider(CpusOfQuota(FirstLine(folder + "/cpu.cfs_quota_us") + " " +
                         FirstLine(folder + "/cpu.cfs_period_us")));
  }
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

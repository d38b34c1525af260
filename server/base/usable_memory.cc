#include "server/base/usable_memory.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>

#include "absl/strings/numbers.h"
#include "server/base/cgroup.h"

namespace warpline {

std::size_t BytesOfLimit(const std::string& memory_max) {
  std::uint64_t bytes = 0;
  return absl::SimpleAtoi(memory_max, &bytes) ? bytes : 0;
}

std::size_t UsableMemoryBytes() {
  std::size_t least =
      static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const auto consider = [&least](std::size_t bytes) {
    if (bytes > 0) least = std::min(least, bytes);
  };
  for (const std::string& folder : CgroupFolders(""))
    consider(BytesOfLimit(FirstLine(folder + "/memory.max")));
  // Version 1: a number larger than any memory means no limit.
  for (const std::string& folder : CgroupFolders("memory")) {
    consider(BytesOfLimit(FirstLine(folder + "/memory.limit_in_bytes")));
  }
  return least;
}

std::size_t AvailableMemoryBytes() {
  const std::size_t usable = UsableMemoryBytes();
  std::ifstream file("/proc/meminfo");
  std::string key, unit;
  for (std::uint64_t kilobytes = 0; file >> key >> kilobytes;) {
    if (key == "MemAvailable:") return std::min(usable, static_cast<std::size_t>(kilobytes) << 10);
    std::getline(file, unit);
  }
  return usable;
}

}  // namespace warpline

#include "server/observe/process_collector.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "server/observe/log.h"

namespace warpline {
namespace {

prometheus::MetricFamily Family(const char* name, const char* help, prometheus::MetricType type,
                                double value) {
  prometheus::ClientMetric metric;
  (type == prometheus::MetricType::Counter ? metric.counter.value : metric.gauge.value) = value;
  return {name, help, type, {metric}};
}

// Returns field n (1-based, as in proc(5)) of a /proc/self/stat line. The name in field 2 may contain spaces.
double StatField(const std::string& stat, int n) {
  std::istringstream rest(stat.substr(stat.rfind(')') + 2));
  std::string field;
  for (int i = 3; i <= n; ++i) rest >> field;
  return field.empty() ? 0 : std::stod(field);
}

double BootTime() {
  std::ifstream file("/proc/stat");
  std::string word;
  double seconds = 0;
  while (file >> word) {
    if (word == "btime" && file >> seconds) break;
  }
  return seconds;
}

}  // namespace

std::vector<prometheus::MetricFamily> ProcessCollector::Collect() const {
  using prometheus::MetricType;
  std::vector<prometheus::MetricFamily> families;
  families.push_back(Family("warpline_log_lines_dropped_total",
                            "Lines of the log that stderr did not take at once.", MetricType::Counter,
                            static_cast<double>(DroppedLogLines())));
  std::ifstream file("/proc/self/stat");
  const std::string stat{std::istreambuf_iterator<char>(file), {}};
  if (stat.rfind(')') == std::string::npos) return families;
  const double ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  const double page = static_cast<double>(sysconf(_SC_PAGESIZE));
  families.push_back(Family("process_cpu_seconds_total", "User and system CPU time.", MetricType::Counter,
                            (StatField(stat, 14) + StatField(stat, 15)) / ticks));
  families.push_back(
      Family("process_threads", "Threads of the process.", MetricType::Gauge, StatField(stat, 20)));
  families.push_back(Family("process_start_time_seconds", "Start, in Unix time.", MetricType::Gauge,
                            BootTime() + StatField(stat, 22) / ticks));
  families.push_back(
      Family("process_virtual_memory_bytes", "Virtual memory.", MetricType::Gauge, StatField(stat, 23)));
  families.push_back(Family("process_resident_memory_bytes", "Resident memory.", MetricType::Gauge,
                            StatField(stat, 24) * page));
  std::error_code error;
  const std::filesystem::directory_iterator fds("/proc/self/fd", error);
  if (!error) {
    families.push_back(Family("process_open_fds", "Open file descriptors.", MetricType::Gauge,
                              static_cast<double>(std::distance(begin(fds), end(fds)))));
  }
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    families.push_back(Family("process_max_fds", "Most open file descriptors.", MetricType::Gauge,
                              static_cast<double>(limit.rlim_cur)));
  }
  return families;
}

}  // namespace warpline

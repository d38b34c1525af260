#include "server/daemon/reload.h"

#include <map>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "server/observe/log.h"

namespace warpline {
namespace {

constexpr const char* kMayChange[] = {"max-jobs", "max-device-seconds", "max-ttl", "grace", "drain-delay"};

void ReadFiles(const Access& access) {
  if (access.certificates != nullptr) access.certificates->ReadNow();
  if (access.identities != nullptr) access.identities->ReadNow();
  if (access.log != nullptr) access.log->OpenAnew();
}

bool MayChange(const std::string& flag) { return absl::c_linear_search(kMayChange, flag); }

std::map<std::string, Setting> ByName(const std::vector<Setting>& settings) {
  std::map<std::string, Setting> by_name;
  for (const Setting& setting : settings) by_name.emplace(setting.name, setting);
  return by_name;
}

void LogChanges(const std::vector<Setting>& before, const std::vector<Setting>& after) {
  std::map<std::string, Setting> old = ByName(before);
  const auto log = [](const std::string& name, const std::string& value, const std::string& source) {
    const bool now = MayChange(name);
    Log(now ? "info" : "warning", now ? "setting changed" : "this setting changes only with a restart",
        {{"flag", name}, {"value", value}, {"source", source}});
  };
  for (const auto& [name, setting] : ByName(after)) {
    const auto found = old.find(name);
    if (found == old.end() || found->second.value != setting.value) log(name, setting.value, setting.source);
    if (found != old.end()) old.erase(found);
  }
  for (const auto& [name, setting] : old) log(name, "the default", "default");
}

// Returns the settings in use: the others are still those of `before`, and are reported again by the next
// reload.
std::vector<Setting> InUse(const std::vector<Setting>& before, const std::vector<Setting>& after) {
  std::vector<Setting> settings;
  for (const Setting& setting : before) {
    if (!MayChange(setting.name)) settings.push_back(setting);
  }
  for (const Setting& setting : after) {
    if (MayChange(setting.name)) settings.push_back(setting);
  }
  return settings;
}

}  // namespace

void Reload(const CommandLine& next, CommandLine& line, const Access& access, Core& core,
            Services& services) {
  ReadFiles(access);
  for (const std::string& error : next.errors) {
    Log("error", "reload: the settings stay as they are", {{"reason", error}});
  }
  if (!next.errors.empty()) return;
  LogChanges(line.settings, next.settings);
  ServerOptions& options = line.options;
  options.max_jobs = next.options.max_jobs;
  options.max_device_seconds = next.options.max_device_seconds;
  options.max_ttl = next.options.max_ttl;
  options.grace = next.options.grace;
  options.drain_delay = next.options.drain_delay;
  line.settings = InUse(line.settings, next.settings);
  core.admission->SetMaxJobs(options.max_jobs);
  core.tensors->SetMaxTtl(options.max_ttl);
  services.kernels.SetMaxDeviceSeconds(options.MaxDeviceSeconds(core.is_cuda()));
  services.info.SetLimits(options);
  Log("info", "reloaded");
}

}  // namespace warpline

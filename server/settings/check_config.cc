#include "server/settings/check_config.h"

#include <cstdio>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "server/base/usable_memory.h"
#include "server/identity/identities.h"
#include "server/observe/log.h"
#include "server/tls/certificate_store.h"

namespace warpline {
namespace {

// Returns the value in TOML: numbers and booleans as they are, everything else in quotes.
std::string TomlText(const std::string& value) {
  std::int64_t number = 0;
  if (value == "true" || value == "false") return value;
  if (absl::SimpleAtoi(value, &number)) return absl::StrCat(number);
  return absl::StrCat(
      "\"",
      absl::StrReplaceAll(value,
                          {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}, {"\r", "\\r"}, {"\t", "\\t"}}),
      "\"");
}

}  // namespace

std::string SettingsText(const CommandLine& line) {
  std::string text;
  for (const Setting& setting : line.settings) {
    // A configuration file cannot name another one, so this line is a comment.
    absl::StrAppend(&text, setting.name == "config" ? "# " : "", setting.name, " = ", TomlText(setting.value),
                    "  # ", setting.source, "\n");
  }
  return text;
}

std::vector<std::string> CheckFiles(const ServerOptions& options) {
  std::vector<std::string> errors;
  const auto add = [&errors](const absl::Status& status) {
    if (!status.ok()) errors.emplace_back(status.message());
  };
  if (options.tls.configured()) add(CertificateStore::Open(options.tls).status());
  if (!options.tokens.empty()) add(Identities::Check(options.tokens));
  return errors;
}

void PrintErrors(const std::vector<std::string>& errors) {
  for (const std::string& error : errors) std::fprintf(stderr, "warplined: %s\n", error.c_str());
}

int CheckConfig(const CommandLine& line) {
  std::fputs(SettingsText(line).c_str(), stdout);
  std::vector<std::string> errors = line.errors;
  for (const std::string& error : CheckFiles(line.options)) {
    errors.push_back(WithSource(error, line.settings));
  }
  PrintErrors(errors);
  if (!errors.empty()) return 2;
  const auto available = static_cast<std::int64_t>(AvailableMemoryBytes());
  std::fprintf(
      stderr,
      "warplined: the configuration is valid; worst-case host memory %lld MiB on cpu, %lld MiB on cuda\n",
      static_cast<long long>(line.options.WorstCaseMemoryBytes(false, available) >> 20),
      static_cast<long long>(line.options.WorstCaseMemoryBytes(true, available) >> 20));
  return 0;
}

void LogSettings(const std::vector<Setting>& settings) {
  for (const auto& [name, value, source] : settings) {
    if (source.rfind("--", 0) != 0)
      Log("info", "setting", {{"flag", name}, {"value", value}, {"source", source}});
  }
}

}  // namespace warpline

#include "server/check_config.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "kernels/status_macros.h"
#include "server/identity/identities.h"
#include "server/tls/certificate_store.h"

namespace warpline {
namespace {

// As TOML has it: numbers and truths as they are, all else in quotes.
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
    // A file names no other one.
    absl::StrAppend(&text, setting.name == "config" ? "# " : "", setting.name, " = ", TomlText(setting.value),
                    "  # ", setting.source, "\n");
  }
  return text;
}

absl::Status CheckFiles(const ServerOptions& options) {
  if (options.tls.configured()) {
    RETURN_IF_ERROR(CertificateStore::Open(options.tls, [](const Certificates&) {}).status());
  }
  if (!options.tokens.empty()) RETURN_IF_ERROR(Identities::Open({.file = options.tokens}).status());
  return absl::OkStatus();
}

}  // namespace warpline

#include "server/tuning/tuning_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "kernels/problem_text.h"
#include "kernels/status_macros.h"
#include "server/base/parse_toml.h"
#include "server/base/unique_fd.h"

namespace warpline {
namespace {

// A table of which every key is taken once; what is left is unknown.
class Table {
 public:
  Table(const toml::value& value, std::string what, const std::string& path)
      : what_(std::move(what)), path_(path), line_(value.location().line()) {
    if (value.is_table()) {
      left_ = value.as_table();
    } else {
      Refuse(line_, "must be a table");
    }
  }

  std::string String(const char* key) {
    const std::optional<toml::value> value = Take(key);
    if (value && value->is_string() && !value->as_string().str.empty()) return value->as_string().str;
    if (value) Refuse(value->location().line(), absl::StrCat(key, " must be a string"));
    return "";
  }
  std::int64_t Whole(const char* key, std::int64_t most) {
    const std::optional<toml::value> value = Take(key);
    if (value && value->is_integer() && value->as_integer() >= 0 && value->as_integer() <= most) {
      return value->as_integer();
    }
    if (value)
      Refuse(value->location().line(), absl::StrCat(key, " must be a whole number from 0 to ", most));
    return 0;
  }
  double Positive(const char* key) {
    const std::optional<toml::value> value = Take(key);
    if (value && value->is_floating() && value->as_floating() > 0) return value->as_floating();
    if (value && value->is_integer() && value->as_integer() > 0)
      return static_cast<double>(value->as_integer());
    if (value) Refuse(value->location().line(), absl::StrCat(key, " must be a number above 0"));
    return 0;
  }
  std::optional<toml::value> Take(const char* key) {
    std::optional<toml::value> value = TakeIf(key);
    if (!value) Refuse(line_, absl::StrCat(key, " is missing"));
    return value;
  }
  // Nothing if it is not there.
  std::optional<toml::value> TakeIf(const char* key) {
    const auto found = left_.find(key);
    if (found == left_.end()) return std::nullopt;
    toml::value value = found->second;
    left_.erase(found);
    return value;
  }

  absl::Status End() {
    for (const auto& [key, value] : left_) {
      Refuse(value.location().line(), absl::StrCat("\"", key, "\" is unknown"));
    }
    return status_;
  }

 private:
  void Refuse(std::size_t line, const std::string& reason) {
    if (!status_.ok()) return;
    status_ = absl::InvalidArgumentError(absl::StrCat(path_, ":", line, ": ", what_, ": ", reason));
  }

  toml::table left_;
  const std::string what_;
  const std::string& path_;
  const std::size_t line_;
  absl::Status status_;
};

// Checks that `problem` is the text that would be looked up.
absl::Status CheckProblem(const std::string& problem, std::size_t line, const std::string& path) {
  const absl::StatusOr<Problem> parsed = ParseProblem(problem);
  if (!parsed.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ":", line, ": ", parsed.status().message()));
  }
  if (const std::string text = ProblemText(*parsed); text != problem) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ":", line, ": \"", problem, "\" must be \"", text, "\""));
  }
  return absl::OkStatus();
}

absl::StatusOr<TuningFile::Choices> ParseChoices(const toml::value& value, const std::string& path) {
  TuningFile::Choices choices;
  if (!value.is_table()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ":", value.location().line(), ": choices must be a table"));
  }
  for (const auto& [problem, entry] : value.as_table()) {
    RETURN_IF_ERROR(CheckProblem(problem, entry.location().line(), path));
    Table table(entry, absl::StrCat("\"", problem, "\""), path);
    TunedChoice& choice = choices[problem];
    choice.variant = table.String("variant");
    choice.us = table.Positive("us");
    choice.untuned = table.String("untuned");
    choice.untuned_us = table.Positive("untuned-us");
    RETURN_IF_ERROR(table.End());
  }
  return choices;
}

absl::StatusOr<FailedVariants> ParseFailed(const toml::value& value, const std::string& path) {
  FailedVariants failed;
  if (!value.is_table()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ":", value.location().line(), ": failed must be a table"));
  }
  for (const auto& [problem, entry] : value.as_table()) {
    const std::size_t line = entry.location().line();
    RETURN_IF_ERROR(CheckProblem(problem, line, path));
    const absl::Status wrong = absl::InvalidArgumentError(
        absl::StrCat(path, ":", line, ": \"", problem, "\": must be an array of names of variants"));
    if (!entry.is_array() || entry.as_array().empty()) return wrong;
    for (const toml::value& variant : entry.as_array()) {
      if (!variant.is_string() || variant.as_string().str.empty()) return wrong;
      failed[problem].insert(variant.as_string().str);
    }
  }
  return failed;
}

std::string Quoted(const std::string& text) { return absl::StrCat("\"", absl::CEscape(text), "\""); }

absl::Status ErrorOf(const char* doing, const std::string& path) {
  return absl::ErrnoToStatus(errno, absl::StrCat(doing, " ", path));
}

// Returns the file that a link points to, so that the link stays a link.
std::string TargetOf(const std::string& path) {
  std::error_code error;
  const std::filesystem::path target = std::filesystem::canonical(path, error);
  return error ? path : target.string();
}

// A file beside `target`, of a name that nobody else has and with the mode of the one that it is to replace.
// Removed with the object, unless it has.
class NextFile {
 public:
  static absl::StatusOr<NextFile> Create(const std::string& target) {
    std::string name = target + ".XXXXXX";
    UniqueFd file(mkostemp(name.data(), O_CLOEXEC));
    if (!file.ok()) return ErrorOf("creating", name);
    struct stat old;
    const mode_t mode = stat(target.c_str(), &old) == 0 ? old.st_mode & 07777 : 0644;
    NextFile next(std::move(name), std::move(file));
    if (fchmod(next.file_.get(), mode) != 0) return ErrorOf("changing the mode of", next.name_);
    return next;
  }
  NextFile(NextFile&& other) noexcept
      : name_(std::exchange(other.name_, "")), file_(std::move(other.file_)) {}
  NextFile& operator=(NextFile&&) = delete;
  ~NextFile() {
    if (!name_.empty()) unlink(name_.c_str());
  }

  absl::Status Write(const std::string& text) {
    for (std::size_t written = 0; written < text.size();) {
      const ssize_t bytes = write(file_.get(), text.data() + written, text.size() - written);
      if (bytes < 0 && errno == EINTR) continue;
      if (bytes < 0) return ErrorOf("writing", name_);
      written += static_cast<std::size_t>(bytes);
    }
    return fsync(file_.get()) == 0 ? absl::OkStatus() : ErrorOf("writing", name_);
  }
  absl::Status Replace(const std::string& target) {
    if (std::rename(name_.c_str(), target.c_str()) != 0) return ErrorOf("replacing", target);
    name_.clear();
    return absl::OkStatus();
  }

 private:
  NextFile(std::string name, UniqueFd file) : name_(std::move(name)), file_(std::move(file)) {}

  std::string name_;
  UniqueFd file_;
};

}  // namespace

absl::StatusOr<TuningFile> TuningFile::Parse(const std::string& text, const std::string& path) {
  ASSIGN_OR_RETURN(const toml::value root, ParseToml(text, path));
  TuningFile file;
  for (const auto& [key, devices] : root.as_table()) {
    if (key != "device" || !devices.is_array()) {
      return absl::InvalidArgumentError(absl::StrCat(path, ":", devices.location().line(), ": \"", key,
                                                     "\" is unknown: all tables are [[device]]"));
    }
    for (const toml::value& device : devices.as_array()) {
      constexpr int kMax = std::numeric_limits<int>::max();
      Table table(device, "device", path);
      DeviceKind kind;
      kind.name = table.String("name");
      kind.compute_capability = table.String("compute-capability");
      kind.multiprocessors = static_cast<int>(table.Whole("multiprocessors", kMax));
      kind.cublaslt = table.Whole("cublaslt", kMax);
      kind.driver = table.Whole("driver", kMax);
      const std::optional<toml::value> choices = table.TakeIf("choices"), failed = table.TakeIf("failed");
      RETURN_IF_ERROR(table.End());
      Device& known = file.FindOrAdd(kind);
      if (!known.choices.empty() || !known.failed.empty()) {
        return absl::InvalidArgumentError(absl::StrCat(path, ":", device.location().line(),
                                                       ": device: another table is for the same kind"));
      }
      if (choices) {
        ASSIGN_OR_RETURN(known.choices, ParseChoices(*choices, path));
      }
      if (failed) {
        ASSIGN_OR_RETURN(known.failed, ParseFailed(*failed, path));
      }
    }
  }
  return file;
}

const TuningFile::Device& TuningFile::Find(const DeviceKind& kind) const {
  static const Device* const kNone = new Device();
  for (const Device& device : devices_) {
    if (device.kind == kind) return device;
  }
  return *kNone;
}

TuningFile::Device& TuningFile::FindOrAdd(const DeviceKind& kind) {
  for (Device& device : devices_) {
    if (device.kind == kind) return device;
  }
  return devices_.emplace_back(Device{.kind = kind, .choices = {}, .failed = {}});
}

void TuningFile::Set(const DeviceKind& kind, const std::string& problem, TunedChoice choice) {
  FindOrAdd(kind).choices[problem] = std::move(choice);
}

void TuningFile::AddFailed(const DeviceKind& kind, const std::string& problem, const std::string& variant) {
  FindOrAdd(kind).failed[problem].insert(variant);
}

void TuningFile::Add(const TuningFile& other) {
  for (const auto& [kind, choices, failed] : other.devices_) {
    Device& device = FindOrAdd(kind);
    for (const auto& [problem, choice] : choices) device.choices[problem] = choice;
    for (const auto& [problem, variants] : failed) {
      device.failed[problem].insert(variants.begin(), variants.end());
    }
  }
}

std::string TuningFile::Text() const {
  std::string text =
      "# The fastest variants that warplined has found (docs/tuning.md). With --tuning=write it writes this "
      "file "
      "anew: comments are lost.\n";
  for (const auto& [kind, choices, failed] : devices_) {
    absl::StrAppend(&text, "\n[[device]]\nname = ", Quoted(kind.name),
                    "\ncompute-capability = ", Quoted(kind.compute_capability),
                    "\nmultiprocessors = ", kind.multiprocessors, "\ncublaslt = ", kind.cublaslt,
                    "\ndriver = ", kind.driver, "\n[device.choices]\n");
    for (const auto& [problem, choice] : choices) {
      absl::StrAppendFormat(&text, "%s = { variant = %s, us = %.2f, untuned = %s, untuned-us = %.2f }\n",
                            Quoted(problem), Quoted(choice.variant), choice.us, Quoted(choice.untuned),
                            choice.untuned_us);
    }
    if (failed.empty()) continue;
    absl::StrAppend(&text,
                    "# With these the device failed, so that they are not tried again.\n[device.failed]\n");
    for (const auto& [problem, variants] : failed) {
      absl::StrAppend(
          &text, Quoted(problem), " = [",
          absl::StrJoin(variants, ", ",
                        [](std::string* out, const std::string& variant) { *out += Quoted(variant); }),
          "]\n");
    }
  }
  return text;
}

absl::Status TuningFile::Write(const std::string& path) const {
  const std::string target = TargetOf(path);
  ASSIGN_OR_RETURN(NextFile next, NextFile::Create(target));
  RETURN_IF_ERROR(next.Write(Text()));
  return next.Replace(target);
}

absl::Status TuningFile::CheckWritable(const std::string& path) {
  return NextFile::Create(TargetOf(path)).status();
}

}  // namespace warpline

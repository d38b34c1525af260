#include "server/tuning/tuning_store.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "kernels/status_macros.h"
#include "server/base/read_file.h"
#include "server/base/unique_fd.h"
#include "server/observe/log.h"

namespace warpline {

namespace {

// Some 100,000 problems.
constexpr std::size_t kMaxTuningFileBytes = std::size_t{16} << 20;

absl::Status WithFlag(const std::string& path, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat("--tuning-file=", path, ": ", status.message()));
}

// Daemons that write the same file take turns by a lock on another one beside it, as the file itself is
// replaced. Only their user can hold it; who does not get it for long goes on, since the file stays whole in
// any case.
UniqueFd LockOf(const std::string& target) {
  constexpr absl::Duration kPatience = absl::Seconds(2);
  const std::string name = target + ".lock";
  UniqueFd file(open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  const absl::Time until = absl::Now() + kPatience;
  while (!file.ok() || flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (!file.ok() || (errno != EWOULDBLOCK && errno != EINTR) || absl::Now() > until) {
      Log("warning", "the tuning file is written without a lock",
          {{"lock", name}, {"reason", std::strerror(errno)}});
      break;
    }
    absl::SleepFor(absl::Milliseconds(5));
  }
  return file;
}

}  // namespace

absl::StatusOr<TuningFile> ReadTuningFile(const std::string& path, TuningStore::Mode mode) {
  const absl::StatusOr<std::string> text = ReadFile(path, kMaxTuningFileBytes);
  if (!text.ok() && mode == TuningStore::Mode::kWrite && absl::IsNotFound(text.status())) return TuningFile();
  if (!text.ok()) return WithFlag(path, text.status());
  absl::StatusOr<TuningFile> file = TuningFile::Parse(*text, path);
  if (!file.ok()) return WithFlag(path, file.status());
  return file;
}

absl::Status CheckTuningFileWritable(const std::string& path) {
  absl::Status status = TuningFile::CheckWritable(path);
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat("--tuning-file=", path,
                                                  ": --tuning=write replaces it, and so makes a file "
                                                  "in its folder: ",
                                                  status.message()));
}

absl::StatusOr<std::unique_ptr<TuningStore>> TuningStore::Open(const std::string& path, Mode mode) {
  ASSIGN_OR_RETURN(TuningFile file, ReadTuningFile(path, mode));
  return std::unique_ptr<TuningStore>(new TuningStore(path, mode, std::move(file)));
}

TuningFile::Choices TuningStore::Of(const DeviceKind& kind) const {
  MutexLock lock(&mutex_);
  return file_.Of(kind);
}

FailedVariants TuningStore::FailedOf(const DeviceKind& kind) const {
  MutexLock lock(&mutex_);
  return file_.FailedOf(kind);
}

absl::Status TuningStore::Save() {
  std::error_code error;
  const std::string target = std::filesystem::weakly_canonical(std::filesystem::absolute(path_), error);
  const UniqueFd lock = LockOf(target);
  if (!std::filesystem::exists(target, error)) {
    RETURN_IF_ERROR(file_.Write(path_));
  } else {
    ASSIGN_OR_RETURN(TuningFile file, ReadTuningFile(path_, mode_));
    file.Add(unsaved_);
    RETURN_IF_ERROR(file.Write(path_));
  }
  unsaved_ = TuningFile();
  return absl::OkStatus();
}

void TuningStore::SaveOrLog() {
  if (const absl::Status written = Save(); !written.ok()) {
    Log("warning", "the tuning file was not written", {{"reason", std::string(written.message())}});
  }
}

void TuningStore::Set(const DeviceKind& kind, const std::string& problem, const TunedChoice& choice) {
  MutexLock lock(&mutex_);
  file_.Set(kind, problem, choice);
  unsaved_.Set(kind, problem, choice);
  SaveOrLog();
}

void TuningStore::AddFailed(const DeviceKind& kind, const std::string& problem, const std::string& variant) {
  MutexLock lock(&mutex_);
  file_.AddFailed(kind, problem, variant);
  unsaved_.AddFailed(kind, problem, variant);
  SaveOrLog();
}

}  // namespace warpline

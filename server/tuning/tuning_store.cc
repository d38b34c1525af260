#include "server/tuning/tuning_store.h"

#include <fcntl.h>
#include <sys/file.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"
#include "server/base/read_file.h"
#include "server/base/unique_fd.h"
#include "server/observe/log.h"

namespace warpline {

namespace {

absl::Status WithFlag(const std::string& path, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat("--tuning-file=", path, ": ", status.message()));
}

}  // namespace

absl::StatusOr<TuningFile> ReadTuningFile(const std::string& path, TuningStore::Mode mode) {
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (!text.ok() && mode == TuningStore::Mode::kWrite && absl::IsNotFound(text.status())) return TuningFile();
  if (!text.ok()) return WithFlag(path, text.status());
  absl::StatusOr<TuningFile> file = TuningFile::Parse(*text, path);
  if (!file.ok()) return WithFlag(path, file.status());
  return file;
}

absl::Status CheckTuningFileWritable(const std::string& path) {
  const absl::Status status = TuningFile::CheckWritable(path);
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

absl::Status TuningStore::Save(const DeviceKind& kind, const std::string& problem,
                               const TunedChoice& choice) const {
  std::error_code error;
  const std::filesystem::path target = std::filesystem::weakly_canonical(path_, error);
  const UniqueFd folder(open(target.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // A file system without locks is no reason to write nothing.
  if (folder.ok()) flock(folder.get(), LOCK_EX);
  if (!std::filesystem::exists(target, error)) return file_.Write(path_);
  ASSIGN_OR_RETURN(TuningFile file, ReadTuningFile(path_, mode_));
  file.Set(kind, problem, choice);
  return file.Write(path_);
}

void TuningStore::Set(const DeviceKind& kind, const std::string& problem, const TunedChoice& choice) {
  MutexLock lock(&mutex_);
  file_.Set(kind, problem, choice);
  if (const absl::Status written = Save(kind, problem, choice); !written.ok()) {
    Log("warning", "the tuning file was not written", {{"reason", std::string(written.message())}});
  }
}

}  // namespace warpline

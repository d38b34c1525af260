#include "server/tuning/tuning_store.h"

#include "kernels/status_macros.h"
#include "server/base/read_file.h"
#include "server/observe/log.h"

namespace warpline {

absl::StatusOr<TuningFile> ReadTuningFile(const std::string& path, TuningStore::Mode mode) {
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (text.ok()) return TuningFile::Parse(*text, path);
  if (mode == TuningStore::Mode::kWrite && absl::IsNotFound(text.status())) return TuningFile();
  return text.status();
}

absl::StatusOr<std::unique_ptr<TuningStore>> TuningStore::Open(const std::string& path, Mode mode) {
  ASSIGN_OR_RETURN(TuningFile file, ReadTuningFile(path, mode));
  if (mode == Mode::kWrite) RETURN_IF_ERROR(file.Write(path));
  return std::unique_ptr<TuningStore>(new TuningStore(path, mode, std::move(file)));
}

TuningFile::Choices TuningStore::Of(const DeviceKind& kind) const {
  MutexLock lock(&mutex_);
  return file_.Of(kind);
}

void TuningStore::Set(const DeviceKind& kind, const std::string& problem, const TunedChoice& choice) {
  MutexLock lock(&mutex_);
  file_.Set(kind, problem, choice);
  if (const absl::Status written = file_.Write(path_); !written.ok()) {
    Log("warning", "the tuning file was not written", {{"reason", std::string(written.message())}});
  }
}

}  // namespace warpline

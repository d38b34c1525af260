#include "server/daemon/tune.h"

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "absl/strings/str_cat.h"
#include "kernels/problem_text.h"
#include "kernels/status_macros.h"
#include "server/base/read_file.h"
#include "server/daemon/make_backend.h"
#include "server/device/attempts.h"
#include "server/device/watchdog.h"
#include "server/observe/metrics.h"
#include "server/tuning/tuner.h"

namespace warpline {
namespace {

int Fail(int code, const absl::Status& status) {
  std::fprintf(stderr, "warplined: --tune: %s\n", std::string(status.message()).c_str());
  return code;
}

}  // namespace

absl::StatusOr<std::vector<Problem>> ReadProblems(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  return ParseProblems(text, path);
}

int Tune(const ServerOptions& options, const std::string& path) {
  if (options.tuning != "write") {
    return Fail(2, absl::InvalidArgumentError("needs --tuning=write and --tuning-file"));
  }
  const absl::StatusOr<std::vector<Problem>> problems = ReadProblems(path);
  if (!problems.ok()) return Fail(2, problems.status());
  Metrics metrics;
  // Nothing more can be done on a device that fails, and this process may hang on it.
  const auto fail = [](const absl::Status& status) { std::_Exit(Fail(1, status)); };
  const auto attempts = std::make_shared<Attempts>();
  // Before the backend, so that it goes after the last attempt.
  std::unique_ptr<DeviceWatchdog> watchdog;
  const auto backend = MakeBackend(options, metrics, attempts, fail);
  if (!backend.ok()) return Fail(1, backend.status());
  const std::vector<Tuner*> tuners = (*backend)->tuners();
  if (tuners.empty()) {
    return Fail(1, absl::FailedPreconditionError(
                       absl::StrCat("the ", std::string((*backend)->name()), " backend is not tuned")));
  }
  watchdog = WatchDevices(static_cast<int>((*backend)->devices().size()), options.device_timeout, *attempts,
                          [&](const std::string& stall) { fail(absl::UnavailableError(stall)); });
  double kept = 0, changed = 0, failed = 0;
  for (std::size_t i = 0; i < tuners.size(); ++i) {
    for (const Problem& problem : *problems) tuners[i]->Offer(problem);
    tuners[i]->AwaitIdle(kNever);
    const TuningSeries& series = tuners[i]->series();
    kept += series.kept.Value();
    changed += series.changed.Value();
    failed += series.failed.Value();
  }
  std::printf("%zu problems: %.0f changed, %.0f kept, %.0f not tried; the rest were known, or there twice\n",
              problems->size(), changed, kept, failed);
  return failed > 0 && changed + kept == 0 ? 1 : 0;
}

}  // namespace warpline

#include "client/cli/progress_line.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "absl/time/clock.h"
#include "client/cli/output.h"

namespace warpline::client {
namespace {

// Nobody can read faster updates.
constexpr absl::Duration kPeriod = absl::Milliseconds(100);

}  // namespace

ProgressLine::ProgressLine(std::string what, std::size_t total, bool quiet)
    : what_(std::move(what)),
      total_(total),
      shows_(!quiet && ::isatty(STDERR_FILENO) == 1),
      start_(absl::Now()),
      last_(absl::InfinitePast()) {}

ProgressLine::~ProgressLine() {
  if (columns_ > 0) std::fprintf(stderr, "\r%*s\r", static_cast<int>(columns_), "");
}

Progress ProgressLine::callback() {
  if (!shows_) return nullptr;
  return [this](std::size_t bytes) { Show(bytes); };
}

void ProgressLine::Show(std::size_t bytes) {
  if (!shows_) return;
  const absl::Time now = absl::Now();
  if (now - last_ < kPeriod && bytes < total_) return;
  last_ = now;
  const std::string line = FormatProgress(what_, bytes, total_, now - start_);
  // Pads the line to the width of the previous one, to erase its end.
  std::fprintf(stderr, "\r%-*s", static_cast<int>(columns_), line.c_str());
  std::fflush(stderr);
  columns_ = std::max(columns_, line.size());
}

}  // namespace warpline::client

#include "client/progress.h"

#include <unistd.h>

#include <cstdio>

#include "absl/strings/str_format.h"

namespace warpline::client {
namespace {

constexpr std::size_t kLargeBytes = std::size_t{8} << 20;
constexpr absl::Duration kPatience = absl::Milliseconds(500);  // before a small transfer is worth a line
constexpr double kMiB = 1 << 20;

const char* NameOf(Phase phase) {
  switch (phase) {
    case Phase::kSending:
      return "sending or computing";
    case Phase::kReceiving:
      return "receiving";
    case Phase::kCopying:
      return "storing";
  }
  return "?";
}

}  // namespace

std::string FormatProgress(const Progress& progress) {
  std::string text = NameOf(progress.phase);
  if (progress.bytes > 0) absl::StrAppendFormat(&text, ", %.0f MiB", progress.bytes / kMiB);
  absl::StrAppendFormat(&text, ", %.1f s", absl::ToDoubleSeconds(progress.elapsed));
  return text;
}

ProgressLine::ProgressLine(std::size_t bytes, bool quiet)
    : enabled_(!quiet && ::isatty(STDERR_FILENO) == 1), large_(bytes > kLargeBytes) {}

ProgressLine::~ProgressLine() {
  if (drawn_) std::fputs("\r\x1b[K", stderr);
}

ProgressHook ProgressLine::Hook() {
  if (!enabled_) return nullptr;
  return [this](const Progress& progress) { Draw(progress); };
}

void ProgressLine::Draw(const Progress& progress) {
  if (!drawn_ && !large_ && progress.elapsed < kPatience) return;
  drawn_ = true;
  std::fprintf(stderr, "\r\x1b[K%s", FormatProgress(progress).c_str());
}

}  // namespace warpline::client

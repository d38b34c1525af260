// The `warpline` program: arrays in .npy files, computed by a server.
#include <malloc.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "client/cli/command_line.h"
#include "client/cli/error.h"
#include "kernels/status_macros.h"

namespace warpline::client {
namespace {

// glibc by default returns the memory of each received slice to the kernel, and must then fault it in again.
// These settings keep the memory.
void TuneMalloc() {
  ::mallopt(M_TRIM_THRESHOLD, 1 << 30);
  ::mallopt(M_TOP_PAD, 64 << 20);
  ::mallopt(M_MMAP_THRESHOLD, 32 << 20);
}

absl::Status Run(const std::vector<std::string>& words) {
  CommandLine line;
  ASSIGN_OR_RETURN(const std::string text, line.Parse(words));
  if (text.empty()) return line.Run();
  std::fputs(text.c_str(), stdout);
  return absl::OkStatus();
}

// Returns whether the words ask for JSON, as far as that can be said of words that could not be parsed.
bool AskForJson(const std::vector<std::string>& words) {
  return std::find(words.begin(), words.end(), "--json") != words.end();
}

int Main(int argc, char** argv) {
  TuneMalloc();
  // A failure is reported once at the end, in whole sentences. So gRPC does not log, unless the user has set
  // this.
  ::setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  // gRPC uses Abseil's mutexes. The distribution's Abseil has the deadlock detection of debug builds enabled.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  std::signal(SIGPIPE, SIG_IGN);  // a closed reader of our output then makes write() fail
  const std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  absl::Status status = Run(words);
  // The commands' output was buffered until now.
  const bool printed = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (status.ok() && !printed) status = LocalError("standard output: cannot write");
  if (!status.ok() && AskForJson(words)) {
    std::fprintf(stderr, "%s\n", ComplaintJson(status).c_str());
  } else if (!status.ok()) {
    std::fprintf(stderr, "warpline: %s\n", Complaint(status).c_str());
  }
  return ExitCode(status);
}

}  // namespace
}  // namespace warpline::client

int main(int argc, char** argv) { return warpline::client::Main(argc, argv); }

// The `warpline` program: arrays in .npy files, computed by a server.
#include <grpc/support/log.h>
#include <malloc.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "client/cli/args.h"
#include "client/cli/commands.h"
#include "client/cli/error.h"
#include "client/cli/flags.h"
#include "client/cli/help.h"
#include "kernels/status_macros.h"

namespace warpline::client {
namespace {

using Command = absl::Status (*)(const Args&, const CommonFlags&);

const std::map<std::string_view, Command> kRun = {
    {"transpose", RunTranspose},
    {"gemm", RunGemm},
    {"reduce", RunReduce},
    {"run", RunRun},
    {"put", RunPut},
    {"get", RunGet},
    {"drop", RunDrop},
    {"tensors", RunTensors},
    {"info", RunInfo},
    {"health", RunHealth},
    {"bench", RunBench},
    {"completion", RunCompletion},
};

// glibc gives the memory of each received slice back to the kernel, and faults it in again; these keep it.
void TuneMalloc() {
  ::mallopt(M_TRIM_THRESHOLD, 1 << 30);
  ::mallopt(M_TOP_PAD, 64 << 20);
  ::mallopt(M_MMAP_THRESHOLD, 32 << 20);
}

absl::Status Run(const std::vector<std::string_view>& words) {
  const absl::StatusOr<Args> args = Args::Parse(words, AllFlags());
  if (!args.ok()) return AsUsageError(args.status());
  if (args->Has("version")) {
    std::fputs(VersionText().c_str(), stdout);
    return absl::OkStatus();
  }
  if (args->Has("help") && args->positionals().empty()) {
    std::fputs(HelpText(nullptr).c_str(), stdout);
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const CommandSpec* const command, FindCommand(*args));
  if (args->Has("help")) {
    std::fputs(HelpText(command).c_str(), stdout);
    return absl::OkStatus();
  }
  const absl::StatusOr<CommonFlags> common = CommonFlags::From(*args);
  if (!common.ok()) return AsUsageError(common.status());
  return WithAdviceOnServer(kRun.at(command->name)(*args, *common), common->server);
}

// Of the first word that is a command's name: flags that cannot be parsed leave no better way to tell.
absl::Status WithAdviceOnHelp(const absl::Status& status, const std::vector<std::string_view>& words) {
  for (std::string_view word : words) {
    if (kRun.count(word) > 0) return WithAdviceOnCommand(status, word);
  }
  return status;
}

int Main(int argc, char** argv) {
  TuneMalloc();
  // What fails is told at the end, once and in whole sentences. Whoever looks for a fault asks gRPC itself.
  if (std::getenv("GRPC_VERBOSITY") == nullptr) gpr_set_log_function([](gpr_log_func_args*) {});
  // gRPC's mutexes are Abseil's, and the distribution builds those with the search for deadlocks of debug
  // builds.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  std::signal(SIGPIPE, SIG_IGN);  // a reader of our output that has gone is an error of write()
  const std::vector<std::string_view> words(argv + 1, argv + argc);
  absl::Status status = WithAdviceOnHelp(Run(words), words);
  // What the commands print is buffered until here.
  const bool printed = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (status.ok() && !printed) status = LocalError("standard output: cannot write");
  if (!status.ok()) std::fprintf(stderr, "warpline: %s\n", Complaint(status).c_str());
  return ExitCode(status);
}

}  // namespace
}  // namespace warpline::client

int main(int argc, char** argv) { return warpline::client::Main(argc, argv); }

// kill -9 of a client, wherever it is: the daemon keeps nothing of it.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/e2e/daemon.h"
#include "tests/e2e/requests.h"
#include "tests/e2e/tensors.h"

namespace warpline {
namespace {

// A client (tests/e2e/victim.cc, whose program lies beside the tests') that has come to a phase.
class Victim {
 public:
  Victim(const std::string& path, const std::string& phase, const std::string& backend) {
    const std::string program = std::filesystem::read_symlink("/proc/self/exe").replace_filename("victim");
    int there[2];
    if (pipe(there) != 0) throw std::runtime_error("pipe");
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      dup2(there[1], STDOUT_FILENO);
      close(there[0]);
      close(there[1]);
      execl(program.c_str(), program.c_str(), path.c_str(), phase.c_str(), backend.c_str(), nullptr);
      _exit(127);
    }
    close(there[1]);
    std::string line;
    for (char c = 0; read(there[0], &c, 1) == 1 && c != '\n';) line += c;
    close(there[0]);
    EXPECT_EQ(line, "there") << phase;
  }
  ~Victim() { Kill(); }
  Victim(const Victim&) = delete;
  Victim& operator=(const Victim&) = delete;

  void Kill() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    int status = 0;
    waitpid(std::exchange(pid_, -1), &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status)) << "it ended by itself";
  }

 private:
  pid_t pid_ = -1;
};

class KilledClientsTest : public ::testing::Test {
 protected:
  void ExpectNothingLeft() {
    for (const auto& [name, labels] :
         std::vector<std::pair<std::string, std::string>>{{"warpline_requests_in_flight", ""},
                                                          {"warpline_queue_depth", ""},
                                                          {"warpline_lane_busy", ""},
                                                          {"warpline_admission_bytes", "used"},
                                                          {"warpline_pinned_bytes", "used"},
                                                          {"warpline_regions", ""},
                                                          {"warpline_region_bytes", ""},
                                                          {"warpline_resident_tensors", ""},
                                                          {"warpline_upload_bytes", ""},
                                                          {"warpline_resident_bytes", ""}}) {
      EXPECT_TRUE(daemon_.AwaitMetric(name, labels, 0)) << name << " is " << daemon_.Metric(name, labels);
    }
    EXPECT_TRUE(daemon_.AwaitDescriptors(descriptors_)) << "connections or memory of a client that is gone";
  }
  void ExpectServes() {
    const auto stub = v1::KernelService::NewStub(daemon_.Channel());
    const auto answer =
        CallStub<v1::TransposeResponse>(*stub, &v1::KernelService::Stub::Transpose, IotaTranspose(2, 3));
    EXPECT_TRUE(answer.status.ok()) << answer.status.error_message();
  }

  const std::string path_ = ::testing::TempDir() + "/warpline_killed_" + std::to_string(getpid());
  Daemon daemon_{{"--listen=unix:" + path_, "--region-bytes=1G", "--send-timeout=5s"}};
  int descriptors_ = 0;
};

TEST_F(KilledClientsTest, NothingOfThemIsLeftWhereverTheyWere) {
  ExpectServes();
  descriptors_ = daemon_.Descriptors();
  for (const char* phase : {"connection", "handover", "region", "jobs", "withdrawal", "uploads", "unread",
                            "tensor", "put", "get", "announced", "sending", "computed"}) {
    SCOPED_TRACE(phase);
    Victim(path_, phase, daemon_.backend()).Kill();
    ExpectServes();
    ExpectNothingLeft();
  }
}

// At random moments of what programs do with the library.
TEST_F(KilledClientsTest, NothingOfThemIsLeftWheneverItHappens) {
  ExpectServes();
  descriptors_ = daemon_.Descriptors();
  Victim(path_, "ticket", daemon_.backend()).Kill();  // which is good for half a minute
  std::mt19937 random(1);
  std::uniform_int_distribution<int> milliseconds(0, 150);
  for (int i = 0; i < 10; ++i) {
    // Several, so that they meet one another too.
    Victim one(path_, "all", daemon_.backend()), other(path_, "all", daemon_.backend());
    absl::SleepFor(absl::Milliseconds(milliseconds(random)));
    one.Kill();
    absl::SleepFor(absl::Milliseconds(milliseconds(random)));
    other.Kill();
    ExpectServes();
  }
  ExpectNothingLeft();
  EXPECT_GE(daemon_.Metric("warpline_requests_total", "OK"), 20) << "the victims did nothing";
}

}  // namespace
}  // namespace warpline

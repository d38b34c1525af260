// The real `warpline` program, run by a shell against a daemon of the test's own.
#ifndef WARPLINE_TESTS_E2E_CLI_H_
#define WARPLINE_TESTS_E2E_CLI_H_

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tests/e2e/daemon.h"

namespace warpline {

// How a shell command ended.
struct Finished {
  int code = -1;  // -signal if a signal ended it
  std::string out, err;
};

class CliTest : public ::testing::Test {
 protected:
  explicit CliTest(std::vector<std::string> daemon_flags = {"--echo"});
  ~CliTest() override;

  // Runs `script` in the test's folder. `warpline` there is the program named by $WARPLINE_CLI (set by CMake;
  // else the one beside $WARPLINED), and the daemon is its server.
  Finished Run(const std::string& script) const;

  // Files of the test's folder.
  std::string Path(const std::string& name) const { return folder_ / name; }
  void Put(const std::string& name, const std::string& bytes) const;
  std::string Get(const std::string& name) const;

  Daemon daemon_;
  std::filesystem::path folder_;
};

}  // namespace warpline

#endif  // WARPLINE_TESTS_E2E_CLI_H_

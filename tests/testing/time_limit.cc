// Ends a test binary in which one test stands still, and says which: all tests of a binary are one process to
// ctest, whose own limit would not tell. ctest sets $WARPLINE_TEST_SECONDS_MAX; without it, as in a debugger,
// nothing ends.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

namespace warpline::testing {
namespace {

// The handler writes this, and may not allocate.
char message[512];

void EndOfPatience(int) {
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, message, std::strlen(message));
  std::abort();
}

class TimeLimit : public ::testing::EmptyTestEventListener {
 public:
  explicit TimeLimit(unsigned seconds) : seconds_(seconds) { signal(SIGALRM, EndOfPatience); }
  void OnTestStart(const ::testing::TestInfo& test) override {
    const std::string text = std::string("[  HUNG    ] ") + test.test_suite_name() + "." + test.name() +
                             " has not ended after " + std::to_string(seconds_) + " s\n";
    text.copy(message, sizeof(message) - 1);
    message[std::min(text.size(), sizeof(message) - 1)] = '\0';
    alarm(seconds_);
  }
  void OnTestEnd(const ::testing::TestInfo&) override { alarm(0); }

 private:
  const unsigned seconds_;
};

[[maybe_unused]] const bool installed = [] {
  const char* const seconds = std::getenv("WARPLINE_TEST_SECONDS_MAX");
  if (seconds == nullptr || std::atoi(seconds) <= 0) return false;
  ::testing::UnitTest::GetInstance()->listeners().Append(
      new TimeLimit(static_cast<unsigned>(std::atoi(seconds))));
  return true;
}();

}  // namespace
}  // namespace warpline::testing

// Waits of tests end: where what is awaited never comes, the test fails and says what it was.
#ifndef WARPLINE_TESTS_TESTING_PATIENCE_H_
#define WARPLINE_TESTS_TESTING_PATIENCE_H_

#include <chrono>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>

namespace warpline {

// Far longer than anything takes, on a slow machine and with a sanitizer too: no test is about this time.
constexpr std::chrono::seconds kPatience{120};

// Throws, by which the test fails.
[[noreturn]] inline void NeverCame(std::string_view awaited) {
  throw std::runtime_error("waited " + std::to_string(kPatience.count()) + " s for " + std::string(awaited));
}

// Looks again every `period` until the condition holds, which may be a function that changes something.
template <typename Condition>
void AwaitThat(std::string_view awaited, const Condition& holds,
               std::chrono::microseconds period = std::chrono::milliseconds(1)) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!holds()) {
    if (std::chrono::steady_clock::now() >= end) NeverCame(awaited);
    std::this_thread::sleep_for(period);
  }
}

}  // namespace warpline

#endif  // WARPLINE_TESTS_TESTING_PATIENCE_H_

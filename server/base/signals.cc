#include "server/base/signals.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include "server/base/clock.h"

namespace warpline {
namespace {

constexpr absl::Duration kSameRequest = absl::Milliseconds(500);

// A pipe for the signal numbers, one byte each. Its ends stay open until the process ends.
std::array<int, 2> numbers = {-1, -1};

// A handler may do little more than write.
void Put(int number) {
  const int error = errno;
  const auto byte = static_cast<std::uint8_t>(number);
  static_cast<void>(!write(numbers[1], &byte, sizeof(byte)));
  errno = error;
}

}  // namespace

Signals::Signals() {
  // Without the pipe nobody could wait, and a process that cannot get two descriptors at its start cannot
  // serve.
  if (numbers[0] < 0 && pipe2(numbers.data(), O_CLOEXEC | O_NONBLOCK) != 0) std::abort();
  struct sigaction action {};
  action.sa_handler = Put;
  action.sa_flags = SA_RESTART;
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) sigaction(number, &action, nullptr);
  signal(SIGPIPE, SIG_IGN);
}

int Signals::Await(absl::Duration longest) {
  const MonotonicTime deadline = After(longest);
  for (;;) {
    std::uint8_t number = 0;
    if (read(numbers[0], &number, sizeof(number)) == 1) return number;
    int wait_ms = -1;
    if (deadline != kNever) {
      const auto left = deadline - MonotonicClock::now();
      if (left <= left.zero()) return 0;
      wait_ms = static_cast<int>(
          std::min<std::int64_t>(std::chrono::ceil<std::chrono::milliseconds>(left).count(), 1000000));
    }
    pollfd readable{.fd = numbers[0], .events = POLLIN, .revents = 0};
    poll(&readable, 1, wait_ms);
  }
}

void Signals::Wake() { Put(0); }

FurtherSignal::FurtherSignal(Signals& signals, std::function<bool()> is_urgent, std::function<void()> act)
    : thread_([this, &signals, is_urgent = std::move(is_urgent), act = std::move(act),
               begun = MonotonicClock::now()] {
        for (;;) {
          const int number = signals.Await(absl::InfiniteDuration());
          if (ended_) return;
          const bool is_same = MonotonicClock::now() - begun < absl::ToChronoNanoseconds(kSameRequest);
          if (number == 0 || number == SIGHUP || (is_same && !is_urgent())) continue;
          return act();
        }
      }) {}

FurtherSignal::~FurtherSignal() {
  ended_ = true;
  Signals::Wake();
  thread_.join();
}

}  // namespace warpline
